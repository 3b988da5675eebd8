//! What the choice knows of a machine, as a text that all ranks read.
//!
//! ```toml
//! # rlaunch tuning 1
//! [inside]          # picoseconds, between ranks that share memory
//! latency = 700000
//! message = 300000
//! byte = 200
//! [between]         # the same between hosts
//! latency = 12000000
//! message = 4000000
//! byte = 400
//! [rank]
//! reduced_byte = 60
//! copied_byte = 100
//! [[measured]]      # the best for a world, from so many bytes on
//! collective = "all_reduce"
//! world = 4
//! hosts = 1
//! bytes = 65536
//! algorithm = "ring"
//! segment_bytes = 131072
//! ```
//! What is measured of just this world goes before the constants. A word that is not known is an
//! error, for a file that is read in part would mean something else to each reader.

use super::preference::collective;
use super::{Choice, Costs, Question, serves};
use crate::Algorithm;
use rlaunch_wire::Collective;
use std::fmt::Write;

/// Constants and measured choices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tuning {
    pub costs: Costs,
    /// Sorted; of one collective, world and hosts by bytes.
    measured: Vec<Measured>,
}

/// The best choice from a number of bytes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Measured {
    pub(super) collective: Collective,
    pub(super) world: u32,
    pub(super) hosts: u32,
    pub(super) bytes: usize,
    pub(super) algorithm: Algorithm,
    pub(super) segment_bytes: usize,
}

/// Why a text is no tuning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}; write a new file with `rperf --tune FILE`")]
pub struct TuningError {
    pub line: usize,
    pub cause: String,
}

const TITLE: &str = "# rlaunch tuning 1";

impl Tuning {
    /// Reads what [`Tuning::to_text`] writes.
    pub fn from_text(text: &str) -> Result<Self, TuningError> {
        let mut reader = Reader::default();
        for (line, words) in (1..).zip(text.lines()) {
            let failed = |cause| TuningError { line, cause };
            if line == 1 && words.trim() != TITLE {
                let cause = format!("no tuning of this version, which begins with `{TITLE}`");
                return Err(failed(cause));
            }
            let words = words.split('#').next().unwrap_or_default().trim();
            if !words.is_empty() {
                reader.take(words).map_err(failed)?;
            }
        }
        let last = text.lines().count();
        reader
            .finish()
            .map_err(|cause| TuningError { line: last, cause })
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("{TITLE}\n");
        let mut open = "";
        for (section, key, value) in values(&mut self.costs.clone()) {
            if section != open {
                text += &format!("[{section}]\n");
                open = section;
            }
            text += &format!("{key} = {value}\n");
        }
        for one in &self.measured {
            let written = write!(
                text,
                "[[measured]]\ncollective = \"{}\"\nworld = {}\nhosts = {}\nbytes = {}\n\
                 algorithm = \"{}\"\nsegment_bytes = {}\n",
                one.collective, one.world, one.hosts, one.bytes, one.algorithm, one.segment_bytes
            );
            written.expect("a string takes all");
        }
        text
    }

    /// What was measured of the call's world, if it may run.
    pub(super) fn measured(
        &self,
        question: Question,
        is_allowed: impl Fn(Algorithm) -> bool,
    ) -> Option<Choice> {
        let is_of = |one: &&Measured| {
            one.collective == question.collective
                && one.world == question.shape.world
                && one.hosts == question.shape.hosts
                && one.bytes <= question.bytes
        };
        let best = self.measured.iter().rfind(is_of)?;
        let may_run = serves(best.algorithm, question) && is_allowed(best.algorithm);
        may_run.then_some(Choice {
            algorithm: best.algorithm,
            segment_bytes: best.segment_bytes,
        })
    }

    pub(super) fn with_measured(costs: Costs, mut measured: Vec<Measured>) -> Self {
        measured.sort_unstable();
        Self { costs, measured }
    }
}

/// The constants with their sections and keys.
fn values(costs: &mut Costs) -> [(&'static str, &'static str, &mut u64); 8] {
    let Costs {
        inside,
        between,
        reduced_byte,
        copied_byte,
    } = costs;
    [
        ("inside", "latency", &mut inside.latency),
        ("inside", "message", &mut inside.message),
        ("inside", "byte", &mut inside.byte),
        ("between", "latency", &mut between.latency),
        ("between", "message", &mut between.message),
        ("between", "byte", &mut between.byte),
        ("rank", "reduced_byte", reduced_byte),
        ("rank", "copied_byte", copied_byte),
    ]
}

/// A tuning read line by line.
#[derive(Default)]
struct Reader {
    costs: Costs,
    measured: Vec<Measured>,
    section: String,
    entry: Entry,
}

/// What is known so far of a measured choice.
#[derive(Default)]
struct Entry {
    is_open: bool,
    collective: Option<Collective>,
    algorithm: Option<Algorithm>,
    world: Option<u32>,
    hosts: Option<u32>,
    bytes: Option<usize>,
    segment_bytes: Option<usize>,
}

