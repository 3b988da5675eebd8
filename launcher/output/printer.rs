//! The printing threads: chunks in, writes to descriptors 1 and 2 and to files out, credit back.
//!
//! They end when the [`Printer`] is closed or dropped, after all that was queued is written. A stream
//! that nobody reads any more (EPIPE) is reported once; what is meant for it is dropped from then on,
//! and its credit still returned, so that ranks can end.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::stat::fstat;
use tokio::sync::mpsc::UnboundedSender;

use super::files::Files;
use super::lines::{Chunk, Item, Lines, Piece};
use super::only::Only;
use super::tags::Style;
use super::target::{Reports, Target};
use super::{Source, Stream};

/// What the threads report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Printed {
    /// So many bytes are written, or need not be.
    Bytes { source: Source, bytes: u64 },
    /// Nobody reads this stream of the launcher any more.
    Closed(Stream),
    /// A disk is full, and waited for.
    Full(String),
    /// What ranks print is lost from here on; which, where and why.
    Failed(String),
    /// At the end: how much was lost.
    Lost(String),
}

/// What is shown, and how.
#[derive(Debug, Default)]
pub struct Printing {
    pub style: Style,
    /// None: all ranks.
    pub only: Option<Only>,
    pub files: Option<Files>,
}

/// Handle of the threads.
#[derive(Debug)]
pub struct Printer {
    places: Places,
    /// Goes first, where there are files.
    files: Option<mpsc::Sender<Item>>,
    reports: Reports,
}

/// Written in one go, at most about this.
const BATCH_BYTES: usize = 256 * 1024;

impl Printer {
    pub fn start(printing: Printing, printed: UnboundedSender<Printed>) -> io::Result<Self> {
        let reports = Reports {
            printed,
            closing: Arc::new(AtomicBool::new(false)),
        };
        let Printing { style, only, files } = printing;
        let senders = if streams_meet() {
            let sender = Place::start("printer", style, &reports)?;
            [sender.clone(), sender]
        } else {
            [
                Place::start("printer-stdout", style, &reports)?,
                Place::start("printer-stderr", style, &reports)?,
            ]
        };
        let places = Places { senders, only };
        let files = match files {
            None => None,
            Some(files) => Some(start_files(files, places.clone(), reports.clone())?),
        };
        Ok(Self {
            places,
            files,
            reports,
        })
    }

    pub fn chunk(&self, chunk: Chunk) {
        self.send(Item::Chunk(chunk));
    }

    pub fn end(&self, source: Source) {
        self.send(Item::End(source));
    }

    /// A message of the launcher's own, on stderr, between the lines of ranks.
    pub fn talk(&self, text: impl Into<String>) {
        self.places.send(Item::Talk(text.into()), &self.reports);
    }

    /// Lets the threads write what is queued and end, which closes their channel of [`Printed`].
    pub fn close(self) {
        self.reports.closing.store(true, Ordering::Relaxed);
    }

    fn send(&self, item: Item) {
        match &self.files {
            // The thread outlives its senders, unless it panicked.
            Some(files) => files.send(item).unwrap_or_default(),
            None => self.places.send(item, &self.reports),
        }
    }
}

/// Where output is shown: by stream, both the same if they are one place.
#[derive(Debug, Clone)]
struct Places {
    senders: [mpsc::Sender<Item>; 2],
    only: Option<Only>,
}

impl Places {
    fn send(&self, item: Item, reports: &Reports) {
        let shows = |rank| self.only.as_ref().is_none_or(|only| only.shows(rank));
        let stream = match &item {
            Item::Chunk(chunk) if !shows(chunk.source.rank) => {
                let (source, bytes) = (chunk.source, chunk.data.len() as u64);
                return reports.send(Printed::Bytes { source, bytes });
            }
            Item::Chunk(Chunk { source, .. }) | Item::End(source) => source.stream,
            Item::Talk(_) => Stream::Stderr,
        };
        // The thread outlives its senders, unless it panicked.
        self.senders[stream.index()].send(item).ok();
    }
}

fn start_files(
    mut files: Files,
    places: Places,
    reports: Reports,
) -> io::Result<mpsc::Sender<Item>> {
    let (sender, queue) = mpsc::channel();
    let run = move || {
        for item in queue {
            if let Item::Chunk(chunk) = &item {
                files.write(chunk, &reports);
            }
            places.send(item, &reports);
        }
        files.conclude(&reports);
    };
    std::thread::Builder::new()
        .name("output-files".into())
        .spawn(run)?;
    Ok(sender)
}

/// One place, which is one or both of the launcher's streams.
struct Place {
    lines: Lines,
    queue: mpsc::Receiver<Item>,
    reports: Reports,
    targets: [Target; 2],
    start: Instant,
    /// Time that the place took nothing; it is no rank's.
    stalled: Duration,
}

impl Place {
    fn start(name: &str, style: Style, reports: &Reports) -> io::Result<mpsc::Sender<Item>> {
        let (sender, queue) = mpsc::channel();
        let streams = [Stream::Stdout, Stream::Stderr];
        let place = Self {
            lines: Lines::new(style),
            queue,
            reports: reports.clone(),
            targets: streams.map(|stream| Target::new(stream.name(), Some(stream))),
            start: Instant::now(),
            stalled: Duration::ZERO,
        };
        std::thread::Builder::new()
            .name(name.into())
            .spawn(move || place.run())?;
        Ok(sender)
    }

    fn run(mut self) {
        loop {
            let first = match self.lines.poll_timeout() {
                None => self
                    .queue
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => self.queue.recv_timeout(due.saturating_sub(self.now())),
            };
            match first {
                Ok(item) => self.take_batch(item),
                Err(RecvTimeoutError::Timeout) => self.lines.handle_timeout(self.now()),
                Err(RecvTimeoutError::Disconnected) => {
                    self.lines.finish();
                    self.write();
                    for target in self.targets {
                        target.conclude(&self.reports);
                    }
                    return;
                }
            }
            self.write();
        }
    }

    /// What is queued, up to a size. What is late counts as late only behind what has come already.
    fn take_batch(&mut self, first: Item) {
        let now = self.now();
        let mut next = Some(first);
        let mut bytes = 0;
        while let Some(item) = next {
            if let Item::Chunk(chunk) = &item {
                bytes += chunk.data.len();
            }
            self.lines.handle(item, now);
            if bytes >= BATCH_BYTES {
                return;
            }
            next = self.queue.try_recv().ok();
        }
        self.lines.handle_timeout(now);
    }

    fn write(&mut self) {
        let start = Instant::now();
        let (pieces, shown) = self.lines.take();
        for Piece { stream, data } in pieces {
            let target = &mut self.targets[stream.index()];
            match stream {
                Stream::Stdout => target.write(io::stdout().as_fd(), &data, &self.reports),
                Stream::Stderr => target.write(io::stderr().as_fd(), &data, &self.reports),
            }
        }
        self.stalled += start.elapsed();
        for (source, bytes) in shown {
            self.reports.send(Printed::Bytes { source, bytes });
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed().saturating_sub(self.stalled)
    }
}

/// Whether stdout and stderr are one terminal, pipe or file.
fn streams_meet() -> bool {
    let (Ok(stdout), Ok(stderr)) = (fstat(io::stdout()), fstat(io::stderr())) else {
        return false;
    };
    (stdout.st_dev, stdout.st_ino) == (stderr.st_dev, stderr.st_ino)
}
