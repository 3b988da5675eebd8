//! `node[01-04,07]` → node01 node02 node03 node04 node07. Several brackets multiply.
//!
//! Numbers keep the width they are written with: `[08-10]` is 08 09 10, `[8-10]` is 8 9 10.

use rlaunch_wire::limits::WORLD_MAX;

use super::SpecError;
use crate::text::show;

/// Longest number in a bracket; longer ones are no host numbers.
const DIGITS_MAX: usize = 9;

/// All names of `text`, which stands at `start` in its word. No bracket: itself.
pub(crate) fn expand(text: &str, start: usize) -> Result<Vec<String>, SpecError> {
    let mut names = vec![String::new()];
    let mut rest = text;
    let mut offset = start;
    loop {
        let Some(open) = rest.find('[') else {
            if let Some(close) = rest.find(']') {
                return Err(SpecError::new(offset + close, "`]` without `[`"));
            }
            names.iter_mut().for_each(|name| name.push_str(rest));
            return Ok(names);
        };
        let (before, behind) = (&rest[..open], &rest[open + 1..]);
        if let Some(close) = before.find(']') {
            return Err(SpecError::new(offset + close, "`]` without `[`"));
        }
        let Some(close) = behind.find(']') else {
            return Err(SpecError::new(offset + open, "`[` without `]`"));
        };
        let numbers = numbers(&behind[..close], offset + open + 1)?;
        if names.len() * numbers.len() > WORLD_MAX as usize {
            let problem = format!("a range of more than {WORLD_MAX} hosts");
            return Err(SpecError::new(offset + open, problem));
        }
        let longer = names.iter().flat_map(|name| {
            numbers
                .iter()
                .map(move |number| format!("{name}{before}{number}"))
        });
        names = longer.collect();
        rest = &behind[close + 1..];
        offset += open + 1 + close + 1;
    }
}

fn numbers(inside: &str, start: usize) -> Result<Vec<String>, SpecError> {
    let mut numbers = Vec::new();
    let mut offset = start;
    for part in inside.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (bound(low, part, offset)?, bound(high, part, offset)?);
        if first > last {
            return Err(
                SpecError::new(offset, format!("the range `{part}` runs backwards"))
                    .hint(format!("write {high}-{low}")),
            );
        }
        if (last - first) as usize + numbers.len() >= WORLD_MAX as usize {
            return Err(SpecError::new(
                offset,
                format!("a range of more than {WORLD_MAX} hosts"),
            ));
        }
        let padded = |text: &str| if text.starts_with('0') { text.len() } else { 0 };
        let width = padded(low).max(padded(high));
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
        offset += part.len() + 1;
    }
    Ok(numbers)
}

fn bound(text: &str, part: &str, offset: usize) -> Result<u32, SpecError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits && text.len() <= DIGITS_MAX {
        return Ok(text.parse().expect("at most 9 digits"));
    }
    Err(
        SpecError::new(offset, format!("`{}` is no range of numbers", show(part)))
            .hint("node[01-04,07] is node01 node02 node03 node04 node07"),
    )
}
