//! One stream of one rank: read, cut into lines, stamped, sent as far as the credit goes.
//!
//! Past the credit it is spilled; past the spill it is not read, so that the rank waits: the
//! control stream never fills with output that nobody takes.
//!
//! The task ends after it has sent `OutputEnd`: at the pipe's end, or [`DRAIN_MAX`] after the
//! rank's exit, when something the rank left behind still holds the pipe. What was read by then
//! is sent, however long the launcher takes to ask for it.

use std::time::Instant;

use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::{Output, OutputEnd, OutputStream};
use rlaunch_wire::limits::DRAIN_MAX;
use tokio::sync::mpsc;
use tokio::time::{Instant as TokioInstant, sleep_until};

use super::credit::Credit;
use super::lines::{Chunk, Lines};
use super::outgoing::Outgoing;
use super::pipe::AsyncPipe;
use super::spill::{Item, Spill};
use super::spill_room::Room;
use crate::clock::now_us;

/// As much as a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// Until a read fills it: hundreds of ranks print little.
const FIRST_READ_BYTES: usize = 2 * 1024;

pub(crate) enum Command {
    /// The launcher knows that the rank runs; what it prints comes after that.
    Started,
    /// The launcher has printed so many bytes more.
    Credit(u64),
    /// The rank has ended; its output ends soon.
    RankEnded,
}

pub(crate) struct Capture {
    rank: u32,
    stream: OutputStream,
    /// None once it has ended.
    pipe: Option<AsyncPipe>,
    lines: Lines,
    waiting: Spill,
    credit: Credit,
    started: bool,
    drain_until: Option<Instant>,
}

impl Capture {
    pub(crate) fn new(
        (rank, stream): (u32, OutputStream),
        pipe: AsyncPipe,
        credit: u64,
        room: Room,
    ) -> Self {
        Self {
            rank,
            stream,
            pipe: Some(pipe),
            lines: Lines::default(),
            waiting: Spill::new(room),
            credit: Credit::new(credit),
            started: false,
            drain_until: None,
        }
    }

    /// To the end of the stream. Ends early, silently, if the job is dropped.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::UnboundedReceiver<Command>,
        outgoing: Outgoing,
    ) {
        let mut buffer = vec![0; FIRST_READ_BYTES];
        let mut has_read = false;
        loop {
            self.send_within_credit(&outgoing).await;
            if self.pipe.is_none() && self.waiting.is_empty() {
                break;
            }
            let reads = self.started && self.pipe.is_some() && self.waiting.has_room();
            if reads && !has_read {
                self.lines.resume(Instant::now());
            }
            has_read = reads;
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    Some(Command::Credit(bytes)) => self.credit.add(bytes),
                    Some(Command::Started) => self.started = true,
                    Some(Command::RankEnded) => {
                        self.started = true;
                        self.drain_until = Some(Instant::now() + DRAIN_MAX);
                    }
                    None => return,
                },
                read = read(self.pipe.as_ref(), &mut buffer), if reads => match read {
                    Ok(0) | Err(_) => self.end(),
                    Ok(count) => {
                        self.take(&buffer[..count]);
                        if count == buffer.len() {
                            buffer.resize(READ_BYTES, 0);
                        }
                    }
                },
                () = until(self.lines.flush_at()), if reads => {
                    let chunk = self.lines.flush();
                    self.wait(chunk);
                }
                () = until(self.drain_until), if reads => self.drain(&mut buffer),
            }
        }
        let (rank, stream) = (self.rank, self.stream.into());
        outgoing
            .data(Message::OutputEnd(OutputEnd { rank, stream }))
            .await;
    }

    fn take(&mut self, bytes: &[u8]) {
        let chunks = self.lines.push(bytes, Instant::now());
        self.wait(chunks);
    }

    /// The pipe is still held by someone: takes what stands in it now, and no more.
    fn drain(&mut self, buffer: &mut [u8]) {
        let until = Instant::now() + DRAIN_MAX;
        while let Some(pipe) = &self.pipe
            && self.waiting.has_room()
            && Instant::now() < until
        {
            match pipe.read_now(buffer) {
                Ok(Some(count)) if count > 0 => self.take(&buffer[..count]),
                _ => break,
            }
        }
        if self.waiting.has_room() {
            self.end();
        }
    }

    fn end(&mut self) {
        self.pipe = None;
        let chunk = self.lines.flush();
        self.wait(chunk);
    }

    fn wait(&mut self, chunks: impl IntoIterator<Item = Chunk>) {
        let time_us = now_us();
        for Chunk { data, partial } in chunks {
            self.waiting.push(Item {
                data,
                partial,
                time_us,
            });
        }
    }

    async fn send_within_credit(&mut self, outgoing: &Outgoing) {
        while let Some(len) = self.waiting.front_len() {
            if !self.credit.allows(len as u64) {
                return;
            }
            let item = match self.waiting.pop() {
                Ok(Some(item)) => item,
                Ok(None) => return,
                Err(error) => {
                    // Our own file, that nobody else can reach, cannot be read any more.
                    let text = format!(
                        "output of rank {} was lost: reading it back from a temporary file: {error}",
                        self.rank
                    );
                    outgoing.log(rlaunch_control::v1::Level::Error, text);
                    continue;
                }
            };
            self.credit.take(item.data.len() as u64);
            let message = Output {
                rank: self.rank,
                stream: self.stream.into(),
                data: item.data.into(),
                host_time_us: item.time_us,
                partial: item.partial,
            };
            outgoing.data(Message::Output(message)).await;
        }
    }
}

async fn read(pipe: Option<&AsyncPipe>, buffer: &mut [u8]) -> std::io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(TokioInstant::from_std(deadline)).await,
        None => std::future::pending().await,
    }
}
