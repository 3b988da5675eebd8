//! What a rank is told that has waited for the others in vain.

use crate::text::{ranges, table};

/// `ranks`: those that have not called init, in order, each with its host.
pub fn missing(ranks: &[(u32, &str)], world_size: usize) -> String {
    let mut hosts: Vec<(&str, Vec<u32>)> = Vec::new();
    for &(rank, host) in ranks {
        match hosts.iter_mut().find(|(name, _)| *name == host) {
            Some((_, ranks)) => ranks.push(rank),
            None => hosts.push((host, vec![rank])),
        }
    }
    let all: Vec<u32> = ranks.iter().map(|(rank, _)| *rank).collect();
    let word = if all.len() == 1 { "rank" } else { "ranks" };
    let places = hosts.iter().map(|(host, ranks)| match hosts.len() {
        1 => format!("on {host}"),
        _ => format!("{} on {host}", ranges(ranks)),
    });
    format!(
        "{word} {} of {world_size} did not come in time ({}); look at their output, or raise \
         RLAUNCH_INIT_TIMEOUT (seconds)",
        ranges(&all),
        table(places)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_missing_are_named_with_their_hosts() {
        let begins = |ranks: &[(u32, &str)], text: &str| {
            let told = missing(ranks, 8);
            assert!(told.starts_with(text), "{told}");
        };
        begins(
            &[(3, "b")],
            "rank 3 of 8 did not come in time (on b); look at",
        );
        begins(
            &[(1, "a"), (2, "b"), (3, "b"), (4, "b"), (7, "c")],
            "ranks 1-4, 7 of 8 did not come in time (1 on a, 2-4 on b, 7 on c); look at",
        );
    }
}
