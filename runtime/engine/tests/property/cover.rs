//! A covering array: few cases, in which every two values of two different parameters meet.

use std::collections::HashSet;

use rlaunch_runtime::{Collective, Op};

use crate::cases::{COLLECTIVES, Case, Memory, reductions};

/// What is varied.
const FACTORS: usize = 8;

/// Repeats itself, so that a failure can be met again.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // SplitMix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// Cases for each of `groups` (a world and its transport), in which every pair of values of
/// (group, collective, type and operation, count, in place, shifted, non-blocking, memory) is met that can be.
pub(crate) fn covering(groups: &[u32], counts: &[usize], seed: u64) -> Vec<Vec<Case>> {
    const TRIES: usize = 30;
    /// A row that brings fewer new pairs than this means that nearly all are met.
    const ROWS_WITHOUT_NEWS_MAX: usize = 40;
    let reductions = reductions();
    let mut random = Random(seed);
    let mut met = HashSet::new();
    let mut cases = vec![Vec::new(); groups.len()];
    let mut without_news = 0;
    while without_news < ROWS_WITHOUT_NEWS_MAX {
        let mut best: Option<(usize, [usize; FACTORS])> = None;
        for _ in 0..TRIES {
            let row = [
                random.below(groups.len()),
                random.below(COLLECTIVES.len()),
                random.below(reductions.len()),
                random.below(counts.len()),
                random.below(2),
                random.below(2),
                random.below(2),
                random.below(Memory::ALL.len()),
            ];
            let news = pairs(&row).filter(|pair| !met.contains(pair)).count();
            if best.is_none_or(|(most, _)| news > most) {
                best = Some((news, row));
            }
        }
        let (news, row) = best.expect("a row was tried");
        if news == 0 {
            without_news += 1;
            continue;
        }
        without_news = 0;
        met.extend(pairs(&row));
        let (dtype, op) = reductions[row[2]];
        let case = Case {
            collective: COLLECTIVES[row[1]],
            dtype,
            op,
            count: counts[row[3]],
            root: random.below(groups[row[0]] as usize) as u32,
            is_in_place: row[4] == 1,
            is_shifted: row[5] == 1,
            is_non_blocking: row[6] == 1,
            memory: Memory::ALL[row[7]],
        };
        if has_meaning(&case) {
            cases[row[0]].push(case);
        }
    }
    cases
}

/// A prefix has no average: of how many?
fn has_meaning(case: &Case) -> bool {
    !(matches!(case.collective, Collective::Scan | Collective::Exscan) && case.op == Op::Avg)
}

fn pairs(row: &[usize; FACTORS]) -> impl Iterator<Item = (usize, usize, usize, usize)> + '_ {
    let positions =
        (0..row.len()).flat_map(|first| (first + 1..FACTORS).map(move |second| (first, second)));
    positions.map(|(first, second)| (first, row[first], second, row[second]))
}

#[test]
fn every_pair_is_met() {
    let groups: Vec<u32> = (1..=8).collect();
    let cases = covering(&groups, &[0, 1, 2], 1);
    let all: Vec<&Case> = cases.iter().flatten().collect();
    for collective in COLLECTIVES {
        for count in [0, 1, 2] {
            let is_met = |case: &&&Case| case.collective == collective && case.count == count;
            assert!(
                all.iter().any(|case| is_met(&case)),
                "{collective} of {count}"
            );
        }
    }
    assert!(all.len() < 6000, "{} cases are no small array", all.len());
}
