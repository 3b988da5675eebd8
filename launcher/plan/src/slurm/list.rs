//! Slurm's two list forms: `node[1-2,4],gpu07` and `3,1(x2)`.

use rlaunch_wire::limits::WORLD_MAX;

use super::error::ListError;
use crate::spec::range;
use crate::text::show;

/// The names of a node list, in its order, as `scontrol show hostnames` prints them.
pub fn expand_nodes(list: &str) -> Result<Vec<String>, ListError> {
    let mut names = Vec::new();
    for word in words(list) {
        let expanded =
            range::expand(word, 0).map_err(|error| ListError::of(word, error.problem))?;
        if names.len() + expanded.len() > WORLD_MAX as usize {
            let problem = format!("more than {WORLD_MAX} hosts");
            return Err(ListError::of(word, problem));
        }
        for name in &expanded {
            check_name(name).map_err(|problem| ListError::of(word, problem))?;
        }
        names.extend(expanded);
    }
    Ok(names)
}

/// A number for each node: `3,1(x2)` is 3 1 1.
pub fn expand_counts(list: &str) -> Result<Vec<u32>, ListError> {
    let mut counts: Vec<u32> = Vec::new();
    for word in list.split(',') {
        let (number, times) = match word.split_once('(') {
            None => (word, 1),
            Some((number, rest)) => {
                let times = rest
                    .strip_prefix('x')
                    .and_then(|rest| rest.strip_suffix(')'))
                    .and_then(whole);
                let times = times.ok_or_else(|| ListError::of(word, "expected N or N(xTIMES)"))?;
                (number, times)
            }
        };
        let number = whole(number).ok_or_else(|| ListError::of(word, "expected N or N(xTIMES)"))?;
        if counts.len() + times as usize > WORLD_MAX as usize {
            let problem = format!("more than {WORLD_MAX} hosts");
            return Err(ListError::of(word, problem));
        }
        counts.extend(std::iter::repeat_n(number, times as usize));
    }
    Ok(counts)
}

/// A count of ranks or hosts: digits alone, within what one job may have.
fn whole(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse::<u32>().ok()).flatten()?;
    (number <= WORLD_MAX).then_some(number)
}

/// At commas outside of brackets.
fn words(list: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    list.split(move |character: char| {
        match character {
            '[' => inside = true,
            ']' => inside = false,
            _ => {}
        }
        character == ',' && !inside
    })
}

/// A name goes to ssh, where one with `-` in front would be an option.
fn check_name(name: &str) -> Result<(), String> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if name.is_empty() {
        return Err("a name is missing".to_owned());
    }
    if name.starts_with('-') {
        return Err("a host's name can't begin with `-`".to_owned());
    }
    match name.chars().find(|character| !allowed(*character)) {
        Some(character) => {
            let character = show(character.encode_utf8(&mut [0; 4]));
            Err(format!("`{character}` can't stand in a host's name"))
        }
        None => Ok(()),
    }
}
