//! The command line of `cargo x bench cpu`.

use super::cases::{CASES, Case};
use crate::bench::options::{count, size};
use std::path::PathBuf;

pub(super) const HELP: &str = "\
cargo x bench cpu [--only CASE,…] [--tests NAME,…] [--sizes 8,64K,…] [--rounds N] [--json FILE]
cases:
";

#[derive(Debug, Default)]
pub(super) struct Options {
    /// Cases by name; all where none is named.
    only: Vec<String>,
    pub(super) tests: Option<Vec<String>>,
    pub(super) sizes: Option<Vec<u64>>,
    pub(super) rounds: Option<usize>,
    pub(super) json: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = arguments.iter();
        let list = |value: &str| value.split(',').map(str::to_owned).collect::<Vec<_>>();
        while let Some(word) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| format!("{word} takes a value\n\n{}", help()))?;
            match word.as_str() {
                "--only" => options.only = list(value),
                "--tests" => options.tests = Some(list(value)),
                "--sizes" => {
                    options.sizes = Some(value.split(',').map(size).collect::<Result<_, _>>()?);
                }
                "--rounds" => options.rounds = Some(count(word, value)?),
                "--json" => options.json = Some(value.into()),
                _ => return Err(format!("no option `{word}`\n\n{}", help())),
            }
        }
        if let Some(unknown) = options.only.iter().find(|name| case(name).is_none()) {
            return Err(format!("no case `{unknown}`\n\n{}", help()));
        }
        Ok(options)
    }

    pub(super) fn cases(&self) -> Vec<&'static Case> {
        if self.only.is_empty() {
            return CASES.iter().collect();
        }
        self.only.iter().filter_map(|name| case(name)).collect()
    }

    pub(super) fn takes(&self, test: &str) -> bool {
        self.tests
            .as_ref()
            .is_none_or(|tests| tests.iter().any(|name| name == test))
    }

    pub(super) fn sizes<'a>(&'a self, case: &'a Case) -> &'a [u64] {
        self.sizes.as_deref().unwrap_or(case.sizes)
    }
}

fn case(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

pub(super) fn help() -> String {
    let lines = CASES
        .iter()
        .map(|case| format!("  {:<9} {}\n", case.name, case.title));
    HELP.to_owned() + &lines.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn cases_and_sizes_are_chosen() {
        let options = parse("--only tcp2,shm2 --sizes 8,64K --rounds 2").unwrap();
        let names: Vec<_> = options.cases().iter().map(|case| case.name).collect();
        assert_eq!(names, ["tcp2", "shm2"]);
        assert_eq!(options.sizes(options.cases()[0]), [8, 65536]);
        assert!(options.takes("broadcast"));
        assert!(!parse("--tests reduce").unwrap().takes("broadcast"));
        for (line, word) in [("--only x", "`x`"), ("--rounds", "value"), ("-n 2", "-n")] {
            assert!(parse(line).unwrap_err().contains(word), "{line}");
        }
    }
}
