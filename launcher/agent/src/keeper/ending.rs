//! How the keeper ends things: by itself after the last rank, by order, or since the agent is gone.
//!
//! ```text
//! Running ─ all ranks ended ─► Leaving ─ grace ─► Terminating ─ deadline ─► Killing ─► Gone
//!    └────────────── Terminate ───────────────────────┘                      ▲
//!    └────────────── the agent is gone ──────────────────────────────────────┘
//! ```
//! Whatever the phase, Gone comes as soon as all ranks have ended and no child is left.

use std::time::{Duration, Instant};

use nix::libc;

use super::messages::{Event, Gone, Leftover};
use super::run::{Keeper, Phase};
use crate::processes::{Process, descendants};
use crate::sweep::{self, Survivor};
use crate::sys;

/// Between two looks at what ranks have left, while it is asked to end.
pub(super) const ASK_PERIOD: Duration = Duration::from_millis(50);

/// After the last rank's end, what it left may finish by itself this long: a `tee` of the last
/// lines, say.
const LEAVE_GRACE: Duration = Duration::from_millis(500);
/// Between TERM and KILL for what ranks left behind, at most.
pub(super) const LEFTOVER_KILL_MAX: Duration = Duration::from_secs(2);
/// Leftovers told of by name.
const LEFTOVERS_NAMED_MAX: usize = 64;

impl Keeper {
    pub(super) fn advance(&mut self, now: Instant) {
        let ranks_ended = self.have_ranks_ended();
        if ranks_ended && self.no_children && self.phase != Phase::Gone {
            if let Some(record) = self.record.take() {
                record.remove();
            }
            return self.gone();
        }
        match self.phase {
            Phase::Running if ranks_ended => {
                self.phase = Phase::Leaving {
                    term_at: now + LEAVE_GRACE,
                };
            }
            Phase::Leaving { term_at } if now >= term_at => {
                self.name_leftovers("was left behind by a rank: ending it");
                self.terminate(self.leftover_kill);
            }
            Phase::Terminating { kill_at } => {
                if ranks_ended {
                    self.ask_to_end();
                }
                let kill_at = if ranks_ended {
                    kill_at.min(now + self.leftover_kill)
                } else {
                    kill_at
                };
                self.phase = Phase::Terminating { kill_at };
                if now >= kill_at {
                    if ranks_ended {
                        self.name_leftovers("did not end by SIGTERM");
                    }
                    self.kill(now);
                }
            }
            Phase::Killing { since, next_round } if now >= next_round => {
                if now >= since + sweep::GIVE_UP_AFTER {
                    self.give_up();
                } else {
                    self.kill_round();
                    self.phase = Phase::Killing {
                        since,
                        next_round: now + sweep::ROUND_PERIOD,
                    };
                }
            }
            _ => {}
        }
    }

    /// TERM to all below; CONT too, for a stopped process takes TERM only when it continues. Without
    /// any patience it is KILL alone: which of the two ends a rank is no matter of luck.
    pub(super) fn terminate(&mut self, kill_after: Duration) {
        let now = Instant::now();
        if kill_after.is_zero() && !matches!(self.phase, Phase::Killing { .. } | Phase::Gone) {
            return self.kill(now);
        }
        let asked = now + kill_after;
        let kill_at = match self.phase {
            Phase::Killing { .. } | Phase::Gone => return,
            Phase::Terminating { kill_at } => kill_at.min(asked),
            Phase::Running | Phase::Leaving { .. } => asked,
        };
        self.phase = Phase::Terminating { kill_at };
        self.suspension = None;
        self.note_sent(libc::SIGTERM);
        self.asked.clear();
        self.ask_to_end();
    }

    pub(super) fn have_ranks_ended(&self) -> bool {
        (self.sealed || self.socket.is_none()) && self.ranks.iter().all(|rank| rank.ended)
    }

    /// Whoever was not asked yet: a process that forked just then left a child that was not. Once its
    /// ranks have ended nobody forks any more but what they left behind. One that runs another
    /// program by now is asked again: until then it was a shell's child, which may have taken TERM
    /// by the shell's own handler and forgotten it.
    fn ask_to_end(&mut self) {
        let mut processes = descendants(self.own_pid);
        let asked = &self.asked;
        processes.retain(|process| asked.get(&process.identity()) != Some(&process.name));
        for signal in [libc::SIGTERM, libc::SIGCONT] {
            send_all(processes.iter(), signal);
        }
        let processes = processes.into_iter();
        let new = processes.map(|process| (process.identity(), process.name));
        self.asked.extend(new);
    }

    fn kill(&mut self, now: Instant) {
        self.suspension = None;
        self.kill_round();
        self.phase = Phase::Killing {
            since: now,
            next_round: now + sweep::ROUND_PERIOD,
        };
    }

    fn kill_round(&mut self) {
        self.note_sent(libc::SIGKILL);
        sweep::kill_round(self.own_pid);
    }

    fn note_sent(&mut self, signal: i32) {
        for rank in self.ranks.iter_mut().filter(|rank| !rank.ended) {
            rank.note_sent(signal);
        }
    }

    /// Nobody to report to: all goes, at once.
    pub(super) fn agent_gone(&mut self) {
        self.socket = None;
        if !matches!(self.phase, Phase::Killing { .. } | Phase::Gone) {
            self.kill(Instant::now());
        }
    }

    fn name_leftovers(&mut self, why: &str) {
        for process in descendants(self.own_pid).iter().take(LEFTOVERS_NAMED_MAX) {
            if !process.is_zombie() {
                self.tell(Event::Leftover(Leftover {
                    pid: process.pid,
                    command: process.command(),
                    state: process.state_name().to_owned(),
                    why: why.to_owned(),
                }));
            }
        }
    }

    /// The record stays, for these are what it is for.
    fn give_up(&mut self) {
        for survivor in sweep::survivors(self.own_pid)
            .into_iter()
            .take(LEFTOVERS_NAMED_MAX)
        {
            let Survivor {
                pid,
                command,
                state,
                why,
            } = survivor;
            if self.socket.is_none() {
                sys::say(format_args!(
                    "rlaunch: process {pid} ({command}) is left: it {why}"
                ));
            }
            let state = state.to_owned();
            self.tell(Event::Leftover(Leftover {
                pid,
                command,
                state,
                why,
            }));
        }
        self.gone();
    }

    fn gone(&mut self) {
        self.phase = Phase::Gone;
        self.tell(Event::Gone(Gone {}));
    }
}

pub(super) fn send_all<'a>(processes: impl Iterator<Item = &'a Process>, signal: i32) {
    for process in processes {
        process.signal(signal).ok();
    }
}
