//! What goes into a collective and what must come out.

use crate::Random;
use rlaunch_schedule::{Algorithm, Program, chunk_range, program};
use rlaunch_wire::Collective;

/// One call of a collective by all ranks of a world, with contributions from a seed.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub collective: Collective,
    pub algorithm: Algorithm,
    pub world: u32,
    pub root: u32,
    /// Elements of the whole vector.
    pub count: usize,
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank}: element {element} is {found}, expected {expected}")]
pub struct WrongResult {
    pub rank: usize,
    pub element: usize,
    pub found: i64,
    pub expected: i64,
}

impl Scenario {
    pub fn programs(&self) -> Vec<Program> {
        (0..self.world)
            .map(|rank| program(self.collective, self.algorithm, self.world, rank, self.root))
            .collect()
    }

    /// Each rank's vector before the call. What a rank does not contribute is random too, so that it
    /// can't be right by chance.
    pub fn inputs(&self) -> Vec<Vec<i64>> {
        let mut random = Random::new(self.seed);
        (0..self.world)
            .map(|_| (0..self.count).map(|_| random.draw() as i64).collect())
            .collect()
    }

    /// Holds each rank's result to what the contributions say.
    pub fn verify(&self, outputs: &[Vec<i64>]) -> Result<(), WrongResult> {
        let inputs = self.inputs();
        for (rank, output) in outputs.iter().enumerate() {
            for chunk in 0..self.world {
                for element in chunk_range(self.count, self.world, chunk) {
                    let Some(expected) = self.expected(&inputs, rank, chunk, element) else {
                        continue;
                    };
                    let found = output[element];
                    if found != expected {
                        return Err(WrongResult {
                            rank,
                            element,
                            found,
                            expected,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// None where any number is right.
    fn expected(
        &self,
        inputs: &[Vec<i64>],
        rank: usize,
        chunk: u32,
        element: usize,
    ) -> Option<i64> {
        let sum = || {
            inputs
                .iter()
                .fold(0_i64, |sum, input| sum.wrapping_add(input[element]))
        };
        match self.collective {
            Collective::AllReduce => Some(sum()),
            Collective::ReduceScatter => (chunk as usize == rank).then(sum),
            Collective::AllGather => Some(inputs[chunk as usize][element]),
            Collective::Broadcast => Some(inputs[self.root as usize][element]),
            _ => None,
        }
    }
}
