//! How long things may take, and what becomes of a job with a failed rank.

use std::time::Duration;

use rlaunch_plan::supervise::OnFailure;

use super::SettingsError;
use super::value::duration;
use crate::cli::{AfterFailure, Options};

#[derive(Debug, Clone)]
pub struct Limits {
    pub timeout: Option<Duration>,
    pub kill_after: Duration,
    pub host_timeout: Duration,
    pub on_failure: OnFailure,
}

pub(super) fn limits(options: &Options) -> Result<Limits, SettingsError> {
    Ok(Limits {
        timeout: duration("--timeout", options.limits.timeout.as_deref())?,
        kill_after: duration("--kill-after", options.limits.kill_after.as_deref())?
            .unwrap_or(KILL_AFTER),
        host_timeout: duration("--host-timeout", options.limits.host_timeout.as_deref())?
            .unwrap_or(HOST_TIMEOUT)
            .max(HOST_TIMEOUT_MIN),
        on_failure: match options.limits.on_failure {
            Some(AfterFailure::Continue) => OnFailure::Continue,
            Some(AfterFailure::Stop) | None => OnFailure::Stop,
        },
    })
}

const KILL_AFTER: Duration = Duration::from_secs(10);
const HOST_TIMEOUT: Duration = Duration::from_secs(30);
/// Below three heartbeats a busy host would look lost.
const HOST_TIMEOUT_MIN: Duration = Duration::from_secs(3);
