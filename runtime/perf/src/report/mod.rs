//! What rank 0 prints and writes: the table, JSON, and a picture.

pub(crate) mod document;
mod table;

use crate::Failure;
use crate::arguments::Arguments;
use crate::clock::utc_now;
use crate::statistics::Spread;
use crate::tune::Explainer;
use crate::types::{dtype_name, op_name};
use document::{AverageBandwidth, Config, Document, Placement, RankLine, ResultLine};
use rlaunch_runtime::{Communicator, Error, World};
use rlaunch_transport::say;
use rlaunch_wire::{DType, Op};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// One size.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    pub(crate) dtype: DType,
    pub(crate) op: Option<Op>,
    pub(crate) root: Option<u32>,
    pub(crate) out_of_place: Measured,
    pub(crate) in_place: Option<Measured>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub(crate) time_us: f64,
    pub(crate) algorithm_gbps: f64,
    pub(crate) bus_gbps: f64,
    pub(crate) iterations: u32,
    pub(crate) spread: Option<Spread>,
    /// None where nothing was checked.
    pub(crate) wrong: Option<u64>,
}

/// How the run ended, the same on every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    /// Wrong elements, or less bandwidth than asked for.
    Bad,
}

/// Collects rows on every rank, so that all know how it ended; prints on rank 0.
pub(crate) struct Report<'a> {
    document: Document,
    arguments: &'a Arguments,
    prints: bool,
    explainer: Option<Explainer>,
}

impl<'a> Report<'a> {
    /// Asks all ranks who they are and prints the head. Called by all ranks.
    pub(crate) fn begin(
        world: &World,
        group: (&Communicator, u32),
        arguments: &'a Arguments,
        wanted_gbps: Option<f64>,
    ) -> Result<Self, Failure> {
        let ranks = ranks(world, group.1)?;
        let mut groups: Vec<_> = ranks.iter().map(|line| line.group).collect();
        groups.sort_unstable();
        groups.dedup();
        let report = Self {
            document: Document {
                program: "rperf",
                document_version: document::VERSION,
                version: env!("CARGO_PKG_VERSION"),
                test: arguments.test.name(),
                start_time: utc_now(),
                end_time: None,
                arguments: std::env::args().skip(1).collect(),
                config: config(arguments),
                world: group.0.size(),
                groups: groups.len() as u32,
                transports: world.transports(),
                authenticated: world.is_authenticated(),
                ranks,
                results: Vec::new(),
                wrong: 0,
                correct: None,
                average_bus_bandwidth: AverageBandwidth {
                    gbps: 0.0,
                    wanted_gbps,
                    reached: None,
                },
            },
            arguments,
            prints: world.rank() == 0,
            explainer: None,
        };
        report.print(|report| table::head(&report.document, arguments))?;
        Ok(report)
    }

    /// Rows that follow are explained.
    pub(crate) fn explain_with(&mut self, explainer: Explainer) {
        self.explainer = Some(explainer);
    }

    pub(crate) fn row(&mut self, row: Row) -> io::Result<()> {
        let line = ResultLine {
            size: row.bytes,
            count: row.count,
            dtype: dtype_name(row.dtype),
            redop: row.op.map(op_name),
            root: row.root,
            out_of_place: placement(&row.out_of_place),
            in_place: row.in_place.as_ref().map(placement),
        };
        for placement in [Some(&line.out_of_place), line.in_place.as_ref()] {
            if let Some(wrong) = placement.and_then(|placement| placement.wrong) {
                self.document.wrong += wrong;
                self.document.correct = Some(self.document.wrong == 0);
            }
        }
        self.print(|report| table::row(&line, report.arguments, &utc_now()))?;
        if let Some(explainer) = &self.explainer {
            let lines = explainer.explain(&row).map_err(io::Error::other)?;
            self.print(|_| lines)?;
        }
        self.document.results.push(line);
        Ok(())
    }

    /// Between repetitions of the whole table.
    pub(crate) fn cycle(&self, number: u32) -> io::Result<()> {
        self.print(|_| format!("# Cycle {number}\n"))
    }

    /// Prints the foot or the document and writes files. Called by all ranks.
    pub(crate) fn end(mut self, world: &World) -> Result<Verdict, Failure> {
        if self.arguments.memory > 0 {
            let peaks = memory_peaks(world)?;
            for (line, peak) in self.document.ranks.iter_mut().zip(peaks) {
                line.memory_peak_bytes = Some(peak);
            }
        }
        self.document.end_time = Some(utc_now());
        let bandwidth = &mut self.document.average_bus_bandwidth;
        bandwidth.gbps = average(&self.document.results);
        // As nccl-tests: a tenth below is still enough.
        let reached = |wanted| bandwidth.gbps >= 0.9 * wanted;
        bandwidth.reached = bandwidth.wanted_gbps.map(reached);
        let bad = self.document.wrong > 0 || bandwidth.reached == Some(false);
        self.print(|report| table::foot(&report.document))?;
        if self.prints {
            self.write_files()?;
        }
        Ok(if bad { Verdict::Bad } else { Verdict::Good })
    }

