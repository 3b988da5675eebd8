//! The last lines of one rank, for the verdict. Pure; a few KiB whatever the rank prints.

use std::collections::VecDeque;

use memchr::{memchr, memrchr, memrchr_iter};
use rlaunch_plan::verdict::{LastLine, Printed, Tracebacks};

use super::Stream;

/// Enough for a Python traceback's end.
const LINES_MAX: usize = 20;
/// Of one chunk, for tracebacks.
const LINES_LOOKED_AT_MAX: usize = 200;
/// One line; of a longer one the beginning is kept.
const LINE_KEPT_BYTES: usize = 400;

#[derive(Debug, Default)]
pub struct Tail {
    lines: VecDeque<(Stream, Vec<u8>)>,
    /// By stream: the line that has no end yet.
    open: [Vec<u8>; 2],
    /// By stream.
    tracebacks: [Tracebacks; 2],
    /// The last exception and when it was printed, in the time of [`Tail::push`].
    error: Option<(String, i64)>,
}

impl Tail {
    /// True if Python tells of an exception in it.
    pub fn push(&mut self, stream: Stream, data: &[u8], time_us: i64) -> bool {
        let (older, mut rest) = self.last_lines_of(stream, data);
        let mut has_error = false;
        for line in older.split_inclusive(|&byte| byte == b'\n') {
            has_error |= self.look(stream, line, time_us);
        }
        while !rest.is_empty() {
            let end = memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let (line, after) = rest.split_at(end);
            rest = after;
            let open = &mut self.open[stream.index()];
            let room = LINE_KEPT_BYTES.saturating_sub(open.len());
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            // A progress bar writes over itself.
            match memrchr(b'\r', text) {
                Some(at) if at + 1 < text.len() => {
                    let drawn = &text[at + 1..];
                    open.clear();
                    open.extend_from_slice(&drawn[..drawn.len().min(LINE_KEPT_BYTES)]);
                }
                _ => open.extend_from_slice(&text[..text.len().min(room)]),
            }
            if line.ends_with(b"\n") {
                let line = std::mem::take(open);
                has_error |= self.look(stream, &line, time_us);
                self.keep(stream, line);
            }
        }
        has_error
    }

    pub fn printed(&self) -> Printed {
        Printed {
            last_lines: self.last_lines(),
            error: self.error.clone(),
        }
    }

    /// Oldest first, with lines that have no end.
    pub fn last_lines(&self) -> Vec<LastLine> {
        let open =
            [Stream::Stdout, Stream::Stderr].map(|stream| (stream, &self.open[stream.index()]));
        let open = open.into_iter().filter(|(_, line)| !line.is_empty());
        let lines = self
            .lines
            .iter()
            .map(|(stream, line)| (*stream, line))
            .chain(open);
        let all: Vec<LastLine> = lines
            .map(|(stream, line)| LastLine {
                stderr: stream == Stream::Stderr,
                text: String::from_utf8_lossy(line)
                    .trim_end_matches('\r')
                    .to_owned(),
            })
            .collect();
        all[all.len().saturating_sub(LINES_MAX)..].to_vec()
    }

    /// Whether an exception of Python is told in this line.
    fn look(&mut self, stream: Stream, line: &[u8], time_us: i64) -> bool {
        let tracebacks = &mut self.tracebacks[stream.index()];
        let has_error = tracebacks.push(line);
        if has_error {
            let error = tracebacks.last().map(|line| (line.to_owned(), time_us));
            self.error = error.or(self.error.take());
        }
        has_error
    }

    /// Of a big chunk the last lines, which are kept, and some before them: a traceback may be long.
    /// All that is printed passes here: by vector instructions, not byte by byte.
    fn last_lines_of<'a>(&mut self, stream: Stream, data: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let mut ends = memrchr_iter(b'\n', data);
        let Some(at) = ends.nth(LINES_MAX) else {
            return (&[], data);
        };
        self.open[stream.index()].clear();
        let before = ends.nth(LINES_LOOKED_AT_MAX - LINES_MAX);
        let start = before.map_or(0, |before| before + 1);
        (&data[start..=at], &data[at + 1..])
    }

    fn keep(&mut self, stream: Stream, line: Vec<u8>) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back((stream, line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(tail: &Tail) -> Vec<String> {
        tail.last_lines()
            .into_iter()
            .map(|line| line.text)
            .collect()
    }

    #[test]
    fn the_last_lines_are_kept() {
        let mut tail = Tail::default();
        for number in 0..100 {
            tail.push(Stream::Stdout, format!("line {number}\n").as_bytes(), 0);
        }
        let lines = texts(&tail);
        assert_eq!(
            (lines.len(), lines[0].as_str(), lines[19].as_str()),
            (20, "line 80", "line 99")
        );
        let many: String = (0..1000).map(|number| format!("{number}\n")).collect();
        tail.push(Stream::Stderr, many.as_bytes(), 0);
        assert_eq!(texts(&tail)[0], "980");
        assert!(tail.last_lines()[0].stderr);
    }

    #[test]
    fn lines_in_pieces_and_without_end() {
        let mut tail = Tail::default();
        tail.push(Stream::Stdout, b"abc", 0);
        tail.push(Stream::Stderr, b"err\n", 0);
        tail.push(Stream::Stdout, b"def\nrest", 0);
        assert_eq!(texts(&tail), ["err", "abcdef", "rest"]);
    }

    #[test]
    fn exceptions_are_noticed() {
        let mut tail = Tail::default();
        assert!(!tail.push(Stream::Stderr, b"ValueError: no traceback\n", 1));
        assert!(tail.push(Stream::Stderr, b"Traceback (most recent call last):\n", 2));
        assert!(!tail.push(Stream::Stderr, b"  File x\nKeyEr", 3));
        assert!(tail.push(Stream::Stderr, b"ror: 'a'\nbye\n", 4));
        assert_eq!(tail.printed().error, Some(("KeyError: 'a'".to_owned(), 4)));
        // Longer than what is kept.
        let frames = "  File x\n".repeat(100);
        let text = format!("Traceback (most recent call last):\n{frames}OSError: b\n");
        assert!(tail.push(Stream::Stdout, text.as_bytes(), 5));
        assert_eq!(tail.printed().error, Some(("OSError: b".to_owned(), 5)));
    }

    #[test]
    fn bounded_whatever_comes() {
        let mut tail = Tail::default();
        for _ in 0..100 {
            tail.push(Stream::Stdout, &[b'x'; 100_000], 0);
        }
        assert_eq!(texts(&tail)[0].len(), LINE_KEPT_BYTES);
    }

    #[test]
    fn a_progress_bar_leaves_its_last_state() {
        let mut tail = Tail::default();
        tail.push(Stream::Stderr, b"\r10%\r20%", 0);
        tail.push(Stream::Stderr, b"\r30%", 0);
        assert_eq!(texts(&tail), ["30%"]);
        tail.push(Stream::Stderr, b"\nwindows\r\n", 0);
        assert_eq!(texts(&tail), ["30%", "windows"]);
    }
}
