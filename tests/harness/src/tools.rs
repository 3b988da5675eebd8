//! Running `ip`, `tc`, `bridge`, `nft` and `ssh-keygen`, inside a network namespace where asked to.

use crate::error::{HarnessError, failed};
use crate::requirements;
use nix::sched::{CloneFlags, setns};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

pub(crate) struct Tool {
    name: &'static str,
    command: Command,
    input: String,
}

impl Tool {
    pub(crate) fn new(name: &'static str) -> Self {
        let path = requirements::find(name).unwrap_or_else(|| name.into());
        let mut command = Command::new(path);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        Self {
            name,
            command,
            input: String::new(),
        }
    }

    pub(crate) fn words<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.command.args(words);
        self
    }

    pub(crate) fn input(mut self, input: String) -> Self {
        self.input = input;
        self
    }

    pub(crate) fn within(mut self, network: &Arc<File>) -> Self {
        let network = Arc::clone(network);
        let join =
            move || setns(network.as_fd(), CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
        // SAFETY: the closure makes one system call on a descriptor that it owns.
        unsafe { self.command.pre_exec(join) };
        self
    }

    pub(crate) fn run(self) -> Result<(), HarnessError> {
        run_all(vec![self])
    }

    fn start(&mut self) -> Result<Child, HarnessError> {
        let start = format!("start {}", self.name);
        let mut child = self.command.spawn().map_err(failed(start))?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that stopped reading says why on stderr, which is reported below.
            let _ = stdin.write_all(self.input.as_bytes());
        }
        Ok(child)
    }
}

/// Starts all at once and waits for all; the first failure is the result.
pub(crate) fn run_all(mut tools: Vec<Tool>) -> Result<(), HarnessError> {
    let started: Vec<_> = tools
        .iter_mut()
        .map(|tool| (tool.name, tool.start()))
        .collect();
    let mut result = Ok(());
    for (name, child) in started {
        let ended = child.and_then(|child| {
            child
                .wait_with_output()
                .map_err(failed(format!("wait for {name}")))
        });
        result = result.and(ended.and_then(|output| {
            if output.status.success() {
                return Ok(());
            }
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(HarnessError::Tool {
                program: name.to_owned(),
                message,
            })
        }));
    }
    result
}
