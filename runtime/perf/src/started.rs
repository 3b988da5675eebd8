//! Whether the world is as large as whoever started this process meant it to be.

/// What launchers call the number of processes that they start.
const WORLD_SIZES: &[&str] = &[
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "SLURM_STEP_NUM_TASKS",
];

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name}={meant}, but the ranks did not find each other: this is a world of {world}; hint: start \
     with rlaunch or torchrun, or set MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE on every rank"
)]
pub(crate) struct Lonely {
    name: &'static str,
    meant: u32,
    world: u32,
}

pub(crate) fn check(world: u32, read: impl Fn(&str) -> Option<String>) -> Result<(), Lonely> {
    for &name in WORLD_SIZES {
        // A value that is no number says nothing about the world's size.
        let meant = read(name).and_then(|text| text.trim().parse::<u32>().ok());
        if let Some(meant) = meant
            && world == 1
            && meant > 1
        {
            return Err(Lonely { name, meant, world });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_of_one_under_a_launcher_of_two_is_refused() {
        let mpirun = |name: &str| (name == "OMPI_COMM_WORLD_SIZE").then(|| "2".to_owned());
        let error = check(1, mpirun).unwrap_err().to_string();
        assert!(error.contains("OMPI_COMM_WORLD_SIZE=2"), "{error}");
        assert_eq!(check(2, mpirun), Ok(()));
        assert_eq!(check(1, |_| None), Ok(()));
        assert_eq!(check(1, |_| Some("1".to_owned())), Ok(()));
    }
}
