//! Words as numbers, ports, addresses and times.

use std::net::IpAddr;
use std::num::{IntErrorKind, ParseIntError};
use std::time::Duration;

use super::SettingsError;
use crate::number;

pub(super) fn whole(
    option: &'static str,
    text: Option<&str>,
) -> Result<Option<u32>, SettingsError> {
    let Some(text) = text else { return Ok(None) };
    text.parse()
        .map(Some)
        .map_err(|error: ParseIntError| SettingsError::Value {
            option,
            value: text.to_owned(),
            problem: match error.kind() {
                IntErrorKind::PosOverflow => "expected a whole number, at most 4294967295",
                _ => "expected a whole number",
            },
        })
}

pub(super) fn port(option: &'static str, text: Option<&str>) -> Result<Option<u16>, SettingsError> {
    let Some(text) = text else { return Ok(None) };
    match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => {
            let problem = "expected a port, 1 to 65535";
            Err(SettingsError::Value {
                option,
                value: text.to_owned(),
                problem,
            })
        }
    }
}

pub(super) fn address(text: Option<&str>) -> Result<Option<IpAddr>, SettingsError> {
    let Some(text) = text else { return Ok(None) };
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let problem = "expected a numeric address: names may not resolve on every host";
    let wrong = |_| SettingsError::Value {
        option: "--master-addr",
        value: text.into(),
        problem,
    };
    bare.parse().map(Some).map_err(wrong)
}

pub(super) fn duration(
    option: &'static str,
    text: Option<&str>,
) -> Result<Option<Duration>, SettingsError> {
    let Some(text) = text else { return Ok(None) };
    let problem = "expected a time, such as 90, 1.5, 500ms, 10m, 2h";
    let wrong = || SettingsError::Value {
        option,
        value: text.to_owned(),
        problem,
    };
    number::duration(text).map(Some).ok_or_else(wrong)
}
