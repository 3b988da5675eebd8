//! Bytes into whole lines: pure, time is an argument.
//!
//! A chunk holds whole lines, as many as came together, up to a size. Only a line that is too
//! long, or that did not end within a delay (a prompt, a progress bar), goes out as it is, marked
//! partial: more of it follows. Bytes are bytes; nothing is taken for UTF-8.

use std::time::Instant;

use rlaunch_wire::limits::{LINE_MAX_BYTES, OUTPUT_CHUNK_MAX_BYTES, PARTIAL_LINE_DELAY};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) data: Vec<u8>,
    pub(crate) partial: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The start of a line whose end has not come.
    open: Vec<u8>,
    open_since: Option<Instant>,
}

impl Lines {
    /// Takes what was read and gives back what is complete.
    pub(crate) fn push(&mut self, bytes: &[u8], now: Instant) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        // Newlines are looked for in the new bytes only: there is none in the open ones.
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            let (whole, rest) = bytes.split_at(end + 1);
            self.open.extend_from_slice(whole);
            split_at_lines(&std::mem::take(&mut self.open), &mut chunks);
            self.open_since = None;
            self.open.extend_from_slice(rest);
        } else {
            self.open.extend_from_slice(bytes);
        }
        while self.open.len() > LINE_MAX_BYTES {
            let rest = self.open.split_off(LINE_MAX_BYTES);
            let data = std::mem::replace(&mut self.open, rest);
            chunks.push(Chunk {
                data,
                partial: true,
            });
        }
        if !self.open.is_empty() {
            self.open_since.get_or_insert(now);
        }
        chunks
    }

    /// When [`Lines::flush`] is due, if no end of line comes before.
    pub(crate) fn flush_at(&self) -> Option<Instant> {
        self.open_since.map(|since| since + PARTIAL_LINE_DELAY)
    }

    /// The open line as it stands: for the delay's end, and for the stream's.
    pub(crate) fn flush(&mut self) -> Option<Chunk> {
        self.open_since = None;
        let data = std::mem::take(&mut self.open);
        (!data.is_empty()).then_some(Chunk {
            data,
            partial: true,
        })
    }
}

/// Cuts whole lines into chunks. A line longer than a chunk stays whole, alone.
fn split_at_lines(mut whole: &[u8], chunks: &mut Vec<Chunk>) {
    while !whole.is_empty() {
        let len = if whole.len() <= OUTPUT_CHUNK_MAX_BYTES {
            whole.len()
        } else {
            let fits = whole[..OUTPUT_CHUNK_MAX_BYTES]
                .iter()
                .rposition(|byte| *byte == b'\n');
            let end = fits.or_else(|| whole.iter().position(|byte| *byte == b'\n'));
            end.map_or(whole.len(), |end| end + 1)
        };
        let (chunk, rest) = whole.split_at(len);
        chunks.push(Chunk {
            data: chunk.to_vec(),
            partial: false,
        });
        whole = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(data: &[u8]) -> Chunk {
        Chunk {
            data: data.to_vec(),
            partial: false,
        }
    }

    #[test]
    fn lines_come_out_whole_however_they_come_in() {
        let text = b"one\ntwo\r\n\nthree \xff\nrest";
        let now = Instant::now();
        for piece in 1..=text.len() {
            let mut lines = Lines::default();
            let mut out = Vec::new();
            for bytes in text.chunks(piece) {
                for chunk in lines.push(bytes, now) {
                    assert!(!chunk.partial && chunk.data.ends_with(b"\n"), "{chunk:?}");
                    out.extend(chunk.data);
                }
            }
            assert_eq!(out, b"one\ntwo\r\n\nthree \xff\n");
            assert_eq!(
                lines.flush(),
                Some(Chunk {
                    data: b"rest".to_vec(),
                    partial: true
                })
            );
            assert_eq!(lines.flush(), None);
        }
    }

    #[test]
    fn the_delay_counts_from_the_first_byte_of_the_open_line() {
        let start = Instant::now();
        let later = start + PARTIAL_LINE_DELAY / 2;
        let mut lines = Lines::default();
        assert_eq!(lines.flush_at(), None);
        assert_eq!(lines.push(b"10%\r", start), []);
        assert_eq!(lines.push(b"20%\r", later), []);
        assert_eq!(lines.flush_at(), Some(start + PARTIAL_LINE_DELAY));
        assert_eq!(
            lines.push(b"done\nnext", later),
            [whole(b"10%\r20%\rdone\n")]
        );
        assert_eq!(lines.flush_at(), Some(later + PARTIAL_LINE_DELAY));
    }

    #[test]
    fn chunks_are_cut_between_lines_and_long_lines_stay_whole() {
        let now = Instant::now();
        let mut text = Vec::new();
        for len in [
            10,
            OUTPUT_CHUNK_MAX_BYTES - 5,
            3 * OUTPUT_CHUNK_MAX_BYTES,
            7,
        ] {
            text.extend(std::iter::repeat_n(b'x', len));
            text.push(b'\n');
        }
        let chunks = Lines::default().push(&text, now);
        let lens: Vec<usize> = chunks.iter().map(|chunk| chunk.data.len()).collect();
        let long = 3 * OUTPUT_CHUNK_MAX_BYTES + 1;
        assert_eq!(lens, [11, OUTPUT_CHUNK_MAX_BYTES - 4, long, 8]);
        assert!(chunks.iter().all(|chunk| !chunk.partial));
    }

    #[test]
    fn a_line_past_the_limit_goes_on_in_pieces() {
        let now = Instant::now();
        let mut lines = Lines::default();
        let mut chunks = Vec::new();
        for _ in 0..5 {
            chunks.extend(lines.push(&vec![b'y'; LINE_MAX_BYTES / 2], now));
        }
        chunks.extend(lines.push(b"\n", now));
        let total: usize = chunks.iter().map(|chunk| chunk.data.len()).sum();
        assert_eq!(total, LINE_MAX_BYTES / 2 * 5 + 1);
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk.data.len() <= LINE_MAX_BYTES)
        );
        let partial: Vec<bool> = chunks.iter().map(|chunk| chunk.partial).collect();
        assert_eq!(partial, [true, true, false]);
    }
}
