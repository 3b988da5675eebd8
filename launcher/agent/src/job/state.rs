//! The job's one decider: its start, what the launcher tells it, its end.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::to_agent::Message as ToAgentMessage;
use rlaunch_control::v1::{self, Launch, Level, ToAgent};
use rlaunch_wire::limits::{HEARTBEAT_PERIOD, RANK_MESSAGE_MAX_BYTES};
use rlaunch_wire::rank::{Broadcast, PeerFailed, Refused, ToRankMessage, World};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;
use tonic::Streaming;

use super::output::Command;
use super::ranks::{self, Facts, RankEvent, Ranks};
use super::record::begin_record;
use super::silence::Silence;
use super::spill_room::Room;
use super::start::{self, RankIo, Starter};
use super::{CLEANUP_MAX, Context, KeeperLink, Outgoing, next, orphan_order};
use crate::autopsy::Autopsy;
use crate::clock::now_us;
use crate::cores::Claims;
use crate::job::report::JobReport;
use crate::keeper::messages::{Event, Order};
use crate::record;
use crate::sys;

/// Joins and leaves that wait for the decider; a rank waits beyond.
const RANK_EVENTS_MAX: usize = 256;

pub(super) struct Job {
    pub(super) keeper: KeeperLink,
    pub(super) outgoing: Outgoing,
    pub(super) report: Arc<Mutex<JobReport>>,
    pub(super) ranks: Ranks,
    pub(super) rank_events: mpsc::Receiver<RankEvent>,
    /// Serves the ranks' socket.
    pub(super) socket: JoinHandle<()>,
    /// One for each output stream.
    pub(super) captures: JoinSet<()>,
    /// Ranks handed to the keeper that have not ended.
    pub(super) running: BTreeMap<u32, Option<i32>>,
    pub(super) ios: BTreeMap<u32, RankIo>,
    pub(super) kill_after_ms: u32,
    pub(super) silence: Silence,
    pub(super) autopsy: Autopsy,
    /// No process is left, says the keeper.
    pub(super) gone: bool,
    /// Removed by the keeper with its last process, or here if the keeper is gone.
    pub(super) record: Option<record::Writer>,
    claims: Claims,
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
            claims,
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
        let autopsy = Autopsy::begin();
        let record = begin_record(&launch, &keeper, &outgoing).await;
        let mut captures = JoinSet::new();
        let mut starter = Starter {
            launch: &launch,
            socket: &socket_name,
            bundle: bundle.filter(|_| launch.bundle),
            keeper: &keeper,
            outgoing: &outgoing,
            tasks: &mut captures,
            room: Room::new(2 * launch.ranks.len()),
            shares_session: start::share_session(&launch),
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
            autopsy,
            gone: false,
            record,
            claims,
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
                    // A suspended launcher takes nothing.
                    if !self.silence.is_suspended() {
                        self.beat(0);
                    }
                    self.autopsy.sample();
                    self.note_seen();
                    if self.silence.tick() {
                        return self.clean_up("the launcher has been silent for too long").await;
                    }
                }
            }
        }
        // The job's next attempt may come at once.
        self.claims.clear();
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

    /// That all is well; not once the keeper is gone.
    fn note_seen(&self) {
        if let Some(record) = &self.record {
            record.seen();
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
            ToAgentMessage::Suspend(_) => {
                self.silence.suspend();
                self.order(Order::Suspend(true)).await;
            }
            ToAgentMessage::Resume(_) => self.order(Order::Suspend(false)).await,
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
            ToAgentMessage::Missing(v1::Missing { rank, text }) => {
                let refused = ToRankMessage::Refused(Refused { reason: text });
                self.ranks.tell(rank, &refused);
            }
            ToAgentMessage::WindowSize(size) => {
                let ios = self.ios.values();
                for terminal in ios.filter_map(|io| io.terminal.as_ref()) {
                    start::resize(terminal, size);
                }
            }
            ToAgentMessage::Launch(_) => {
                self.outgoing
                    .log(Level::Error, "a second Launch on one stream was ignored");
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
        let v1::Stdin {
            rank,
            data,
            end,
            all,
        } = stdin;
        let ranks = if all { 0..=u32::MAX } else { rank..=rank };
        for (rank, io) in self.ios.range_mut(ranks) {
            let Some(sender) = &io.stdin else {
                continue;
            };
            if !sender.send(data.clone()) {
                let text = format!(
                    "rank {rank} got no more of its stdin: more was sent than it had room for"
                );
                self.outgoing.log(Level::Error, text);
                io.stdin = None;
            } else if end {
                sender.end();
            }
        }
    }

    fn command(&self, rank: u32, stream: i32, command: Command) {
        let slot = usize::from(stream == v1::OutputStream::Stderr as i32);
        if let Some(Some(capture)) = self.ios.get(&rank).map(|io| &io.captures[slot]) {
            capture.send(command).ok();
        }
    }

    pub(super) fn command_all(&self, rank: u32, command: impl Fn() -> Command) {
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
        sys::say(format_args!(
            "rlaunch agent: {why}; ending every rank of this host"
        ));
        self.captures.abort_all();
        self.order(orphan_order(self.kill_after_ms)).await;
        let gone = async {
            while !self.gone {
                match self.keeper.event().await {
                    Some(Event::Gone(_)) => self.gone = true,
                    Some(Event::Leftover(left)) => {
                        sys::say(format_args!(
                            "rlaunch agent: process {} ({}): {}",
                            left.pid, left.command, left.why
                        ));
                    }
                    Some(_) => {}
                    None => self.keeper_is_gone().await,
                }
            }
        };
        tokio::time::timeout(CLEANUP_MAX, gone).await.ok();
    }

    pub(super) fn report(&self, change: impl FnOnce(&mut JobReport)) {
        change(
            &mut self
                .report
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
    }
}
