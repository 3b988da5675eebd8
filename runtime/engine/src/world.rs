//! The public handle.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rlaunch_wire::{DType, Op};

use crate::connect::{Place, connect};
use crate::core::Core;
use crate::{Config, Element, Error};

/// Joins the job that the environment describes; see [`Config::from_environment`].
pub fn init() -> Result<World, Error> {
    World::new(Config::from_environment()?)
}

/// All ranks of a job, seen by one of them. Several worlds may live in one process.
pub struct World {
    place: Place,
    /// `None` once finalized.
    core: Mutex<Option<Core>>,
}

impl World {
    /// Joins as `config` says; returns once every rank has joined.
    pub fn new(config: Config) -> Result<Self, Error> {
        let (place, core) = connect(&config)?;
        Ok(Self {
            place,
            core: Mutex::new(Some(core)),
        })
    }

    pub fn rank(&self) -> u32 {
        self.place.rank
    }

    pub fn size(&self) -> u32 {
        self.place.size
    }

    /// Number of this rank among those of its host.
    pub fn local_rank(&self) -> u32 {
        self.place.local_rank
    }

    pub fn local_size(&self) -> u32 {
        self.place.local_size
    }

    /// Name of this rank's host, as the launcher or else the kernel calls it.
    pub fn host(&self) -> &str {
        &self.place.host
    }

    /// Names of the transports in use: `shm`, `tcp`.
    pub fn transports(&self) -> Vec<&'static str> {
        self.place.transports.clone()
    }

    /// Whether peers have proven a secret. Not so where no agent started the ranks and
    /// RLAUNCH_SECRET is unset: then whoever knows MASTER_ADDR and its port can join.
    pub fn is_authenticated(&self) -> bool {
        self.place.is_authenticated
    }

    /// Returns when every rank has called it.
    pub fn barrier(&self) -> Result<(), Error> {
        self.with(Core::barrier)
    }

    /// Every rank's `buffer` becomes the root's.
    pub fn broadcast<T: Element>(&self, buffer: &mut [T], root: u32) -> Result<(), Error> {
        // SAFETY: the slice is valid for its length and of T's type.
        unsafe { self.broadcast_raw(buffer.as_mut_ptr().cast(), buffer.len(), T::DTYPE, root) }
    }

    /// Each element becomes the reduction of all ranks' elements at its place, in place.
    pub fn all_reduce<T: Element>(&self, buffer: &mut [T], op: Op) -> Result<(), Error> {
        // SAFETY: the slice is valid for its length and of T's type.
        unsafe { self.all_reduce_raw(buffer.as_mut_ptr().cast(), buffer.len(), T::DTYPE, op) }
    }

    /// `output` becomes all ranks' `input`s in rank order: `output.len() == input.len() * size`.
    pub fn all_gather<T: Element>(&self, input: &[T], output: &mut [T]) -> Result<(), Error> {
        self.check_length("all_gather's output", output.len(), "input", input.len())?;
        // SAFETY: both slices are valid, of T's type, and the output has room as checked.
        unsafe {
            self.all_gather_raw(
                input.as_ptr().cast(),
                output.as_mut_ptr().cast(),
                input.len(),
                T::DTYPE,
            )
        }
    }

    /// `output` becomes this rank's part of the reduction: `input.len() == output.len() * size`.
    pub fn reduce_scatter<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        op: Op,
    ) -> Result<(), Error> {
        self.check_length(
            "reduce_scatter's input",
            input.len(),
            "output",
            output.len(),
        )?;
        // SAFETY: both slices are valid, of T's type, and of matching length as checked.
        unsafe {
            self.reduce_scatter_raw(
                input.as_ptr().cast(),
                output.as_mut_ptr().cast(),
                output.len(),
                T::DTYPE,
                op,
            )
        }
    }

    /// Sends to one rank. Small messages return at once, larger ones when the receiver takes them.
    pub fn send<T: Element>(&self, buffer: &[T], to: u32, tag: u32) -> Result<(), Error> {
        // SAFETY: the slice is valid for its length and of T's type.
        unsafe { self.send_raw(buffer.as_ptr().cast(), buffer.len(), T::DTYPE, to, tag) }
    }

    /// Receives from one rank the oldest message with this tag, of exactly this length and type.
    pub fn recv<T: Element>(&self, buffer: &mut [T], from: u32, tag: u32) -> Result<(), Error> {
        // SAFETY: the slice is valid for its length and of T's type.
        unsafe {
            self.recv_raw(
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                T::DTYPE,
                from,
                tag,
            )
        }
    }

    /// Leaves the job in good order; what peers still wait for from this rank fails there.
    /// Dropping a world does the same but can't report.
    ///
    /// Fails if the world had failed, so that a rank learns of it that made its last call before.
    pub fn finalize(self) -> Result<(), Error> {
        let core = self.lock().take();
        core.map_or(Ok(()), Core::leave)
    }
}

