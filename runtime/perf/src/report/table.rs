//! The table, in nccl-tests' columns, so that what reads theirs reads ours.

use super::document::{Document, Placement, RankLine, ResultLine};
use crate::arguments::Arguments;
use std::fmt::Write as _;

/// Everything above the first row.
pub(crate) fn head(document: &Document, arguments: &Arguments) -> String {
    let config = &document.config;
    let step = match (config.step_factor, config.step_bytes) {
        (Some(factor), _) => format!("{factor}(factor)"),
        (None, bytes) => format!("{}(bytes)", bytes.unwrap_or(0)),
    };
    let iterations = config
        .iterations
        .map_or("what fits in 20 ms".to_owned(), |number| number.to_string());
    let transports = match document.transports.join(", ") {
        none if none.is_empty() => "none: nothing travels".to_owned(),
        names => names,
    };
    let mut text = format!(
        "# rperf {}\n\
         # Collective test starting: {}\n\
         # minBytes {} maxBytes {} step: {step} warmup iters: {} iters: {iterations} agg iters: {} \
         validation: {} unalign: {}\n\
         # {} ranks{}, transports: {transports}; buffers: {}{}\n\
         #\n# Using ranks\n",
        document.version,
        document.test,
        config.bytes_min,
        config.bytes_max,
        config.warmups,
        config.aggregated,
        config.checks,
        config.unaligned,
        document.world,
        if document.groups > 1 {
            format!(" in each of {} groups", document.groups)
        } else {
            String::new()
        },
        config.buffers,
        if config.rotate { ", rotating" } else { "" },
    );
    for line in &document.ranks {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "#  Rank {:2} Group {:2} Pid {:6} on {}",
            line.rank, line.group, line.pid, line.host
        );
    }
    text.push_str("#\n");
    text.push_str(&columns(arguments));
    text
}

fn columns(arguments: &Arguments) -> String {
    let spread = arguments.times_each();
    let time = if arguments.processor_time > 0 {
        "cputime"
    } else {
        "time"
    };
    let placement = |words: [&str; 4], more: [&str; 5]| {
        let [a, b, c, d] = words;
        let mut text = format!("  {a:>7}  {b:>6}  {c:>6}  {d:>6}");
        if spread {
            for word in more {
                let _ = write!(text, "  {word:>7}");
            }
        }
        text
    };
    let names = placement(
        [time, "algbw", "busbw", "#wrong"],
        ["i_min", "i_p50", "i_p99", "i_max", "i_cv%"],
    );
    let units = placement(
        ["(us)", "(GB/s)", "(GB/s)", ""],
        ["(us)", "(us)", "(us)", "(us)", ""],
    );
    let width = names.len();
    let left = |a: &str, b: &str, c: &str, d: &str, e: &str| {
        format!("# {a:>10}  {b:>12}  {c:>8}  {d:>6}  {e:>6}")
    };
    let lines = [
        format!(
            "{}{:^width$}{:^width$}",
            left("", "", "", "", ""),
            "out-of-place",
            "in-place"
        ),
        format!(
            "{}{names}{names}",
            left("size", "count", "type", "redop", "root")
        ),
        format!("{}{units}{units}", left("(B)", "(elements)", "", "", "")),
    ];
    lines.map(|line| line.trim_end().to_owned() + "\n").concat()
}

pub(crate) fn row(line: &ResultLine, arguments: &Arguments, time_of_day: &str) -> String {
    let mut text = format!(
        "{:>12}  {:>12}  {:>8}  {:>6}  {:>6}",
        line.size,
        line.count,
        line.dtype,
        line.redop.unwrap_or("none"),
        line.root.map_or(-1, i64::from),
    );
    placement(&mut text, Some(&line.out_of_place), arguments);
    placement(&mut text, line.in_place.as_ref(), arguments);
    if arguments.timestamps > 0 {
        let _ = write!(text, "  {time_of_day}");
    }
    text.push('\n');
    text
}

