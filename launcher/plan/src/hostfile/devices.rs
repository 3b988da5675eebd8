//! `gpus=` and `nics=`: lists of devices of one host.

use rlaunch_wire::limits::{HOST_DEVICES_MAX, WORLD_MAX};

use crate::spec::SpecError;
use crate::text::show;

/// `0,1`, `0-3`, `GPU-…`, `none`. A number alone might be meant as a count, and is refused.
pub(super) fn gpus(value: &str, offset: usize) -> Result<Vec<String>, SpecError> {
    if value == "none" {
        return Ok(Vec::new());
    }
    let lone = value.parse::<u32>().ok().filter(|_| !value.contains('+'));
    if let Some(number) = lone {
        let error = SpecError::new(offset, "a number alone may be a count or a GPU");
        let few = number.saturating_sub(1);
        return Err(error.hint(match number {
            0 => "no GPU: gpus=none; GPU 0 alone: gpus=0-0".to_owned(),
            1 => "one slot: slots=1; GPU 1 alone: gpus=1-1; GPU 0 alone: gpus=0-0".to_owned(),
            _ => format!(
                "{number} slots: slots={number}; the first {number} GPUs: gpus=0-{few}; \
                 GPU {number} alone: gpus={number}-{number}"
            ),
        }));
    }
    let mut found: Vec<String> = Vec::new();
    for (part, offset) in parts(value, offset) {
        let more = match part.split_once('-') {
            _ if part.starts_with("GPU-") || part.starts_with("MIG-") => vec![uuid(part, offset)?],
            None => vec![index(part, part, offset)?.to_string()],
            Some((first, last)) => {
                let (first, last) = (index(first, part, offset)?, index(last, part, offset)?);
                if first > last {
                    let error =
                        SpecError::new(offset, format!("the range `{part}` runs backwards"));
                    return Err(error.hint(format!("write {last}-{first}")));
                }
                (first..=last).map(|gpu| gpu.to_string()).collect()
            }
        };
        for gpu in more {
            if found.contains(&gpu) {
                let problem = format!("GPU {} is there twice", show(&gpu));
                return Err(SpecError::new(offset, problem));
            }
            found.push(gpu);
        }
    }
    Ok(found)
}

fn index(text: &str, part: &str, offset: usize) -> Result<usize, SpecError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<usize>() {
        Ok(number) if digits && number < HOST_DEVICES_MAX => Ok(number),
        Ok(number) if digits => Err(SpecError::new(
            offset,
            format!("GPU {number} is past {}", HOST_DEVICES_MAX - 1),
        )),
        _ => Err(SpecError::new(
            offset,
            format!("`{}` is no GPU", show(part)),
        )),
    }
}

fn uuid(part: &str, offset: usize) -> Result<String, SpecError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-/".contains(&byte);
    if part.len() > "GPU-".len() && part.len() <= NAME_MAX_BYTES && part.bytes().all(plain) {
        return Ok(part.to_owned());
    }
    Err(SpecError::new(
        offset,
        format!("`{}` is no GPU", show(part)),
    ))
}

pub(super) fn nics(value: &str, offset: usize) -> Result<Vec<String>, SpecError> {
    let mut found: Vec<String> = Vec::new();
    for (part, offset) in parts(value, offset) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
        if part.is_empty() || part.len() > NAME_MAX_BYTES || !part.bytes().all(plain) {
            let problem = format!("`{}` is no interface", show(part));
            return Err(SpecError::new(offset, problem));
        }
        if found.iter().any(|known| known == part) {
            return Err(SpecError::new(offset, format!("{part} is there twice")));
        }
        if found.len() == HOST_DEVICES_MAX {
            let problem = format!("more than {HOST_DEVICES_MAX} interfaces");
            return Err(SpecError::new(offset, problem));
        }
        found.push(part.to_owned());
    }
    Ok(found)
}

/// Longest name of a device.
const NAME_MAX_BYTES: usize = 64;

/// The parts between commas, each with where it stands.
fn parts(value: &str, offset: usize) -> impl Iterator<Item = (&str, usize)> {
    let mut at = offset;
    value.split(',').map(move |part| {
        let start = at;
        at += part.len() + 1;
        (part, start)
    })
}

/// Slots of a host whose GPUs are listed: one for each.
pub(super) fn slots_of_gpus(gpus: &[String]) -> Option<u32> {
    u32::try_from(gpus.len())
        .ok()
        .filter(|&slots| slots > 0 && slots <= WORLD_MAX)
}