    fn write_files(&self) -> Result<(), Failure> {
        if self.arguments.json {
            let mut out = io::stdout().lock();
            self.write_json(&mut out)?;
            out.flush()?;
        }
        if let Some(wanted) = &self.arguments.output_file {
            let named = |path: &Path| {
                let path = path.to_owned();
                |source| Failure::File { path, source }
            };
            let (path, mut file) = create_new(wanted).map_err(named(wanted))?;
            self.write_json(&mut file).map_err(named(&path))?;
            say(format_args!("rperf: wrote {}", path.display()));
        }
        if let Some(picture) = &self.arguments.plot {
            let text = serde_json::to_string(&self.document).map_err(io::Error::from)?;
            crate::plot::draw_documents(&[("this run".to_owned(), text)], picture)?;
            say(format_args!("rperf: wrote {}", picture.display()));
        }
        Ok(())
    }

    fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, &self.document)?;
        writeln!(out)
    }

    fn print(&self, text: impl FnOnce(&Self) -> String) -> io::Result<()> {
        if !self.prints || self.arguments.json {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(text(self).as_bytes())?;
        out.flush()
    }
}

fn config(arguments: &Arguments) -> Config {
    Config {
        bytes_min: arguments.bytes().0,
        bytes_max: arguments.bytes().1,
        step_factor: arguments.factor(),
        step_bytes: arguments.factor().is_none().then_some(arguments.step_bytes),
        iterations: arguments.iterations,
        warmups: arguments.warmups,
        aggregated: arguments.aggregated,
        checks: arguments.checks,
        blocking: arguments.blocking,
        time: ["rank 0", "average", "min", "max"][usize::from(arguments.average)],
        processor_time: arguments.processor_time > 0,
        buffers: arguments.buffers().name(),
        rotate: arguments.rotate,
        unaligned: arguments.unaligned,
    }
}

fn placement(measured: &Measured) -> Placement {
    Placement {
        time_us: measured.time_us,
        algbw: measured.algorithm_gbps,
        busbw: measured.bus_gbps,
        wrong: measured.wrong,
        iterations: measured.iterations,
        spread: measured.spread,
    }
}

/// The mean over all rows and both placements, as nccl-tests'.
fn average(results: &[ResultLine]) -> f64 {
    let placements = results
        .iter()
        .flat_map(|line| [Some(&line.out_of_place), line.in_place.as_ref()]);
    let values: Vec<f64> = placements.flatten().map(|one| one.busbw).collect();
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

/// `out.json`, else `out.0.json` and so on: no older result is lost.
fn create_new(wanted: &Path) -> io::Result<(PathBuf, std::fs::File)> {
    const NUMBER_MAX: u32 = 10_000;
    let numbered = |number: u32| wanted.with_extension(format!("{number}.json"));
    for path in [wanted.to_path_buf()]
        .into_iter()
        .chain((0..NUMBER_MAX).map(numbered))
    {
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => return Ok((path, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

const HOST_BYTES: usize = 64;
/// A rank's card: its pid and group, and its host's name cut at [`HOST_BYTES`].
const CARD_WORDS: usize = 2 + HOST_BYTES / 8;

fn ranks(world: &World, group: u32) -> Result<Vec<RankLine>, Error> {
    let mut host = [0_u8; HOST_BYTES];
    let length = world.host().len().min(HOST_BYTES);
    host[..length].copy_from_slice(&world.host().as_bytes()[..length]);
    let mut card = vec![i64::from(std::process::id()), i64::from(group)];
    let words = host.as_chunks::<8>().0;
    card.extend(words.iter().map(|word| i64::from_le_bytes(*word)));

    let mut cards = vec![0_i64; CARD_WORDS * world.size() as usize];
    world.all_gather(&card, &mut cards)?;
    let lines = (0..)
        .zip(cards.chunks_exact(CARD_WORDS))
        .map(|(rank, card)| {
            let name: Vec<u8> = card[2..]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            let name = String::from_utf8_lossy(&name);
            RankLine {
                rank,
                pid: card[0] as u32,
                group: card[1] as u32,
                host: name.trim_end_matches('\0').to_owned(),
                memory_peak_bytes: None,
            }
        });
    Ok(lines.collect())
}

/// Of every rank: what it had in memory at once, shared pages included.
fn memory_peaks(world: &World) -> Result<Vec<u64>, Error> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak_kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok());
    let mut peaks = vec![0_i64; world.size() as usize];
    world.all_gather(&[peak_kib.unwrap_or(0)], &mut peaks)?;
    Ok(peaks.into_iter().map(|kib| kib as u64 * 1024).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_file_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("out.json");
        let names: Vec<_> = (0..3)
            .map(|_| create_new(&wanted).unwrap().0)
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["out.json", "out.0.json", "out.1.json"]);
    }
}
