//! Whole lines from many ranks on two streams. Pure: time is an argument.
//!
//! Chunks of one rank and stream come in order. A chunk is whole lines, or `partial`: the
//! beginning or a middle piece of a line. A partial piece is held for [`HOLD`], so that the
//! pieces of a long line meet again, then shown as it is (a prompt, a progress bar); its line is
//! then *open* on that stream. When another rank prints on a stream with an open line, the line
//! is closed with a newline first. Lines up to [`LINE_MAX_BYTES`] are never mixed or broken
//! unless the rank itself pauses inside them.
//!
//! Tags: `[3]<stdout>: ` before each line, `[3]<stdout>+ ` before the rest of a line that was
//! closed early. A time stamp, if asked for, stands before the tag.

use std::collections::BTreeMap;
use std::time::Duration;

use rlaunch_wire::limits::LINE_MAX_BYTES;

use super::Stream;
use super::stamp::stamp;

/// How long a piece of a line waits for the rest.
const HOLD: Duration = Duration::from_millis(50);

/// What stands before each line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub tag: bool,
    pub timestamp: bool,
}

/// What one rank printed, as its agent sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub rank: u32,
    pub stream: Stream,
    pub data: Vec<u8>,
    /// Wall clock of the rank's host.
    pub host_time_us: i64,
    pub partial: bool,
}

