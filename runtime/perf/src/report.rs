//! What rank 0 prints: a table with nccl-tests' columns, or JSON.

use crate::arguments::{Arguments, dtype_name};
use rlaunch_runtime::{Error, World};
use rlaunch_wire::{DType, Op};
use serde::Serialize;
use std::io::{self, Write};

/// One size.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    pub(crate) dtype: DType,
    pub(crate) op: Option<Op>,
    pub(crate) root: Option<u32>,
    pub(crate) time_us: f64,
    pub(crate) algorithm_gbps: f64,
    pub(crate) bus_gbps: f64,
    /// None where nothing was checked.
    pub(crate) wrong: Option<u64>,
}

/// Collects rows on every rank, so that all know how it ended; prints on rank 0.
pub(crate) struct Report {
    document: Document,
    json: bool,
    prints: bool,
    wrong: u64,
}

#[derive(Debug, Serialize)]
struct Document {
    program: &'static str,
    version: &'static str,
    test: &'static str,
    arguments: Vec<String>,
    world: u32,
    transports: Vec<&'static str>,
    ranks: Vec<RankLine>,
    results: Vec<ResultLine>,
    wrong: u64,
    /// GB/s, of 10^9 bytes.
    average_bus_bandwidth: f64,
}

#[derive(Debug, Serialize)]
struct RankLine {
    rank: u32,
    pid: u32,
    host: String,
}

#[derive(Debug, Serialize)]
struct ResultLine {
    size: u64,
    count: u64,
    #[serde(rename = "type")]
    dtype: &'static str,
    redop: &'static str,
    root: i64,
    time_us: f64,
    algbw: f64,
    busbw: f64,
    wrong: Option<u64>,
}

impl Report {
    /// Asks all ranks who they are and prints the head. A collective call.
    pub(crate) fn begin(world: &World, arguments: &Arguments) -> Result<Self, crate::Failure> {
        let report = Self {
            document: Document {
                program: "rperf",
                version: env!("CARGO_PKG_VERSION"),
                test: arguments.test.name(),
                arguments: std::env::args().skip(1).collect(),
                world: world.size(),
                transports: world.transports(),
                ranks: ranks(world)?,
                results: Vec::new(),
                wrong: 0,
                average_bus_bandwidth: 0.0,
            },
            json: arguments.json,
            prints: world.rank() == 0,
            wrong: 0,
        };
        if report.prints && !report.json {
            report.head(arguments)?;
        }
        Ok(report)
    }

    pub(crate) fn row(&mut self, row: Row) -> io::Result<()> {
        self.wrong += row.wrong.unwrap_or(0);
        let line = ResultLine {
            size: row.bytes,
            count: row.count,
            dtype: dtype_name(row.dtype),
            redop: row.op.map_or("none", Op::name),
            root: row.root.map_or(-1, i64::from),
            time_us: row.time_us,
            algbw: row.algorithm_gbps,
            busbw: row.bus_gbps,
            wrong: row.wrong,
        };
        if self.prints && !self.json {
            let mut out = io::stdout().lock();
            writeln!(out, "{}", table_line(&line))?;
            out.flush()?;
        }
        self.document.results.push(line);
        Ok(())
    }

