//! What to try.

use super::holders;
use super::why::Why;
use super::{Cause, Outcome, Verdict, signal_hint, signal_name};
use crate::supervise::{Ending, LossKind};
use crate::text::show;

/// Argument list too long.
const E2BIG: i32 = 7;
const EACCES: i32 = 13;
const EMFILE: i32 = 24;
const EFBIG: i32 = 27;

pub(super) fn hint(verdict: &Verdict) -> Option<String> {
    let text = match &verdict.outcome {
        Outcome::Success | Outcome::Interrupted { .. } => return None,
        Outcome::TimedOut { .. } => {
            "if it was making progress, give it a longer --timeout; if it hung, look at what the \
             ranks printed last (--tag-output)"
                .to_owned()
        }
        Outcome::Failed { .. } if let Some((_, hint)) = holders::told(verdict) => hint,
        Outcome::Failed { cause } => match &verdict.why {
            Some(why) => why_hint(why)?.to_owned(),
            None => cause_hint(cause, verdict.last_lines.is_empty())?,
        },
    };
    // The others are named in the first line.
    match (verdict.limit(), &verdict.limit_set_by) {
        (Some("host-timeout"), Some(place)) => Some(format!("{text} (set by {})", show(place))),
        _ => Some(text),
    }
}

/// What looks at the hosts that nobody could confirm to be clean: one command for each port.
pub(super) fn reap_command(verdict: &Verdict) -> Option<String> {
    let mut by_port: Vec<(&str, Vec<&str>)> = Vec::new();
    for fate in &verdict.unconfirmed {
        // As `Host` shows it.
        let (name, port) = fate.host.split_once(" port ").unwrap_or((&fate.host, ""));
        match by_port.iter_mut().find(|(known, _)| *known == port) {
            Some((_, names)) => names.push(name),
            None => by_port.push((port, vec![name])),
        }
    }
    let commands = by_port.iter().map(|(port, names)| {
        let port = match *port {
            "" => String::new(),
            port => format!(" --ssh-port {port}"),
        };
        format!("rlaunch reap -H {}{port}", names.join(","))
    });
    let commands: Vec<String> = commands.collect();
    (!commands.is_empty()).then(|| commands.join("; "))
}

fn why_hint(why: &Why) -> Option<&'static str> {
    Some(match why {
        Why::OutOfMemory { .. } => {
            "give the job more memory (a batch system's --mem, docker's -m), or let it use less: \
             smaller batches, fewer data-loader workers"
        }
        Why::SharedMemoryFull { .. } => {
            "give it more (docker --shm-size, `mount -o remount,size=…`), or use less: fewer \
             data-loader workers"
        }
        Why::LibraryMissing { .. } => {
            "install it on that host, or pass where it is: -x LD_LIBRARY_PATH"
        }
        Why::InterpreterMissing { .. } => {
            "install it on that host, or pass where it is: -x PATH; a name that ends in \\r comes \
             from Windows line ends in the script"
        }
        // The exception says it.
        Why::PythonError { .. } => return None,
    })
}

fn cause_hint(cause: &Cause, silent: bool) -> Option<String> {
    let text = match cause {
        Cause::RankEnded { ending, .. } => return ended_hint(*ending, silent),
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
        Cause::NotStarted { .. } => {
            "are those hosts overloaded, or their file systems stuck? a longer --start-timeout waits"
        }
        Cause::LaunchFailed { what, errno, .. } => launch_hint(what, *errno),
        Cause::HostLost {
            kind: LossKind::Silent,
            ..
        } => "is the machine up, and the network to it? --host-timeout SECONDS sets the patience",
        Cause::HostLost { .. } => {
            "sshd or the agent ended there: look at that host's system log (out of memory? reboot?)"
        }
        Cause::AgentBroke { .. } => {
            "who kills processes there? look at that host's system log; rlaunch --verbose shows more"
        }
    };
    Some(text.to_owned())
}

fn ended_hint(ending: Ending, silent: bool) -> Option<String> {
    let text = match ending {
        Ending::Signal(signal) => signal_hint(signal)?,
        Ending::Code(code @ 129..=192) => {
            let signal = code - 128;
            let hint = signal_hint(signal).map(|hint| format!(": {hint}"));
            return Some(format!(
                "a shell reports a child ended by {} so{}",
                signal_name(signal),
                hint.unwrap_or_default()
            ));
        }
        Ending::Code(2) => "2 is often a wrong argument of the program itself",
        Ending::Code(126) => "126 is how a shell says that it found a command but could not run it",
        Ending::Code(127) => "127 is how a shell says that it did not find a command",
        Ending::Code(code) if silent => {
            return Some(format!(
                "it printed nothing: look in the program, or in its own log, for what exits with \
                 {code}"
            ));
        }
        Ending::Code(_) => "its last lines above say why",
    };
    Some(text.to_owned())
}

fn launch_hint(what: &str, errno: i32) -> &'static str {
    match what {
        _ if errno == E2BIG => {
            "arguments and environment together are larger than the system takes (`getconf ARG_MAX`)"
        }
        "directory" => "create it on that host, or choose another with --wdir DIR",
        "cores" => "the host's cpuset has changed meanwhile? --bind-to none leaves all cores",
        "interpreter" => "name one that exists on every host: --python PATH",
        "program" if errno == EACCES => {
            "it must be a file that may be run: `chmod +x`, on a file system without noexec"
        }
        _ if errno == EMFILE => "the host allows a process too few open files: `ulimit -n`",
        _ if errno == EFBIG => {
            "the host allows files too small for a program's environment: `ulimit -f`"
        }
        "program" => {
            "give a path that exists on every host, or one in its PATH; --wdir DIR is where relative \
             paths begin"
        }
        "script's interpreter" => {
            "its first line names what is not on that host; one that ends in \\u{d} has Windows line \
             ends"
        }
        "program's loader" => {
            "it was built for another system, or another C library: build it for that host"
        }
        "program for another machine" => "build it for that host's kind of machine",
        _ => "the host may be out of processes or memory: `ulimit -u`, `free`",
    }
}
