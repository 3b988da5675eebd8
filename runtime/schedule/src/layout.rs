//! Which elements a chunk has in one call. Programs do not depend on it.
//!
//! A program may run in *segments*: once for each, over a part of the elements. Of a vector a
//! segment is a range, which is then cut in the program's parts, so that reducing and passing on
//! happen close together in memory; of blocks it is an equal piece of each.

use crate::{Buffer, Program, Slice};
use std::ops::Range;

/// The elements of a call's buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// Both buffers are vectors of `count` elements.
    Vector { count: usize },
    /// Blocks of `count` elements, one after another.
    Blocks { count: usize },
    /// The blocks' elements, as ranges in their buffers: one for each chunk.
    Ranges {
        input: Vec<Range<usize>>,
        output: Vec<Range<usize>>,
    },
}

impl Layout {
    /// Elements of part `part`, of `cut`.
    fn part(&self, part: u32, cut: u32) -> usize {
        match self {
            Self::Vector { count } => chunk_range(*count, cut, part).len(),
            Self::Blocks { count } => *count,
            // The side with a block for each rank knows every length.
            Self::Ranges { input, output } => {
                let side = if input.len() > output.len() {
                    input
                } else {
                    output
                };
                side[part as usize].len()
            }
        }
    }

    /// Elements of the longest part.
    pub fn longest_part(&self, cut: u32) -> usize {
        match self {
            Self::Vector { count } => count.div_ceil(cut.max(1) as usize),
            Self::Blocks { count } => *count,
            Self::Ranges { input, output } => {
                let both = input.iter().chain(output);
                both.map(ExactSizeIterator::len).max().unwrap_or(0)
            }
        }
    }

    /// The elements of the call's buffers that `slice` has in segment `segment` of `segments`; in
    /// scratch they count from its own start.
    ///
    /// `slice` spans one chunk, or `segments` is 1, or the layout is a vector; and several chunks of
    /// `Ranges` lie one after another ([`Program::can_run_in_segments`] looks after the former, the
    /// choice of algorithms after the latter).
    pub fn elements(
        &self,
        program: &Program,
        slice: Slice,
        segment: usize,
        segments: usize,
    ) -> Range<usize> {
        if slice.chunks == 0 {
            return 0..0;
        }
        if slice.buffer == Buffer::Scratch {
            return self.scratch_elements(program, slice, segment, segments);
        }
        match self {
            Self::Vector { count } => {
                let whole = piece(*count, segments, segment);
                let part = |chunk| chunk_range(whole.len(), program.cut, chunk);
                let (first, last) = (slice.first_chunk, slice.range().end - 1);
                whole.start + part(first).start..whole.start + part(last).end
            }
            Self::Blocks { count } => {
                let start = slice.first_chunk as usize * count;
                if slice.chunks > 1 {
                    return start..start + slice.chunks as usize * count;
                }
                let part = piece(*count, segments, segment);
                start + part.start..start + part.end
            }
            Self::Ranges { input, output } => {
                let side = if slice.buffer == Buffer::Input {
                    input
                } else {
                    output
                };
                let first = &side[slice.first_chunk as usize];
                if slice.chunks > 1 {
                    return first.start..side[slice.range().end as usize - 1].end;
                }
                let part = piece(first.len(), segments, segment);
                first.start + part.start..first.start + part.end
            }
        }
    }

    /// Elements of scratch that the program uses in all segments together.
    pub fn scratch_count(&self, program: &Program, segments: usize) -> usize {
        segments * self.scratch_stride(program, segments)
    }

    fn scratch_elements(
        &self,
        program: &Program,
        slice: Slice,
        segment: usize,
        segments: usize,
    ) -> Range<usize> {
        let chunks = &program.scratch[..slice.range().end as usize];
        let length = |part: &u32| self.part_in_segment(program, *part, segment, segments);
        let (before, own) = chunks.split_at(slice.first_chunk as usize);
        let start = segment * self.scratch_stride(program, segments)
            + before.iter().map(length).sum::<usize>();
        start..start + own.iter().map(length).sum::<usize>()
    }

    /// The most elements that the scratch of one segment has.
    fn scratch_stride(&self, program: &Program, segments: usize) -> usize {
        // The first segment is never shorter than another.
        let lengths = program.scratch.iter();
        lengths
            .map(|part| self.part_in_segment(program, *part, 0, segments))
            .sum()
    }

    fn part_in_segment(
        &self,
        program: &Program,
        part: u32,
        segment: usize,
        segments: usize,
    ) -> usize {
        match self {
            Self::Vector { count } => {
                let whole = piece(*count, segments, segment).len();
                chunk_range(whole, program.cut, part).len()
            }
            _ => piece(self.part(part, program.cut), segments, segment).len(),
        }
    }
}

/// Elements of chunk `index` when `count` elements are cut in `chunks` near-equal parts: the first
/// `count % chunks` parts have one more.
pub fn chunk_range(count: usize, chunks: u32, index: u32) -> Range<usize> {
    piece(count, chunks as usize, index as usize)
}

fn piece(count: usize, pieces: usize, index: usize) -> Range<usize> {
    if pieces == 1 {
        return 0..count;
    }
    let (base, extra) = (count / pieces, count % pieces);
    let start = index * base + index.min(extra);
    start..start + base + usize::from(index < extra)
}
