//! What other launchers tell their ranks, and how such ranks find each other.
//!
//! Who a rank is, the first of these that is set: `RANK` and `WORLD_SIZE` (rlaunch, torchrun, by
//! hand), `OMPI_COMM_WORLD_*` (Open MPI's mpirun), `PMI_*` (MPICH's mpiexec and its kin), `SLURM_*`
//! (srun; a batch script itself is no rank). Where rank 0 is:
//! 1. `MASTER_ADDR`, if set;
//! 2. 127.0.0.1, if the launcher says that all ranks are on one host;
//! 3. the first host of Slurm's node list: with srun's own order rank 0 is there;
//! 4. else it can't be known, and the error says how to name it.
//!
//! The port comes from `MASTER_PORT`, else from the run's name: several runs on one host don't
//! meet, and where two names lead to the same port the run's name in the greeting tells them apart.

use rlaunch_wire::environment;

use crate::Error;

const LOOPBACK: &str = "127.0.0.1";

/// A launcher's names for what every rank has to know.
struct Names {
    rank: &'static str,
    size: &'static str,
    local_rank: &'static str,
    local_size: &'static str,
}

const RANKS: Names = Names {
    rank: environment::RANK,
    size: environment::WORLD_SIZE,
    local_rank: environment::LOCAL_RANK,
    local_size: environment::LOCAL_WORLD_SIZE,
};

const FOREIGN: [Names; 3] = [
    Names {
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_size: "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    Names {
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_rank: "MPI_LOCALRANKID",
        local_size: "MPI_LOCALNRANKS",
    },
    // SLURM_NTASKS stands in batch scripts too, which are no rank; the step's number does not.
    Names {
        rank: "SLURM_PROCID",
        size: "SLURM_STEP_NUM_TASKS",
        local_rank: "SLURM_LOCALID",
        // srun gives no plain number; ranks count who shares their host.
        local_size: "",
    },
];

/// This rank's place, as its launcher counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) local_rank: Option<u32>,
    pub(crate) local_size: Option<u32>,
    /// Not by RANK and WORLD_SIZE, so that MASTER_ADDR may be missing.
    pub(crate) is_foreign: bool,
}

/// None where nothing tells of a rank: a world of one.
pub(crate) fn place(read: &impl Fn(&str) -> Option<String>) -> Result<Option<Place>, Error> {
    let set = |names: &&Names| read(names.rank).is_some() && read(names.size).is_some();
    let own = read(RANKS.rank).is_some() || read(RANKS.size).is_some_and(|size| size.trim() != "1");
    let names = if own {
        &RANKS
    } else {
        match FOREIGN.iter().find(set) {
            Some(names) => names,
            None => return Ok(None),
        }
    };
    let needed = |name: &str, other: &str| {
        let (value, other_value) = (number(read, name)?, read(other).unwrap_or_default());
        value.ok_or_else(|| Error::Init(format!("{other}={other_value} is set but {name} is not")))
    };
    let (rank, size) = (
        needed(names.rank, names.size)?,
        needed(names.size, names.rank)?,
    );
    if rank >= size {
        return Err(Error::Init(format!(
            "{}={rank} is outside {}={size}; ranks count from 0",
            names.rank, names.size
        )));
    }
    if size > rlaunch_wire::limits::WORLD_MAX {
        return Err(Error::Init(format!(
            "{}={size} is over the limit of {}",
            names.size,
            rlaunch_wire::limits::WORLD_MAX
        )));
    }
    Ok(Some(Place {
        rank,
        size,
        local_rank: number(read, names.local_rank)?,
        local_size: number(read, names.local_size)?,
        is_foreign: !own,
    }))
}

/// Rank 0's address where MASTER_ADDR is not set.
pub(crate) fn address(
    place: &Place,
    read: &impl Fn(&str) -> Option<String>,
) -> Result<String, Error> {
    let one_node = || read("SLURM_STEP_NUM_NODES").is_some_and(|nodes| nodes.trim() == "1");
    if place.local_size == Some(place.size) || (place.local_size.is_none() && one_node()) {
        return Ok(LOOPBACK.to_owned());
    }
    ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"]
        .iter()
        .find_map(|name| first_host(&read(name)?))
        .ok_or_else(|| {
            Error::Init(format!(
                "this is rank {} of {} on several hosts, and nothing says where rank 0 is; hint: \
                 give every rank MASTER_ADDR (mpirun -x MASTER_ADDR=HOST, mpiexec -env MASTER_ADDR \
                 HOST), or start with rlaunch",
                place.rank, place.size
            ))
        })
}

/// What all ranks of one run share and another run does not.
///
/// `hydra` finds the process that MPICH's mpiexec keeps on each host: its variables name no run.
pub(crate) fn run_name(
    read: &impl Fn(&str) -> Option<String>,
    hydra: impl Fn() -> Option<u32>,
) -> Option<String> {
    if let Some(space) = read("PMIX_NAMESPACE") {
        return Some(space);
    }
    if let Some(job) = read("SLURM_JOB_ID") {
        let step = read("SLURM_STEP_ID").unwrap_or_default();
        return Some(format!("slurm {job}.{step}"));
    }
    hydra().map(|process| format!("hydra {process}"))
}