/// Bytes to write to one of the launcher's streams, in this order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) stream: Stream,
    pub(super) data: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Lines {
    style: Style,
    held: BTreeMap<(u32, Stream), Held>,
    /// By stream: the rank whose line has no end yet.
    open: [Option<u32>; 2],
    /// Ranks whose line was closed early, by stream.
    broken: BTreeMap<(u32, Stream), ()>,
    /// Both streams go to one place, so that the end of one's line is also the other's.
    shared: bool,
    /// What was shown last, on either stream, has no newline at its end.
    mid_line: bool,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Held {
    data: Vec<u8>,
    host_time_us: i64,
    until: Duration,
}

impl Lines {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            ..Self::default()
        }
    }

    /// stdout and stderr are one terminal, pipe or file.
    pub(super) fn with_shared(self, shared: bool) -> Self {
        Self { shared, ..self }
    }

    pub(super) fn handle_chunk(&mut self, mut chunk: Chunk, now: Duration) {
        let key = (chunk.rank, chunk.stream);
        if let Some(held) = self.held.remove(&key) {
            let mut data = held.data;
            data.append(&mut chunk.data);
            chunk.data = data;
            chunk.host_time_us = held.host_time_us;
        }
        if !chunk.partial {
            self.show(chunk);
            return;
        }
        // Whole lines before the piece go out at once.
        if let Some(end) = chunk.data.iter().rposition(|&byte| byte == b'\n') {
            let rest = chunk.data.split_off(end + 1);
            let whole = Chunk {
                data: std::mem::replace(&mut chunk.data, rest),
                partial: false,
                ..chunk
            };
            self.show(whole);
        }
        if chunk.data.len() > LINE_MAX_BYTES || self.open[chunk.stream.index()] == Some(chunk.rank)
        {
            self.show(chunk);
        } else if !chunk.data.is_empty() {
            let Chunk {
                data, host_time_us, ..
            } = chunk;
            self.held.insert(
                key,
                Held {
                    data,
                    host_time_us,
                    until: now + HOLD,
                },
            );
        }
    }

    /// The rank's stream has ended: what is held is all there is.
    pub(super) fn handle_end(&mut self, rank: u32, stream: Stream) {
        if let Some(held) = self.held.remove(&(rank, stream)) {
            self.show_held(rank, stream, held);
        }
    }

    /// A message of the launcher's own, whole lines, on stderr.
    pub(super) fn handle_talk(&mut self, mut text: String) {
        if self.open[Stream::Stderr.index()].is_some() {
            self.close(Stream::Stderr);
        } else if self.shared && self.mid_line {
            if let Some(rank) = self.open[Stream::Stdout.index()].take() {
                self.broken.insert((rank, Stream::Stdout), ());
            }
            self.push(Stream::Stderr, b"\n".to_vec());
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.push(Stream::Stderr, text.into_bytes());
    }

    pub(super) fn handle_timeout(&mut self, now: Duration) {
        let due: Vec<_> = self
            .held
            .iter()
            .filter(|(_, held)| held.until <= now)
            .map(|(key, _)| *key)
            .collect();
        for (rank, stream) in due {
            self.handle_end(rank, stream);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.held.values().map(|held| held.until).min()
    }

    /// Shows what is held, whatever its age.
    pub(super) fn finish(&mut self) {
        self.handle_timeout(Duration::MAX);
    }

    pub(super) fn take(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.pieces)
    }

    fn show_held(&mut self, rank: u32, stream: Stream, held: Held) {
        let Held {
            data, host_time_us, ..
        } = held;
        self.show(Chunk {
            rank,
            stream,
            data,
            host_time_us,
            partial: true,
        });
    }

    fn show(&mut self, chunk: Chunk) {
        if chunk.data.is_empty() {
            return;
        }
        let Chunk {
            rank,
            stream,
            data,
            host_time_us,
            ..
        } = chunk;
        let mut continues = self.open[stream.index()] == Some(rank);
        if !continues && self.open[stream.index()].is_some() {
            self.close(stream);
        }
        let broken = !continues && self.broken.remove(&(rank, stream)).is_some();
        self.open[stream.index()] = (data.last() != Some(&b'\n')).then_some(rank);
        if self.style == Style::default() {
            self.push(stream, data);
            return;
        }
        let whole = self.prefix(rank, stream, host_time_us, ':');
        let mut tagged = Vec::with_capacity(data.len() + 4 * whole.len());
        if broken {
            tagged.extend(self.prefix(rank, stream, host_time_us, '+'));
            continues = true;
        }
        for line in data.split_inclusive(|&byte| byte == b'\n') {
            if !std::mem::take(&mut continues) {
                tagged.extend(&whole);
            }
            tagged.extend(line);
        }
        self.push(stream, tagged);
    }

    fn close(&mut self, stream: Stream) {
        if let Some(rank) = self.open[stream.index()].take() {
            self.broken.insert((rank, stream), ());
            self.push(stream, b"\n".to_vec());
        }
    }

    fn prefix(&self, rank: u32, stream: Stream, host_time_us: i64, end: char) -> Vec<u8> {
        let mut prefix = String::new();
        if self.style.timestamp {
            prefix = stamp(host_time_us);
            prefix.push(' ');
        }
        if self.style.tag {
            prefix.push_str(&format!("[{rank}]<{}>{end} ", stream.name()));
        }
        prefix.into_bytes()
    }

    fn push(&mut self, stream: Stream, mut data: Vec<u8>) {
        self.mid_line = data.last() != Some(&b'\n');
        match self.pieces.last_mut() {
            Some(last) if last.stream == stream => last.data.append(&mut data),
            _ => self.pieces.push(Piece { stream, data }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Style = Style {
        tag: true,
        timestamp: false,
    };
    const PLAIN: Style = Style {
        tag: false,
        timestamp: false,
    };

    fn chunk(rank: u32, text: &str) -> Chunk {
        Chunk {
            rank,
            stream: Stream::Stdout,
            data: text.into(),
            host_time_us: 0,
            partial: !text.ends_with('\n'),
        }
    }

    fn text(lines: &mut Lines) -> String {
        lines
            .take()
            .into_iter()
            .map(|piece| String::from_utf8(piece.data).unwrap())
            .collect()
    }

    fn shown(style: Style, chunks: &[(u32, &str, u64)]) -> String {
        let mut lines = Lines::new(style);
        for &(rank, text, at_ms) in chunks {
            let now = Duration::from_millis(at_ms);
            lines.handle_timeout(now);
            lines.handle_chunk(chunk(rank, text), now);
        }
        lines.finish();
        text(&mut lines)
    }

    #[test]
    fn each_line_has_its_tag() {
        let text = shown(TAG, &[(1, "a\nb\n", 0), (0, "\n", 0)]);
        assert_eq!(text, "[1]<stdout>: a\n[1]<stdout>: b\n[0]<stdout>: \n");
    }

    /// Pieces of one line that come shortly after each other stay one line.
    #[test]
    fn pieces_meet_again() {
        let chunks = [
            (0, "abc", 0),
            (1, "x\n", 1),
            (0, "def", 2),
            (1, "y\n", 3),
            (0, "g\n", 4),
        ];
        assert_eq!(shown(PLAIN, &chunks), "x\ny\nabcdefg\n");
        assert_eq!(
            shown(TAG, &chunks),
            "[1]<stdout>: x\n[1]<stdout>: y\n[0]<stdout>: abcdefg\n"
        );
    }

    /// A prompt is seen after the hold; another rank's line does not end up inside it.
    #[test]
    fn an_open_line_is_closed_for_others() {
        let chunks = [
            (0, "10%", 0),
            (1, "x\n", 500),
            (0, "20%\n", 600),
            (0, "z\n", 700),
        ];
        assert_eq!(shown(PLAIN, &chunks), "10%\nx\n20%\nz\n");
        assert_eq!(
            shown(TAG, &chunks),
            "[0]<stdout>: 10%\n[1]<stdout>: x\n[0]<stdout>+ 20%\n[0]<stdout>: z\n"
        );
    }

    /// A progress bar of the only rank that prints comes through byte for byte, and live.
    #[test]
    fn progress_bars_are_live() {
        let mut lines = Lines::new(PLAIN);
        let mut seen = String::new();
        for step in 0..5u64 {
            lines.handle_chunk(
                chunk(0, &format!("\r{step}0%")),
                Duration::from_millis(step * 200),
            );
            lines.handle_timeout(Duration::from_millis(step * 200 + 60));
            seen = text(&mut lines);
            assert_eq!(seen, format!("\r{step}0%"));
        }
        assert!(!seen.is_empty());
        assert_eq!(lines.poll_timeout(), None);
    }

    #[test]
    fn the_end_shows_what_is_held() {
        let mut lines = Lines::new(PLAIN);
        lines.handle_chunk(chunk(0, "no newline"), Duration::ZERO);
        assert_eq!(text(&mut lines), "");
        assert_eq!(lines.poll_timeout(), Some(HOLD));
        lines.handle_end(0, Stream::Stdout);
        assert_eq!(text(&mut lines), "no newline");
        lines.handle_chunk(chunk(1, "next\n"), Duration::ZERO);
        assert_eq!(text(&mut lines), "\nnext\n");
    }

    #[test]
    fn streams_keep_their_order_and_do_not_close_each_other() {
        let mut lines = Lines::new(PLAIN);
        lines.handle_chunk(chunk(0, "out\n"), Duration::ZERO);
        let mut stderr = chunk(0, "err\n");
        stderr.stream = Stream::Stderr;
        lines.handle_chunk(stderr, Duration::ZERO);
        lines.handle_talk("rlaunch: word".into());
        let pieces = lines.take();
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[0].data, b"out\n");
        assert_eq!(pieces[1].data, b"err\nrlaunch: word\n");
    }

    /// `2>&1`: a word of the launcher's begins its own line; stdout alone stays as it was.
    #[test]
    fn talk_begins_a_line_where_both_streams_meet() {
        for (shared, expected) in [
            (true, "oops\nrlaunch: word\n"),
            (false, "oopsrlaunch: word\n"),
        ] {
            let mut lines = Lines::new(PLAIN).with_shared(shared);
            lines.handle_chunk(chunk(0, "oops"), Duration::ZERO);
            lines.handle_end(0, Stream::Stdout);
            lines.handle_talk("rlaunch: word".into());
            let pieces = lines.take();
            assert_eq!(pieces[0].data, b"oops");
            assert_eq!(pieces[1].stream, Stream::Stderr);
            let all: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.data).collect();
            assert_eq!(String::from_utf8(all).unwrap(), expected);
        }
    }

    /// Two ranks with 20,000 characters a line, in pieces of any size: no line is mixed.
    #[test]
    fn long_lines_stay_whole() {
        let mut lines = Lines::new(PLAIN);
        for round in 0..20u64 {
            for part in 0..5 {
                for rank in 0..2u32 {
                    let letter = if rank == 0 { "a" } else { "b" };
                    let end = if part == 4 { "\n" } else { "" };
                    let now = Duration::from_millis(round * 10);
                    lines.handle_chunk(chunk(rank, &(letter.repeat(4000) + end)), now);
                }
            }
        }
        let text = text(&mut lines);
        assert_eq!(text.lines().count(), 40);
        for line in text.lines() {
            assert_eq!(line.len(), 20_000);
            assert!(line.bytes().all(|byte| byte == line.as_bytes()[0]));
        }
    }

    #[test]
    fn time_stands_before_the_tag() {
        let mut lines = Lines::new(Style {
            tag: true,
            timestamp: true,
        });
        lines.handle_chunk(chunk(2, "x\n"), Duration::ZERO);
        assert_eq!(
            text(&mut lines),
            "1970-01-01T00:00:00.000Z [2]<stdout>: x\n"
        );
    }
}
