//! From measurements to a [`Tuning`].
//!
//! The model's time is a sum of constants, each as often as a call has it; so the constants are what
//! brings all measured calls of a kind of link nearest, none of them below zero. Where every
//! algorithm of a call was measured, the fastest is kept as such too.

use super::cost::{Amounts, amounts};
use super::tuning::Measured;
use super::{Choice, Costs, Question, Tuning};
use crate::Fold;
use std::collections::BTreeMap;

/// One call, measured under one algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measurement {
    pub question: Question,
    pub choice: Choice,
    pub picoseconds: u64,
}

/// Rounds of coordinate descent: after these nothing moves by a thousandth.
const ROUNDS: usize = 500;

impl Tuning {
    /// Constants of links that nothing was measured on stay those of `before`.
    pub fn from_measurements(before: Costs, measurements: &[Measurement]) -> Self {
        let mut costs = before;
        for is_between in [false, true] {
            let of_link = measurements
                .iter()
                .filter(|one| (one.question.shape.hosts > 1) == is_between && one.picoseconds > 0);
            let rows: Vec<(Amounts, f64)> = of_link
                .map(|one| {
                    let inside = costs.inside_picoseconds(one.question, one.choice);
                    let time = u128::from(one.picoseconds).saturating_sub(inside).max(1);
                    (amounts(one.question, one.choice), time as f64)
                })
                .collect();
            fit(&mut costs, is_between, &rows);
        }
        Self::with_measured(costs, fastest(measurements))
    }
}

/// Brings the constants of one kind of link, and those of ranks, nearest to the rows.
fn fit(costs: &mut Costs, is_between: bool, rows: &[(Amounts, f64)]) {
    let mut constants = costs.constants(is_between).map(|constant| constant as f64);
    if rows.len() < constants.len() {
        return;
    }
    for _ in 0..ROUNDS {
        for at in 0..constants.len() {
            // Errors count in parts of the measured time: short calls are as dear as long ones.
            let (mut slope, mut square) = (0.0, 0.0);
            for (amounts, time) in rows {
                let weights = amounts.map(|amount| amount as f64 / time);
                let model: f64 = weights.iter().zip(&constants).map(|(w, c)| w * c).sum();
                slope += weights[at] * (1.0 - model);
                square += weights[at] * weights[at];
            }
            if square > 0.0 {
                constants[at] = (constants[at] + slope / square).max(0.0);
            }
        }
    }
    costs.set_constants(
        is_between,
        constants.map(|constant| constant.round() as u64),
    );
}

/// The fastest of each call that was measured under at least two algorithms; a length that has the
/// same as the next smaller one needs no entry.
fn fastest(measurements: &[Measurement]) -> Vec<Measured> {
    let mut calls: BTreeMap<_, Vec<&Measurement>> = BTreeMap::new();
    for one in measurements
        .iter()
        .filter(|one| one.question.fold == Fold::Any)
    {
        let Question {
            collective,
            bytes,
            shape,
            ..
        } = one.question;
        let call = (collective, shape.world, shape.hosts, bytes);
        calls.entry(call).or_default().push(one);
    }
    let mut measured: Vec<Measured> = Vec::new();
    for ((collective, world, hosts, bytes), mut of_call) in calls {
        of_call.sort_by_key(|one| one.picoseconds);
        let algorithm = of_call[0].choice.algorithm;
        if of_call.iter().all(|one| one.choice.algorithm == algorithm) {
            continue;
        }
        let next = Measured {
            collective,
            world,
            hosts,
            bytes,
            algorithm,
            segment_bytes: of_call[0].choice.segment_bytes,
        };
        let same_as_before = measured
            .last()
            .is_some_and(|last| Measured { bytes, ..*last } == next);
        if !same_as_before {
            measured.push(next);
        }
    }
    measured
}
