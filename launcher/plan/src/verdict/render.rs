//! The paragraph: what came first and where, its last lines, the others, what to try.

use super::{Cause, Fate, HostFateKind, Outcome, Verdict, signal_hint, signal_name};
use crate::supervise::{Ending, LossKind};
use crate::text::{count, ranges, seconds_of_ms, show};

/// Lines of the causing rank that are repeated.
const LAST_LINES_SHOWN: usize = 20;

pub(super) fn render(verdict: &Verdict) -> String {
    let mut text = String::new();
    if verdict.outcome != Outcome::Success {
        push(&mut text, &format!("rlaunch: {}", headline(verdict)));
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
        push(
            &mut text,
            &format!(
                "  {host} {what} ({}): what ran there ends when its agent sees that the connection is \
             gone, but nobody could confirm it",
                show(&fate.detail)
            ),
        );
    }
    if let Some(hint) = hint(verdict) {
        push(&mut text, &format!("hint: {hint}"));
    }
    text
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
                "the job did not end within {} (--timeout)",
                seconds_of_ms(*timeout_ms)
            )
        }
        Outcome::Interrupted { signal } => format!("stopped by {}", signal_name(*signal)),
        Outcome::Failed { cause } => cause_line(cause),
    }
}

fn cause_line(cause: &Cause) -> String {
    match cause {
        Cause::RankEnded {
            rank,
            host,
            pid,
            ending,
            core_dumped,
        } => {
            let label = label(*rank, host, *pid);
            let core = if *core_dumped { " and dumped core" } else { "" };
            match ending {
                Ending::Code(code) => format!("{label} failed with exit code {code}"),
                Ending::Signal(signal) => {
                    format!("{label} was ended by {}{core}", signal_name(*signal))
                }
            }
        }
        Cause::RankLeftEarly { rank, host, pid } => {
            let label = label(*rank, host, *pid);
            format!("{label} returned 0 while others still needed it; they failed")
        }
        Cause::LaunchFailed {
            rank,
            host,
            what,
            path,
            errno,
            also,
        } => {
            let path = show(path);
            let also = match also.as_slice() {
                [] => String::new(),
                hosts => format!(" (nor on {})", crate::text::table(hosts.iter().cloned())),
            };
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
            let ranks = ranges(ranks);
            let how = match kind {
                LossKind::Closed => format!("its connection ended: {}", show(detail)),
                LossKind::Reset => format!("its connection broke: {}", show(detail)),
                LossKind::Silent => format!("nothing heard for {}", seconds_of_ms(*silent_ms)),
            };
            format!("host {host} was lost with rank {ranks}: {how}")
        }
        Cause::AgentBroke { host, rank, reason } => {
            format!("the agent on {host} {reason} (rank {rank})")
        }
    }
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
    let mut fates: [Vec<u32>; 5] = Default::default();
    for fate in verdict
        .ranks
        .iter()
        .filter(|fate| Some(fate.rank) != verdict.rank())
    {
        let index = match fate.fate {
            Fate::Stopped(_) => 0,
            Fate::Ended(Ending::Code(0)) => 1,
            Fate::Ended(_) => 2,
            Fate::NeverStarted => 3,
            Fate::Unknown => 4,
        };
        fates[index].push(fate.rank);
    }
    let words = [
        "ended by rlaunch",
        "returned 0",
        "failed too",
        "never started",
        "end not confirmed",
    ];
    let parts = fates
        .iter()
        .zip(words)
        .filter(|(ranks, _)| !ranks.is_empty());
    let parts: Vec<String> = parts
        .map(|(ranks, word)| format!("{word}: {}", ranges(ranks)))
        .collect();
    let total: usize = fates.iter().map(Vec::len).sum();
    let subject = match (verdict.rank(), total) {
        (_, 0) => return None,
        (Some(_), _) => format!("the other {}", count(total as u64, "rank")),
        (None, _) => format!("the {}", count(total as u64, "rank")),
    };
    Some(format!("{subject} — {}", parts.join("; ")))
}

fn hint(verdict: &Verdict) -> Option<String> {
    let text = match &verdict.outcome {
        Outcome::Success | Outcome::Interrupted { .. } => return None,
        Outcome::TimedOut { .. } => {
            "if it was making progress, give it a longer --timeout; if it hung, look at what the \
             ranks printed last (--tag-output)"
                .to_owned()
        }
        Outcome::Failed { cause } => cause_hint(cause, verdict.last_lines.is_empty())?,
    };
    Some(text)
}

fn cause_hint(cause: &Cause, silent: bool) -> Option<String> {
    let text = match cause {
        Cause::RankEnded {
            ending: Ending::Signal(signal),
            ..
        } => signal_hint(*signal)?,
        Cause::RankEnded {
            ending: Ending::Code(code @ 129..=192),
            ..
        } => {
            let signal = code - 128;
            let hint = signal_hint(signal)
                .map(|hint| format!(": {hint}"))
                .unwrap_or_default();
            return Some(format!(
                "a shell reports a child ended by {} so{hint}",
                signal_name(signal)
            ));
        }
        Cause::RankEnded {
            ending: Ending::Code(code),
            ..
        } => match code {
            2 => "2 is often a wrong argument of the program itself",
            126 => "126 is how a shell says that it found a command but could not run it",
            127 => "127 is how a shell says that it did not find a command",
            _ if silent => "it printed nothing; run it alone: rlaunch -np 1 …",
            _ => "its last lines above say why",
        },
        Cause::RankLeftEarly { .. } => {
            "every rank has to make the same calls, and finalize at the end"
        }
        Cause::LaunchFailed { what, .. } => match what.as_str() {
            "directory" => "create it on that host, or choose another with --wdir DIR",
            "interpreter" => "name one that exists on every host: --python PATH",
            "program" => {
                "give a path that exists on every host, or one in its PATH; --wdir DIR \
                          is where relative paths begin"
            }
            _ => "the host may be out of processes or memory: `ulimit -u`, `free`",
        },
        Cause::HostLost {
            kind: LossKind::Silent,
            ..
        } => "is the machine up, and the network to it? --host-timeout SECONDS sets the patience",
        Cause::HostLost { .. } => {
            "sshd or the agent ended there: look at that host's system log (out of memory? reboot?)"
        }
        Cause::AgentBroke { .. } => {
            "was it killed? look at that host's system log; rlaunch --verbose shows what it said"
        }
    };
    Some(text.to_owned())
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
