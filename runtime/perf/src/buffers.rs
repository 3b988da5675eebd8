//! Memory that calls work on, with a guarded end.

use crate::arguments::Buffers;
use rlaunch_runtime::{Communicator, Error, SharedBuffer};
use std::alloc::{Layout, alloc_zeroed, dealloc};

/// Pages, so that no two buffers share one and every alignment is served.
const ALIGNMENT: usize = 4096;
/// Room before the end that no call may write to.
const GUARD_BYTES: usize = 64;
const GUARD: u8 = 0xA5;

/// Bytes at a fixed address.
#[derive(Debug)]
pub(crate) struct Block {
    start: *mut u8,
    bytes: usize,
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    Shared {
        _buffer: SharedBuffer<u8>,
    },
    /// Where the allocation begins.
    Private(*mut u8, Layout),
}

impl Block {
    /// Room for `bytes` from `offset_bytes` after an aligned address.
    pub(crate) fn new(
        communicator: &Communicator,
        kind: Buffers,
        offset_bytes: usize,
        bytes: usize,
    ) -> Result<Self, Error> {
        let whole = offset_bytes + bytes + GUARD_BYTES;
        let (base, memory) = match kind {
            Buffers::Shared => {
                let mut buffer = communicator.allocate::<u8>(whole)?;
                (buffer.as_mut_ptr(), Memory::Shared { _buffer: buffer })
            }
            Buffers::Private => {
                let layout = Layout::from_size_align(whole, ALIGNMENT)
                    .map_err(|_| Error::Argument(format!("no buffer has {bytes} bytes")))?;
                // SAFETY: the size is not 0: it holds the guard.
                let base = unsafe { alloc_zeroed(layout) };
                if base.is_null() {
                    return Err(Error::Argument(format!(
                        "no memory for a buffer of {bytes} bytes; a smaller -e may fit"
                    )));
                }
                (base, Memory::Private(base, layout))
            }
        };
        // SAFETY: inside the allocation, of `whole` bytes.
        let start = unsafe { base.add(offset_bytes) };
        let block = Self {
            start,
            bytes,
            memory,
        };
        block.guard();
        Ok(block)
    }

    /// Inside the block, or just behind it.
    pub(crate) fn at(&self, offset_bytes: usize) -> *mut u8 {
        assert!(offset_bytes <= self.bytes, "an offset inside the buffer");
        // SAFETY: inside the allocation, as asserted.
        unsafe { self.start.add(offset_bytes) }
    }

    pub(crate) fn slice(&self, offset_bytes: usize, bytes: usize) -> &[u8] {
        assert!(offset_bytes + bytes <= self.bytes, "a part of the buffer");
        // SAFETY: inside the allocation, initialised, and no call is under way while it is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.add(offset_bytes), bytes) }
    }

    pub(crate) fn slice_mut(&mut self, offset_bytes: usize, bytes: usize) -> &mut [u8] {
        assert!(offset_bytes + bytes <= self.bytes, "a part of the buffer");
        // SAFETY: as `slice`, and borrowed by nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(offset_bytes), bytes) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing was written behind the end.
    pub(crate) fn is_guard_intact(&self) -> bool {
        // SAFETY: the guard lies behind `bytes`, in the same allocation.
        let guard = unsafe { std::slice::from_raw_parts(self.start.add(self.bytes), GUARD_BYTES) };
        guard.iter().all(|byte| *byte == GUARD)
    }

    fn guard(&self) {
        // SAFETY: as above.
        unsafe { self.start.add(self.bytes).write_bytes(GUARD, GUARD_BYTES) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match self.memory {
            Memory::Shared { .. } => {}
            // SAFETY: allocated with this layout, and nothing refers to it any more.
            Memory::Private(base, layout) => unsafe { dealloc(base, layout) },
        }
    }
}
