//! `rlaunch reap` on one host: what jobs of this user have left here, and its end if that is asked.
//!
//! [`crate::record`] says what is written down, [`find`] which processes count as a job's, [`end`]
//! how they end. A job whose agent or keeper lives is running, not left: it is named and let alone,
//! unless the user named it.

mod end;
mod find;

use std::path::Path;
use std::time::Duration;

use rlaunch_control::v1::{LeftEvidence, LeftJob, LeftProcess, ReapReply, ReapRequest};
use rlaunch_wire::environment::RLAUNCH_JOB_ID;
use tonic::Status;

use crate::clock::now_us;
use crate::devices::Gpus;
use crate::processes::{self, Process};
use crate::record::{self, Record, now_ticks};
use end::Outcome;
use find::{Evidence, Found, Snapshot};

/// Processes told of one job.
const TOLD_MAX: usize = 1000;

pub(crate) async fn answer(request: ReapRequest) -> Result<ReapReply, Status> {
    let reaped = tokio::task::spawn_blocking(move || reap(&request));
    reaped
        .await
        .map_err(|error| Status::internal(error.to_string()))
}

fn reap(request: &ReapRequest) -> ReapReply {
    let (records, notes) = record::all();
    let mut reply = ReapReply {
        jobs: Vec::new(),
        notes,
    };
    let (boot, space) = (record::boot_id(), record::process_space());
    let mut here = Vec::new();
    for (path, record) in records {
        if record.boot != boot {
            // The machine was started anew since: whatever ran is gone.
            std::fs::remove_file(&path).ok();
        } else if record.space != space {
            let short = short(&record.job);
            reply
                .notes
                .push(format!("job {short} ran in another container of this host"));
        } else {
            here.push((path, record));
        }
    }
    let running = running_processes(&here);
    for (path, record) in &here {
        if record.job.starts_with(&request.job) {
            reply.jobs.extend(reap_job(request, path, record, &running));
        }
    }
    reply.jobs.extend(unrecorded(request, &here, &running));
    reply
}

/// Every process that a living keeper or agent looks after.
fn running_processes(records: &[(std::path::PathBuf, Record)]) -> Vec<i32> {
    let snapshot = look();
    let roots: Vec<_> = records
        .iter()
        .flat_map(|(_, record)| [record.keeper, record.agent])
        .collect();
    snapshot.with_below(&roots).into_iter().collect()
}

fn reap_job(
    request: &ReapRequest,
    path: &Path,
    record: &Record,
    running: &[i32],
) -> Option<LeftJob> {
    let mut job = LeftJob {
        job: record.job.clone(),
        program: record.program.clone(),
        started_us: record.started_us,
        ..LeftJob::default()
    };
    if look().is_running(record) {
        job.running = true;
        if request.end && !request.job.is_empty() {
            match end::end_running(path, record) {
                Ok(()) => job.ended = true,
                Err(why) => job.why_not = why,
            }
        }
        return Some(job);
    }
    let mut found = look().left(record, &[], |process| carries(process, &record.job));
    found.retain(|one| one.evidence.is_sure() || !running.contains(&one.process.pid));
    let outcomes = if request.end {
        let (to_end, others): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|one| one.evidence.is_sure() || request.hinted);
        let patience = Duration::from_millis(request.kill_after_ms.into());
        let mut outcomes = match to_end.is_empty() {
            true => Vec::new(),
            false => end::end(record, to_end, patience),
        };
        outcomes.extend(others.into_iter().map(not_asked));
        outcomes
    } else {
        found.into_iter().map(not_asked).collect()
    };
    if outcomes.iter().all(|outcome| outcome.ended) {
        std::fs::remove_file(path).ok();
    }
    job.processes = outcomes.into_iter().take(TOLD_MAX).map(told).collect();
    (!job.processes.is_empty()).then_some(job)
}

/// Processes that carry the id of a job without a record here: hints, and nothing but hints.
fn unrecorded(
    request: &ReapRequest,
    records: &[(std::path::PathBuf, Record)],
    running: &[i32],
) -> Vec<LeftJob> {
    let mut jobs: Vec<LeftJob> = Vec::new();
    let snapshot = look();
    for process in snapshot.processes() {
        let Some(job) = job_of(process).filter(|job| job.starts_with(&request.job)) else {
            continue;
        };
        if running.contains(&process.pid) || records.iter().any(|(_, record)| record.job == job) {
            continue;
        }
        let found = Found {
            process: process.clone(),
            evidence: Evidence::Environment,
        };
        let at = jobs
            .iter()
            .position(|known| known.job == job)
            .unwrap_or_else(|| {
                jobs.push(LeftJob {
                    job,
                    ..LeftJob::default()
                });
                jobs.len() - 1
            });
        jobs[at].processes.push(told(not_asked(found)));
    }
    jobs
}

fn look() -> Snapshot {
    Snapshot::new(processes::all(), nix::unistd::getpid().as_raw())
}

fn not_asked(found: Found) -> Outcome {
    Outcome {
        found,
        ended: false,
        why_not: String::new(),
    }
}

fn told(outcome: Outcome) -> LeftProcess {
    let Found { process, evidence } = outcome.found;
    let (evidence, number) = match evidence {
        Evidence::Rank(rank) => (LeftEvidence::Rank, rank),
        Evidence::Session(rank) => (LeftEvidence::Session, rank.unwrap_or(u32::MAX)),
        Evidence::Below(parent) => (LeftEvidence::Below, parent.unsigned_abs()),
        Evidence::Environment => (LeftEvidence::Environment, 0),
    };
    let devices = match outcome.ended {
        true => Vec::new(),
        false => Gpus::of_this_machine().held_by(process.pid),
    };
    let age = i64::try_from(now_ticks().saturating_sub(process.start_time)).unwrap_or(0);
    LeftProcess {
        pid: process.pid.unsigned_abs(),
        command: process.command(),
        state: process.state_name().to_owned(),
        started_us: now_us() - age * 10_000,
        evidence: evidence.into(),
        number,
        ended: outcome.ended,
        why_not: outcome.why_not,
        devices,
    }
}

fn carries(process: &Process, job: &str) -> bool {
    job_of(process).as_deref() == Some(job)
}

/// The job in a process's environment; unreadable ones, as of other users, have none.
fn job_of(process: &Process) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{}/environ", process.pid)).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| {
        let rest = variable.strip_prefix(RLAUNCH_JOB_ID.as_bytes())?;
        rest.strip_prefix(b"=")
    })?;
    let text = std::str::from_utf8(value).ok()?;
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| text.to_owned())
}

fn short(job: &str) -> &str {
    job.get(..8).unwrap_or(job)
}
