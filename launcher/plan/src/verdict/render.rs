//! The paragraph: what came first and where, its last lines, the others, what to try.

use super::hint::{hint, reap_command};
use super::holders;
use super::why::{Findings, OutOfMemory, Victim, Why};
use super::{Cause, Fate, HostFateKind, Moment, Outcome, Verdict, signal_name};
use crate::supervise::{Ending, LossKind};
use crate::text::{bytes, clip, ranges, seconds_of_ms, show};

/// Lines of the causing rank that are repeated.
const LAST_LINES_SHOWN: usize = 20;
const SIGKILL: i32 = 9;

pub(super) fn render(verdict: &Verdict) -> String {
    let mut text = String::new();
    if verdict.outcome != Outcome::Success {
        push(&mut text, &format!("rlaunch: {}", headline(verdict)));
        push(&mut text, &format!("  {}", when(verdict)));
        evidence(verdict, &mut text);
        last_lines(verdict, &mut text);
        if let Some(others) = others(verdict) {
            push(&mut text, &format!("  {others}"));
        }
    }
    for suspect in &verdict.suspects {
        let silent = seconds_of_ms(suspect.silent_ms);
        let host = &suspect.host;
        push(
            &mut text,
            &format!("  {host} had been silent for {silent} by then: it may be the cause"),
        );
    }
    if !verdict.left_early.is_empty()
        && !matches!(cause(verdict), Some(Cause::RankLeftEarly { .. }))
    {
        let ranks = ranges(&verdict.left_early);
        push(
            &mut text,
            &format!("  returned 0 without finalize before that: {ranks}"),
        );
    }
    for fate in &verdict.unconfirmed {
        let host = &fate.host;
        let what = match fate.kind {
            HostFateKind::Lost => "was lost",
            HostFateKind::Unresponsive => "did not answer",
        };
        let detail = match fate.detail.as_str() {
            "" => String::new(),
            detail => format!(" ({})", show(detail)),
        };
        push(
            &mut text,
            &format!(
                "  {host} {what}{detail}: what ran there ends when its agent sees that the connection is \
             gone, but nobody could confirm it"
            ),
        );
    }
    if let Some(hint) = hint(verdict) {
        push(&mut text, &format!("hint: {hint}"));
    }
    if let Some(command) = reap_command(verdict) {
        push(
            &mut text,
            &format!("hint: `{command}` tells what is left there, once it can be reached"),
        );
    }
    text
}