/// A port below the kernel's own range for a run of this name.
pub(crate) fn port_of(run: &str) -> u16 {
    const LOWEST: u32 = 20_000;
    const COUNT: u32 = 12_000;
    // FNV-1a: any hash that is the same on every host.
    let hash = run.bytes().fold(0x811C_9DC5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    (LOWEST + hash % COUNT) as u16
}

/// The nearest ancestor that is MPICH's proxy, by its pid.
pub(crate) fn hydra_proxy() -> Option<u32> {
    const GENERATIONS_MAX: u32 = 16;
    let mut process = std::os::unix::process::parent_id();
    for _ in 0..GENERATIONS_MAX {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // `pid (name) state parent …`; a name may hold any character.
        let (head, tail) = stat.rsplit_once(')')?;
        if head.contains("(hydra_pmi_proxy") {
            return Some(process);
        }
        process = tail.split_whitespace().nth(1)?.parse().ok()?;
        if process <= 1 {
            return None;
        }
    }
    None
}

pub(crate) fn number(
    read: &impl Fn(&str) -> Option<String>,
    name: &str,
) -> Result<Option<u32>, Error> {
    let parse = |text: String| {
        text.trim().parse().map_err(|_| {
            Error::Init(format!(
                "{name}={text:?} is not a number; unset it or correct it"
            ))
        })
    };
    read(name).map(parse).transpose()
}

/// `gpu[007-9,12],login` → `gpu007`.
fn first_host(list: &str) -> Option<String> {
    let mut host = String::new();
    let mut rest = list.trim();
    while let Some(at) = rest.find(['[', ',']) {
        host.push_str(&rest[..at]);
        if rest.as_bytes()[at] == b',' {
            rest = "";
            break;
        }
        let (inside, after) = rest[at + 1..].split_once(']')?;
        host.extend(inside.split(['-', ',']).next());
        rest = after;
    }
    host.push_str(rest);
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader<'a>(variables: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    }

    const OPEN_MPI: &[(&str, &str)] = &[
        ("OMPI_COMM_WORLD_RANK", "3"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ("PMIX_NAMESPACE", "prterun-a-12@1"),
    ];

    #[test]
    fn ranks_of_open_mpi_mpich_and_slurm_are_known() {
        let place = place(&reader(OPEN_MPI)).unwrap().unwrap();
        assert_eq!((place.rank, place.size), (3, 4));
        assert_eq!((place.local_rank, place.local_size), (Some(1), Some(2)));
        let mpich = [
            ("PMI_RANK", "1"),
            ("PMI_SIZE", "2"),
            ("MPI_LOCALNRANKS", "2"),
        ];
        let mpich = super::place(&reader(&mpich)).unwrap().unwrap();
        assert_eq!((mpich.rank, mpich.local_size), (1, Some(2)));
        let srun = [("SLURM_PROCID", "5"), ("SLURM_STEP_NUM_TASKS", "8")];
        assert_eq!(super::place(&reader(&srun)).unwrap().unwrap().rank, 5);
    }

    #[test]
    fn a_batch_script_is_no_rank_and_rank_comes_first() {
        let batch = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")];
        assert_eq!(place(&reader(&batch)).unwrap(), None);
        let both = [OPEN_MPI, &[("RANK", "0"), ("WORLD_SIZE", "2")]].concat();
        assert_eq!(place(&reader(&both)).unwrap().unwrap().size, 2);
    }

    #[test]
    fn rank_0_is_here_or_first_in_slurms_list_or_asked_for() {
        let at = |local_size, variables: &[(&str, &str)]| {
            let place = Place {
                rank: 1,
                size: 4,
                local_rank: None,
                local_size,
                is_foreign: true,
            };
            address(&place, &reader(variables)).map_err(|error| error.to_string())
        };
        assert_eq!(at(Some(4), &[]).unwrap(), LOOPBACK);
        assert_eq!(
            at(None, &[("SLURM_STEP_NUM_NODES", "1")]).unwrap(),
            LOOPBACK
        );
        let list = [("SLURM_STEP_NODELIST", "gpu[007-9,12],login")];
        assert_eq!(at(None, &list).unwrap(), "gpu007");
        assert!(at(Some(2), &[]).unwrap_err().contains("MASTER_ADDR"));
    }

    #[test]
    fn lists_of_hosts_are_read() {
        for (list, host) in [
            ("a", "a"),
            ("a,b", "a"),
            ("rack[2,3]-node[10-12]x,b", "rack2-node10x"),
        ] {
            assert_eq!(first_host(list).as_deref(), Some(host), "{list}");
        }
        assert_eq!(first_host("a[1"), None);
        assert_eq!(first_host(""), None);
    }

    #[test]
    fn runs_have_names_and_ports_of_their_own() {
        let none = || None;
        assert_eq!(
            run_name(&reader(OPEN_MPI), none).as_deref(),
            Some("prterun-a-12@1")
        );
        let slurm = [("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "1")];
        assert_eq!(
            run_name(&reader(&slurm), none).as_deref(),
            Some("slurm 7.1")
        );
        assert_eq!(run_name(&reader(&[]), none), None);
        assert_ne!(port_of("slurm 7.1"), port_of("slurm 7.2"));
        assert!((20_000..32_000).contains(&port_of("x")));
    }
}
