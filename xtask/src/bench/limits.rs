//! What the machine allows, measured by runtime/perf/peers/machine.c: two processes without any
//! runtime.

use super::timed;
use crate::{paths, sh};
use std::path::PathBuf;
use std::process::Command;

/// How quickly one core sees another's store. On virtual machines it flips between about 0.06 and
/// 0.3 µs from one minute to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flag {
    Fast,
    Slow,
}

const FAST_NS_MAX: f64 = 110.0;

impl Flag {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
        }
    }

    fn of(latency_ns: f64) -> Self {
        if latency_ns <= FAST_NS_MAX {
            Self::Fast
        } else {
            Self::Slow
        }
    }
}

/// GB/s of each of two processes at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bandwidth {
    pub(super) bytes: u64,
    pub(super) copy_own: f64,
    pub(super) copy_other: f64,
    pub(super) add: f64,
}

#[derive(Debug)]
pub(super) struct Machine {
    /// None with one core: then there are no two processes at once.
    program: Option<PathBuf>,
}

impl Machine {
    /// Compiles the program, if it is newer than what stands.
    pub(super) fn ensure() -> Result<Self, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if cores < 2 {
            return Ok(Self { program: None });
        }
        let source = paths::root().join("runtime/perf/peers/machine.c");
        let folder = paths::target().join("bench");
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let program = folder.join("machine");
        if super::peers::is_older(&program, &source) {
            let mut compiler = Command::new("cc");
            let compiler = compiler.args(["-O3", "-march=native", "-o"]);
            sh::run(compiler.arg(&program).arg(&source))?;
        }
        Ok(Self {
            program: Some(program),
        })
    }

    pub(super) fn flag(&self) -> Option<Flag> {
        self.flag_ns().map(Flag::of)
    }

    pub(super) fn flag_ns(&self) -> Option<f64> {
        self.ask(&["flag"])?.first().copied()
    }

    pub(super) fn bandwidth(&self, bytes: u64) -> Option<Bandwidth> {
        match self.ask(&["bandwidth", &bytes.to_string()])?[..] {
            [copy_own, copy_other, add] => Some(Bandwidth {
                bytes,
                copy_own,
                copy_other,
                add,
            }),
            _ => None,
        }
    }

    /// Microseconds of a bare all-reduce of two processes on shared buffers.
    pub(super) fn all_reduce_us(&self, bytes: u64) -> Option<f64> {
        self.ask(&["all_reduce", &bytes.to_string()])?
            .first()
            .copied()
    }

    fn ask(&self, words: &[&str]) -> Option<Vec<f64>> {
        let mut command = Command::new(self.program.as_ref()?);
        match timed::output(command.args(words)) {
            Ok(text) => text
                .split_whitespace()
                .map(|word| word.parse().ok())
                .collect(),
            Err(error) => {
                eprintln!("x bench: {error}");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_states_have_their_names() {
        assert_eq!(
            [60.0, 300.0].map(|ns| Flag::of(ns).name()),
            ["fast", "slow"]
        );
    }
}
