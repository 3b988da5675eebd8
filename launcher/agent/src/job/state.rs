//! The job's one decider.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::libc;
use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::to_agent::Message as ToAgentMessage;
use rlaunch_control::v1::{self, Launch, Level, ToAgent, exited};
use rlaunch_wire::limits::{HEARTBEAT_PERIOD, RANK_MESSAGE_MAX_BYTES};
use rlaunch_wire::rank::{Broadcast, PeerFailed, ToRankMessage, World};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;
use tonic::Streaming;

use super::output::Command;
use super::ranks::{self, Facts, RankEvent, Ranks};
use super::start::{RankIo, Starter};
use super::{CLEANUP_MAX, Context, KeeperLink, Outgoing, next, orphan_order};
use crate::clock::now_us;
use crate::job::report::JobReport;
use crate::keeper::messages::{Event, Order};
use crate::sweep;

/// Joins and leaves that wait for the decider; a rank waits beyond.
const RANK_EVENTS_MAX: usize = 256;

/// For a dead rank's socket to be read to its end.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

pub(super) struct Job {
    keeper: KeeperLink,
    outgoing: Outgoing,
    report: Arc<Mutex<JobReport>>,
    ranks: Ranks,
    rank_events: mpsc::Receiver<RankEvent>,
    /// Serves the ranks' socket.
    socket: JoinHandle<()>,
    /// One for each output stream.
    captures: JoinSet<()>,
    /// Ranks handed to the keeper that have not ended.
    running: BTreeMap<u32, Option<i32>>,
    ios: BTreeMap<u32, RankIo>,
    kill_after_ms: u32,
    silence: Silence,
    /// No process is left, says the keeper.
    gone: bool,
}

/// How long the launcher has said nothing, in time that this agent was awake: after a suspend of
/// the whole machine nobody is at fault.
struct Silence {
    limit: Option<Duration>,
    so_far: Duration,
    last_tick: Instant,
}

impl Silence {
    fn new(limit_ms: u32) -> Self {
        let limit = (limit_ms > 0).then(|| Duration::from_millis(limit_ms.into()));
        Self {
            limit,
            so_far: Duration::ZERO,
            last_tick: Instant::now(),
        }
    }

    fn heard(&mut self) {
        self.so_far = Duration::ZERO;
        self.last_tick = Instant::now();
    }

    /// At each heartbeat period: is it too long?
    fn tick(&mut self) -> bool {
        let now = Instant::now();
        self.so_far += (now - self.last_tick).min(2 * HEARTBEAT_PERIOD);
        self.last_tick = now;
        self.limit.is_some_and(|limit| self.so_far >= limit)
    }
}

impl Job {
    /// Starts every rank. What cannot start is told; an error means that nothing could.
    pub(super) async fn start(
        launch: Launch,
        context: Context,
    ) -> Result<Self, (io::Error, Outgoing)> {
        let Context {
            keeper,
            outgoing,
            bundle,
            report,
        } = context;
        let (listener, socket_name) = match ranks::bind() {
            Ok(bound) => bound,
            Err(error) => return Err((error, outgoing)),
        };
        let ranks = Ranks::new(launch.ranks.iter().map(|spec| spec.rank));
        let (event_sender, rank_events) = mpsc::channel(RANK_EVENTS_MAX);
        let facts = Facts {
            job_id: launch.job_id.to_vec(),
            secret: launch.secret.to_vec(),
            world_size: launch.world_size,
            host: launch.host.clone(),
        };
        let served = ranks::serve(
            listener,
            ranks.clone(),
            facts,
            event_sender,
            outgoing.clone(),
        );
        let mut captures = JoinSet::new();
        let mut starter = Starter {
            launch: &launch,
            socket: &socket_name,
            bundle: bundle.filter(|_| launch.bundle),
            keeper: &keeper,
            outgoing: &outgoing,
            tasks: &mut captures,
        };
        let ios: BTreeMap<u32, RankIo> = starter.start_all().await.into_iter().collect();
        let running = ios.keys().map(|rank| (*rank, None)).collect();
        // Should this fail, the keeper is gone, and the loop hears of it at once.
        keeper.order(Order::Sealed(launch.kill_after_ms)).await.ok();
        let job = Self {
            keeper,
            outgoing,
            report,
            ranks,
            rank_events,
            socket: tokio::spawn(served),
            captures,
            running,
            ios,
            kill_after_ms: launch.kill_after_ms,
            silence: Silence::new(launch.launcher_silence_ms),
            gone: false,
        };
        job.report(|report| {
            report.job_id = launch.job_id.to_vec();
            report.world_size = launch.world_size;
            for rank in job.running.keys() {
                report.set(*rank, "starting", None);
            }
        });
        Ok(job)
    }

