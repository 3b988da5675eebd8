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
use rlaunch_runtime::Communicator;
use rlaunch_schedule::select::{Costs, Measurement, Preference, Selector, Tuning};
use rlaunch_schedule::{Question, Shape};
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
    let all = Selector::new(Tuning::default(), Preference::default());
    let mut measurements = Vec::new();
    for test in TUNED {
        for bytes in arguments.tuned_sizes() {
            let count = test.count(bytes, DTYPE.size_bytes(), shape.world);
            let Some(question) = question(test, count, DTYPE, shape).filter(|_| count > 0) else {
                continue;
            };
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
                    eprintln!(
                        "rperf: {} of {bytes} B by {name}: {time_us:.1} us",
                        test.name()
                    );
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
        eprintln!("rperf: wrote {file}; set RLAUNCH_TUNE_FILE={file} on every rank to use it");
    }
    Ok(())
}

fn named(path: &Path, source: io::Error) -> Failure {
    Failure::File {
        path: path.to_owned(),
        source,
    }
}

/// The choice that the runtime makes for a call of this test.
fn question(test: Test, count: usize, dtype: DType, shape: Shape) -> Option<Question> {
    let collective = test.collective()?;
    let bytes = match collective {
        Collective::AllToAllV | Collective::Barrier => 0,
        _ => test.size_elements(count, shape.world) * dtype.size_bytes(),
    };
    Some(Question {
        collective,
        bytes,
        shape,
        in_order: false,
    })
}

/// The selection as the runtime makes it, with the user's table and preference.
pub(crate) struct Explainer {
    selector: Selector,
    shape: Shape,
    test: Test,
}

impl Explainer {
    pub(crate) fn new(
        group: &Communicator,
        test: Test,
        read: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        let wrong = |name: &str, error: String| Failure::Argument(format!("{name}: {error}"));
        let preference = match read("RLAUNCH_ALGO") {
            None => Preference::default(),
            Some(text) => text
                .parse()
                .map_err(|error| wrong("RLAUNCH_ALGO", format!("{error}")))?,
        };
        let tuning = match read("RLAUNCH_TUNE_FILE") {
            None => Tuning::default(),
            Some(file) => {
                let text = std::fs::read_to_string(&file)
                    .map_err(|source| named(Path::new(&file), source))?;
                Tuning::from_text(&text).map_err(|error| wrong(&file, error.to_string()))?
            }
        };
        Ok(Self {
            selector: Selector::new(tuning, preference),
            shape: group.shape()?,
            test,
        })
    }

    /// Lines below a row.
    pub(crate) fn explain(&self, row: &Row) -> String {
        if self.shape.hosts == 1 {
            return "#   straight over shared memory: no algorithm to choose\n".into();
        }
        let question = question(self.test, row.count as usize, row.dtype, self.shape);
        let Some(question) = question else {
            return "#   sends and receives: no algorithm to choose\n".into();
        };
        let lines = self.selector.explain(question).into_iter().map(|one| {
            let predicted_us = one.picoseconds as f64 / 1e6;
            let mark = match (one.is_chosen, one.is_allowed) {
                (true, _) => format!(", measured {:.1} us", row.out_of_place.time_us),
                (false, true) => String::new(),
                (false, false) => ", not allowed".to_owned(),
            };
            format!(
                "#   {} {:<18} segments of {:>7} B: predicted {predicted_us:.1} us{mark}\n",
                if one.is_chosen { '>' } else { ' ' },
                one.choice.algorithm.name(),
                one.choice.segment_bytes
            )
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_count_the_bytes_of_all_parts() {
        let shape = Shape {
            world: 4,
            hosts: 2,
            lanes: 2,
        };
        let bytes = |test| question(test, 10, DType::F32, shape).map(|one| one.bytes);
        assert_eq!(bytes(Test::AllReduce), Some(40));
        assert_eq!(bytes(Test::AllGather), Some(160));
        assert_eq!(bytes(Test::Scatter), Some(160));
        assert_eq!(bytes(Test::SendRecv), None);
    }
}
