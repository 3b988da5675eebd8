//! Rounds in which ours and the peers take turns.
//!
//! Before and after each turn the flag's latency is measured. It has two states on virtual machines,
//! and short messages follow it: only turns that began and ended in one state are compared, and
//! each state has a row of its own.

use super::cases::{Case, SMALL_BYTES_MAX};
use super::contender::{Contender, Run};
use super::options::Options;
use crate::bench::limits::{Flag, Machine};
use crate::bench::table::{best, size_text};

/// Times of all turns at one test and size.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) test: &'static str,
    pub(super) bytes: u64,
    turns: Vec<Turn>,
    /// By contender: it is too slow to be asked again, or failed.
    given_up: Vec<bool>,
    pub(super) errors: Vec<String>,
}

#[derive(Debug)]
struct Turn {
    /// None where it changed, or is not known.
    flag: Option<Flag>,
    /// By contender; NaN where it gave none.
    times_us: Vec<f64>,
}

/// The best of each contender, of the turns of one state.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    /// None: all states together.
    pub(super) flag: Option<Flag>,
    pub(super) times_us: Vec<f64>,
}

impl Results {
    fn new(test: &'static str, bytes: u64, contenders: usize) -> Self {
        Self {
            test,
            bytes,
            turns: Vec::new(),
            given_up: vec![false; contenders],
            errors: Vec::new(),
        }
    }

    /// For short messages one entry for each state that was seen; else one.
    pub(super) fn best(&self) -> Vec<Best> {
        let of = |flag: Option<Flag>| {
            let matching = || {
                let turns = self.turns.iter();
                turns.filter(move |turn| flag.is_none() || turn.flag == flag)
            };
            let times_us = (0..self.given_up.len()).map(|contender| {
                best(
                    &matching()
                        .map(|turn| turn.times_us[contender])
                        .collect::<Vec<_>>(),
                )
            });
            Best {
                flag,
                times_us: times_us.collect(),
            }
        };
        let seen = [Flag::Fast, Flag::Slow];
        let seen = seen.into_iter().filter(|flag| {
            let mut turns = self.turns.iter();
            turns.any(|turn| turn.flag == Some(*flag))
        });
        let by_state: Vec<_> = seen.map(|flag| of(Some(flag))).collect();
        if self.bytes > SMALL_BYTES_MAX || by_state.is_empty() {
            vec![of(None)]
        } else {
            by_state
        }
    }
}

/// Runs a case; what fails leaves a gap and a message, never ends the whole.
pub(super) fn race(
    case: &Case,
    options: &Options,
    contenders: &[(Contender, usize)],
    machine: &Machine,
) -> Vec<Results> {
    let mut all: Vec<Results> = Vec::new();
    for test in case.tests.iter().filter(|test| options.takes(test)) {
        let sizes = if *test == "barrier" {
            &[0][..]
        } else {
            options.sizes(case)
        };
        let new = |size: &u64| Results::new(test, case.bytes(test, *size), contenders.len());
        all.extend(sizes.iter().map(new));
    }
    let rounds = options.rounds.unwrap_or(case.rounds);
    for round in 1..=rounds {
        for at in 0..all.len() {
            let results = &mut all[at];
            eprintln!(
                "x bench: {}, round {round} of {rounds}, {} {}",
                case.name,
                results.test,
                size_text(results.bytes)
            );
            turn(case, results, contenders, machine, round == 1);
            // Who gave up at a size is not asked at a larger one of the same test.
            let (test, given_up) = (results.test, results.given_up.clone());
            for later in all[at + 1..].iter_mut().filter(|later| later.test == test) {
                for (later, earlier) in later.given_up.iter_mut().zip(&given_up) {
                    *later |= *earlier;
                }
            }
        }
    }
    all
}