    /// Until all processes are gone and their output is sent, or the launcher is gone.
    pub(super) async fn run(&mut self, inbound: &mut Streaming<ToAgent>) {
        let mut heartbeat = tokio::time::interval(HEARTBEAT_PERIOD);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !(self.gone && self.captures.is_empty()) {
            tokio::select! {
                message = next(inbound) => match message {
                    Some(message) => self.hear(message).await,
                    None => return self.clean_up("the launcher's stream has ended").await,
                },
                event = self.keeper.event(), if !self.gone => match event {
                    Some(event) => self.keeper_says(event).await,
                    None => self.keeper_is_gone().await,
                },
                Some(event) = self.rank_events.recv() => self.rank_says(event),
                Some(_) = self.captures.join_next(), if !self.captures.is_empty() => {}
                _ = heartbeat.tick() => {
                    self.beat(0);
                    if self.silence.tick() {
                        return self.clean_up("the launcher has been silent for too long").await;
                    }
                }
            }
        }
        self.outgoing.finish().await;
    }

    /// After Finished: lets the launcher end the stream, as long as it gives signs of life.
    pub(super) async fn close(&mut self, inbound: &mut Streaming<ToAgent>) {
        self.socket.abort();
        let mut tick = tokio::time::interval(HEARTBEAT_PERIOD);
        loop {
            tokio::select! {
                message = next(inbound) => match message {
                    Some(_) => self.silence.heard(),
                    None => return,
                },
                _ = tick.tick() => if self.silence.tick() {
                    return;
                },
            }
        }
    }

    async fn hear(&mut self, message: ToAgentMessage) {
        self.silence.heard();
        match message {
            ToAgentMessage::Credit(credit) => {
                self.command(credit.rank, credit.stream, Command::Credit(credit.bytes));
            }
            ToAgentMessage::Signal(signal) => self.order(Order::Signal(signal.signal)).await,
            ToAgentMessage::Terminate(terminate) => {
                self.order(Order::Terminate(terminate.kill_after_ms)).await;
            }
            ToAgentMessage::Stdin(stdin) => self.stdin(stdin),
            ToAgentMessage::Heartbeat(heartbeat) => self.beat(heartbeat.sent_us),
            ToAgentMessage::World(world) => self.world(world),
            ToAgentMessage::PeerFailed(failed) => {
                let v1::PeerFailed {
                    rank,
                    host,
                    pid,
                    cause,
                } = failed;
                let message = PeerFailed {
                    rank,
                    host,
                    pid,
                    cause,
                };
                self.ranks.remember_failure(&message);
                self.tell_ranks(&ToRankMessage::PeerFailed(message));
            }
            ToAgentMessage::Broadcast(broadcast) => {
                let (from, payload) = (broadcast.from, broadcast.payload.to_vec());
                self.tell_ranks(&ToRankMessage::Broadcast(Broadcast { from, payload }));
            }
            ToAgentMessage::Launch(_) => {
                self.outgoing
                    .log(Level::Error, "a second Launch on one stream was ignored");
            }
        }
    }