    /// Prints the foot; the number of wrong elements.
    pub(crate) fn end(mut self) -> Result<u64, crate::Failure> {
        let rows = self.document.results.len().max(1) as f64;
        let sum: f64 = self.document.results.iter().map(|line| line.busbw).sum();
        self.document.average_bus_bandwidth = sum / rows;
        self.document.wrong = self.wrong;
        if !self.prints {
            return Ok(self.wrong);
        }
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &self.document).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            let verdict = if self.wrong == 0 { "OK" } else { "FAILED" };
            writeln!(out, "# Out of bounds values : {} {verdict}", self.wrong)?;
            writeln!(
                out,
                "# Avg bus bandwidth    : {:.5}",
                self.document.average_bus_bandwidth
            )?;
        }
        out.flush()?;
        Ok(self.wrong)
    }

    fn head(&self, arguments: &Arguments) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let document = &self.document;
        writeln!(out, "# rperf {}: {}", document.version, document.test)?;
        let step = match arguments.step_factor {
            Some(factor) => format!("{factor}(factor)"),
            None => format!("{}(bytes)", arguments.step_bytes),
        };
        writeln!(
            out,
            "# minBytes {} maxBytes {} step: {step} warmup iters: {} iters: {} validation: {}",
            arguments.bytes_min,
            arguments.bytes_max,
            arguments.warmups,
            arguments.iterations,
            arguments.checks
        )?;
        writeln!(
            out,
            "# {} ranks, transports: {}",
            document.world,
            self.transports()
        )?;
        for line in &document.ranks {
            writeln!(
                out,
                "#  Rank {:2} Pid {:6} on {}",
                line.rank, line.pid, line.host
            )?;
        }
        writeln!(out, "#")?;
        writeln!(
            out,
            "#{:>11} {:>12} {:>8} {:>6} {:>6} {:>10} {:>8} {:>8} {:>6}",
            "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"
        )?;
        writeln!(
            out,
            "#{:>11} {:>12} {:>8} {:>6} {:>6} {:>10} {:>8} {:>8}",
            "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)"
        )?;
        out.flush()
    }

    fn transports(&self) -> String {
        let names = self.document.transports.join(", ");
        if names.is_empty() {
            "none: nothing travels".to_owned()
        } else {
            names
        }
    }
}

fn table_line(line: &ResultLine) -> String {
    let wrong = line
        .wrong
        .map_or("N/A".to_owned(), |count| count.to_string());
    format!(
        "{:>12} {:>12} {:>8} {:>6} {:>6} {:>10} {:>8.2} {:>8.2} {:>6}",
        line.size,
        line.count,
        line.dtype,
        line.redop,
        line.root,
        time_text(line.time_us),
        line.algbw,
        line.busbw,
        wrong
    )
}

/// Four digits that count, as far as a microsecond's hundredth.
fn time_text(time_us: f64) -> String {
    match time_us {
        short if short < 100.0 => format!("{short:.2}"),
        middle if middle < 10_000.0 => format!("{middle:.1}"),
        long => format!("{long:.0}"),
    }
}

const HOST_BYTES: usize = 64;
/// A rank's card: its pid, and its host's name cut at [`HOST_BYTES`].
const CARD_WORDS: usize = 1 + HOST_BYTES / 8;

fn ranks(world: &World) -> Result<Vec<RankLine>, Error> {
    let mut host = [0_u8; HOST_BYTES];
    let length = world.host().len().min(HOST_BYTES);
    host[..length].copy_from_slice(&world.host().as_bytes()[..length]);
    let mut card = vec![i64::from(std::process::id())];
    let words = host.as_chunks::<8>().0;
    card.extend(words.iter().map(|word| i64::from_le_bytes(*word)));

    let mut cards = vec![0_i64; CARD_WORDS * world.size() as usize];
    world.all_gather(&card, &mut cards)?;
    let lines = (0..)
        .zip(cards.chunks_exact(CARD_WORDS))
        .map(|(rank, card)| {
            let name: Vec<u8> = card[1..]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            let name = String::from_utf8_lossy(&name);
            RankLine {
                rank,
                pid: card[0] as u32,
                host: name.trim_end_matches('\0').to_owned(),
            }
        });
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_stands_in_its_columns() {
        let line = ResultLine {
            size: 1024,
            count: 256,
            dtype: "float",
            redop: "sum",
            root: -1,
            time_us: 12.345,
            algbw: 0.083,
            busbw: 0.083,
            wrong: None,
        };
        let text = table_line(&line);
        let words: Vec<_> = text.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "1024", "256", "float", "sum", "-1", "12.35", "0.08", "0.08", "N/A"
            ]
        );
    }
}
