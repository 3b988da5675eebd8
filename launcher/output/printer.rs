//! The printing thread: chunks in, writes to descriptors 1 and 2 out, credit back.
//!
//! It ends when the [`Printer`] is closed or dropped, after all that was queued is written. A stream that nobody reads any more (EPIPE) is reported once; what is meant
//! for it is dropped from then on, and its credit still returned, so that ranks can end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;
use nix::unistd::write;
use tokio::sync::mpsc::UnboundedSender;

use super::Stream;
use super::lines::{Chunk, Lines, Piece, Style};

/// What the thread reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    /// So many bytes of the rank's stream are written.
    Bytes {
        rank: u32,
        stream: Stream,
        bytes: u64,
    },
    /// Nobody reads this stream of the launcher any more.
    Closed(Stream),
}

enum Item {
    Chunk(Chunk),
    End { rank: u32, stream: Stream },
    Talk(String),
}

/// Handle of the thread.
#[derive(Debug)]
pub struct Printer {
    items: mpsc::Sender<Item>,
}

/// Written in one go, at most about this.
const BATCH_BYTES: usize = 256 * 1024;

impl Printer {
    pub fn start(style: Style, printed: UnboundedSender<Printed>) -> io::Result<Self> {
        let (items, queue) = mpsc::channel();
        std::thread::Builder::new()
            .name("printer".into())
            .spawn(move || Loop::new(style, queue, printed).run())?;
        Ok(Self { items })
    }

    pub fn chunk(&self, chunk: Chunk) {
        self.send(Item::Chunk(chunk));
    }

    pub fn end(&self, rank: u32, stream: Stream) {
        self.send(Item::End { rank, stream });
    }

    /// A message of the launcher's own, on stderr, between the lines of ranks.
    pub fn talk(&self, text: impl Into<String>) {
        self.send(Item::Talk(text.into()));
    }

    /// Lets the thread write what is queued and end, which closes its channel of [`Printed`].
    pub fn close(self) {
        drop(self.items);
    }

    fn send(&self, item: Item) {
        // The thread outlives its senders, unless it panicked.
        self.items.send(item).ok();
    }
}

struct Loop {
    lines: Lines,
    queue: mpsc::Receiver<Item>,
    printed: UnboundedSender<Printed>,
    closed: [bool; 2],
    start: Instant,
}

impl Loop {
    fn new(style: Style, queue: mpsc::Receiver<Item>, printed: UnboundedSender<Printed>) -> Self {
        Self {
            lines: Lines::new(style).with_shared(streams_meet()),
            queue,
            printed,
            closed: [false; 2],
            start: Instant::now(),
        }
    }

    fn run(mut self) {
        loop {
            let first = match self.lines.poll_timeout() {
                None => self
                    .queue
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => self
                    .queue
                    .recv_timeout(due.saturating_sub(self.start.elapsed())),
            };
            let mut credits = Vec::new();
            match first {
                Ok(item) => {
                    let mut bytes = self.take(item, &mut credits);
                    while bytes < BATCH_BYTES {
                        let Ok(item) = self.queue.try_recv() else {
                            break;
                        };
                        bytes += self.take(item, &mut credits);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.lines.finish();
                    self.write();
                    return;
                }
            }
            self.lines.handle_timeout(self.start.elapsed());
            self.write();
            for credit in credits {
                self.printed.send(credit).ok();
            }
        }
    }

    fn take(&mut self, item: Item, credits: &mut Vec<Printed>) -> usize {
        match item {
            Item::Chunk(chunk) => {
                let bytes = chunk.data.len();
                let Chunk { rank, stream, .. } = chunk;
                credits.push(Printed::Bytes {
                    rank,
                    stream,
                    bytes: bytes as u64,
                });
                self.lines.handle_chunk(chunk, self.start.elapsed());
                bytes
            }
            Item::End { rank, stream } => {
                self.lines.handle_end(rank, stream);
                0
            }
            Item::Talk(text) => {
                self.lines.handle_talk(text);
                0
            }
        }
    }

    fn write(&mut self) {
        for Piece { stream, data } in self.lines.take() {
            if self.closed[stream.index()] {
                continue;
            }
            let result = match stream {
                Stream::Stdout => write_all(io::stdout().as_fd(), &data),
                Stream::Stderr => write_all(io::stderr().as_fd(), &data),
            };
            if result.is_err() {
                self.closed[stream.index()] = true;
                self.printed.send(Printed::Closed(stream)).ok();
            }
        }
    }
}

/// Whether stdout and stderr are one terminal, pipe or file.
fn streams_meet() -> bool {
    let (Ok(stdout), Ok(stderr)) = (fstat(io::stdout()), fstat(io::stderr())) else {
        return false;
    };
    (stdout.st_dev, stdout.st_ino) == (stderr.st_dev, stderr.st_ino)
}

/// Writes all, also where a program that shares the terminal has set it non-blocking.
fn write_all(to: BorrowedFd<'_>, mut data: &[u8]) -> Result<(), Errno> {
    while !data.is_empty() {
        match write(to, data) {
            Ok(written) => data = &data[written..],
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let mut waits = [PollFd::new(to, PollFlags::POLLOUT)];
                poll(&mut waits, PollTimeout::NONE).ok();
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