fn placement(text: &mut String, placement: Option<&Placement>, arguments: &Arguments) {
    const MISSING: &str = "N/A";
    let Some(placement) = placement else {
        let _ = write!(
            text,
            "  {MISSING:>7}  {MISSING:>6}  {MISSING:>6}  {MISSING:>6}"
        );
        if arguments.times_each() {
            let _ = write!(text, "{}", format!("  {MISSING:>7}").repeat(5));
        }
        return;
    };
    let wrong = placement
        .wrong
        .map_or(MISSING.to_owned(), |count| count.to_string());
    let _ = write!(
        text,
        "  {:>7}  {:>6.2}  {:>6.2}  {wrong:>6}",
        time_text(placement.time_us),
        placement.algbw,
        placement.busbw
    );
    if !arguments.times_each() {
        return;
    }
    let Some(spread) = placement.spread else {
        text.push_str(&format!("  {MISSING:>7}").repeat(5));
        return;
    };
    for time in [spread.min_us, spread.p50_us, spread.p99_us, spread.max_us] {
        let _ = write!(text, "  {:>7}", time_text(time));
    }
    let _ = write!(text, "  {:>7.1}", spread.cv_percent);
}

/// Everything below the last row.
pub(crate) fn foot(document: &Document) -> String {
    let mut text = String::new();
    if document
        .ranks
        .iter()
        .any(|line| line.memory_peak_bytes.is_some())
    {
        let peak = |line: &RankLine| {
            format!(
                "#  Rank {:2} used {} MiB of memory at most\n",
                line.rank,
                line.memory_peak_bytes.unwrap_or(0) >> 20
            )
        };
        text.extend(document.ranks.iter().map(peak));
    }
    let verdict = match document.correct {
        Some(false) => "FAILED",
        Some(true) => "OK",
        None => "unchecked",
    };
    let bandwidth = &document.average_bus_bandwidth;
    let reached = match bandwidth.reached {
        Some(false) => " FAILED",
        Some(true) => " OK",
        None => "",
    };
    let _ = write!(
        text,
        "# Out of bounds values : {} {verdict}\n\
         # Avg bus bandwidth    : {:.6}{reached}\n\
         #\n# Collective test concluded: {}\n",
        document.wrong, bandwidth.gbps, document.test
    );
    text
}

/// Four digits that count, as far as a microsecond's hundredth.
fn time_text(time_us: f64) -> String {
    match time_us {
        short if short < 100.0 => format!("{short:.2}"),
        middle if middle < 10_000.0 => format!("{middle:.1}"),
        long => format!("{long:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> ResultLine {
        ResultLine {
            size: 1024,
            count: 256,
            dtype: "float",
            redop: Some("sum"),
            root: None,
            out_of_place: Placement {
                time_us: 12.345,
                algbw: 0.083,
                busbw: 0.083,
                wrong: None,
                iterations: 20,
                spread: None,
            },
            in_place: None,
        }
    }

    #[test]
    fn a_row_stands_in_its_columns() {
        let arguments = Arguments::read(["rperf", "all_reduce"]).unwrap();
        let text = row(&line(), &arguments, "");
        let words: Vec<_> = text.split_whitespace().collect();
        let expected = "1024 256 float sum -1 12.35 0.08 0.08 N/A N/A N/A N/A N/A";
        assert_eq!(words.join(" "), expected);
        let heads = columns(&arguments);
        let names = heads.lines().nth(1).unwrap();
        assert_eq!(names.len() + 1, text.len(), "{names}\n{text}");
    }

    /// Scripts that read nccl-tests' table find these.
    #[test]
    fn the_head_has_nccl_tests_words() {
        let arguments = Arguments::read(["rperf", "all_reduce", "-I", "1"]).unwrap();
        let names = columns(&arguments);
        let words: Vec<_> = names.lines().nth(1).unwrap().split_whitespace().collect();
        let expected = "# size count type redop root time algbw busbw #wrong i_min i_p50 i_p99";
        assert_eq!(words[..13].join(" "), expected);
    }
}
