//! Adds up the lines of the same host.

use std::collections::BTreeMap;

use rlaunch_wire::limits::WORLD_MAX;

use super::line::Line;
use super::{HostEntry, LineError};
use crate::Host;
use crate::text::show;

#[derive(Default)]
pub(super) struct Merge {
    index: BTreeMap<Host, usize>,
    entries: Vec<Merged>,
    mentions: u64,
}

struct Merged {
    entry: HostEntry,
    /// Lines without a number.
    unnumbered: u32,
}

impl Merge {
    /// Line `number` names these hosts.
    pub(super) fn add(&mut self, line: &Line, number: u32) -> Result<(), LineError> {
        for host in line.spec.hosts(line.port) {
            self.mentions += 1;
            if self.mentions > u64::from(WORLD_MAX) {
                return Err(too_much(&host, format!("more than {WORLD_MAX} hosts")));
            }
            let at = *self.index.entry(host.clone()).or_insert_with(|| {
                self.entries.push(Merged::new(host, number));
                self.entries.len() - 1
            });
            self.entries[at].add(line)?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<HostEntry> {
        self.entries.into_iter().map(Merged::finish).collect()
    }
}

impl Merged {
    fn new(host: Host, line: u32) -> Self {
        Self {
            entry: HostEntry {
                host,
                slots: None,
                max_slots: None,
                details: Default::default(),
                line,
            },
            unnumbered: 0,
        }
    }

    fn add(&mut self, line: &Line) -> Result<(), LineError> {
        let entry = &mut self.entry;
        match line.slots {
            Some(slots) => entry.slots = Some(entry.slots.unwrap_or(0) + slots),
            None => self.unnumbered += 1,
        }
        if let Some(max) = line.max_slots {
            entry.max_slots = Some(entry.max_slots.unwrap_or(0).saturating_add(max));
        }
        let slots = entry.slots.unwrap_or(0) + self.unnumbered;
        if slots > WORLD_MAX {
            let problem = format!("its lines add up to {slots} slots");
            return Err(too_much(&entry.host, problem));
        }
        let first = entry.line;
        entry.details.add(&line.details).map_err(|what| LineError {
            word: show(&entry.host.name),
            problem: format!("{what} differs from line {first}"),
            expected: "the same on each line of a host".to_owned(),
            hint: None,
        })
    }

    fn finish(self) -> HostEntry {
        let Self {
            mut entry,
            unnumbered,
        } = self;
        entry.slots = match (entry.slots, unnumbered) {
            (None, 1) => None,
            (slots, unnumbered) => Some(slots.unwrap_or(0) + unnumbered),
        };
        if let (Some(slots), Some(max)) = (entry.slots, entry.max_slots) {
            entry.slots = Some(slots.min(max));
        }
        entry
    }
}

fn too_much(host: &Host, problem: String) -> LineError {
    LineError {
        word: show(&host.name),
        problem,
        expected: format!("at most {WORLD_MAX}"),
        hint: None,
    }
}
