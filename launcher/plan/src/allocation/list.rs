//! The `-H` list: `a,b:2,user@c,[::1]:4,node[01-03]:*`.

use crate::Host;
use crate::spec::{self, SpecError, SpecSlots};
use crate::text::show;

use super::AllocationError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostListEntry {
    pub host: Host,
    pub slots: ListSlots,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListSlots {
    /// Written so many times without a number.
    Mentions(u32),
    /// `:N`, added up.
    Number(u32),
    /// `:*`
    All,
}

/// Parses what stands behind `-H`. Several `-H` are joined with commas by the caller.
pub fn parse_host_list(list: &str) -> Result<Vec<HostListEntry>, AllocationError> {
    if list.trim().is_empty() {
        return Err(AllocationError::Empty);
    }
    let mut entries: Vec<HostListEntry> = Vec::new();
    for word in split(list) {
        let spec = spec::parse(word).map_err(|error| bad_entry(list, word, error))?;
        let slots = match spec.slots {
            None => ListSlots::Mentions(1),
            Some(SpecSlots::Number(slots)) => ListSlots::Number(slots),
            Some(SpecSlots::All) => ListSlots::All,
        };
        for host in spec.hosts(None) {
            match entries.iter_mut().find(|entry| entry.host == host) {
                Some(entry) => entry.slots = add(entry.slots, slots),
                None => entries.push(HostListEntry { host, slots }),
            }
            if entries.len() > HOSTS_MAX {
                let error = SpecError::new(0, format!("more than {HOSTS_MAX} hosts"));
                return Err(bad_entry(list, word, error.hint("write a hostfile")));
            }
        }
    }
    Ok(entries)
}

/// What a command line may name; looking each up among the others stays cheap.
const HOSTS_MAX: usize = 4096;

fn add(one: ListSlots, other: ListSlots) -> ListSlots {
    use ListSlots::{All, Mentions, Number};
    match (one, other) {
        (All, _) | (_, All) => All,
        (Mentions(a), Mentions(b)) => Mentions(a.saturating_add(b)),
        (Mentions(a) | Number(a), Mentions(b) | Number(b)) => Number(a.saturating_add(b)),
    }
}

/// At commas that are not inside brackets.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let at_comma = move |character: char| {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    };
    list.split(at_comma).map(str::trim)
}

fn bad_entry(list: &str, word: &str, error: SpecError) -> AllocationError {
    AllocationError::BadEntry {
        list: show(list),
        word: show(word),
        problem: error.problem,
        hint: error
            .hint
            .unwrap_or_else(|| "-H a,b:2,user@c,[IPv6]:4,node[01-04]".to_owned()),
    }
}
