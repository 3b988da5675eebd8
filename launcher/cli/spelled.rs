//! What options there are, by every spelling of theirs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clap::Command;

/// Options whose value is a number, so that it may be joined to a long name of one dash.
pub(super) const COUNTING: [&str; 3] = ["np", "nproc-per-node", "nnodes"];

#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) long: String,
    pub(super) takes_value: bool,
    /// Only behind `=`.
    pub(super) value_is_optional: bool,
}

/// clap's own table, by every spelling.
pub(super) struct Table {
    pub(super) longs: BTreeMap<String, Known>,
    pub(super) shorts: BTreeMap<u8, Known>,
}

impl Table {
    /// `np2`: a long name and a number without anything between.
    pub(super) fn joined_number(&self, body: &[u8]) -> Option<(Known, OsString)> {
        let body = std::str::from_utf8(body).ok()?;
        let name = body.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let number = body
            .strip_prefix(name)
            .filter(|number| !number.is_empty())?;
        let known = self.longs.get(&name.replace('_', "-"))?;
        let counts = COUNTING.contains(&known.long.as_str());
        counts.then(|| (known.clone(), number.into()))
    }

    /// For `-hostfilehosts` what was meant: a long name, and behind a blank its value.
    pub(super) fn joined(&self, word: &OsStr, name: &str) -> Option<String> {
        /// Shorter ones begin too many other words.
        const LENGTH_MIN: usize = 4;
        let names = self.longs.iter().filter(|(long, known)| {
            known.takes_value && long.len() >= LENGTH_MIN && name.starts_with(long.as_str())
        });
        let (long, _) = names.max_by_key(|(long, _)| long.len())?;
        let typed = word.to_str()?;
        let body = typed.trim_start_matches('-');
        let (long, rest) = body.split_at_checked(long.len())?;
        // A longer word that is misspelt is no joined value.
        let is_value = !rest.is_empty() && !rest.starts_with(['-', '_', '=']);
        let dashes = &typed[..typed.len() - body.len()];
        is_value.then(|| format!("{dashes}{long} {rest}"))
    }

    pub(super) fn new(command: &Command) -> Self {
        let mut table = Self {
            longs: BTreeMap::new(),
            shorts: BTreeMap::new(),
        };
        for argument in command.get_arguments() {
            let Some(long) = argument.get_long() else {
                continue;
            };
            let takes_value = argument.get_action().takes_values();
            let known = Known {
                long: long.to_owned(),
                takes_value,
                value_is_optional: argument.is_require_equals_set(),
            };
            table.longs.insert(long.to_owned(), known.clone());
            for alias in argument.get_all_aliases().unwrap_or_default() {
                table.longs.insert(alias.to_owned(), known.clone());
            }
            let shorts = argument.get_all_short_aliases().unwrap_or_default();
            for short in argument.get_short().into_iter().chain(shorts) {
                table.shorts.insert(short as u8, known.clone());
            }
        }
        for (long, short) in [("help", b'h'), ("version", b'V')] {
            let known = Known {
                long: long.to_owned(),
                takes_value: false,
                value_is_optional: false,
            };
            table.longs.insert(long.to_owned(), known.clone());
            table.shorts.insert(short, known);
        }
        table
    }
}
