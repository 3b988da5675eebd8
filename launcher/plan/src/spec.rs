//! `[user@]name[:N]` as hostfile and `-H` both write it, with bracketed IPv6 addresses and ranges.
//!
//! A name may not begin with `-`: handed to ssh it would be an option.

use std::net::Ipv6Addr;

use rlaunch_wire::limits::WORLD_MAX;

use crate::Host;
use crate::text::show;

pub(crate) mod range;

/// `:N` from here on is taken for a port in the wrong place.
const PORT_LIKE_MIN: u32 = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) user: Option<String>,
    /// One, or those of a range.
    pub(crate) names: Vec<String>,
    pub(crate) slots: Option<SpecSlots>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpecSlots {
    Number(u32),
    /// `:*` or `:auto`, in `-H` only.
    All,
}

/// What is wrong, and where in the word (in bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpecError {
    pub(crate) offset: usize,
    pub(crate) problem: String,
    pub(crate) hint: Option<String>,
}

impl Spec {
    pub(crate) fn hosts(&self, port: Option<u16>) -> impl Iterator<Item = Host> + '_ {
        self.names.iter().map(move |name| Host {
            name: name.clone(),
            user: self.user.clone(),
            port,
        })
    }
}

impl SpecError {
    pub(crate) fn new(offset: usize, problem: impl Into<String>) -> Self {
        Self {
            offset,
            problem: problem.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

pub(crate) fn parse(word: &str) -> Result<Spec, SpecError> {
    if let Some(at) = word.find("://") {
        let host = word[at + 3..].split(['/', ':']).next().unwrap_or_default();
        let error = SpecError::new(0, "a URL is no host");
        return Err(error.hint(format!("the host alone: {}", show(host))));
    }
    // The last @: a user may be `name@domain`.
    let (user, rest, start) = match word.rfind('@') {
        Some(at) => (Some(user(&word[..at])?), &word[at + 1..], at + 1),
        None => (None, word, 0),
    };
    if let Some(inner) = rest.strip_prefix('[').filter(|inner| is_address(inner)) {
        return address(inner, start, user);
    }
    let (name, slots) = match rest.find(':') {
        Some(colon) => (
            &rest[..colon],
            Some((&rest[colon + 1..], start + colon + 1)),
        ),
        None => (rest, None),
    };
    if let Some((text, offset)) = slots
        && text.contains(':')
    {
        let error = SpecError::new(offset - 1, "two colons in a name");
        return Err(match rest.parse::<Ipv6Addr>() {
            Ok(_) => error.hint(format!("an IPv6 address stands in brackets: [{rest}]")),
            Err(_) => error.hint("write name:N for N slots, [address]:N for an IPv6 address"),
        });
    }
    if name.is_empty() && slots.is_some() {
        let error = SpecError::new(start, "no name of a host");
        return Err(error.hint("a port is written behind the host: node01 port=22"));
    }
    let names = range::expand(name, start)?;
    for expanded in &names {
        check_name(expanded, start, name)?;
    }
    let slots = slots
        .map(|(text, offset)| colon_slots(text, offset, name))
        .transpose()?;
    Ok(Spec { user, names, slots })
}

/// A number of slots, from `slots=N` or `:N`.
pub(crate) fn number(text: &str, offset: usize, what: &str) -> Result<u32, SpecError> {
    if text.is_empty() {
        return Err(SpecError::new(offset, format!("{what} without a number")));
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let error = SpecError::new(offset, format!("`{}` is not a number", show(text)));
        return Err(match text.trim_end_matches([',', ';']) {
            less if less.len() < text.len() && less.bytes().all(|byte| byte.is_ascii_digit()) => {
                error.hint("options are separated by blanks, without commas")
            }
            _ => error,
        });
    }
    match text.parse::<u32>() {
        Ok(number) if number <= WORLD_MAX => Ok(number),
        _ => Err(SpecError::new(
            offset,
            format!("{what} is more than {WORLD_MAX}"),
        )),
    }
}

fn colon_slots(text: &str, offset: usize, name: &str) -> Result<SpecSlots, SpecError> {
    if text == "*" || text == "auto" {
        return Ok(SpecSlots::All);
    }
    let number = number(text, offset, "the number of slots behind `:`")?;
    if number >= PORT_LIKE_MIN {
        return Err(
            SpecError::new(offset, format!("`:{number}` would be {number} slots")).hint(format!(
                "an ssh port is written in a hostfile: {} port={number}",
                show(name)
            )),
        );
    }
    Ok(SpecSlots::Number(number))
}

pub(crate) fn user(user: &str) -> Result<String, SpecError> {
    if user.is_empty() {
        return Err(SpecError::new(0, "no user in front of `@`"));
    }
    if user.starts_with('-') {
        return Err(SpecError::new(0, "a user's name can't begin with `-`"));
    }
    let allowed = |character: char| character.is_alphanumeric() || "-_.+$@\\".contains(character);
    match user
        .char_indices()
        .find(|(_, character)| !allowed(*character))
    {
        Some((offset, character)) => {
            let character = show(character.encode_utf8(&mut [0; 4]));
            Err(SpecError::new(
                offset,
                format!("`{character}` can't stand in a user's name"),
            ))
        }
        None => Ok(user.to_owned()),
    }
}

/// Whether what follows `[` is an address rather than a range.
fn is_address(inner: &str) -> bool {
    inner
        .split(']')
        .next()
        .is_some_and(|inside| inside.contains(':'))
}

fn address(inner: &str, start: usize, user: Option<String>) -> Result<Spec, SpecError> {
    let Some(end) = inner.find(']') else {
        return Err(SpecError::new(start, "`[` without `]`"));
    };
    let (text, behind) = (&inner[..end], &inner[end + 1..]);
    let (address, zone) = text
        .split_once('%')
        .map_or((text, None), |(a, z)| (a, Some(z)));
    let zone_ok = zone.is_none_or(|zone| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !zone.is_empty() && zone.bytes().all(plain)
    });
    if address.parse::<Ipv6Addr>().is_err() || !zone_ok {
        return Err(SpecError::new(
            start + 1,
            format!("`{}` is no IPv6 address", show(text)),
        ));
    }
    let offset = start + 1 + end + 1;
    let slots = match behind.strip_prefix(':') {
        Some(slots) => Some(colon_slots(slots, offset + 1, &format!("[{text}]"))?),
        None if behind.is_empty() => None,
        None => {
            let problem = format!("`{}` behind the address", show(behind));
            return Err(SpecError::new(offset, problem).hint("[address]:N is N slots"));
        }
    };
    Ok(Spec {
        user,
        names: vec![text.to_owned()],
        slots,
    })
}

/// Checks one name of those that `written`, at `start` in its word, stands for.
fn check_name(name: &str, start: usize, written: &str) -> Result<(), SpecError> {
    if name.is_empty() {
        return Err(SpecError::new(start, "no name of a host"));
    }
    if name.starts_with('-') {
        return Err(SpecError::new(start, "a host's name can't begin with `-`"));
    }
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let Some(character) = name.chars().find(|character| !allowed(*character)) else {
        return Ok(());
    };
    let shown = show(character.encode_utf8(&mut [0; 4]));
    let offset = start + written.find(character).unwrap_or(0);
    let error = SpecError::new(offset, format!("`{shown}` can't stand in a host's name"));
    Err(match character {
        ',' | ';' => error.hint("one host a line"),
        '/' if name.starts_with("/*") => error.hint("comments begin with # or //"),
        '=' => error.hint("a line begins with the host, then its options: node01 slots=4"),
        '^' => error.hint("hosts can't be taken away: leave the line out, or write slots=0"),
        '+' => error.hint("hosts are named, not counted: --nnodes N takes the first N"),
        _ => error,
    })
}

#[cfg(test)]
#[path = "spec/tests.rs"]
mod tests;
