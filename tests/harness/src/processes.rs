//! `ps` for a host, seen from outside: nothing has to run there.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fmt;
use std::fs;
use std::path::Path;

/// A process on a host, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// As the host numbers it.
    pub pid: i32,
    /// As this machine numbers it.
    pub machine_pid: i32,
    /// As this machine numbers it.
    pub machine_parent: i32,
    /// One letter: R, S, D, T, Z …
    pub state: char,
    /// The kernel's name for it, at most 15 bytes.
    pub name: String,
    /// Empty for a zombie.
    pub arguments: Vec<String>,
}

impl Process {
    /// Sends a signal by this machine's number. The process may have ended; then it is ignored.
    pub fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.machine_pid), signal);
    }

    /// The command line with single blanks.
    pub fn command(&self) -> String {
        self.arguments.join(" ")
    }
}

impl fmt::Display for Process {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = if self.arguments.is_empty() {
            format!("[{}]", self.name)
        } else {
            self.command()
        };
        write!(out, "pid {} ({}) {command}", self.pid, self.state)
    }
}

/// All processes in the process namespace of `first`.
pub(crate) fn of(first: Pid) -> Vec<Process> {
    let namespace = |pid: &str| fs::read_link(Path::new("/proc").join(pid).join("ns/pid")).ok();
    let Some(wanted) = namespace(&first.to_string()) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let numbers = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let members = numbers.filter(|pid| namespace(pid).as_ref() == Some(&wanted));
    // One that ends meanwhile is left out.
    members.filter_map(|pid| read(&pid)).collect()
}

fn read(pid: &str) -> Option<Process> {
    let folder = Path::new("/proc").join(pid);
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim())
    };
    let command = fs::read(folder.join("cmdline")).unwrap_or_default();
    let words = command
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty());
    Some(Process {
        // The last number is the innermost namespace's.
        pid: field("NSpid")?
            .split_ascii_whitespace()
            .last()?
            .parse()
            .ok()?,
        machine_pid: pid.parse().ok()?,
        machine_parent: field("PPid")?.parse().ok()?,
        state: field("State")?.chars().next()?,
        name: field("Name")?.to_owned(),
        arguments: words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This process is found in its own namespace, with its command line.
    #[test]
    fn finds_itself() {
        let own = nix::unistd::getpid();
        let all = of(own);
        let found = all
            .iter()
            .find(|process| process.machine_pid == own.as_raw())
            .unwrap();
        assert!(found.command().contains("harness"), "{found}");
        assert_eq!(found.machine_parent, nix::unistd::getppid().as_raw());
    }
}
