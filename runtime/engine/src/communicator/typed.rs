//! The calls on slices: lengths are checked here, so nothing is `unsafe`.

use super::Communicator;
use crate::call::{Counts, Reduction};
use crate::{Call, Element, Error};

impl Communicator {
    /// Returns when every rank has called it.
    pub fn barrier(&self) -> Result<(), Error> {
        // SAFETY: a barrier has no buffers.
        unsafe { self.run(&Call::barrier()) }
    }

    /// Every rank's `buffer` becomes the root's.
    pub fn broadcast<T: Element>(&self, buffer: &mut [T], root: u32) -> Result<(), Error> {
        let call = Call::broadcast(bytes_mut(buffer), buffer.len(), T::DTYPE, root);
        // SAFETY: the slice is valid for its length and of T's type.
        unsafe { self.run(&call) }
    }

    /// Each element becomes the reduction of all ranks' elements at its place, in place.
    pub fn all_reduce<T: Element>(
        &self,
        buffer: &mut [T],
        op: impl Into<Reduction>,
    ) -> Result<(), Error> {
        let at = bytes_mut(buffer);
        let call = Call::all_reduce(at, at, buffer.len(), T::DTYPE, op);
        // SAFETY: the slice is valid for its length and of T's type.
        unsafe { self.run(&call) }
    }

