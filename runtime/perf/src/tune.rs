//! `--tune FILE`: every algorithm measured between these ranks, and the table made of it.
//! `--explain`: what the model said of a row, beside what was measured.
//!
//! The table that calls use is read by the runtime when a world is made (RLAUNCH_TUNE_FILE); nothing
//! that is measured here changes a choice of this run.

use crate::Failure;
use crate::arguments::Arguments;
use crate::calls::Kind;
use crate::measure::Bench;
use crate::report::Row;
use crate::test::Test;
use rlaunch_runtime::{Communicator, Costs, Error, Measurement, Question, Tuning};
use rlaunch_schedule::Selector;
use rlaunch_transport::say;
use rlaunch_wire::{Collective, DType, Op};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// What has a choice of algorithms that depends on size.
const TUNED: [Test; 8] = [
    Test::AllReduce,
    Test::AllGather,
    Test::ReduceScatter,
    Test::Broadcast,
    Test::Reduce,
    Test::AllToAll,
    Test::Gather,
    Test::Scatter,
];

const DTYPE: DType = DType::F32;

/// Measures and writes. Called by all ranks; rank 0 writes.
pub(crate) fn tune(
    group: &Communicator,
    arguments: &Arguments,
    bench: &mut Bench<'_>,
    file: &Path,
) -> Result<(), Failure> {
    let shape = group.shape()?;
    if shape.hosts == 1 {
        return Err(Failure::Argument(
            "these ranks share memory (or are one): calls go straight over it, without a choice of \
             algorithms; hint: start ranks on several hosts, or set RLAUNCH_TRANSPORT=tcp"
                .into(),
        ));
    }
    let speaks = group.rank() == 0;
    let mut out = None;
    if speaks {
        // Before the minutes of measuring: a table that is in use is not written over.
        let opened = OpenOptions::new().write(true).create_new(true).open(file);
        out = Some(opened.map_err(|source| named(file, source))?);
    }
    let all = Selector::default();
    let mut measurements = Vec::new();
    for test in TUNED {
        for bytes in arguments.tuned_sizes() {
            let count = test.count(bytes, DTYPE.size_bytes(), shape.world);
            let asked = asked(test, count, DTYPE, shape.world).filter(|_| count > 0);
            let Some((collective, bytes_of_all)) = asked else {
                continue;
            };
            let question = Question::new(collective, bytes_of_all, shape);
            for prediction in all.explain(question) {
                let kind = Kind {
                    test,
                    dtype: DTYPE,
                    op: Op::Sum,
                    root: 0,
                    schedule: Some(prediction.choice),
                };
                let time_us = bench.time_us(kind, count)?;
                if speaks {
                    let name = prediction.choice.algorithm;
                    say(format_args!(
                        "rperf: {} of {bytes} B by {name}: {time_us:.1} us",
                        test.name()
                    ));
                }
                measurements.push(Measurement {
                    question,
                    choice: prediction.choice,
                    picoseconds: (time_us * 1e6) as u64,
                });
            }
        }
    }
    if let Some(mut out) = out {
        let tuning = Tuning::from_measurements(Costs::default(), &measurements);
        let written = out.write_all(tuning.to_text().as_bytes());
        written.map_err(|source| named(file, source))?;
        let file = file.display();
        say(format_args!(
            "rperf: wrote {file}; set RLAUNCH_TUNE_FILE={file} on every rank to use it"
        ));
    }
    Ok(())
}

fn named(path: &Path, source: io::Error) -> Failure {
    Failure::File {
        path: path.to_owned(),
        source,
    }
}

/// What a call of this test is to the runtime, and its bytes; `None` for what is no single one.
fn asked(test: Test, count: usize, dtype: DType, world: u32) -> Option<(Collective, usize)> {
    let collective = test.collective()?;
    let bytes = match collective {
        Collective::AllToAllV | Collective::Barrier => 0,
        _ => test.size_elements(count, world) * dtype.size_bytes(),
    };
    Some((collective, bytes))
}

/// Asks the runtime how it chooses.
pub(crate) struct Explainer {
    group: Communicator,
    shares_memory: bool,
    test: Test,
}

impl Explainer {
    pub(crate) fn new(group: Communicator, test: Test) -> Result<Self, Error> {
        Ok(Self {
            shares_memory: group.shape()?.hosts == 1,
            group,
            test,
        })
    }

    /// Lines below a row.
    pub(crate) fn explain(&self, row: &Row) -> Result<String, Error> {
        if self.shares_memory {
            return Ok("#   straight over shared memory: no algorithm to choose\n".into());
        }
        let asked = asked(self.test, row.count as usize, row.dtype, self.group.size());
        let Some((collective, bytes)) = asked else {
            return Ok("#   sends and receives: no algorithm to choose\n".into());
        };
        let reduction = row.op.map(|op| (row.dtype, op));
        let question = self.group.question(collective, bytes, reduction)?;
        let predictions = self.group.explain(question)?;
        let lines = predictions.into_iter().map(|one| {
            let predicted_us = one.picoseconds as f64 / 1e6;
            let mark = match (one.is_chosen, one.is_allowed) {
                (true, _) => format!(", measured {:.1} us", row.out_of_place.time_us),
                (false, true) => String::new(),
                (false, false) => ", not allowed".to_owned(),
            };
            format!(
                "#   {} {:<18} segments of {:>7} B{}: predicted {predicted_us:.1} us{mark}\n",
                if one.is_chosen { '>' } else { ' ' },
                one.choice.algorithm.name(),
                one.choice.segment_bytes,
                if question.is_widened_by(one.choice.algorithm) {
                    " as float32"
                } else {
                    ""
                },
            )
        });
        Ok(lines.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_count_the_bytes_of_all_parts() {
        let bytes = |test| asked(test, 10, DType::F32, 4).map(|(_, bytes)| bytes);
        assert_eq!(bytes(Test::AllReduce), Some(40));
        assert_eq!(bytes(Test::AllGather), Some(160));
        assert_eq!(bytes(Test::Scatter), Some(160));
        assert_eq!(bytes(Test::SendRecv), None);
    }
}