/// The same by pointer, for bindings.
impl World {
    /// # Safety
    /// `buffer` is valid for reads and writes of `count` elements and aligned for `dtype`.
    pub unsafe fn broadcast_raw(
        &self,
        buffer: *mut u8,
        count: usize,
        dtype: DType,
        root: u32,
    ) -> Result<(), Error> {
        // SAFETY: as this function's caller vouches.
        self.with(|core| unsafe { core.broadcast(buffer, count, dtype, root) })
    }

    /// # Safety
    /// `buffer` is valid for reads and writes of `count` elements and aligned for `dtype`.
    pub unsafe fn all_reduce_raw(
        &self,
        buffer: *mut u8,
        count: usize,
        dtype: DType,
        op: Op,
    ) -> Result<(), Error> {
        // SAFETY: as this function's caller vouches.
        self.with(|core| unsafe { core.all_reduce(buffer, count, dtype, op) })
    }

    /// `count` is that of `input`. In place where `input` is this rank's part of `output`.
    ///
    /// # Safety
    /// `input` is valid for reads of `count` elements, `output` for writes of `count * size`; both
    /// aligned; they don't overlap except in place.
    pub unsafe fn all_gather_raw(
        &self,
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
    ) -> Result<(), Error> {
        // SAFETY: as this function's caller vouches.
        self.with(|core| unsafe { core.all_gather(input, output, count, dtype) })
    }

    /// `count` is that of `output`. In place where `output` is this rank's part of `input`.
    ///
    /// # Safety
    /// `input` is valid for reads of `count * size` elements, `output` for writes of `count`; both
    /// aligned; they don't overlap except in place.
    pub unsafe fn reduce_scatter_raw(
        &self,
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        op: Op,
    ) -> Result<(), Error> {
        // SAFETY: as this function's caller vouches.
        self.with(|core| unsafe { core.reduce_scatter(input, output, count, dtype, op) })
    }

    /// # Safety
    /// `buffer` is valid for reads of `count` elements of `dtype`.
    pub unsafe fn send_raw(
        &self,
        buffer: *const u8,
        count: usize,
        dtype: DType,
        to: u32,
        tag: u32,
    ) -> Result<(), Error> {
        // SAFETY: as this function's caller vouches.
        self.with(|core| unsafe { core.send(buffer, count, dtype, to, tag) })
    }

    /// # Safety
    /// `buffer` is valid for writes of `count` elements of `dtype`.
    pub unsafe fn recv_raw(
        &self,
        buffer: *mut u8,
        count: usize,
        dtype: DType,
        from: u32,
        tag: u32,
    ) -> Result<(), Error> {
        // SAFETY: as this function's caller vouches.
        self.with(|core| unsafe { core.recv(buffer, count, dtype, from, tag) })
    }

    fn check_length(&self, what: &str, len: usize, of: &str, part: usize) -> Result<(), Error> {
        let expected = part.checked_mul(self.size() as usize);
        if expected == Some(len) {
            return Ok(());
        }
        Err(Error::Argument(format!(
            "{what} has {len} elements, but must have {of}'s {part} times the world's {}",
            self.size()
        )))
    }

    fn with<R>(&self, call: impl FnOnce(&mut Core) -> Result<R, Error>) -> Result<R, Error> {
        call(self.lock().as_mut().ok_or(Error::Finalized)?)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Core>> {
        // A panic inside a call is a bug; the state it leaves is still sound, at worst unusable.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(core) = self.lock().take() {
            let _ = core.leave();
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
