//! The state of a running job, and what each message, signal and timer does to it.
//!
//! Nothing here waits.

use std::collections::BTreeMap;
use std::time::Instant;

use nix::libc;
use rlaunch_control::v1::{self, from_agent, to_agent};
use rlaunch_plan::supervise::{
    Action, ClockOffset, Event, HostSetup, Limit, Settings as Supervision, Supervisor,
};
use rlaunch_plan::{Placement, Verdict};
use tracing::{debug, info};

use super::Plan;
use super::bind::{self, Cores};
use super::launch;
use super::links::{FromHost, Links};
use super::reach::Reached;
use super::signals::Received;
use super::stdin::Stdin;
use super::suspend::Suspension;
use super::translate::{self, rank_of, stream};
use crate::clock::wall_us;
use crate::output::{Printer, Source, Tail};
use crate::settings::Settings;
use crate::talk;

pub(super) struct Driver<'a> {
    pub(super) placement: &'a Placement,
    /// What messages call each program; none where there is but one.
    pub(super) programs: Vec<Option<String>>,
    /// `--report-bindings`: what was planned, by rank.
    reported_cores: Option<&'a Cores>,
    pub(super) supervisor: Supervisor,
    pub(super) limits_set_by: &'a BTreeMap<&'static str, String>,
    pub(super) links: Links,
    pub(super) printer: Printer,
    pub(super) start: Instant,
    /// By node rank.
    pub(super) hosts: Vec<HostState>,
    /// By rank.
    pub(super) ranks: Vec<RankState>,
    started: usize,
    pub(super) joined: usize,
    pub(super) credit_bytes: u64,
    /// Nobody reads our stdout any more.
    pub(super) stdout_closed: bool,
    /// Something was for a reader who was gone.
    pub(super) output_unread: bool,
    pub(super) suspension: Option<Suspension>,
    /// Our own stop is over, and SIGCONT not yet heard.
    pub(super) has_resumed: bool,
    /// What the ranks' terminals have of ours; none where that is nothing to them.
    pub(super) window: Option<v1::WindowSize>,
}

/// What is left of the job's limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remaining {
    pub(super) job: Option<Limit>,
    pub(super) start: Option<Limit>,
}

pub(super) struct HostState {
    pub(super) name: String,
    pub(super) clock: ClockOffset,
    /// The agent's own time in its last heartbeat, for its estimate.
    heard_us: i64,
    pub(super) finished: bool,
}

