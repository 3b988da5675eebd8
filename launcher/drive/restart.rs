//! One attempt after the other: the whole job again after a failure, up to `--max-restarts` times.
//!
//! Everything is new each time: connections, agents, MASTER_PORT, the secret. What stays is the
//! job's id, by which programs find their checkpoints. Not tried again is what a person or
//! `--timeout` ended, and what could not be started.

use std::time::{Duration, Instant};

use rlaunch_plan::Verdict;
use rlaunch_plan::environment::Restarts;
use rlaunch_plan::supervise::Limit;

use super::driver::Remaining;
use super::identity::JobIdentity;
use super::progress::Progress;
use super::signals::Signals;
use super::supervise::{Attempt, supervise};
use super::{DriveError, Prepared, Ready, prepare, show};
use crate::report::Reporter;
use crate::settings::Settings;

/// The exit code of the last attempt.
pub(super) async fn attempts(
    settings: &Settings,
    start: Instant,
    signals: &mut Signals,
    report: &mut Reporter,
) -> Result<u8, DriveError> {
    let mut identity = JobIdentity::new().map_err(DriveError::Random)?;
    let mut restarts = Restarts {
        count: 0,
        max: settings.limits.max_restarts,
    };
    let mut launched_at: Option<Duration> = None;
    loop {
        let progress = Progress::new();
        let start_timeout = settings.limits.start_timeout;
        let prepared = tokio::select! {
            biased;
            signal = signals.next_end() => return Err(DriveError::Interrupted { signal }),
            prepared = prepare(settings, identity.clone(), restarts, &progress) => prepared?,
            () = progress.run_out(start_timeout) => {
                return Err(progress.overdue(start_timeout.unwrap_or_default()));
            }
        };
        let Ready {
            plan,
            nodes,
            bundle,
        } = match prepared {
            Prepared::Plan(plan) => return Ok(show::dry_run(settings, &plan, report)),
            Prepared::Ready(ready) => *ready,
        };
        signals.catch_suspension().map_err(DriveError::Signals)?;
        let now = start.elapsed();
        let so_far = now - *launched_at.get_or_insert(now);
        let limits = Remaining {
            job: settings.limits.timeout.map(|whole| Limit {
                whole,
                left: whole.saturating_sub(so_far),
            }),
            start: start_timeout.map(|whole| Limit {
                whole,
                left: progress.left(whole),
            }),
        };
        report.planned(|| show::make(settings, &plan));
        let attempt = Attempt {
            settings,
            plan: &plan,
            nodes,
            bundle: bundle.as_ref(),
            start,
            limits,
        };
        let ended = supervise(attempt, signals, |verdict| announce(verdict, restarts)).await?;
        let code = ended.verdict.exit_code;
        let again = announce(&ended.verdict, restarts).is_some();
        report.ended(ended.verdict);
        if !again {
            return Ok(code);
        }
        if let Some(signal) = ended.signal {
            return Err(DriveError::Interrupted { signal });
        }
        restarts.count += 1;
        identity = identity.again().map_err(DriveError::Random)?;
    }
}

/// The word on it, if the job is to be started again after this.
fn announce(verdict: &Verdict, restarts: Restarts) -> Option<String> {
    let Restarts { count, max } = restarts;
    (count < max && verdict.may_go_better()).then(|| {
        let next = count + 1;
        format!("rlaunch: starting the whole job again (restart {next} of {max})\n")
    })
}
