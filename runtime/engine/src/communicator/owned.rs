//! Calls that return at once: they own their buffers and give them back when complete.

use super::Communicator;
use super::typed::same;
use crate::call::Reduction;
use crate::request::Pending;
use crate::{Call, Element, Error};

/// Memory of `T`s that stays where it is when its owner moves.
///
/// # Safety
/// The pointer is valid for reads and writes of `length` elements until the owner is dropped, and
/// the same at each call.
pub unsafe trait Buffer<T: Element>: Send + 'static {
    fn as_mut_ptr(&mut self) -> *mut T;
    fn length(&self) -> usize;
}

// SAFETY: a vector's elements lie on the heap and don't move with it.
unsafe impl<T: Element> Buffer<T> for Vec<T> {
    fn as_mut_ptr(&mut self) -> *mut T {
        self.as_mut_slice().as_mut_ptr()
    }
    fn length(&self) -> usize {
        self.len()
    }
}

// SAFETY: a boxed slice's elements lie on the heap and don't move with it.
unsafe impl<T: Element> Buffer<T> for Box<[T]> {
    fn as_mut_ptr(&mut self) -> *mut T {
        self.as_mut().as_mut_ptr()
    }
    fn length(&self) -> usize {
        self.len()
    }
}

impl Communicator {
    /// As [`Communicator::barrier`].
    pub fn start_barrier(&self) -> Result<Pending<()>, Error> {
        // SAFETY: a barrier has no buffers.
        let request = unsafe { self.start(Call::barrier())? };
        Ok(Pending::new(request, ()))
    }

    /// As [`Communicator::broadcast`].
    pub fn start_broadcast<T: Element, B: Buffer<T>>(
        &self,
        buffer: B,
        root: u32,
    ) -> Result<Pending<B>, Error> {
        self.start_in_place(buffer, |at, count| {
            Call::broadcast(at, count, T::DTYPE, root)
        })
    }

    /// As [`Communicator::all_reduce`].
    pub fn start_all_reduce<T: Element, B: Buffer<T>>(
        &self,
        buffer: B,
        op: impl Into<Reduction>,
    ) -> Result<Pending<B>, Error> {
        self.start_in_place(buffer, |at, count| {
            Call::all_reduce(at, at, count, T::DTYPE, op)
        })
    }

    /// As [`Communicator::scan`].
    pub fn start_scan<T: Element, B: Buffer<T>>(
        &self,
        buffer: B,
        op: impl Into<Reduction>,
    ) -> Result<Pending<B>, Error> {
        self.start_in_place(buffer, |at, count| Call::scan(at, at, count, T::DTYPE, op))
    }

    /// As [`Communicator::exscan`].
    pub fn start_exscan<T: Element, B: Buffer<T>>(
        &self,
        buffer: B,
        op: impl Into<Reduction>,
    ) -> Result<Pending<B>, Error> {
        self.start_in_place(buffer, |at, count| {
            Call::exscan(at, at, count, T::DTYPE, op)
        })
    }

    /// As [`Communicator::reduce`].
    pub fn start_reduce<T: Element, B: Buffer<T>>(
        &self,
        input: B,
        output: B,
        op: impl Into<Reduction>,
        root: u32,
    ) -> Result<Pending<(B, B)>, Error> {
        if self.rank() == root {
            same("reduce's output", output.length(), "input", input.length())?;
        }
        self.start_between(input, output, |from, to, count, _| {
            Call::reduce(from, to, count, T::DTYPE, op, root)
        })
    }

    /// As [`Communicator::reduce_scatter`].
    pub fn start_reduce_scatter<T: Element, B: Buffer<T>>(
        &self,
        input: B,
        output: B,
        op: impl Into<Reduction>,
    ) -> Result<Pending<(B, B)>, Error> {
        let (whole, part) = (input.length(), output.length());
        self.times("reduce_scatter's input", whole, "output", part)?;
        self.start_between(input, output, |from, to, _, count| {
            Call::reduce_scatter(from, to, count, T::DTYPE, op)
        })
    }

    /// As [`Communicator::all_gather`].
    pub fn start_all_gather<T: Element, B: Buffer<T>>(
        &self,
        input: B,
        output: B,
    ) -> Result<Pending<(B, B)>, Error> {
        let (part, whole) = (input.length(), output.length());
        self.times("all_gather's output", whole, "input", part)?;
        self.start_between(input, output, |from, to, count, _| {
            Call::all_gather(from, to, count, T::DTYPE)
        })
    }

    /// As [`Communicator::gather`].
    pub fn start_gather<T: Element, B: Buffer<T>>(
        &self,
        input: B,
        output: B,
        root: u32,
    ) -> Result<Pending<(B, B)>, Error> {
        if self.rank() == root {
            let (part, whole) = (input.length(), output.length());
            self.times("gather's output", whole, "input", part)?;
        }
        self.start_between(input, output, |from, to, count, _| {
            Call::gather(from, to, count, T::DTYPE, root)
        })
    }

    /// As [`Communicator::scatter`].
    pub fn start_scatter<T: Element, B: Buffer<T>>(
        &self,
        input: B,
        output: B,
        root: u32,
    ) -> Result<Pending<(B, B)>, Error> {
        if self.rank() == root {
            let (whole, part) = (input.length(), output.length());
            self.times("scatter's input", whole, "output", part)?;
        }
        self.start_between(input, output, |from, to, _, count| {
            Call::scatter(from, to, count, T::DTYPE, root)
        })
    }

    /// As [`Communicator::all_to_all`].
    pub fn start_all_to_all<T: Element, B: Buffer<T>>(
        &self,
        input: B,
        output: B,
    ) -> Result<Pending<(B, B)>, Error> {
        let (sent, received) = (input.length(), output.length());
        same("all_to_all's output", received, "input", sent)?;
        let part = sent / self.size() as usize;
        self.times("all_to_all's input", sent, "part", part)?;
        self.start_between(input, output, |from, to, _, _| {
            Call::all_to_all(from, to, part, T::DTYPE)
        })
    }

    fn start_in_place<T: Element, B: Buffer<T>>(
        &self,
        mut buffer: B,
        call: impl FnOnce(*mut u8, usize) -> Call,
    ) -> Result<Pending<B>, Error> {
        let call = call(buffer.as_mut_ptr().cast(), buffer.length());
        // SAFETY: the buffer is valid, of T's type, and is kept by what is returned, which waits
        // for the operation before it drops it.
        let request = unsafe { self.start(call)? };
        Ok(Pending::new(request, buffer))
    }

    fn start_between<T: Element, B: Buffer<T>>(
        &self,
        mut input: B,
        mut output: B,
        call: impl FnOnce(*const u8, *mut u8, usize, usize) -> Call,
    ) -> Result<Pending<(B, B)>, Error> {
        let (from, to) = (input.as_mut_ptr(), output.as_mut_ptr());
        let call = call(from.cast(), to.cast(), input.length(), output.length());
        // SAFETY: both buffers are valid, of T's type, and are kept by what is returned, which
        // waits for the operation before it drops them; the callers have checked the lengths.
        let request = unsafe { self.start(call)? };
        Ok(Pending::new(request, (input, output)))
    }
}
