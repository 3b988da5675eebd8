//! What came out: tables for people, JSON for programs, goals met and missed.

use super::cases::{Case, Kind};
use super::race::Results;
use crate::bench::limits::{Bandwidth, Machine};
use crate::bench::{machine, table};
use std::fmt::Write as _;

#[derive(Debug)]
pub(super) struct Outcome {
    description: String,
    flags_ns: Vec<f64>,
    bandwidths: Vec<Bandwidth>,
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    name: &'static str,
    title: &'static str,
    kind: Kind,
    contenders: Vec<String>,
    rows: Vec<Row>,
    /// What went wrong, once each.
    notes: Vec<String>,
}

#[derive(Debug)]
struct Row {
    test: &'static str,
    bytes: u64,
    flag: Option<&'static str>,
    times_us: Vec<f64>,
    limit_us: Option<f64>,
    /// Ours over the best of theirs; for Python the difference in microseconds.
    ratio: f64,
    goal: Option<f64>,
}

impl Row {
    fn is_met(&self) -> Option<bool> {
        // Without a measurement nothing is met.
        self.goal.map(|goal| self.ratio <= goal)
    }
}

const BANDWIDTH_SIZES: [u64; 3] = [256 << 10, 1 << 20, 64 << 20];

impl Outcome {
    pub(super) fn begin(machine: &Machine) -> Self {
        Self {
            description: machine::describe(),
            flags_ns: machine.flag_ns().into_iter().collect(),
            bandwidths: Vec::new(),
            sections: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        case: &Case,
        contenders: Vec<String>,
        results: &[Results],
        machine: &Machine,
    ) {
        self.flags_ns.extend(machine.flag_ns());
        let mut rows = Vec::new();
        let mut notes: Vec<String> = Vec::new();
        for result in results {
            let limit_us = case
                .has_limit()
                .then(|| machine.all_reduce_us(result.bytes))
                .flatten();
            for best in result.best() {
                let theirs = table::best(&best.times_us[1..]);
                let ours = best.times_us[0];
                let is_slow = best.flag == Some(crate::bench::limits::Flag::Slow);
                rows.push(Row {
                    test: result.test,
                    bytes: result.bytes,
                    flag: best.flag.map(|flag| flag.name()),
                    ratio: match case.kind {
                        _ if !ours.is_finite() || !theirs.is_finite() => f64::NAN,
                        Kind::Python => ours - theirs,
                        _ => ours / theirs,
                    },
                    times_us: best.times_us,
                    limit_us,
                    goal: case.goal(result.test, result.bytes, is_slow),
                });
            }
            for note in result.errors.iter().map(|error| short(error)) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        self.sections.push(Section {
            name: case.name,
            title: case.title,
            kind: case.kind,
            contenders,
            rows,
            notes,
        });
    }

    pub(super) fn skip(&mut self, case: &Case, reason: &str) {
        eprintln!("x bench: {} could not run: {reason}", case.name);
        self.sections.push(Section {
            name: case.name,
            title: case.title,
            kind: case.kind,
            contenders: Vec::new(),
            rows: Vec::new(),
            notes: vec![format!("could not run: {reason}")],
        });
    }

    pub(super) fn end(&mut self, machine: &Machine) {
        let rates = BANDWIDTH_SIZES.map(|bytes| machine.bandwidth(bytes));
        self.bandwidths.extend(rates.into_iter().flatten());
        self.flags_ns.extend(machine.flag_ns());
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = self.description.clone() + "\n";
        self.describe_machine(&mut text);
        for section in &self.sections {
            let _ = write!(text, "\n### {} (`{}`)\n", section.title, section.name);
            if !section.rows.is_empty() {
                let _ = write!(text, "\n{}", section.table());
            }
            for note in &section.notes {
                let _ = write!(text, "\n- {note}\n");
            }
        }
        let judged = self.sections.iter().flat_map(|section| {
            let rows = section.rows.iter();
            rows.filter_map(move |row| Some((section, row, row.is_met()?)))
        });
        let judged: Vec<_> = judged.collect();
        let met = judged.iter().filter(|(_, _, is_met)| *is_met).count();
        let _ = write!(text, "\nGoals met: {met} of {}.", judged.len());
        let missed = judged.iter().filter(|(_, _, is_met)| !is_met);
        let missed = missed.map(|(section, row, _)| {
            let state = row
                .flag
                .map_or(String::new(), |flag| format!(" ({flag} flag)"));
            format!(
                "{} {} {}{state}",
                section.name,
                row.test,
                table::size_text(row.bytes)
            )
        });
        let missed: Vec<_> = missed.collect();
        if !missed.is_empty() {
            let _ = write!(text, " Missed: {}.", missed.join("; "));
        }
        text + "\n"
    }

    fn describe_machine(&self, text: &mut String) {
        if self.flags_ns.is_empty() {
            return;
        }
        let worst = self.flags_ns.iter().copied().fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "A flag written by one core was seen by the other after {:.2} to {:.2} µs (fast: up to \
             0.11).",
            table::best(&self.flags_ns) / 1e3,
            worst / 1e3
        );
        let head = [
            "both cores at once, GB/s each",
            "copy own",
            "copy other's",
            "add other's",
        ];
        let rows = self.bandwidths.iter().map(|rate| {
            let numbers = [rate.copy_own, rate.copy_other, rate.add].map(table::digits);
            [vec![table::size_text(rate.bytes)], numbers.to_vec()].concat()
        });
        let head = head.map(str::to_owned);
        let _ = write!(
            text,
            "\n{}",
            table::markdown(&head, &rows.collect::<Vec<_>>())
        );
    }

    pub(super) fn json(&self) -> String {
        let section = |section: &Section| {
            let rows: Vec<_> = section.rows.iter().map(Row::json).collect();
            let names: Vec<_> = section.contenders.iter().map(|name| quoted(name)).collect();
            let notes: Vec<_> = section.notes.iter().map(|note| quoted(note)).collect();
            format!(
                "{{\"case\": {}, \"title\": {}, \"contenders\": [{}], \"notes\": [{}], \"rows\": [\n    {}]}}",
                quoted(section.name),
                quoted(section.title),
                names.join(", "),
                notes.join(", "),
                rows.join(",\n    ")
            )
        };
        let rate = |rate: &Bandwidth| {
            format!(
                "{{\"bytes\": {}, \"copy_own\": {}, \"copy_other\": {}, \"add\": {}}}",
                rate.bytes,
                number(rate.copy_own),
                number(rate.copy_other),
                number(rate.add)
            )
        };
        let sections: Vec<_> = self.sections.iter().map(section).collect();
        let rates: Vec<_> = self.bandwidths.iter().map(rate).collect();
        let flags: Vec<_> = self.flags_ns.iter().map(|flag| number(*flag)).collect();
        format!(
            "{{\"machine\": {},\n \"flag_ns\": [{}],\n \"gbps_each\": [{}],\n \"cases\": [\n  {}]}}\n",
            quoted(&self.description),
            flags.join(", "),
            rates.join(", "),
            sections.join(",\n  ")
        )
    }
}

impl Section {
    fn table(&self) -> String {
        let mut head = vec!["test".to_owned(), "bytes".to_owned(), "flag".to_owned()];
        head.extend(self.contenders.iter().map(|name| format!("{name} µs")));
        let has_limit = self.rows.iter().any(|row| row.limit_us.is_some());
        if has_limit {
            head.push("bare machine µs".to_owned());
        }
        let ratio = match self.kind {
            Kind::Python => "difference µs",
            Kind::HalfTheRanks => "ratio",
            _ => "ours / best",
        };
        head.extend([ratio, "goal", ""].map(str::to_owned));
        let rows = self.rows.iter().map(|row| {
            let size = if row.test == "barrier" {
                "–".to_owned()
            } else {
                table::size_text(row.bytes)
            };
            let mut cells = vec![row.test.to_owned(), size];
            cells.push(row.flag.unwrap_or("any").to_owned());
            cells.extend(row.times_us.iter().copied().map(table::digits));
            if has_limit {
                cells.push(table::digits(row.limit_us.unwrap_or(f64::NAN)));
            }
            cells.push(table::ratio(row.ratio));
            cells.push(row.goal.map_or("–".to_owned(), table::ratio));
            let verdict = match row.is_met() {
                Some(true) => "met",
                Some(false) => "missed",
                None => "",
            };
            cells.push(verdict.to_owned());
            cells
        });
        table::markdown(&head, &rows.collect::<Vec<_>>())
    }
}

impl Row {
    fn json(&self) -> String {
        let times: Vec<_> = self.times_us.iter().map(|time| number(*time)).collect();
        let optional = |value: Option<f64>| value.map_or("null".to_owned(), number);
        format!(
            "{{\"test\": {}, \"bytes\": {}, \"flag\": {}, \"times_us\": [{}], \"bare_us\": {}, \
             \"ratio\": {}, \"goal\": {}, \"met\": {}}}",
            quoted(self.test),
            self.bytes,
            self.flag.map_or("null".to_owned(), quoted),
            times.join(", "),
            optional(self.limit_us),
            number(self.ratio),
            optional(self.goal),
            self.is_met()
                .map_or("null".to_owned(), |met| met.to_string()),
        )
    }
}

/// What failed and how it began, without the command line, which names folders of one machine.
fn short(error: &str) -> String {
    const LETTERS_MAX: usize = 160;
    let (who, what) = error.split_once(": ").unwrap_or(("", error));
    let what = what
        .split_once(" failed:\n")
        .map_or(what, |(_, words)| words);
    let line = what.lines().find(|line| !line.trim().is_empty());
    let line: String = line.unwrap_or("failed").chars().take(LETTERS_MAX).collect();
    format!("{who}: {line}")
}

/// JSON has no number for what was not measured.
fn number(value: f64) -> String {
    if value.is_finite() {
        format!("{value}")
    } else {
        "null".to_owned()
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratio: f64, goal: Option<f64>) -> Row {
        Row {
            test: "all_reduce",
            bytes: 8,
            flag: Some("fast"),
            times_us: vec![0.2, f64::INFINITY],
            limit_us: None,
            ratio,
            goal,
        }
    }

    #[test]
    fn a_goal_without_a_measurement_is_missed() {
        assert_eq!(row(0.4, Some(0.5)).is_met(), Some(true));
        assert_eq!(row(f64::NAN, Some(0.5)).is_met(), Some(false));
        assert_eq!(row(0.4, None).is_met(), None);
    }

    #[test]
    fn notes_name_no_folder() {
        let error = "MPICH 5: \"/home/a/mpiexec\" \"x\" failed:\n\nno route\nmore";
        assert_eq!(short(error), "MPICH 5: no route");
    }

    #[test]
    fn json_has_numbers_null_and_escapes() {
        let text = row(f64::NAN, Some(0.5)).json();
        for part in [
            "\"times_us\": [0.2, null]",
            "\"ratio\": null",
            "\"met\": false",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(quoted("a \"b\"\n"), "\"a \\\"b\\\"\\u000a\"");
    }
}
