//! `rlaunch reap`, as meant.

use std::time::Duration;

use rlaunch_plan::Host;
use rlaunch_remote::RemoteOptions;

use super::value::duration;
use super::{SettingsError, hosts_asked};
use crate::cli::ReapOptions;

#[derive(Debug)]
pub struct ReapSettings {
    pub hosts: Vec<Host>,
    pub remote: RemoteOptions,
    /// The first digits of a job's id, or none of them.
    pub job: String,
    pub end: bool,
    pub hinted: bool,
    pub kill_after: Duration,
    pub json: bool,
}

const KILL_AFTER: Duration = Duration::from_secs(2);
/// What messages show of an id; less could mean several jobs.
const DIGITS_MIN: usize = 8;
const DIGITS_MAX: usize = 32;

pub fn resolve_reap(words: ReapOptions) -> Result<ReapSettings, SettingsError> {
    let asked = hosts_asked::resolve(words.asked)?;
    Ok(ReapSettings {
        hosts: asked.hosts,
        remote: asked.remote,
        job: job(words.job.unwrap_or_default())?,
        end: words.end,
        hinted: words.hinted,
        kill_after: duration("--kill-after", words.kill_after.as_deref())?.unwrap_or(KILL_AFTER),
        json: words.json,
    })
}

fn job(text: String) -> Result<String, SettingsError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if text.is_empty() || (digits && (DIGITS_MIN..=DIGITS_MAX).contains(&text.len())) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(SettingsError::Value {
        option: "--job",
        value: text,
        problem: "expected the first 8 digits of a job's id, or more, as `rlaunch reap` shows them",
    })
}
