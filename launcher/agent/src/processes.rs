//! Processes as /proc shows them. A process is known by its number *and* start time, for numbers
//! are used again; signals go through a pidfd that is checked against both.

use nix::errno::Errno;
use nix::libc;

use crate::sys;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    /// In clock ticks after boot.
    pub(crate) start_time: u64,
    pub(crate) state: char,
    /// The kernel's short name.
    pub(crate) name: String,
}

impl Process {
    /// One process, or none if there is none of that number.
    pub(crate) fn read(pid: i32) -> Option<Self> {
        parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Dead already, waiting for its parent to notice.
    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Of this process and no other that ever was.
    pub(crate) fn identity(&self) -> (i32, u64) {
        (self.pid, self.start_time)
    }

    /// By a signal, not by a debugger.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state == 'T'
    }

    /// Has a handler for the signal.
    pub(crate) fn catches(&self, signal: libc::c_int) -> bool {
        let mask = status(self.pid, "SigCgt");
        let mask = mask.and_then(|text| u64::from_str_radix(&text, 16).ok());
        mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
    }

    /// Sends a signal to this very process; not to one that took its number.
    pub(crate) fn signal(&self, signal: libc::c_int) -> Result<(), Errno> {
        let pidfd = match sys::pidfd_open(self.pid) {
            Ok(pidfd) => Some(pidfd),
            Err(Errno::ENOSYS | Errno::EPERM | Errno::EMFILE | Errno::ENFILE) => None,
            Err(error) => return Err(error),
        };
        // The number may have been taken over between the reading of /proc and the opening, so
        // it is looked at again now that the pidfd holds on to whoever has it.
        if Self::read(self.pid).is_none_or(|now| now.start_time != self.start_time) {
            return Err(Errno::ESRCH);
        }
        match pidfd {
            Some(pidfd) => sys::pidfd_send_signal(&pidfd, signal),
            None => sys::kill(self.pid, signal),
        }
    }

    /// Program and arguments, for messages.
    pub(crate) fn command(&self) -> String {
        const SHOWN_MAX_CHARS: usize = 200;
        let bytes = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let words: Vec<_> = bytes
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty())
            .map(String::from_utf8_lossy)
            .collect();
        if words.is_empty() {
            return format!("[{}]", self.name);
        }
        words.join(" ").chars().take(SHOWN_MAX_CHARS).collect()
    }

    /// The state in words.
    pub(crate) fn state_name(&self) -> &'static str {
        match self.state {
            'R' => "running",
            'S' => "sleeping",
            'D' => "uninterruptible wait",
            'T' | 't' => "stopped",
            'Z' | 'X' => "dead",
            'I' => "idle",
            _ => "unknown",
        }
    }
}

/// A field of a process's `status`, while it runs.
pub(crate) fn status(pid: i32, field: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let fields = status.lines().filter_map(|line| line.split_once(':'));
    let mut values = fields.filter_map(|(name, value)| (name == field).then_some(value));
    Some(values.next()?.trim().to_owned())
}

/// Every process whose chain of parents leads to `root`, without `root`.
pub(crate) fn descendants(root: i32) -> Vec<Process> {
    below(root, all())
}

/// Everything that /proc shows.
pub(crate) fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect()
}

fn below(root: i32, mut rest: Vec<Process>) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while !parents.is_empty() {
        let (children, others) = rest
            .into_iter()
            .partition::<Vec<_>, _>(|process| parents.contains(&process.parent));
        rest = others;
        parents = children.iter().map(|process| process.pid).collect();
        found.extend(children);
    }
    found
}

/// `pid (name) state parent group session …`, the name being any bytes, brackets too.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(&stat[..open])
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let name = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
        state: fields.first()?.chars().next()?,
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_brackets_in_the_name_is_read() {
        let line = b"42 (a) b ( c) S 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 1 2 3\n";
        let process = parse_stat(line).unwrap();
        assert_eq!((process.pid, process.parent, process.session), (42, 7, 41));
        assert_eq!((process.start_time, process.state), (9876, 'S'));
        assert_eq!(process.name, "a) b ( c");
        for end in 0..line.len() - 8 {
            parse_stat(&line[..end]);
        }
    }

    #[test]
    fn descendants_are_found_whatever_their_order_and_session() {
        let process = |pid, parent| Process {
            pid,
            parent,
            session: pid,
            start_time: 0,
            state: 'S',
            name: String::new(),
        };
        let list = vec![
            process(9, 5),
            process(5, 3),
            process(3, 2),
            process(4, 1),
            process(8, 3),
        ];
        let mut found: Vec<i32> = below(2, list).iter().map(|process| process.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 5, 8, 9]);
    }

    #[test]
    fn a_number_with_another_start_time_gets_no_signal() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let process = Process::read(pid).unwrap();
        let other = Process {
            start_time: process.start_time + 1,
            ..process.clone()
        };
        assert_eq!(other.signal(libc::SIGKILL), Err(Errno::ESRCH));
        assert_eq!(process.signal(libc::SIGKILL), Ok(()));
        child.wait().unwrap();
        assert_eq!(process.signal(libc::SIGKILL), Err(Errno::ESRCH));
    }
}