fn turn(
    case: &Case,
    results: &mut Results,
    contenders: &[(Contender, usize)],
    machine: &Machine,
    is_first: bool,
) {
    let before = machine.flag();
    let mut times_us = Vec::new();
    for (index, (contender, ranks)) in contenders.iter().enumerate() {
        if results.given_up[index] {
            times_us.push(f64::NAN);
            continue;
        }
        let known = results.turns.last().map(|turn| turn.times_us[index]);
        let (iterations, warmups) = calls(results.bytes, *ranks, contender.spins(), known);
        let run = Run {
            test: results.test,
            ranks: *ranks,
            bytes: results.bytes,
            transport: case.transport,
            is_shared: case.is_shared,
            iterations,
            warmups,
            is_checked: is_first,
        };
        let time = contender.time_us(&run);
        let ours = times_us.first().copied().unwrap_or(f64::INFINITY);
        match time {
            Ok(time_us) => {
                results.given_up[index] = contender.spins() && time_us > HOPELESS * ours;
                times_us.push(time_us);
            }
            Err(error) => {
                eprintln!("x bench: {error}");
                results.given_up[index] = true;
                results
                    .errors
                    .push(format!("{}: {error}", contender.name()));
                times_us.push(f64::NAN);
            }
        }
    }
    let after = machine.flag();
    let flag = before.filter(|state| Some(*state) == after);
    results.turns.push(Turn { flag, times_us });
}

/// Slower than ours by this much: asked no further, since each answer takes minutes.
const HOPELESS: f64 = 50.0;

/// Timed calls and warm-ups: some milliseconds for each size. Short runs slip between disturbances,
/// and the best of several rounds counts.
fn calls(bytes: u64, ranks: usize, spins: bool, known_us: Option<f64>) -> (u64, u64) {
    const LONGEST_US: f64 = 2e6;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let is_crowded = ranks > cores;
    let (iterations, warmups) = match (bytes, is_crowded) {
        (0..=4096, false) => (5_000, 1_000),
        (4097..=262_144, false) => (500, 100),
        (262_145..=4_194_304, false) => (50, 10),
        (_, false) => (5, 2),
        (0..=4096, true) => (1_000, 100),
        (4097..=262_144, true) => (200, 20),
        (262_145..=4_194_304, true) => (30, 5),
        (_, true) => (3, 1),
    };
    match known_us {
        Some(known) if known * (iterations + warmups) as f64 > LONGEST_US => {
            (((LONGEST_US / known) as u64).clamp(3, iterations), 1)
        }
        None if is_crowded && spins => (3, 1),
        _ => (iterations, warmups),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(flag: Option<Flag>, ours: f64, theirs: f64) -> Turn {
        Turn {
            flag,
            times_us: vec![ours, theirs],
        }
    }

    #[test]
    fn only_turns_of_one_state_are_compared() {
        let mut results = Results::new("all_reduce", 8, 2);
        results.turns = vec![
            turn(Some(Flag::Fast), 0.2, 0.5),
            turn(Some(Flag::Slow), 0.5, 0.7),
            turn(None, 0.1, 0.9),
            turn(Some(Flag::Fast), 0.3, 0.4),
        ];
        let best = results.best();
        assert_eq!(best.len(), 2);
        assert_eq!(
            (best[0].flag, &best[0].times_us[..]),
            (Some(Flag::Fast), &[0.2, 0.4][..])
        );
        assert_eq!(
            (best[1].flag, &best[1].times_us[..]),
            (Some(Flag::Slow), &[0.5, 0.7][..])
        );
        results.bytes = 1 << 20;
        assert_eq!(results.best()[0].times_us, [0.1, 0.4]);
    }

    #[test]
    fn slow_ones_are_asked_less() {
        assert_eq!(calls(8, 2, true, None), (5_000, 1_000));
        assert_eq!(calls(8, 1000, true, None), (3, 1));
        assert_eq!(calls(8, 2, false, Some(1e6)), (3, 1));
        assert_eq!(calls(1 << 20, 2, false, Some(250.0)), (50, 10));
    }
}
