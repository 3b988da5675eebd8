//! Whole lines from many ranks in one place: a terminal, a pipe, a file. Pure: time is an argument.
//!
//! Chunks of one source come in order. A chunk is whole lines, or `partial`: the beginning or a
//! middle piece of a line. A partial piece is held for [`HOLD`], so that the pieces of a line meet
//! again, then shown as it is (a prompt, a progress bar); its line is then *open*. When another
//! source prints, the open line is closed with a newline first; its rest is marked by its tag.
//!
//! A line past [`LINE_MAX_BYTES`] is not held but shown as it comes: it *runs*. What others print
//! waits for its end, a pause of [`LINE_RUN_PAUSE_MAX`], or [`LINE_RUN_MAX_BYTES`]. What waits gives
//! no credit back, so that it is bounded.
//!
//! So no line is broken or mixed, unless the rank itself pauses inside it. Without tags the two
//! streams of one rank do not close each other's lines, as on a terminal of its own.
//!
//! Order of calls: `handle` and `handle_timeout` in any order with time that does not go back,
//! `take` after each, `finish` once at the end. Time must stand still while the place takes nothing:
//! a reader's pause is no rank's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use prost::bytes::Bytes;
use rlaunch_wire::limits::{LINE_MAX_BYTES, LINE_RUN_MAX_BYTES, LINE_RUN_PAUSE_MAX};

use super::tags::{Due, Style};
use super::{Source, Stream};

/// How long a piece of a line waits for the rest.
const HOLD: Duration = Duration::from_millis(50);

/// What one rank printed, as its agent sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub source: Source,
    pub data: Bytes,
    /// Wall clock of the rank's host.
    pub host_time_us: i64,
    pub partial: bool,
}

#[derive(Debug)]
pub(super) enum Item {
    Chunk(Chunk),
    /// The source has nothing more to print.
    End(Source),
    /// A message of the launcher's own, whole lines, on stderr.
    Talk(String),
}

/// Bytes to write to one of the launcher's streams, in this order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) stream: Stream,
    pub(super) data: Vec<u8>,
}

/// So much of a source needs no room any more once the pieces are written.
pub(super) type Shown = (Source, u64);

#[derive(Debug, Default)]
pub(super) struct Lines {
    style: Style,
    held: BTreeMap<Source, Held>,
    /// The line that was shown last has no end yet.
    open: Option<Open>,
    /// Whose line was closed early.
    broken: BTreeSet<Source>,
    run: Option<Run>,
    /// What came while a line ran.
    waiting: VecDeque<Item>,
    pieces: Vec<Piece>,
    shown: Vec<Shown>,
}

#[derive(Debug)]
struct Held {
    data: Vec<u8>,
    host_time_us: i64,
    until: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    source: Source,
    due: Due,
}

#[derive(Debug)]
struct Run {
    source: Source,
    bytes: u64,
    until: Duration,
}

