//! What was found, as people and as programs read it. Pure.

use rlaunch_control::v1::{LeftEvidence, LeftJob, LeftProcess, ReapReply};
use serde::Serialize;

use crate::output::stamp;
use crate::settings::ReapSettings;

/// What messages show of a job's id.
const DIGITS: usize = 8;

/// The text, and whether something is left.
pub(super) fn table(answers: &[(String, ReapReply)], settings: &ReapSettings) -> (String, bool) {
    let mut text = String::new();
    let (mut left, mut hinted) = (false, false);
    let mut clean = Vec::new();
    for (host, answer) in answers {
        for note in &answer.notes {
            text.push_str(&format!("{host}: {note}\n"));
        }
        let gone = answer
            .jobs
            .iter()
            .all(|job| job.processes.is_empty() && !job.running);
        if gone && answer.notes.is_empty() {
            clean.push(host.as_str());
        }
        for job in &answer.jobs {
            text.push_str(&head(host, job));
            for process in &job.processes {
                left |= !process.ended;
                hinted |= !process.ended && process.evidence() == LeftEvidence::Environment;
                text.push_str(&line(process));
            }
            left |= job.running && !job.ended && !settings.job.is_empty();
        }
    }
    if !clean.is_empty() {
        text.push_str(&format!("nothing is left on {}\n", clean.join(", ")));
    }
    if left && !settings.end {
        text.push_str("hint: --end ends it\n");
    } else if hinted && !settings.hinted {
        text.push_str("hint: --hinted ends also what only its environment points to\n");
    }
    (text, left)
}

fn head(host: &str, job: &LeftJob) -> String {
    let id = short(&job.job);
    let program = match job.program.as_str() {
        "" => String::new(),
        program => format!(" ({program})"),
    };
    let since = match job.started_us {
        0 => String::new(),
        started => format!(", started {}", stamp(started)),
    };
    let what = match (job.running, job.ended) {
        (true, true) => "was running and has been ended".to_owned(),
        (true, false) if !job.why_not.is_empty() => format!("is running: {}", job.why_not),
        (true, false) => format!("is running; --job {id} --end ends it"),
        (false, _) if job.program.is_empty() => {
            "has no record here; its id is in the environment of".to_owned()
        }
        (false, _) => "is over and left".to_owned(),
    };
    format!("{host}: job {id}{program}{since} {what}\n")
}

fn line(process: &LeftProcess) -> String {
    let outcome = match (process.ended, process.why_not.as_str()) {
        (true, _) => "ended: ".to_owned(),
        (false, "") => String::new(),
        (false, why) => format!("not ended, it {why}: "),
    };
    let holds = match process.devices.as_slice() {
        [] => String::new(),
        devices => format!(", holds {}", devices.join(" ")),
    };
    format!(
        "  {outcome}pid {} ({}, {}, started {}{holds}) {}\n",
        process.pid,
        evidence(process),
        process.state,
        stamp(process.started_us),
        process.command
    )
}

fn evidence(process: &LeftProcess) -> String {
    match process.evidence() {
        LeftEvidence::Rank => format!("rank {}", process.number),
        LeftEvidence::Session if process.number == u32::MAX => "of the ranks' session".to_owned(),
        LeftEvidence::Session => format!("of the session of rank {}", process.number),
        LeftEvidence::Below => format!("below {}", process.number),
        LeftEvidence::Environment => "a hint: by its environment".to_owned(),
    }
}

fn short(job: &str) -> &str {
    job.get(..DIGITS).unwrap_or(job)
}

#[derive(Serialize)]
struct JobShown<'a> {
    host: &'a str,
    job: &'a str,
    program: &'a str,
    started: Option<String>,
    running: bool,
    ended: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    why_not: &'a str,
    processes: Vec<ProcessShown<'a>>,
}

#[derive(Serialize)]
struct ProcessShown<'a> {
    pid: u32,
    command: &'a str,
    state: &'a str,
    started: String,
    evidence: String,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    devices: &'a [String],
    sure: bool,
    ended: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    why_not: &'a str,
}

/// One list of jobs, each with its host.
pub(super) fn json(answers: &[(String, ReapReply)]) -> (String, bool) {
    let jobs: Vec<JobShown<'_>> = answers
        .iter()
        .flat_map(|(host, answer)| answer.jobs.iter().map(move |job| shown(host, job)))
        .collect();
    let left = jobs
        .iter()
        .flat_map(|job| &job.processes)
        .any(|process| !process.ended);
    let text = serde_json::to_string_pretty(&jobs).expect("plain data has a JSON form");
    (text + "\n", left)
}

fn shown<'a>(host: &'a str, job: &'a LeftJob) -> JobShown<'a> {
    let process = |process: &'a LeftProcess| ProcessShown {
        pid: process.pid,
        command: &process.command,
        state: &process.state,
        started: stamp(process.started_us),
        evidence: evidence(process),
        devices: &process.devices,
        sure: process.evidence() != LeftEvidence::Environment,
        ended: process.ended,
        why_not: &process.why_not,
    };
    JobShown {
        host,
        job: &job.job,
        program: &job.program,
        started: (job.started_us != 0).then(|| stamp(job.started_us)),
        running: job.running,
        ended: job.ended,
        why_not: &job.why_not,
        processes: job.processes.iter().map(process).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn settings(end: bool) -> ReapSettings {
        ReapSettings {
            hosts: Vec::new(),
            remote: rlaunch_remote::RemoteOptions::default(),
            job: String::new(),
            end,
            hinted: false,
            kill_after: Duration::ZERO,
            json: false,
        }
    }

    fn answers(ended: bool) -> Vec<(String, ReapReply)> {
        let process = LeftProcess {
            pid: 812,
            command: "python train.py".into(),
            state: "sleeping".into(),
            evidence: LeftEvidence::Session.into(),
            number: 2,
            ended,
            ..LeftProcess::default()
        };
        let job = LeftJob {
            job: "3fa1b2c4000000000000000000000000".into(),
            program: "train.py".into(),
            processes: vec![process],
            ..LeftJob::default()
        };
        let reply = ReapReply {
            jobs: vec![job],
            notes: Vec::new(),
        };
        vec![
            ("node1".into(), reply),
            ("node2".into(), ReapReply::default()),
        ]
    }

    #[test]
    fn what_is_left_is_shown_with_what_speaks_for_it() {
        let (text, left) = table(&answers(false), &settings(false));
        let expected = "node1: job 3fa1b2c4 (train.py) is over and left\n  \
                        pid 812 (of the session of rank 2, sleeping, \
                        started 1970-01-01T00:00:00.000Z) python train.py\n\
                        nothing is left on node2\nhint: --end ends it\n";
        assert_eq!((text.as_str(), left), (expected, true));
        let (text, left) = table(&answers(true), &settings(true));
        assert!(text.contains("\n  ended: pid 812") && !left, "{text}");
    }

    #[test]
    fn json_has_the_whole_id() {
        let (text, left) = json(&answers(false));
        assert!(
            left && text.contains("\"3fa1b2c4000000000000000000000000\""),
            "{text}"
        );
    }
}
