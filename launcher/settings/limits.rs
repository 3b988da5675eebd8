//! How long things may take, and what becomes of a job with a failed rank.

use std::collections::BTreeMap;
use std::time::Duration;

use rlaunch_plan::supervise::OnFailure;

use super::SettingsError;
use super::value::{duration, whole};
use crate::cli::{AfterFailure, Options};

#[derive(Debug, Clone)]
pub struct Limits {
    pub timeout: Option<Duration>,
    pub kill_after: Duration,
    pub host_timeout: Duration,
    pub on_failure: OnFailure,
    /// From here to the last rank's start; of each attempt. None: as long as it takes.
    pub start_timeout: Option<Duration>,
    pub max_restarts: u32,
    /// Where those of [`TOLD`] stand that nobody typed.
    pub set_by: BTreeMap<&'static str, String>,
}

/// Limits whose end is told with where they were set.
const TOLD: [&str; 3] = ["timeout", "start-timeout", "host-timeout"];

pub(super) fn limits(options: &Options) -> Result<Limits, SettingsError> {
    Ok(Limits {
        // 0 as timeout(1) and --start-timeout take it: no limit.
        timeout: duration("--timeout", options.limits.timeout.as_deref())?
            .filter(|limit| !limit.is_zero()),
        kill_after: duration("--kill-after", options.limits.kill_after.as_deref())?
            .unwrap_or(KILL_AFTER),
        host_timeout: duration("--host-timeout", options.limits.host_timeout.as_deref())?
            .unwrap_or(HOST_TIMEOUT)
            .max(HOST_TIMEOUT_MIN),
        on_failure: match options.limits.on_failure {
            Some(AfterFailure::Continue) => OnFailure::Continue,
            Some(AfterFailure::Stop) | None => OnFailure::Stop,
        },
        start_timeout: Some(
            duration("--start-timeout", options.limits.start_timeout.as_deref())?
                .unwrap_or(START_TIMEOUT),
        )
        .filter(|limit| !limit.is_zero()),
        max_restarts: whole("--max-restarts", options.limits.max_restarts.as_deref())?.unwrap_or(0),
        set_by: TOLD
            .into_iter()
            .filter_map(|option| Some((option, options.origins.of(option)?.told())))
            .collect(),
    })
}

const KILL_AFTER: Duration = Duration::from_secs(10);
/// Longer than the push of the agent to many hosts over a slow line.
const START_TIMEOUT: Duration = Duration::from_secs(300);
const HOST_TIMEOUT: Duration = Duration::from_secs(30);
/// Below three heartbeats a busy host would look lost.
const HOST_TIMEOUT_MIN: Duration = Duration::from_secs(3);
