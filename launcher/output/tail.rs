//! The last lines of one rank, for the verdict. Pure; a few KiB whatever the rank prints.

use std::collections::VecDeque;

use memchr::{memchr, memrchr, memrchr_iter};
use rlaunch_plan::verdict::LastLine;

use super::Stream;

/// Enough for a Python traceback's end.
const LINES_MAX: usize = 20;
/// One line; of a longer one the beginning is kept.
const LINE_KEPT_BYTES: usize = 400;

#[derive(Debug, Default)]
pub struct Tail {
    lines: VecDeque<(Stream, Vec<u8>)>,
    /// By stream: the line that has no end yet.
    open: [Vec<u8>; 2],
}

impl Tail {
    pub fn push(&mut self, stream: Stream, data: &[u8]) {
        let mut rest = self.skip_old(stream, data);
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
                self.keep(stream, line);
            }
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

    /// Of a big chunk only the last lines are looked at.
    fn skip_old<'a>(&mut self, stream: Stream, data: &'a [u8]) -> &'a [u8] {
        // All that is printed passes here: by vector instructions, not byte by byte.
        match memrchr_iter(b'\n', data).nth(LINES_MAX) {
            Some(at) => {
                self.open[stream.index()].clear();
                &data[at + 1..]
            }
            None => data,
        }
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
            tail.push(Stream::Stdout, format!("line {number}\n").as_bytes());
        }
        let lines = texts(&tail);
        assert_eq!(
            (lines.len(), lines[0].as_str(), lines[19].as_str()),
            (20, "line 80", "line 99")
        );
        let many: String = (0..1000).map(|number| format!("{number}\n")).collect();
        tail.push(Stream::Stderr, many.as_bytes());
        assert_eq!(texts(&tail)[0], "980");
        assert!(tail.last_lines()[0].stderr);
    }

    #[test]
    fn lines_in_pieces_and_without_end() {
        let mut tail = Tail::default();
        tail.push(Stream::Stdout, b"abc");
        tail.push(Stream::Stderr, b"err\n");
        tail.push(Stream::Stdout, b"def\nrest");
        assert_eq!(texts(&tail), ["err", "abcdef", "rest"]);
    }

    #[test]
    fn bounded_whatever_comes() {
        let mut tail = Tail::default();
        for _ in 0..100 {
            tail.push(Stream::Stdout, &[b'x'; 100_000]);
        }
        assert_eq!(texts(&tail)[0].len(), LINE_KEPT_BYTES);
    }

    #[test]
    fn a_progress_bar_leaves_its_last_state() {
        let mut tail = Tail::default();
        tail.push(Stream::Stderr, b"\r10%\r20%");
        tail.push(Stream::Stderr, b"\r30%");
        assert_eq!(texts(&tail), ["30%"]);
        tail.push(Stream::Stderr, b"\nwindows\r\n");
        assert_eq!(texts(&tail), ["30%", "windows"]);
    }
}