impl Lines {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            ..Self::default()
        }
    }

    pub(super) fn handle(&mut self, item: Item, now: Duration) {
        if let Some(run) = &self.run
            && item.source() != Some(run.source)
        {
            return self.waiting.push_back(item);
        }
        match item {
            Item::Chunk(chunk) => self.handle_chunk(chunk, now),
            Item::End(source) => self.handle_end(source, now),
            Item::Talk(text) => self.handle_talk(text),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Duration) {
        if self.run.as_ref().is_some_and(|run| run.until <= now) {
            self.end_run(now);
        }
        let due = self.held.iter().filter(|(_, held)| held.until <= now);
        let due: Vec<Source> = due.map(|(source, _)| *source).collect();
        for source in due {
            self.show_held(source);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        let held = self.held.values().map(|held| held.until);
        held.chain(self.run.as_ref().map(|run| run.until)).min()
    }

    /// Shows what is held or waits, whatever its age.
    pub(super) fn finish(&mut self) {
        while self.poll_timeout().is_some() {
            self.handle_timeout(Duration::MAX);
        }
    }

    pub(super) fn take(&mut self) -> (Vec<Piece>, Vec<Shown>) {
        (
            std::mem::take(&mut self.pieces),
            std::mem::take(&mut self.shown),
        )
    }

    fn handle_chunk(&mut self, chunk: Chunk, now: Duration) {
        let Chunk {
            source,
            data,
            host_time_us,
            partial,
        } = chunk;
        let bytes = data.len() as u64;
        self.shown.push((source, bytes));
        if let Some(run) = &mut self.run {
            run.bytes += bytes;
            run.until = now.saturating_add(LINE_RUN_PAUSE_MAX);
            let ends = !partial || run.bytes > LINE_RUN_MAX_BYTES;
            self.show(source, &data, host_time_us);
            if ends {
                self.end_run(now);
            }
            return;
        }
        let (data, host_time_us) = match self.held.remove(&source) {
            Some(mut held) => {
                held.data.extend_from_slice(&data);
                (Bytes::from(held.data), held.host_time_us)
            }
            None => (data, host_time_us),
        };
        let whole = if partial {
            memchr::memrchr(b'\n', &data).map_or(0, |end| end + 1)
        } else {
            data.len()
        };
        // Whole lines go out at once; a piece of one may be held.
        self.show(source, &data[..whole], host_time_us);
        self.handle_piece(source, &data[whole..], host_time_us, now);
    }

    fn handle_piece(&mut self, source: Source, piece: &[u8], host_time_us: i64, now: Duration) {
        if piece.len() >= LINE_MAX_BYTES {
            self.show(source, piece, host_time_us);
            self.run = Some(Run {
                source,
                bytes: piece.len() as u64,
                until: now.saturating_add(LINE_RUN_PAUSE_MAX),
            });
        } else if self.open.is_some_and(|open| open.source == source) {
            self.show(source, piece, host_time_us);
        } else if !piece.is_empty() {
            let held = Held {
                data: piece.to_vec(),
                host_time_us,
                until: now.saturating_add(HOLD),
            };
            self.held.insert(source, held);
        }
    }

    fn handle_end(&mut self, source: Source, now: Duration) {
        self.show_held(source);
        self.broken.remove(&source);
        if self.run.is_some() {
            self.end_run(now);
        }
    }

    fn handle_talk(&mut self, mut text: String) {
        self.close();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.push(Stream::Stderr, |data| data.extend(text.as_bytes()));
    }

    /// The others go on; one of them may begin to run in its turn.
    fn end_run(&mut self, now: Duration) {
        self.run = None;
        for item in std::mem::take(&mut self.waiting) {
            self.handle(item, now);
        }
    }

    fn show_held(&mut self, source: Source) {
        if let Some(held) = self.held.remove(&source) {
            self.show(source, &held.data, held.host_time_us);
        }
    }

    fn show(&mut self, source: Source, mut data: &[u8], host_time_us: i64) {
        if data.first() == Some(&b'\n') && self.broken.remove(&source) {
            // The newline that its line was closed with was this one.
            data = &data[1..];
        }
        if data.is_empty() {
            return;
        }
        let style = self.style;
        let due = match self.open {
            Some(open) if open.source == source => open.due,
            Some(open) if style.is_plain() && open.source.rank == source.rank => Due::Nothing,
            _ => {
                self.close();
                if self.broken.remove(&source) {
                    Due::Rest
                } else {
                    Due::Tag
                }
            }
        };
        let mut after = Due::Nothing;
        self.push(source.stream, |to| {
            if style.is_plain() {
                to.extend(data);
            } else {
                after = style.append(to, data, source, host_time_us, due);
            }
        });
        let is_open = data.last() != Some(&b'\n');
        self.open = is_open.then_some(Open { source, due: after });
    }

    /// Ends the open line for the sake of what comes.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.broken.insert(open.source);
            self.push(open.source.stream, |data| data.push(b'\n'));
        }
    }

    fn push(&mut self, stream: Stream, write: impl FnOnce(&mut Vec<u8>)) {
        if self.pieces.last().is_none_or(|last| last.stream != stream) {
            let data = Vec::new();
            self.pieces.push(Piece { stream, data });
        }
        write(&mut self.pieces.last_mut().expect("pushed above").data);
    }
}

impl Item {
    /// Whose it is; none: the launcher's own.
    fn source(&self) -> Option<Source> {
        match self {
            Self::Chunk(chunk) => Some(chunk.source),
            Self::End(source) => Some(*source),
            Self::Talk(_) => None,
        }
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
