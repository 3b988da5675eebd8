//! In which order the steps of a program's segments go.

use crate::{Program, Step};

/// Segments go in pairs, and a step of one is followed by the same of the other: while the next step
/// of one waits for its data, that of the other keeps the link busy. Each pair of ranks derives the
/// same order of messages from the same numbers, and it is as free of deadlock as the program: what
/// holds for the steps in some order holds for each of them twice in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub segments: usize,
}

/// Segments that take turns.
const TURNS: usize = 2;

impl Order {
    /// Segment and step of number `index`, of `steps` in the order that they have in the program;
    /// none behind the last.
    pub fn at(&self, steps: &[u32], index: usize) -> Option<(usize, u32)> {
        if index >= steps.len() * self.segments {
            return None;
        }
        let per_group = steps.len() * TURNS;
        let (group, within) = (index / per_group, index % per_group);
        let first = group * TURNS;
        let together = TURNS.min(self.segments - first);
        Some((first + within % together, steps[within / together]))
    }

    /// The steps of all segments as one program, and the segment of each.
    pub fn unroll(&self, program: &Program) -> (Program, Vec<usize>) {
        let steps: Vec<u32> = (0..program.steps.len() as u32).collect();
        let mut places = vec![0; self.segments * steps.len()];
        let mut unrolled = Program {
            steps: Vec::with_capacity(places.len()),
            ..program.clone()
        };
        let mut segments = Vec::with_capacity(places.len());
        let mut index = 0;
        while let Some((segment, step)) = self.at(&steps, index) {
            let base = segment * steps.len();
            places[base + step as usize] = index as u32;
            let Step { action, after } = &program.steps[step as usize];
            unrolled.steps.push(Step {
                action: action.clone(),
                after: after
                    .iter()
                    .map(|&after| places[base + after as usize])
                    .collect(),
            });
            segments.push(segment);
            index += 1;
        }
        (unrolled, segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every step of every segment once; a step's segments in order; an odd last one alone.
    #[test]
    fn pairs_of_segments_take_turns() {
        let order = Order { segments: 3 };
        let all: Vec<_> = (0..).map_while(|index| order.at(&[4, 9], index)).collect();
        assert_eq!(all, [(0, 4), (1, 4), (0, 9), (1, 9), (2, 4), (2, 9)]);
        assert_eq!(order.at(&[], 0), None);
    }
}
