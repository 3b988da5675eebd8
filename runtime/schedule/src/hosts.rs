//! Which ranks share memory.

use std::sync::Arc;

/// The host of every rank of a communicator, by number from 0. Equal on all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hosts {
    of_rank: Arc<[u32]>,
}

impl Hosts {
    /// From whatever numbers name the hosts: they are counted in the order of their first ranks.
    pub fn new(names: impl IntoIterator<Item = u32>) -> Self {
        let mut known = Vec::new();
        let number = |name| match known.iter().position(|one| *one == name) {
            Some(number) => number as u32,
            None => {
                known.push(name);
                known.len() as u32 - 1
            }
        };
        Self {
            of_rank: names.into_iter().map(number).collect(),
        }
    }

    /// Hosts of one size, filled in the order of ranks.
    pub fn blocks(world: u32, ranks_per_host: u32) -> Self {
        Self::new((0..world).map(|rank| rank / ranks_per_host))
    }

    pub fn world(&self) -> u32 {
        self.of_rank.len() as u32
    }

    /// By rank.
    pub fn numbers(&self) -> &[u32] {
        &self.of_rank
    }

    pub fn of(&self, rank: u32) -> u32 {
        self.of_rank[rank as usize]
    }

    /// The ranks of each host, in their order.
    pub fn members(&self) -> Vec<Vec<u32>> {
        let hosts = self.of_rank.iter().max().map_or(0, |last| last + 1);
        let mut members = vec![Vec::new(); hosts as usize];
        for (rank, host) in (0..).zip(self.of_rank.iter()) {
            members[*host as usize].push(rank);
        }
        members
    }
}