#[derive(Default)]
pub(super) struct RankState {
    pub(super) tail: Tail,
    pub(super) card: Option<Vec<u8>>,
    pub(super) wrote_to_stderr: bool,
    /// Printed, and not yet given back as credit; by stream.
    pub(super) owed_bytes: [u64; 2],
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        plan: &'a Plan,
        nodes: Vec<Reached>,
        launches: Vec<v1::Launch>,
        printer: Printer,
        (start, limits): (Instant, Remaining),
    ) -> Self {
        let setups = plan
            .placement
            .nodes
            .iter()
            .zip(&nodes)
            .map(|(places, node)| HostSetup {
                name: node.name.clone(),
                ranks: places.ranks.clone(),
            });
        let now = start.elapsed();
        let supervision = Supervision {
            hosts: setups.collect(),
            wall_start_us: wall_us() - i64::try_from(now.as_micros()).unwrap_or(0),
            host_timeout: settings.limits.host_timeout,
            kill_after: settings.limits.kill_after,
            job_timeout: limits.job,
            start_timeout: limits.start,
            on_failure: settings.limits.on_failure,
        };
        let mut supervisor = Supervisor::new(supervision, now);
        let mut hosts = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            if let Some(event) = clock_event(index, &node.clock) {
                supervisor.handle_event(event, now);
            }
            let (name, clock) = (node.name.clone(), node.clock);
            hosts.push(HostState {
                name,
                clock,
                heard_us: 0,
                finished: false,
            });
        }
        let world = plan.placement.ranks.len();
        Self {
            placement: &plan.placement,
            programs: settings
                .placements
                .iter()
                .map(|it| it.label.clone())
                .collect(),
            reported_cores: settings.binding.report.then_some(&plan.cores),
            supervisor,
            limits_set_by: &settings.limits.set_by,
            links: Links::open(nodes, launches),
            printer,
            start,
            hosts,
            ranks: std::iter::repeat_with(RankState::default)
                .take(world)
                .collect(),
            started: 0,
            joined: 0,
            credit_bytes: launch::credit(world),
            stdout_closed: false,
            output_unread: false,
            suspension: None,
            has_resumed: false,
            window: None,
        }
    }

    /// Does what the supervisor decided; the verdict, once there is one.
    pub(super) fn act(&mut self) -> Option<Verdict> {
        while let Some(action) = self.supervisor.poll_action() {
            match action {
                Action::Terminate { hosts, kill_after } => {
                    let kill_after_ms = launch::milliseconds(kill_after);
                    debug!(?hosts, kill_after_ms, "terminate");
                    for host in hosts {
                        let body = v1::Terminate { kill_after_ms };
                        self.links.send(host, to_agent::Message::Terminate(body));
                    }
                }
                Action::TellPeersFailed {
                    rank,
                    host,
                    pid,
                    cause,
                } => {
                    let body = v1::PeerFailed {
                        rank,
                        host,
                        pid,
                        cause,
                    };
                    self.links.send_all(&to_agent::Message::PeerFailed(body));
                }
                Action::Warn(text) if talk::notes() => self.printer.talk(prefixed(&text)),
                Action::Warn(_) => {}
                Action::Disconnect { host } => self.links.disconnect(host),
                Action::Done(verdict) => return Some(*verdict),
            }
        }
        None
    }

    pub(super) fn event(&mut self, event: Event) {
        self.supervisor.handle_event(event, self.start.elapsed());
    }

    pub(super) fn handle_host(
        &mut self,
        host: usize,
        message: FromHost,
        stdin: Option<&mut Stdin>,
    ) {
        match message {
            FromHost::Message(message) => {
                self.event(Event::Activity { host });
                self.handle_message(host, message, stdin);
            }
            FromHost::Said(line) if talk::notes() => {
                self.printer
                    .talk(format!("rlaunch: {}: {line}", self.hosts[host].name));
            }
            FromHost::Said(_) => {}
            FromHost::Ended { .. } if self.hosts[host].finished => {}
            FromHost::Ended { kind, detail } => {
                if let Some(stdin) = stdin {
                    self.placement.nodes[host]
                        .ranks
                        .iter()
                        .for_each(|rank| stdin.handle_ended(*rank));
                }
                self.event(Event::HostLost { host, kind, detail });
            }
        }
    }

    fn handle_message(
        &mut self,
        host: usize,
        message: from_agent::Message,
        stdin: Option<&mut Stdin>,
    ) {
        use from_agent::Message;
        if let Some(rank) = rank_of(&message)
            && !self.is_on(rank, host)
        {
            debug!(rank, host, "a message of a rank that is not there");
            return;
        }
        match message {
            Message::Output(output) => self.handle_output(output),
            Message::OutputEnd(end) => self.printer.end(Source {
                rank: end.rank,
                stream: stream(end.stream),
            }),
            Message::Joined(joined) => self.handle_joined(joined),
            Message::Overdue(overdue) => self.handle_overdue(host, overdue.rank),
            Message::Broadcast(broadcast) => self.handle_broadcast(host, broadcast),
            Message::Suspended(_) => self.handle_suspended(host),
            Message::Reaped(_) => self.handle_reaped(host),
            Message::Heartbeat(heartbeat) => self.handle_heartbeat(host, heartbeat),
            Message::Log(log) => self.handle_log(host, &log),
            Message::StdinTaken(taken) => {
                if let Some(stdin) = stdin {
                    stdin.handle_taken(taken.rank, taken.bytes);
                }
            }
            other => {
                let ends = matches!(other, Message::Exited(_) | Message::LaunchFailed(_));
                if let (Some(stdin), Some(rank), true) = (stdin, rank_of(&other), ends) {
                    stdin.handle_ended(rank);
                }
                self.hosts[host].finished |= matches!(other, Message::Finished(_));
                debug!(host, message = ?other, after = ?self.start.elapsed(), "told");
                if let Message::Started(started) = &other {
                    self.report_binding(host, started);
                    self.started += 1;
                    if self.started == self.ranks.len() {
                        info!(after = ?self.start.elapsed(), "all ranks run");
                    }
                }
                if let Some(event) = translate::event(host, other) {
                    self.event(event);
                }
            }
        }
    }

    fn report_binding(&self, host: usize, started: &v1::Started) {
        if let Some(cores) = self.reported_cores {
            let is_bound = cores[started.rank as usize].is_some();
            let text = bind::report(&self.hosts[host].name, started, is_bound);
            self.printer.talk(text);
        }
    }

    fn handle_heartbeat(&mut self, host: usize, heartbeat: v1::Heartbeat) {
        let state = &mut self.hosts[host];
        state.heard_us = heartbeat.sent_us;
        if heartbeat.echo_us != 0 {
            state
                .clock
                .sample(heartbeat.echo_us, heartbeat.sent_us, wall_us());
            if let Some(event) = clock_event(host, &state.clock) {
                self.event(event);
            }
        }
    }

    fn handle_log(&mut self, host: usize, log: &v1::Log) {
        let name = &self.hosts[host].name;
        match log.level() {
            v1::Level::Warn if !talk::notes() => {}
            v1::Level::Warn | v1::Level::Error => {
                self.printer.talk(format!("rlaunch: {name}: {}", log.text));
            }
            v1::Level::Info => info!(host = name, "{}", log.text),
            v1::Level::Debug => debug!(host = name, "{}", log.text),
        }
    }

    pub(super) fn handle_signal(&mut self, received: Received) {
        match received {
            Received::End(signal) => self.event(Event::UserSignal { signal }),
            Received::Forward(libc::SIGWINCH) if self.passes_size_on() => {}
            Received::Forward(signal) => {
                self.links
                    .send_all(&to_agent::Message::Signal(v1::Signal { signal }));
            }
            Received::Suspend => self.begin_suspension(),
            Received::Continue => self.handle_continue(),
        }
    }

    /// It is the user who ends the job, only not by a signal to us.
    fn handle_reaped(&mut self, host: usize) {
        let name = &self.hosts[host].name;
        self.printer.talk(format!(
            "rlaunch: {name}: `rlaunch reap --end` ends this job"
        ));
        if !self.supervisor.is_ending() {
            let signal = libc::SIGTERM;
            self.event(Event::UserSignal { signal });
        }
    }

    pub(super) fn beat(&mut self) {
        for host in 0..self.hosts.len() {
            let heartbeat = v1::Heartbeat {
                sent_us: wall_us(),
                echo_us: self.hosts[host].heard_us,
            };
            self.links
                .send(host, to_agent::Message::Heartbeat(heartbeat));
        }
    }

    fn is_on(&self, rank: u32, host: usize) -> bool {
        self.placement
            .ranks
            .get(rank as usize)
            .is_some_and(|place| place.node_rank as usize == host)
    }
}

fn clock_event(host: usize, clock: &ClockOffset) -> Option<Event> {
    let error_us = clock.error_us()?;
    Some(Event::Clock {
        host,
        offset_us: clock.offset_us(),
        error_us,
    })
}

/// Every line of ours says whose it is.
fn prefixed(text: &str) -> String {
    if text.starts_with("rlaunch:") {
        text.to_owned()
    } else {
        format!("rlaunch: {text}")
    }
}
