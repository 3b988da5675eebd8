//! The driver of the supervisor: messages, signals, time in; what it decides, out.
//!
//! One loop owns all state. It never waits for a printer, an agent or stdin, so heartbeats go out
//! whatever stalls.

use std::time::Instant;

use rlaunch_plan::verdict::Outcome;
use rlaunch_plan::{Verdict, exit_code};
use rlaunch_wire::limits::HEARTBEAT_PERIOD;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tracing::info;

use super::bundle::Bundle;
use super::driver::Driver;
use super::launch;
use super::reach::Reached;
use super::reader::Reader;
use super::signals::{Received, Signals};
use super::stdin::Stdin;
use super::terminal::Terminal;
use super::{DriveError, Plan};
use crate::output::{Files, Printed, Printer, Printing, Stream};
use crate::settings::{Settings, StdinTo};
use crate::talk::say;

/// Launches the ranks and stays until the job is over; the answer is the exit code.
pub(super) async fn supervise(
    settings: &Settings,
    plan: &Plan,
    nodes: Vec<Reached>,
    bundle: Option<&Bundle>,
    start: Instant,
) -> Result<u8, DriveError> {
    let mut signals = Signals::catch().map_err(DriveError::Signals)?;
    let (report, mut printed) = mpsc::unbounded_channel();
    let printing = printing(settings, plan)?;
    let printer = Printer::start(printing, report).map_err(DriveError::Printer)?;
    let mut reader = Reader::of_stdout().map_err(DriveError::Printer)?;
    let mut stdin = match settings.streams.stdin {
        Some(to) => Some(Stdin::read(to, world(plan)).map_err(DriveError::Printer)?),
        None => None,
    };
    let terminal = stdin
        .as_ref()
        .filter(|_| settings.streams.pty)
        .and_then(|_| Terminal::pass_letters_on());
    let echo = terminal.is_some();
    let launches = nodes.iter().enumerate();
    let launches =
        launches.map(|(rank, node)| launch::message(settings, plan, rank, node, bundle, echo));
    let launches = launches.collect();
    let mut driver = Driver::new(settings, plan, nodes, launches, printer, start);
    let mut beat = tokio::time::interval(HEARTBEAT_PERIOD);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let verdict = loop {
        if let Some(verdict) = driver.act() {
            break verdict;
        }
        let due = driver.supervisor.poll_timeout().map(|due| start + due);
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
            () = reader.gone() => driver.handle_printed(Printed::Closed(Stream::Stdout)),
            block = next_block(&mut stdin) => driver.handle_stdin(block),
            _ = beat.tick() => driver.beat(),
            () = sleep_until(due) => {}
        }
        // Events that arrived were handled first: a late timer must not win over a message.
        driver.supervisor.handle_timeout(start.elapsed());
    };
    drop(terminal);
    let code = driver.conclude(verdict, &mut printed, &mut signals).await;
    info!(code, after = ?start.elapsed(), "done");
    Ok(code)
}

impl Driver<'_> {
    /// Prints the verdict after all output; a second signal cuts the printing short.
    async fn conclude(
        self,
        mut verdict: Verdict,
        printed: &mut UnboundedReceiver<Printed>,
        signals: &mut Signals,
    ) -> u8 {
        if let Some(rank) = verdict.rank() {
            verdict.last_lines = self.ranks[rank as usize].tail.last_lines();
        }
        let broken_pipe =
            matches!(verdict.outcome, Outcome::Interrupted { .. }) && self.stdout_closed;
        let text = verdict.render();
        if !text.is_empty() && !broken_pipe {
            self.printer.talk(text);
        }
        self.printer.close();
        let mut code = verdict.exit_code;
        loop {
            tokio::select! {
                event = printed.recv() => match event {
                    // The threads have ended: all is written.
                    None => return code,
                    // What was printed and is lost is no success.
                    Some(Printed::Lost(text)) => {
                        say(&text);
                        code = if code == 0 { exit_code::LAUNCHER } else { code };
                    }
                    Some(_) => {}
                },
                received = signals.next() => {
                    if matches!(received, Received::End(_)) {
                        return code;
                    }
                }
            }
        }
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
            Some(Files::create(path, world(plan), merge, timestamp)?)
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
