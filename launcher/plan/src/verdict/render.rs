//! The paragraph: what came first and where, its last lines, the others, what to try.

use super::{Cause, Fate, HostFateKind, Outcome, Verdict, signal_hint, signal_name};
use crate::supervise::{Ending, LossKind};
use crate::text::{ranges, seconds_of_ms, show};

/// Lines of the causing rank that are repeated.
const LAST_LINES_SHOWN: usize = 20;
const SIGKILL: i32 = 9;

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

fn nor_on(hosts: &[String]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    format!(" (nor on {})", crate::text::table(hosts.iter().cloned()))
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
            let ranks = named(ranks);
            let how = match kind {
                LossKind::Closed | LossKind::Reset if detail.is_empty() => {
                    "its connection ended".to_owned()
                }
                LossKind::Closed => format!("its connection ended: {}", show(detail)),
                LossKind::Reset => format!("its connection broke: {}", show(detail)),
                LossKind::Silent => format!("nothing heard for {}", seconds_of_ms(*silent_ms)),
            };
            format!("host {host} was lost with {ranks}: {how}")
        }
        Cause::AgentBroke { host, rank, reason } => {
            format!("the agent on {host} {reason} (rank {rank})")
        }
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
            _ if silent => {
                return Some(format!(
                    "it printed nothing: look in the program, or in its own log, for what exits \
                     with {code}"
                ));
            }
            _ => "its last lines above say why",
        },
        Cause::RankLeftEarly { .. } => {
            "every rank has to make the same calls, and finalize at the end"
        }
        Cause::RankAborted { .. } => "the program called abort there, with this reason",
        Cause::RankShutOut { stopped: true, .. } => {
            "what stopped it (SIGSTOP, reading a terminal)? a longer --kill-after leaves time for \
             `kill -CONT`"
        }
        Cause::RankShutOut { .. } => {
            "it was stopped (SIGSTOP, a debugger), or hung: look in the program, and on that host"
        }
        Cause::LaunchFailed { what, .. } => match what.as_str() {
            "directory" => "create it on that host, or choose another with --wdir DIR",
            "cores" => "the host's cpuset has changed meanwhile? --bind-to none leaves all cores",
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
