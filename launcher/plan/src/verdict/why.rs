//! Why a rank ended, read from what it printed and from what its host found out: pure.
//!
//! The exit status says little: 1 for every uncaught exception of Python, SIGKILL for the
//! out-of-memory killer and a colleague alike, 127 for a program that is not there and for one
//! whose library is not. What is told here is backed by evidence; without it nothing is claimed,
//! and [`signal_hint`](super::signal_hint) says what is usual.

use serde::Serialize;

use super::LastLine;
use crate::supervise::Ending;

/// What a host found out about the end of one of its ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The kernel's out-of-memory killer was at work.
    pub oom: Option<OutOfMemory>,
    /// `/dev/shm`, of a rank that SIGBUS ended.
    pub shm: Option<SharedMemory>,
    /// The kernel's pattern for the names of cores, of a rank that dumped one.
    pub core_pattern: Option<String>,
    /// Who else had GPUs of that host open.
    pub device_holders: Vec<DeviceHolder>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceHolder {
    pub pid: u32,
    pub command: String,
    pub devices: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OutOfMemory {
    /// Whom it ended.
    pub victim: Victim,
    /// The smallest limit over the host's processes of the job; None: that of the machine.
    pub limit_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Victim {
    /// The kernel's log names the rank's process.
    Rank,
    /// Some process of the control group in which the job runs there.
    Group,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SharedMemory {
    pub size_bytes: u64,
    /// The least that was seen in the seconds before the end.
    pub free_bytes: u64,
}

/// The cause behind an exit status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum Why {
    OutOfMemory {
        #[serde(flatten)]
        found: OutOfMemory,
    },
    SharedMemoryFull {
        #[serde(flatten)]
        found: SharedMemory,
    },
    /// The loader did not find a shared library.
    LibraryMissing { library: String },
    /// `env` did not find what a script's first line names.
    InterpreterMissing { interpreter: String },
    /// The last line of the traceback: `ValueError: bad`.
    PythonError { line: String },
}

const SIGBUS: i32 = 7;
const SIGKILL: i32 = 9;
/// Less is no room for a page of every rank.
const SHM_FULL_BYTES: u64 = 64 << 10;
const NOT_FOUND: i32 = 127;

/// `error`: the last traceback's last line, if Python printed one.
pub(super) fn decode(
    ending: Ending,
    findings: &Findings,
    lines: &[LastLine],
    error: Option<&str>,
) -> Option<Why> {
    let is_ended_by = |signal| match ending {
        Ending::Signal(number) => number == signal,
        // A shell tells of its child so.
        Ending::Code(code) => code == 128 + signal,
    };
    if is_ended_by(SIGKILL)
        && let Some(found) = findings.oom
    {
        return Some(Why::OutOfMemory { found });
    }
    if is_ended_by(SIGBUS)
        && let Some(found) = findings.shm.filter(SharedMemory::is_full)
    {
        return Some(Why::SharedMemoryFull { found });
    }
    if ending == Ending::Code(NOT_FOUND)
        && let Some(why) = lines.iter().rev().find_map(|line| missing(&line.text))
    {
        return Some(why);
    }
    let line = error.filter(|_| matches!(ending, Ending::Code(_)))?;
    Some(Why::PythonError {
        line: line.to_owned(),
    })
}

impl SharedMemory {
    pub(super) fn is_full(&self) -> bool {
        self.free_bytes < SHM_FULL_BYTES.max(self.size_bytes / 1000)
    }
}

/// What glibc's and musl's loaders and `env` say, in the C locale and in UTF-8 ones.
fn missing(line: &str) -> Option<Why> {
    for words in [
        "error while loading shared libraries: ",
        "Error loading shared library ",
    ] {
        if let Some((_, rest)) = line.split_once(words) {
            let library = rest.split(':').next()?.trim().to_owned();
            return Some(Why::LibraryMissing { library });
        }
    }
    let rest = line
        .strip_prefix("env: ")
        .or_else(|| line.strip_prefix("/usr/bin/env: "))?;
    let (name, error) = rest.rsplit_once(": ")?;
    let quotes: &[char] = &['\'', '‘', '’', '`', '"'];
    (error == "No such file or directory").then(|| Why::InterpreterMissing {
        interpreter: name.trim_matches(quotes).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Vec<LastLine> {
        let line = |text: &str| LastLine {
            stderr: true,
            text: text.to_owned(),
        };
        text.lines().map(line).collect()
    }

    fn of(code: i32, text: &str) -> Option<Why> {
        decode(
            Ending::Code(code),
            &Findings::default(),
            &printed(text),
            None,
        )
    }

    #[test]
    fn loaders_and_env_say_what_is_missing() {
        let library = |name: &str| {
            Some(Why::LibraryMissing {
                library: name.to_owned(),
            })
        };
        let glibc = "./a.out: error while loading shared libraries: libfoo.so.1: cannot open \
                     shared object file: No such file or directory";
        assert_eq!(of(127, glibc), library("libfoo.so.1"));
        let musl =
            "Error loading shared library libbar.so: No such file or directory (needed by x)";
        assert_eq!(of(127, musl), library("libbar.so"));
        assert_eq!(of(1, glibc), None, "not the loader's exit code");
        for line in [
            "/usr/bin/env: ‘python9’: No such file or directory",
            "env: 'python9': No such file or directory",
        ] {
            let interpreter = "python9".to_owned();
            assert_eq!(of(127, line), Some(Why::InterpreterMissing { interpreter }));
        }
        assert_eq!(of(127, "sh: 1: foo: not found"), None);
    }

    /// SIGKILL alone is no proof of anything.
    #[test]
    fn memory_is_blamed_on_evidence() {
        let found = OutOfMemory {
            victim: Victim::Rank,
            limit_bytes: Some(1 << 20),
        };
        let findings = Findings {
            oom: Some(found),
            ..Findings::default()
        };
        let why = |ending, findings: &Findings| decode(ending, findings, &[], None);
        let blamed = Some(Why::OutOfMemory { found });
        assert_eq!(why(Ending::Signal(9), &findings), blamed);
        assert_eq!(why(Ending::Code(137), &findings), blamed);
        assert_eq!(why(Ending::Code(3), &findings), None);
        assert_eq!(why(Ending::Signal(9), &Findings::default()), None);
    }

    #[test]
    fn shared_memory_is_blamed_when_it_was_full() {
        let why = |free_bytes| {
            let shm = Some(SharedMemory {
                size_bytes: 64 << 20,
                free_bytes,
            });
            let findings = Findings {
                shm,
                ..Findings::default()
            };
            decode(Ending::Signal(7), &findings, &[], None)
        };
        assert!(matches!(why(4096), Some(Why::SharedMemoryFull { .. })));
        assert_eq!(why(32 << 20), None);
    }

    #[test]
    fn python_says_why_only_of_its_own_exit() {
        let why = |ending| {
            let error = Some("ValueError: bad");
            decode(ending, &Findings::default(), &[], error)
        };
        assert!(matches!(
            why(Ending::Code(1)),
            Some(Why::PythonError { .. })
        ));
        assert_eq!(why(Ending::Signal(11)), None);
    }
}
