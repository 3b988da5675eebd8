//! The driver of the supervisor: messages, signals, time in; what it decides, out.
//!
//! One loop owns all state. It never waits for a printer, an agent or stdin, so heartbeats go out
//! whatever stalls.

use std::time::Instant;

use nix::libc;
use rlaunch_plan::verdict::Outcome;
use rlaunch_plan::{Verdict, exit_code};
use rlaunch_wire::limits::HEARTBEAT_PERIOD;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tracing::info;

use super::bundle::Bundle;
use super::driver::{Driver, Remaining};
use super::launch;
use super::reach::Reached;
use super::reader::Reader;
use super::signals::Signals;
use super::stdin::Stdin;
use super::terminal::Terminal;
use super::window;
use super::{DriveError, Plan};
use crate::output::{Files, Printed, Printer, Printing};
use crate::settings::{Settings, StdinTo};
use crate::talk::say;

/// What the ranks' supervision needs of the job.
pub(super) struct Attempt<'a> {
    pub(super) settings: &'a Settings,
    pub(super) plan: &'a Plan,
    pub(super) nodes: Vec<Reached>,
    pub(super) bundle: Option<&'a Bundle>,
    pub(super) start: Instant,
    pub(super) limits: Remaining,
}

/// How an attempt ended.
pub(super) struct Ended {
    pub(super) verdict: Verdict,
    /// The user's signal while it was printed.
    pub(super) signal: Option<i32>,
}

/// Launches the ranks and stays until the job is over and its verdict printed. `note` is added to
/// the verdict where there is one to print: what happens next.
pub(super) async fn supervise(
    attempt: Attempt<'_>,
    signals: &mut Signals,
    note: impl FnOnce(&Verdict) -> Option<String>,
) -> Result<Ended, DriveError> {
    let Attempt {
        settings,
        plan,
        nodes,
        bundle,
        start,
        limits,
    } = attempt;
    let (report, mut printed) = mpsc::unbounded_channel();
    let printing = printing(settings, plan)?;
    let printer = Printer::start(printing, report).map_err(DriveError::Printer)?;
    let mut reader = Reader::of_stdout().map_err(DriveError::Printer)?;
    let mut stdin = match settings.streams.stdin {
        Some(to) => {
            let keeps = settings.limits.max_restarts > 0;
            Some(Stdin::read(to, world(plan), keeps).map_err(DriveError::Printer)?)
        }
        None => None,
    };
    let takes_letters = settings.streams.pty && stdin.is_some();
    let terminal = || takes_letters.then(Terminal::pass_letters_on).flatten();
    let mut letters = terminal();
    let ours = launch::Terminal {
        is_silent: letters.is_some(),
        size: settings.streams.pty.then(window::size).flatten(),
    };
    let launches = nodes.iter().enumerate();
    let launches =
        launches.map(|(rank, node)| launch::message(settings, plan, rank, node, bundle, ours));
    let launches = launches.collect();
    let mut driver = Driver::new(settings, plan, nodes, launches, printer, (start, limits));
    driver.window = ours.size;
    let mut beat = tokio::time::interval(HEARTBEAT_PERIOD);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let verdict = loop {
        if let Some(verdict) = driver.act() {
            break verdict;
        }
        if driver.is_to_stop() {
            drop(letters);
            driver.stop();
            letters = terminal();
            continue;
        }
        let due = driver.supervisor.poll_timeout().into_iter();
        let due = due.chain(driver.suspension_due()).min();
        tokio::select! {
            biased;
            received = signals.next() => driver.handle_signal(received),
            (host, message) = driver.links.next() => {
                driver.handle_host(host, message, stdin.as_mut());
                while let Some((host, message)) = driver.links.try_next() {
                    driver.handle_host(host, message, stdin.as_mut());
                }
            }
            Some(event) = printed.recv() => driver.handle_printed(event),
            () = reader.gone() => driver.handle_reader_gone(),
            block = next_block(&mut stdin) => driver.handle_stdin(block),
            _ = beat.tick() => driver.beat(),
            () = sleep_until(due.map(|due| start + due)) => {}
        }
        // Events that arrived were handled first: a late timer must not win over a message.
        driver.supervisor.handle_timeout(start.elapsed());
    };
    drop(letters);
    let ended = driver.conclude(verdict, &mut printed, signals, note).await;
    info!(code = ended.verdict.exit_code, after = ?start.elapsed(), "done");
    Ok(ended)
}

impl Driver<'_> {
    /// Prints the verdict after all output; a second signal cuts the printing short.
    async fn conclude(
        mut self,
        mut verdict: Verdict,
        printed: &mut UnboundedReceiver<Printed>,
        signals: &mut Signals,
        note: impl FnOnce(&Verdict) -> Option<String>,
    ) -> Ended {
        verdict.read(|rank| self.ranks[rank as usize].tail.printed());
        let program = verdict
            .rank()
            .map(|rank| self.placement.ranks[rank as usize].program);
        verdict.program = program.and_then(|index| self.programs[index as usize].clone());
        let limit = verdict.limit();
        verdict.limit_set_by = limit.and_then(|option| self.limits_set_by.get(option).cloned());
        let broken_pipe =
            matches!(verdict.outcome, Outcome::Interrupted { .. }) && self.stdout_closed;
        let mut text = verdict.render();
        text.extend(note(&verdict));
        if !text.is_empty() && !broken_pipe {
            self.printer.talk(text);
        }
        self.printer.close();
        let mut signal = None;
        loop {
            tokio::select! {
                event = printed.recv() => match event {
                    // The threads have ended: all is written.
                    None => break,
                    Some(Printed::Lost(text)) => {
                        say(&text);
                        no_success(&mut verdict, exit_code::LAUNCHER);
                    }
                    // What is written last may be what can't be.
                    Some(Printed::Full(text) | Printed::Failed(text)) => say(&text),
                    Some(Printed::Closed(_)) => self.output_unread = true,
                    Some(Printed::Bytes { .. }) => {}
                },
                second = signals.next_end() => {
                    signal = Some(second);
                    break;
                }
            }
        }
        // The ranks may have ended before anybody saw that the reader had.
        if self.output_unread {
            no_success(&mut verdict, exit_code::of_signal(libc::SIGPIPE));
        }
        Ended { verdict, signal }
    }
}

/// What was printed and is lost is no success.
fn no_success(verdict: &mut Verdict, code: u8) {
    if verdict.exit_code == exit_code::SUCCESS {
        verdict.exit_code = code;
    }
}

fn world(plan: &Plan) -> u32 {
    u32::try_from(plan.placement.ranks.len()).expect("placement bounds the ranks")
}

fn printing(settings: &Settings, plan: &Plan) -> Result<Printing, DriveError> {
    let streams = &settings.streams;
    let files = match &streams.output_directory {
        Some(path) => {
            let (merge, timestamp) = (streams.merge_stderr, streams.style.timestamp);
            let restart = plan.restarts.count;
            Some(Files::create(path, restart, world(plan), merge, timestamp)?)
        }
        None => None,
    };
    Ok(Printing {
        style: streams.style,
        only: streams.only.clone(),
        files,
    })
}

async fn next_block(stdin: &mut Option<Stdin>) -> (StdinTo, Option<Vec<u8>>) {
    match stdin {
        Some(stdin) => (stdin.to, stdin.next().await),
        None => std::future::pending().await,
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