impl Reader {
    fn take(&mut self, words: &str) -> Result<(), String> {
        if words == "[[measured]]" {
            self.close()?;
            self.entry.is_open = true;
            self.section = "measured".into();
            return Ok(());
        }
        if let Some(section) = words.strip_prefix('[') {
            let section = section
                .strip_suffix(']')
                .ok_or("a section without its end")?;
            if !values(&mut self.costs)
                .iter()
                .any(|(name, ..)| *name == section)
            {
                return Err(format!("no section is called `{section}`"));
            }
            self.close()?;
            self.section = section.into();
            return Ok(());
        }
        let (key, value) = words
            .split_once('=')
            .ok_or("neither a section nor key = value")?;
        let (key, value) = (key.trim(), value.trim());
        if self.section == "measured" {
            return self.entry.set(key, value);
        }
        let section = self.section.as_str();
        let mut values = values(&mut self.costs).into_iter();
        let place = values.find(|(name, of_section, _)| *name == section && *of_section == key);
        let (.., place) = place.ok_or_else(|| format!("section `{section}` has no `{key}`"))?;
        *place = number(value)?;
        Ok(())
    }

    /// Ends a measured choice, which must be whole.
    fn close(&mut self) -> Result<(), String> {
        let entry = std::mem::take(&mut self.entry);
        if !entry.is_open {
            return Ok(());
        }
        let missing = || "a measured choice lacks one of its six values".to_owned();
        let (collective, algorithm) = entry.collective.zip(entry.algorithm).ok_or_else(missing)?;
        if !algorithm.serves(collective) {
            return Err(format!("{algorithm} does not serve {collective}"));
        }
        self.measured.push(Measured {
            collective,
            world: entry.world.ok_or_else(missing)?,
            hosts: entry.hosts.ok_or_else(missing)?,
            bytes: entry.bytes.ok_or_else(missing)?,
            algorithm,
            segment_bytes: entry
                .segment_bytes
                .filter(|bytes| *bytes > 0)
                .ok_or_else(missing)?,
        });
        Ok(())
    }

    fn finish(mut self) -> Result<Tuning, String> {
        self.close()?;
        Ok(Tuning::with_measured(self.costs, self.measured))
    }
}

impl Entry {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "collective" => {
                let found = collective(word(value)?);
                self.collective = Some(found.map_err(|error| error.to_string())?);
            }
            "algorithm" => {
                let found = word(value)?.parse::<Algorithm>();
                self.algorithm = Some(found.map_err(|error| error.to_string())?);
            }
            "world" => self.world = Some(number(value)?),
            "hosts" => self.hosts = Some(number(value)?),
            "bytes" => self.bytes = Some(number(value)?),
            "segment_bytes" => self.segment_bytes = Some(number(value)?),
            _ => return Err(format!("a measured choice has no `{key}`")),
        }
        Ok(())
    }
}

fn number<N: std::str::FromStr>(value: &str) -> Result<N, String> {
    value
        .parse()
        .map_err(|_| format!("`{value}` is no whole number of its range"))
}

fn word(value: &str) -> Result<&str, String> {
    let inner = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    inner.ok_or_else(|| format!("`{value}` is no word in quotes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuning() -> Tuning {
        let one = |bytes, algorithm| Measured {
            collective: Collective::AllReduce,
            world: 4,
            hosts: 1,
            bytes,
            algorithm,
            segment_bytes: 65536,
        };
        let measured = vec![one(1024, Algorithm::Ring), one(0, Algorithm::Tree)];
        let mut costs = Costs::default();
        costs.between.byte = 77;
        Tuning::with_measured(costs, measured)
    }

    #[test]
    fn what_is_written_is_read_again() {
        for tuning in [tuning(), Tuning::default()] {
            assert_eq!(Tuning::from_text(&tuning.to_text()), Ok(tuning));
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        let good = tuning().to_text();
        let refusal = |from: &str, to: &str| {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            Tuning::from_text(&bad).unwrap_err().to_string()
        };
        assert!(refusal("tuning 1", "tuning 9").contains("line 1"));
        assert!(
            refusal("latency", "latancy").contains("line 3: section `inside` has no `latancy`")
        );
        assert!(refusal("[rank]", "[rang]").contains("`rang`"));
        assert!(refusal("byte = 77", "byte = -7").contains("`-7` is no whole number"));
        assert!(refusal("\"tree\"", "\"bruck\"").contains("bruck does not serve all_reduce"));
        assert!(refusal("\"tree\"", "tree").contains("quotes"));
        assert!(refusal("hosts = 1\n", "").contains("lacks"));
        assert!(refusal("algorithm = \"tree\"", "algorithm = \"oak\"").contains("`oak`"));
    }
}