    /// As [`Communicator::all_reduce`], with the result apart from the input.
    pub fn all_reduce_into<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        op: impl Into<Reduction>,
    ) -> Result<(), Error> {
        same("all_reduce's output", output.len(), "input", input.len())?;
        let call = Call::all_reduce(bytes(input), bytes_mut(output), input.len(), T::DTYPE, op);
        // SAFETY: both slices are valid, of T's type and of one length.
        unsafe { self.run(&call) }
    }

    /// `output` at the root becomes the reduction of all inputs; elsewhere it is not touched and
    /// may be empty.
    pub fn reduce<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        op: impl Into<Reduction>,
        root: u32,
    ) -> Result<(), Error> {
        if self.rank() == root {
            same("reduce's output", output.len(), "input", input.len())?;
        }
        let (from, to) = (bytes(input), bytes_mut(output));
        let call = Call::reduce(from, to, input.len(), T::DTYPE, op, root);
        // SAFETY: both slices are valid and of T's type; of one length where the output is written.
        unsafe { self.run(&call) }
    }

    /// `output` becomes this rank's part of the reduction: `input.len() == output.len() * size`.
    pub fn reduce_scatter<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        op: impl Into<Reduction>,
    ) -> Result<(), Error> {
        self.times(
            "reduce_scatter's input",
            input.len(),
            "output",
            output.len(),
        )?;
        let (from, to) = (bytes(input), bytes_mut(output));
        let call = Call::reduce_scatter(from, to, output.len(), T::DTYPE, op);
        // SAFETY: both slices are valid, of T's type, and of matching length as checked.
        unsafe { self.run(&call) }
    }

    /// The same with parts of different lengths: rank r receives `counts[r]` elements.
    pub fn reduce_scatter_v<T: Element>(
        &self,
        input: &[T],
        counts: &[usize],
        output: &mut [T],
        op: impl Into<Reduction>,
    ) -> Result<(), Error> {
        self.parts("reduce_scatter_v's input", input.len(), counts)?;
        let own = counts[self.rank() as usize];
        same("reduce_scatter_v's output", output.len(), "its count", own)?;
        let counts = Counts::contiguous(&[], counts);
        let (from, to) = (bytes(input), bytes_mut(output));
        let call = Call::reduce_scatter_v(from, to, T::DTYPE, counts, op);
        // SAFETY: both slices are valid, of T's type, and of matching length as checked.
        unsafe { self.run(&call) }
    }

    /// `output` becomes all ranks' `input`s in rank order: `output.len() == input.len() * size`.
    pub fn all_gather<T: Element>(&self, input: &[T], output: &mut [T]) -> Result<(), Error> {
        self.times("all_gather's output", output.len(), "input", input.len())?;
        let call = Call::all_gather(bytes(input), bytes_mut(output), input.len(), T::DTYPE);
        // SAFETY: both slices are valid, of T's type, and the output has room as checked.
        unsafe { self.run(&call) }
    }

    /// The same with parts of different lengths: rank r gives `counts[r]` elements.
    pub fn all_gather_v<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
    ) -> Result<(), Error> {
        self.parts("all_gather_v's output", output.len(), counts)?;
        let own = counts[self.rank() as usize];
        same("all_gather_v's input", input.len(), "its count", own)?;
        let counts = Counts::contiguous(&[], counts);
        let call = Call::all_gather_v(bytes(input), bytes_mut(output), T::DTYPE, counts);
        // SAFETY: both slices are valid, of T's type, and of matching length as checked.
        unsafe { self.run(&call) }
    }

    /// `output` at the root becomes all inputs in rank order; elsewhere it may be empty.
    pub fn gather<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        root: u32,
    ) -> Result<(), Error> {
        if self.rank() == root {
            self.times("gather's output", output.len(), "input", input.len())?;
        }
        let (from, to) = (bytes(input), bytes_mut(output));
        let call = Call::gather(from, to, input.len(), T::DTYPE, root);
        // SAFETY: both slices are valid, of T's type; the output has room where it is written.
        unsafe { self.run(&call) }
    }

    /// The same with parts of different lengths; `counts` matter at the root only.
    pub fn gather_v<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
        root: u32,
    ) -> Result<(), Error> {
        if self.rank() == root {
            self.parts("gather_v's output", output.len(), counts)?;
            let own = counts[root as usize];
            same("gather_v's input", input.len(), "the root's count", own)?;
        }
        let counts = Counts::contiguous(&[], counts);
        let (from, to) = (bytes(input), bytes_mut(output));
        let call = Call::gather_v(from, to, input.len(), T::DTYPE, counts, root);
        // SAFETY: both slices are valid, of T's type; the output has room where it is written.
        unsafe { self.run(&call) }
    }

    /// `output` becomes this rank's part of the root's input; elsewhere the input may be empty.
    pub fn scatter<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        root: u32,
    ) -> Result<(), Error> {
        if self.rank() == root {
            self.times("scatter's input", input.len(), "output", output.len())?;
        }
        let (from, to) = (bytes(input), bytes_mut(output));
        let call = Call::scatter(from, to, output.len(), T::DTYPE, root);
        // SAFETY: both slices are valid, of T's type; the input has all parts where it is read.
        unsafe { self.run(&call) }
    }

    /// The same with parts of different lengths; `counts` matter at the root only.
    pub fn scatter_v<T: Element>(
        &self,
        input: &[T],
        counts: &[usize],
        output: &mut [T],
        root: u32,
    ) -> Result<(), Error> {
        if self.rank() == root {
            self.parts("scatter_v's input", input.len(), counts)?;
            let own = counts[root as usize];
            same("scatter_v's output", output.len(), "the root's count", own)?;
        }
        let counts = Counts::contiguous(counts, &[]);
        let (from, to) = (bytes(input), bytes_mut(output));
        let call = Call::scatter_v(from, to, output.len(), T::DTYPE, counts, root);
        // SAFETY: both slices are valid, of T's type; the input has all parts where it is read.
        unsafe { self.run(&call) }
    }

    /// Part r of `input` goes to rank r, whose part for this rank becomes part r of `output`.
    pub fn all_to_all<T: Element>(&self, input: &[T], output: &mut [T]) -> Result<(), Error> {
        same("all_to_all's output", output.len(), "input", input.len())?;
        let part = input.len() / self.size() as usize;
        self.times("all_to_all's input", input.len(), "part", part)?;
        let call = Call::all_to_all(bytes(input), bytes_mut(output), part, T::DTYPE);
        // SAFETY: both slices are valid, of T's type, and hold a part for each rank.
        unsafe { self.run(&call) }
    }

    /// The same with parts of different lengths.
    pub fn all_to_all_v<T: Element>(
        &self,
        input: &[T],
        send: &[usize],
        output: &mut [T],
        recv: &[usize],
    ) -> Result<(), Error> {
        self.parts("all_to_all_v's input", input.len(), send)?;
        self.parts("all_to_all_v's output", output.len(), recv)?;
        let counts = Counts::contiguous(send, recv);
        let call = Call::all_to_all_v(bytes(input), bytes_mut(output), T::DTYPE, counts);
        // SAFETY: both slices are valid, of T's type, and hold their parts.
        unsafe { self.run(&call) }
    }

    /// Each element becomes the reduction of those of ranks 0 to this one, in place.
    pub fn scan<T: Element>(
        &self,
        buffer: &mut [T],
        op: impl Into<Reduction>,
    ) -> Result<(), Error> {
        let at = bytes_mut(buffer);
        let call = Call::scan(at, at, buffer.len(), T::DTYPE, op);
        // SAFETY: the slice is valid for its length and of T's type.
        unsafe { self.run(&call) }
    }

    /// Each element becomes the reduction of those of the ranks below this one, in place; on rank
    /// 0 it stays as it is.
    pub fn exscan<T: Element>(
        &self,
        buffer: &mut [T],
        op: impl Into<Reduction>,
    ) -> Result<(), Error> {
        let at = bytes_mut(buffer);
        let call = Call::exscan(at, at, buffer.len(), T::DTYPE, op);
        // SAFETY: the slice is valid for its length and of T's type.
        unsafe { self.run(&call) }
    }

    pub(super) fn times(&self, what: &str, len: usize, of: &str, part: usize) -> Result<(), Error> {
        if part.checked_mul(self.size() as usize) == Some(len) {
            return Ok(());
        }
        Err(Error::Argument(format!(
            "{what} has {len} elements, but must have {of}'s {part} times the {} ranks",
            self.size()
        )))
    }

    /// One count for each rank, in sum the length.
    fn parts(&self, what: &str, len: usize, counts: &[usize]) -> Result<(), Error> {
        same(
            "counts",
            counts.len(),
            "the communicator's ranks",
            self.size() as usize,
        )?;
        let sum = counts
            .iter()
            .try_fold(0usize, |sum, count| sum.checked_add(*count));
        if sum == Some(len) {
            return Ok(());
        }
        Err(Error::Argument(format!(
            "{what} has {len} elements, but must have the sum of the counts, {counts:?}"
        )))
    }
}

pub(super) fn same(what: &str, len: usize, of: &str, expected: usize) -> Result<(), Error> {
    if len == expected {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "{what} has {len} elements, but must have as many as {of}: {expected}"
    )))
}

pub(super) fn bytes<T>(slice: &[T]) -> *const u8 {
    slice.as_ptr().cast()
}

pub(super) fn bytes_mut<T>(slice: &mut [T]) -> *mut u8 {
    slice.as_mut_ptr().cast()
}
