//! What keeper and ranks tell the job, and what the launcher hears of it.

use std::time::Duration;

use nix::libc;
use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::{self, Level, exited};

use super::output::Command;
use super::ranks::RankEvent;
use super::state::Job;
use crate::clock::now_us;
use crate::keeper::messages::Event;
use crate::record::Writer;
use crate::sweep;

/// For a dead rank's socket to be read to its end.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// How a rank's process ended.
struct End {
    pid: i32,
    /// As waitpid gives it.
    status: libc::c_int,
    time_us: i64,
    by_us: bool,
    keeper_killed: bool,
}

impl Job {
    pub(super) async fn keeper_says(&mut self, event: Event) {
        match event {
            Event::Started(started) => {
                let pid = started.pid.unsigned_abs();
                self.running.insert(started.rank, Some(started.pid));
                self.report(|report| report.set(started.rank, "running", Some(pid)));
                let (rank, host_time_us) = (started.rank, started.time_us);
                self.outgoing.control(Message::Started(v1::Started {
                    rank,
                    pid,
                    host_time_us,
                    cpus: started.cpus,
                }));
                self.command_all(rank, || Command::Started);
            }
            Event::Failed(failed) => {
                self.ended(failed.rank);
                self.outgoing
                    .control(Message::LaunchFailed(v1::LaunchFailed {
                        rank: failed.rank,
                        what: failed.what,
                        path: failed.path.into(),
                        errno: failed.errno,
                    }));
            }
            Event::Exited(exited) => {
                let (pid, status) = (exited.pid, exited.status);
                let end = End {
                    pid,
                    status,
                    time_us: exited.time_us,
                    by_us: exited.by_us,
                    keeper_killed: false,
                };
                self.exited(exited.rank, end).await;
            }
            Event::Stopped(stopped) => {
                self.outgoing.control(Message::Stopped(v1::Stopped {
                    rank: stopped.rank,
                    signal: stopped.signal,
                    continued: stopped.continued,
                }));
            }
            Event::Leftover(leftover) => {
                self.outgoing.control(Message::Leftover(v1::Leftover {
                    pid: leftover.pid.unsigned_abs(),
                    command: leftover.command,
                    state: leftover.state,
                    why: leftover.why,
                }));
            }
            Event::Suspended(_) => {
                self.outgoing.control(Message::Suspended(v1::Suspended {}));
            }
            Event::Gone(_) => self.all_gone(),
        }
    }

    /// The ranks died with it (PDEATHSIG); what they left has moved up to this process.
    pub(super) async fn keeper_is_gone(&mut self) {
        if self.record.as_ref().is_some_and(Writer::is_reaped) {
            self.outgoing.control(Message::Reaped(v1::Reaped {}));
        } else {
            let text = format!(
                "the process that starts and ends the ranks (pid {}) was killed; every rank of \
                 this host is being ended",
                self.keeper.pid
            );
            self.outgoing.log(Level::Error, text);
        }
        let swept = tokio::task::spawn_blocking(|| {
            let mut deaths = Vec::new();
            let survivors = sweep::until_none_left(|pid, status| deaths.push((pid, status)));
            (deaths, survivors)
        });
        let Ok((deaths, survivors)) = swept.await else {
            self.outgoing
                .log(Level::Error, "sweeping this host's processes failed");
            return self.all_gone();
        };
        let running: Vec<_> = self
            .running
            .iter()
            .map(|(rank, pid)| (*rank, *pid))
            .collect();
        for (rank, pid) in running {
            let death = deaths.iter().find(|(dead, _)| Some(*dead) == pid);
            // A rank in the middle of its start has no pid yet; KILL it was, all the same.
            let (pid, status) = death.copied().unwrap_or((pid.unwrap_or(0), libc::SIGKILL));
            let end = End {
                pid,
                status,
                time_us: now_us(),
                by_us: false,
                keeper_killed: true,
            };
            self.exited(rank, end).await;
        }
        // With somebody left it stays: that is what it is for.
        if let Some(record) = self.record.take().filter(|_| survivors.is_empty()) {
            record.remove();
        }
        for survivor in survivors {
            self.outgoing.control(Message::Leftover(v1::Leftover {
                pid: survivor.pid.unsigned_abs(),
                command: survivor.command,
                state: survivor.state.to_owned(),
                why: survivor.why,
            }));
        }
        self.all_gone();
    }

    async fn exited(&mut self, rank: u32, end: End) {
        let End {
            pid,
            status,
            time_us,
            by_us,
            keeper_killed,
        } = end;
        // Its last words to the agent come before its death: a Leave makes the death orderly.
        self.hear_last_words(rank).await;
        self.ended(rank);
        let how = if libc::WIFSIGNALED(status) {
            exited::How::Signal(libc::WTERMSIG(status))
        } else {
            exited::How::Code(libc::WEXITSTATUS(status))
        };
        self.outgoing.control(Message::Exited(v1::Exited {
            rank,
            pid: pid.unsigned_abs(),
            how: Some(how),
            core_dumped: libc::WIFSIGNALED(status) && libc::WCOREDUMP(status),
            host_time_us: time_us,
            by_us,
            findings: (!by_us).then(|| self.autopsy.findings(pid, status)),
            keeper_killed,
        }));
    }

    /// Bounded: its connection may wait for a launcher that is slow to take what it relays.
    async fn hear_last_words(&mut self, rank: u32) {
        let ranks = self.ranks.clone();
        let mut drained = std::pin::pin!(tokio::time::timeout(LAST_WORDS_MAX, ranks.drain(rank)));
        loop {
            tokio::select! {
                biased;
                // Taken meanwhile, for the connection may wait for room among them.
                Some(event) = self.rank_events.recv() => self.rank_says(event),
                _ = &mut drained => return,
            }
        }
    }

    fn ended(&mut self, rank: u32) {
        self.running.remove(&rank);
        self.report(|report| report.set(rank, "exited", None));
        if let Some(io) = self.ios.get_mut(&rank) {
            io.stdin = None;
            io.terminal = None;
        }
        self.command_all(rank, || Command::RankEnded);
    }

    fn all_gone(&mut self) {
        self.gone = true;
        for rank in std::mem::take(&mut self.running).into_keys() {
            self.ended(rank);
        }
    }

    pub(super) fn rank_says(&self, event: RankEvent) {
        match event {
            RankEvent::Joined { rank, card } => {
                self.report(|report| report.set(rank, "joined", None));
                let card = card.into();
                self.outgoing
                    .control(Message::Joined(v1::Joined { rank, card }));
            }
            RankEvent::Left { rank } => {
                self.report(|report| report.set(rank, "left", None));
                self.outgoing.control(Message::Left(v1::Left { rank }));
            }
            RankEvent::Overdue { rank } => {
                self.outgoing
                    .control(Message::Overdue(v1::Overdue { rank }));
            }
        }
    }
}
