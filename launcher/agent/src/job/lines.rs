//! Bytes into whole lines: pure, time is an argument.
//!
//! A chunk holds whole lines, as many as came together, up to a size. Partial is what goes out
//! before its line has ended: a line that stands still or takes long (a prompt, a progress bar),
//! and the pieces of a line past [`LINE_MAX_BYTES`], which then go out as they come; the launcher
//! keeps those together. Bytes are bytes; nothing is taken for UTF-8.

use std::time::Instant;

use rlaunch_wire::limits::{
    LINE_MAX_BYTES, OUTPUT_CHUNK_MAX_BYTES, PARTIAL_LINE_DELAY, PARTIAL_LINE_DELAY_MAX,
    PARTIAL_LINE_QUIET,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) data: Vec<u8>,
    pub(crate) partial: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The start of a line whose end has not come.
    open: Vec<u8>,
    /// When the first and the last byte of `open` came.
    open_since: Option<(Instant, Instant)>,
    /// Of the line that is being read, so much has gone out that it is not kept whole any more.
    over_long: bool,
}

impl Lines {
    /// Takes what was read and gives back what is complete.
    pub(crate) fn push(&mut self, bytes: &[u8], now: Instant) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        // Newlines are looked for in the new bytes only: there is none in the open ones.
        let rest = match memchr::memrchr(b'\n', bytes) {
            Some(end) => {
                let (whole, rest) = bytes.split_at(end + 1);
                if self.open.is_empty() {
                    split_at_lines(whole, &mut chunks);
                } else {
                    self.open.extend_from_slice(whole);
                    split_at_lines(&std::mem::take(&mut self.open), &mut chunks);
                }
                self.open_since = None;
                self.over_long = false;
                rest
            }
            None => bytes,
        };
        if self.over_long {
            chunks.extend((!rest.is_empty()).then(|| piece(rest.to_vec())));
            return chunks;
        }
        self.open.extend_from_slice(rest);
        if self.open.len() >= LINE_MAX_BYTES {
            self.over_long = true;
            chunks.extend(self.flush());
        } else if !rest.is_empty() {
            let first = self.open_since.map_or(now, |(first, _)| first);
            self.open_since = Some((first, now));
        }
        chunks
    }

    /// When [`Lines::flush`] is due, if no end of line comes before: once the line has taken its
    /// time and stands still, or has taken very long.
    pub(crate) fn flush_at(&self) -> Option<Instant> {
        self.open_since.map(|(first, last)| {
            let still = last + PARTIAL_LINE_QUIET;
            still
                .max(first + PARTIAL_LINE_DELAY)
                .min(first + PARTIAL_LINE_DELAY_MAX)
        })
    }

    /// Reading goes on after a pause that was not the rank's: the line's time counts from here.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.open_since = self.open_since.map(|_| (now, now));
    }

    /// The open line as it stands: for the delay's end, and for the stream's.
    pub(crate) fn flush(&mut self) -> Option<Chunk> {
        self.open_since = None;
        let data = std::mem::take(&mut self.open);
        (!data.is_empty()).then(|| piece(data))
    }
}

fn piece(data: Vec<u8>) -> Chunk {
    Chunk {
        data,
        partial: true,
    }
}

/// Cuts whole lines into chunks. A line longer than a chunk stays whole, alone.
fn split_at_lines(mut whole: &[u8], chunks: &mut Vec<Chunk>) {
    while !whole.is_empty() {
        let len = if whole.len() <= OUTPUT_CHUNK_MAX_BYTES {
            whole.len()
        } else {
            let fits = memchr::memrchr(b'\n', &whole[..OUTPUT_CHUNK_MAX_BYTES]);
            let end = fits.or_else(|| memchr::memchr(b'\n', whole));
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
    fn a_line_goes_out_when_it_has_taken_its_time_and_stands_still() {
        let start = Instant::now();
        let later = start + PARTIAL_LINE_DELAY - PARTIAL_LINE_QUIET / 2;
        let mut lines = Lines::default();
        assert_eq!(lines.flush_at(), None);
        assert_eq!(lines.push(b"10%\r", start), []);
        assert_eq!(lines.flush_at(), Some(start + PARTIAL_LINE_DELAY));
        assert_eq!(lines.push(b"20%\r", later), []);
        assert_eq!(lines.flush_at(), Some(later + PARTIAL_LINE_QUIET));
        assert_eq!(
            lines.push(b"done\nnext", later),
            [whole(b"10%\r20%\rdone\n")]
        );
        assert_eq!(lines.flush_at(), Some(later + PARTIAL_LINE_DELAY));
    }

    /// A rank that never pauses is seen all the same.
    #[test]
    fn the_delay_has_an_end() {
        let start = Instant::now();
        let mut lines = Lines::default();
        let mut now = start;
        while now < start + PARTIAL_LINE_DELAY_MAX {
            assert_eq!(lines.push(b"\r50%", now), []);
            now += PARTIAL_LINE_QUIET / 2;
        }
        assert_eq!(lines.flush_at(), Some(start + PARTIAL_LINE_DELAY_MAX));
    }

    /// While nothing could be read, the rank was not slow.
    #[test]
    fn a_pause_in_reading_does_not_count() {
        let start = Instant::now();
        let mut lines = Lines::default();
        lines.resume(start);
        assert_eq!(lines.flush_at(), None);
        lines.push(b"half of a li", start);
        let resumed = start + 10 * PARTIAL_LINE_DELAY_MAX;
        lines.resume(resumed);
        assert_eq!(lines.flush_at(), Some(resumed + PARTIAL_LINE_DELAY));
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
    fn a_line_past_the_limit_goes_on_in_pieces_as_they_come() {
        let now = Instant::now();
        let mut lines = Lines::default();
        let half = vec![b'y'; LINE_MAX_BYTES / 2];
        assert_eq!(lines.push(&half, now), []);
        assert_eq!(lines.push(&half, now), [piece([&half[..]; 2].concat())]);
        assert_eq!(lines.flush_at(), None, "nothing is held any more");
        assert_eq!(lines.push(b"more", now), [piece(b"more".to_vec())]);
        assert_eq!(lines.push(b"end\nne", now), [whole(b"end\n")]);
        assert_eq!(lines.push(b"xt\n", now), [whole(b"next\n")]);
    }
}