    async fn keeper_says(&mut self, event: Event) {
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
                self.exited(exited.rank, pid, status, exited.time_us, exited.by_us)
                    .await;
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
            Event::Gone(_) => self.all_gone(),
        }
    }

    /// The ranks died with it (PDEATHSIG); what they left has moved up to this process.
    async fn keeper_is_gone(&mut self) {
        let text = format!(
            "the process that starts and ends the ranks (pid {}) was killed; every rank of this \
             host is being ended",
            self.keeper.pid
        );
        self.outgoing.log(Level::Error, text);
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
            self.exited(rank, pid, status, now_us(), false).await;
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

    async fn exited(&mut self, rank: u32, pid: i32, status: i32, time_us: i64, by_us: bool) {
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
        }
        self.command_all(rank, || Command::RankEnded);
    }

    fn all_gone(&mut self) {
        self.gone = true;
        for rank in std::mem::take(&mut self.running).into_keys() {
            self.ended(rank);
        }
    }

    fn rank_says(&self, event: RankEvent) {
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
        }
    }

    fn world(&self, world: v1::World) {
        let cards: Vec<Vec<u8>> = world.cards.iter().map(|card| card.to_vec()).collect();
        let bytes: usize = cards.iter().map(|card| card.len() + 8).sum();
        if bytes > RANK_MESSAGE_MAX_BYTES {
            let text = format!(
                "what {} ranks say of themselves is {bytes} bytes",
                cards.len()
            );
            return self
                .outgoing
                .log(Level::Error, text + ", more than a rank takes");
        }
        self.tell_ranks(&ToRankMessage::World(World { cards }));
    }

    fn tell_ranks(&self, message: &ToRankMessage) {
        for rank in self.ranks.tell_all(message, None) {
            let text = format!("rank {rank} does not read what it is told and was cut off");
            self.outgoing.log(Level::Warn, text);
        }
    }

    fn stdin(&mut self, stdin: v1::Stdin) {
        let Some(io) = self.ios.get_mut(&stdin.rank) else {
            return;
        };
        let Some(sender) = &io.stdin else {
            return;
        };
        if !sender.send(stdin.data) {
            let text = format!(
                "rank {} got no more of its stdin: more was sent than it had room for",
                stdin.rank
            );
            self.outgoing.log(Level::Error, text);
            io.stdin = None;
        } else if stdin.end {
            sender.end();
        }
    }

    fn command(&self, rank: u32, stream: i32, command: Command) {
        let slot = usize::from(stream == v1::OutputStream::Stderr as i32);
        if let Some(Some(capture)) = self.ios.get(&rank).map(|io| &io.captures[slot]) {
            capture.send(command).ok();
        }
    }

    fn command_all(&self, rank: u32, command: impl Fn() -> Command) {
        for capture in self
            .ios
            .get(&rank)
            .iter()
            .flat_map(|io| io.captures.iter().flatten())
        {
            capture.send(command()).ok();
        }
    }

    async fn order(&self, order: Order) {
        // A keeper that cannot hear is gone, and the loop learns so from its other direction.
        self.keeper.order(order).await.ok();
    }

    /// `echo_us`: what a heartbeat of the launcher said, so that it can tell the clocks apart.
    fn beat(&self, echo_us: i64) {
        let sent_us = now_us();
        self.outgoing
            .control(Message::Heartbeat(v1::Heartbeat { sent_us, echo_us }));
    }

    /// Nobody hears any more: ends everything, in bounded time.
    async fn clean_up(&mut self, why: &str) {
        eprintln!("rlaunch agent: {why}; ending every rank of this host");
        self.captures.abort_all();
        self.order(orphan_order(self.kill_after_ms)).await;
        let gone = async {
            while !self.gone {
                match self.keeper.event().await {
                    Some(Event::Gone(_)) => self.gone = true,
                    Some(Event::Leftover(left)) => {
                        eprintln!(
                            "rlaunch agent: process {} ({}): {}",
                            left.pid, left.command, left.why
                        );
                    }
                    Some(_) => {}
                    None => self.keeper_is_gone().await,
                }
            }
        };
        tokio::time::timeout(CLEANUP_MAX, gone).await.ok();
    }

    fn report(&self, change: impl FnOnce(&mut JobReport)) {
        change(
            &mut self
                .report
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
    }
}