/// What its host and other ranks know of it.
fn evidence(verdict: &Verdict, text: &mut String) {
    if let Some(memory) = also_out_of_memory(verdict) {
        push(text, &format!("  {memory}"));
    }
    if let Some(pattern) = &verdict.findings.core_pattern {
        push(text, &format!("  {}", core(pattern)));
    }
    let holders = holders::told(verdict).map(|(lines, _)| lines);
    for line in holders.into_iter().flatten() {
        push(text, &format!("  {line}"));
    }
    for error in &verdict.earlier_errors {
        let before = seconds_of_ms(error.before_ms);
        let (rank, host, line) = (error.rank, &error.host, clip(&error.line));
        push(
            text,
            &format!("  rank {rank} on {host} had printed {before} before: {line}"),
        );
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn cause(verdict: &Verdict) -> Option<&Cause> {
    match &verdict.outcome {
        Outcome::Failed { cause } => Some(cause),
        _ => None,
    }
}

fn headline(verdict: &Verdict) -> String {
    match &verdict.outcome {
        Outcome::Success => "every rank returned 0".to_owned(),
        Outcome::TimedOut { timeout_ms } => {
            format!(
                "the job did not end within {} ({})",
                seconds_of_ms(*timeout_ms),
                limit(verdict)
            )
        }
        Outcome::Interrupted { signal } => format!("stopped by {}", signal_name(*signal)),
        Outcome::Failed { cause } => cause_line(cause, &limit(verdict)) + &why(verdict),
    }
}

/// `at 18:55:03 UTC, 12.3 s after its start`
fn when(verdict: &Verdict) -> String {
    let Moment { wall_us, after_ms } = verdict.at;
    let of_day = wall_us.div_euclid(1_000_000).rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let has_started = |rank| {
        verdict
            .ranks
            .iter()
            .any(|fate| fate.rank == rank && fate.started_us.is_some())
    };
    let whose = match verdict.rank() {
        Some(rank) if has_started(rank) => "its",
        _ => "the job's",
    };
    let after = seconds_of_ms(after_ms);
    let program = verdict.program.as_ref().map(|name| format!("; {name}"));
    format!(
        "at {hour:02}:{minute:02}:{second:02} UTC, {after} after {whose} start{}",
        program.unwrap_or_default()
    )
}

/// What is behind the exit status.
fn why(verdict: &Verdict) -> String {
    let Some(why) = &verdict.why else {
        return String::new();
    };
    let text = match why {
        Why::OutOfMemory { found } => out_of_memory(found),
        Why::SharedMemoryFull { found } => {
            format!("/dev/shm ({}) was full", bytes(found.size_bytes))
        }
        Why::LibraryMissing { library } => format!("no shared library {} there", show(library)),
        Why::InterpreterMissing { interpreter } => {
            format!("no interpreter {} there", show(interpreter))
        }
        Why::PythonError { line } => clip(line),
    };
    format!(": {text}")
}

fn out_of_memory(found: &OutOfMemory) -> String {
    match found.limit_bytes {
        Some(limit) => format!(
            "out of memory, by the kernel (limit of its control group: {})",
            bytes(limit)
        ),
        None => "out of memory, by the kernel".to_owned(),
    }
}

/// Where the core went, after the kernel's pattern.
fn core(pattern: &str) -> String {
    let pattern = show(pattern);
    match pattern.strip_prefix('|') {
        Some(program) if program.contains("systemd-coredump") => {
            "its core is with `coredumpctl` on that host".to_owned()
        }
        Some(program) => format!("its core was given to {program} on that host"),
        None if pattern.starts_with('/') => format!("its core is {pattern} on that host"),
        None => format!("its core is `{pattern}` in its directory on that host (core_pattern)"),
    }
}

/// Where the exit status is not the killer's, but it was at work: on a worker of the rank, say.
fn also_out_of_memory(verdict: &Verdict) -> Option<String> {
    let Findings {
        oom: Some(found), ..
    } = &verdict.findings
    else {
        return None;
    };
    if matches!(verdict.why, Some(Why::OutOfMemory { .. })) || found.victim == Victim::Rank {
        return None;
    }
    let limit = found
        .limit_bytes
        .map(|limit| format!(" ({})", bytes(limit)));
    Some(format!(
        "the kernel killed a process of the job there, out of memory{}",
        limit.unwrap_or_default()
    ))
}

fn nor_on(hosts: &[String]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    format!(" (nor on {})", crate::text::table(hosts.iter().cloned()))
}

/// `--timeout`, and where it was set if it was not typed.
fn limit(verdict: &Verdict) -> String {
    let option = verdict.limit().unwrap_or_default();
    match &verdict.limit_set_by {
        Some(place) => format!("--{option}, set by {}", show(place)),
        None => format!("--{option}"),
    }
}

fn cause_line(cause: &Cause, limit: &str) -> String {
    match cause {
        Cause::RankEnded {
            rank,
            host,
            pid,
            ending,
            core_dumped,
        } => ended_line(&label(*rank, host, *pid), *ending, *core_dumped),
        Cause::RankLeftEarly { rank, host, pid } => format!(
            "{} returned 0 while others still needed it; they failed",
            label(*rank, host, *pid)
        ),
        Cause::RankAborted {
            rank,
            host,
            pid,
            what,
        } => format!("{} aborted {}", label(*rank, host, *pid), show(what)),
        Cause::RankShutOut {
            rank,
            host,
            pid,
            stopped,
        } => shut_out_line(&label(*rank, host, *pid), *stopped),
        Cause::LaunchFailed {
            rank,
            host,
            what,
            path,
            errno,
            also,
        } => {
            let path = show(path);
            let also = nor_on(also);
            format!(
                "rank {rank} could not be started on {host}{also}: {what} {path}: {}",
                error(*errno)
            )
        }
        Cause::HostLost {
            host,
            ranks,
            kind,
            detail,
            silent_ms,
        } => {
            format!(
                "host {host} was lost with {}: {}",
                named(ranks),
                how_lost(*kind, detail, *silent_ms)
            )
        }
        Cause::AgentBroke { host, rank, reason } => {
            format!("the agent on {host} {reason} (rank {rank})")
        }
        Cause::NotStarted {
            ranks,
            hosts,
            timeout_ms,
        } => {
            let verb = if ranks.len() == 1 { "was" } else { "were" };
            format!(
                "{} {verb} not started within {} ({limit}): {}",
                named(ranks),
                seconds_of_ms(*timeout_ms),
                crate::text::table(hosts.iter().cloned())
            )
        }
    }
}

fn ended_line(label: &str, ending: Ending, core_dumped: bool) -> String {
    let core = if core_dumped { " and dumped core" } else { "" };
    match ending {
        Ending::Code(code) => format!("{label} failed with exit code {code}"),
        Ending::Signal(signal) => format!("{label} was ended by {}{core}", signal_name(signal)),
    }
}

fn how_lost(kind: LossKind, detail: &str, silent_ms: u64) -> String {
    match kind {
        LossKind::Closed | LossKind::Reset if detail.is_empty() => {
            "its connection ended".to_owned()
        }
        LossKind::Closed => format!("its connection ended: {}", show(detail)),
        LossKind::Reset => format!("its connection broke: {}", show(detail)),
        LossKind::Silent => format!("nothing heard for {}", seconds_of_ms(silent_ms)),
    }
}

fn shut_out_line(label: &str, stopped: bool) -> String {
    let what = if stopped {
        "was stopped, and still was when the others had ended"
    } else {
        "did not answer the others, which went on without it"
    };
    format!("{label} {what}; it was ended after them")
}

fn label(rank: u32, host: &str, pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("rank {rank} on {host} (pid {pid})"),
        None => format!("rank {rank} on {host}"),
    }
}

/// `No such file or directory`
fn error(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn last_lines(verdict: &Verdict, text: &mut String) {
    let lines = &verdict.last_lines;
    let Some(rank) = verdict.rank().filter(|_| !lines.is_empty()) else {
        return;
    };
    push(text, &format!("  last lines of rank {rank}:"));
    for line in &lines[lines.len().saturating_sub(LAST_LINES_SHOWN)..] {
        push(
            text,
            &format!("  | {}", line.text.trim_end_matches(['\r', '\n'])),
        );
    }
}

/// What became of the other ranks.
fn others(verdict: &Verdict) -> Option<String> {
    let mut fates: [Vec<u32>; 6] = Default::default();
    for fate in verdict
        .ranks
        .iter()
        .filter(|fate| Some(fate.rank) != verdict.rank())
    {
        let index = match fate.fate {
            Fate::Stopped(Ending::Signal(SIGKILL)) => 1,
            Fate::Stopped(_) => 0,
            Fate::Ended(Ending::Code(0)) => 2,
            Fate::Ended(_) => 3,
            Fate::NeverStarted => 4,
            Fate::Unknown => 5,
        };
        fates[index].push(fate.rank);
    }
    let words = [
        ("was ended by rlaunch", "were ended by rlaunch"),
        (
            "was killed by rlaunch (KILL)",
            "were killed by rlaunch (KILL)",
        ),
        ("returned 0", "returned 0"),
        ("failed too", "failed too"),
        ("never started", "never started"),
        (
            "is not confirmed to have ended",
            "are not confirmed to have ended",
        ),
    ];
    let parts: Vec<(&[u32], &str)> = fates
        .iter()
        .zip(words)
        .filter(|(ranks, _)| !ranks.is_empty())
        .map(|(ranks, (one, many))| (ranks.as_slice(), if ranks.len() == 1 { one } else { many }))
        .collect();
    let joined = |name: fn(&[u32]) -> String| {
        let parts: Vec<String> = parts
            .iter()
            .map(|(ranks, word)| format!("{} {word}", name(ranks)))
            .collect();
        parts.join("; ")
    };
    let total: usize = fates.iter().map(Vec::len).sum();
    Some(match (verdict.rank(), parts.as_slice()) {
        (_, []) => return None,
        (None, _) => joined(named),
        (Some(_), [(ranks, word)]) => match total {
            1 => format!("the other rank ({}) {word}", ranges(ranks)),
            _ => format!("the other {total} ranks ({}) {word}", ranges(ranks)),
        },
        (Some(_), _) => format!("the other {total} ranks: {}", joined(ranges)),
    })
}

/// `rank 2`, `ranks 2-4`
fn named(ranks: &[u32]) -> String {
    let what = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{what} {}", ranges(ranks))
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
