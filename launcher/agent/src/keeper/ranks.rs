//! The keeper's table: each rank's process, what was sent to it, how exec went.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::libc;

use super::Inherited;
use super::messages::{Event, Exited, Failed, Plan, Started, Stopped};
use super::quick::Quick;
use super::spawn::{self, Child, Failure, Step};
use super::unrunnable::Need;
use crate::clock::now_us;
use crate::processes;

/// The system's own bound of a path.
const PATH_MAX_BYTES: usize = 4096;

pub(super) struct Rank {
    pub(super) number: u32,
    pub(super) pid: i32,
    /// Until exec has worked or failed.
    outcome: Option<OwnedFd>,
    /// Not given up before the outcome is known: the process reads it.
    quick: Option<Quick>,
    pub(super) shares_session: bool,
    failed: bool,
    pub(super) ended: bool,
    /// Bit n: signal n was sent to it by us.
    sent: u64,
    /// By a suspension of the job; its continuing is not told either.
    suspended: bool,
    program: Vec<u8>,
    directory: Vec<u8>,
    cpus: String,
    reports_cpus: bool,
}

impl Rank {
    /// Forks; the event instead, if even that fails.
    pub(super) fn start(
        number: u32,
        plan: Plan,
        standard: [OwnedFd; 3],
        inherited: &Inherited,
    ) -> Result<Self, Event> {
        // A longer one is no path that the system would take; the message has a bound.
        let clip = |path: &[u8]| path[..path.len().min(PATH_MAX_BYTES)].to_vec();
        let program = clip(plan.argv.first().map(Vec::as_slice).unwrap_or_default());
        match spawn::spawn(&plan, standard, inherited) {
            Ok(Child {
                pid,
                outcome,
                quick,
            }) => Ok(Self {
                number,
                pid,
                outcome: Some(outcome),
                quick,
                shares_session: plan.shares_session && !plan.terminal,
                failed: false,
                ended: false,
                sent: 0,
                suspended: false,
                program,
                directory: clip(&plan.directory),
                cpus: {
                    let cpus: Vec<String> = plan.cpus.iter().map(u32::to_string).collect();
                    cpus.join(",")
                },
                reports_cpus: plan.reports_cpus,
            }),
            Err(error) => Err(Event::Failed(Failed {
                rank: number,
                what: "fork".to_owned(),
                path: program,
                errno: error.raw_os_error().unwrap_or(libc::EINVAL),
            })),
        }
    }

    pub(super) fn outcome(&self) -> Option<BorrowedFd<'_>> {
        self.outcome.as_ref().map(AsFd::as_fd)
    }

    /// Reads how exec went; its pipe must be readable or at its end. What failed is started once more, with
    /// another pid, to say why.
    pub(super) fn settle(&mut self) -> Option<Event> {
        let pipe = std::fs::File::from(self.outcome.take()?);
        let mut bytes = Vec::new();
        pipe.take(Failure::BYTES_MAX as u64)
            .read_to_end(&mut bytes)
            .ok();
        let prepared = self.quick.take().map(Quick::left);
        let failure = Failure::from_bytes(&bytes);
        if let (Some(prepared), Some(_), 0) = (prepared, &failure, self.sent)
            && let Ok(child) = prepared.fork()
        {
            (self.pid, self.outcome, self.ended) = (child.pid, Some(child.outcome), false);
            return None;
        }
        let Some(failure) = failure else {
            let (rank, pid) = (self.number, self.pid);
            return Some(Event::Started(Started {
                rank,
                pid,
                time_us: now_us(),
                cpus: self.allowed_cpus(),
            }));
        };
        self.failed = true;
        let (what, path) = match failure.step {
            Step::Needs(Need::Interpreter(path)) => ("script's interpreter", path),
            Step::Needs(Need::Loader(path)) => ("program's loader", path),
            Step::Needs(Need::Machine) => ("program for another machine", self.program.clone()),
            Step::Directory => ("directory", self.directory.clone()),
            Step::Program => ("program", self.program.clone()),
            Step::Cores => ("cores", self.cpus.clone().into_bytes()),
            Step::Setup => ("fork", self.program.clone()),
        };
        let what = what.to_owned();
        Some(Event::Failed(Failed {
            rank: self.number,
            what,
            path,
            errno: failure.errno,
        }))
    }

    /// What the process may use now; its program has begun, so nothing of ours changes that any
    /// more.
    fn allowed_cpus(&self) -> String {
        if !self.reports_cpus || self.ended {
            return String::new();
        }
        processes::status(self.pid, "Cpus_allowed_list").unwrap_or_default()
    }

    pub(super) fn note_sent(&mut self, signal: i32) {
        self.sent |= bit(signal);
    }

    /// What waitpid said of this rank's process. `suspended`: the job is.
    pub(super) fn changed(&mut self, status: libc::c_int, suspended: bool) -> Vec<Event> {
        let rank = self.number;
        if libc::WIFSTOPPED(status) && suspended {
            self.suspended = true;
            return Vec::new();
        }
        if libc::WIFCONTINUED(status) && std::mem::take(&mut self.suspended) {
            return Vec::new();
        }
        if libc::WIFSTOPPED(status) {
            let signal = libc::WSTOPSIG(status);
            return vec![Event::Stopped(Stopped {
                rank,
                signal,
                continued: false,
            })];
        }
        if libc::WIFCONTINUED(status) {
            let signal = libc::SIGCONT;
            return vec![Event::Stopped(Stopped {
                rank,
                signal,
                continued: true,
            })];
        }
        self.ended = true;
        // It is dead, so the pipe has its last word and does not block.
        let mut events: Vec<Event> = self.settle().into_iter().collect();
        if !self.ended {
            return events;
        }
        if !self.failed {
            let by_us = self.ended_by_us(status);
            let (pid, time_us) = (self.pid, now_us());
            events.push(Event::Exited(Exited {
                rank,
                pid,
                status,
                time_us,
                by_us,
            }));
        }
        events
    }

    /// Killed by a signal that we sent; or gone by itself after we asked it to go.
    fn ended_by_us(&self, status: libc::c_int) -> bool {
        if libc::WIFSIGNALED(status) {
            self.sent & bit(libc::WTERMSIG(status)) != 0
        } else {
            self.sent & bit(libc::SIGTERM) != 0
        }
    }
}

fn bit(signal: i32) -> u64 {
    assert!((1..=64).contains(&signal), "no such signal: {signal}");
    1 << (signal - 1)
}
