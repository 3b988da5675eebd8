//! Memory that the ranks of a host read in place: [`SharedBuffer`].
//!
//! It lies in this rank's zone of the arena, which its neighbours map too. A call whose members all
//! give such memory, or parts of it, needs no copy through staging. The owner alone hands out and
//! frees what lies in its zone, so nothing here waits for another rank, and the buffer may outlive its
//! communicator and the world: it keeps the mapping.
//!
//! A forked child has the memory in common with its parent, as with any shared mapping: what one
//! writes, the other sees. Only the process that allocated it frees it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::{fmt, io};

use rlaunch_transport::shm::{Area, Arena, Available, human};

use crate::communicator::Buffer;
use crate::failure::fork::Process;
use crate::{Communicator, Element, Error};

/// Plain memory is aligned to this, as memory of the arena is to pages.
const ALIGNMENT_BYTES: usize = 64;
/// Blocks below this are taken without a look at what there is. Larger ones are made memory in such
/// steps, each after a look: neighbours may take theirs at the same time.
const STEP_BYTES: usize = 64 << 20;

/// Elements that the ranks of this host read without a copy between. Made by
/// [`Communicator::allocate`]; freed when dropped.
pub struct SharedBuffer<T: Element> {
    memory: Memory,
    count: usize,
    elements: PhantomData<T>,
}

/// Where it lies, and how it is freed.
enum Memory {
    Shared {
        arena: Arc<Arena>,
        local_rank: u32,
        area: Area,
        at: NonNull<u8>,
        process: Process,
    },
    Plain {
        at: NonNull<u8>,
        layout: Layout,
    },
}

// SAFETY: it owns its memory, which is the same for all threads of its process; elements are plain.
unsafe impl<T: Element> Send for SharedBuffer<T> {}
// SAFETY: as above: shared references only read.
unsafe impl<T: Element> Sync for SharedBuffer<T> {}

impl Communicator {
    /// Memory for `count` zeros, which the ranks of this host read in place: calls on it, or on any
    /// part of it, are faster there than on other memory. Any rank may ask for some at any time, the
    /// others need not know. Where no memory is shared (a single rank on its host, TCP only) it is
    /// plain memory.
    ///
    /// Aligned to 64 bytes at least. It stays valid when the communicator is gone and after finalize.
    /// Fails, with [`Error::Allocation`] and without any effect on the communicator, where the machine,
    /// or a memory limit of this process's control groups, has not so much left.
    pub fn allocate<T: Element>(&self, count: usize) -> Result<SharedBuffer<T>, Error> {
        let bytes = count
            .checked_mul(size_of::<T>())
            .filter(|bytes| isize::try_from(*bytes).is_ok());
        let Some(bytes) = bytes else {
            let bytes = count as u128 * size_of::<T>() as u128;
            return Err(unavailable(bytes, "no process can address so much"));
        };
        if bytes >= STEP_BYTES {
            look(bytes, bytes)?;
        }
        let memory = match self.engine().arena()? {
            Some((arena, local_rank)) if bytes > 0 => shared(arena, local_rank, bytes)?,
            _ => plain(bytes)?,
        };
        Ok(SharedBuffer {
            memory,
            count,
            elements: PhantomData,
        })
    }
}

fn shared(arena: Arc<Arena>, local_rank: u32, bytes: usize) -> Result<Memory, Error> {
    let wanting = |error: io::Error| unavailable(bytes as u128, &error.to_string());
    let area = arena.allocate(local_rank, bytes).map_err(wanting)?;
    let made = commit(&arena, area).and_then(|()| arena.locate(area).map_err(wanting));
    match made {
        Ok(at) => Ok(Memory::Shared {
            arena,
            local_rank,
            area,
            at,
            process: Process::current(),
        }),
        Err(error) => {
            arena.free(local_rank, area);
            Err(error)
        }
    }
}

/// Makes the area memory, as long as there is some for the rest of it.
fn commit(arena: &Arena, area: Area) -> Result<(), Error> {
    for done in (0..area.bytes).step_by(STEP_BYTES) {
        let left = area.bytes - done;
        if done > 0 {
            look(area.bytes, left)?;
        }
        let step = Area {
            offset: area.offset + done as u64,
            bytes: left.min(STEP_BYTES),
        };
        let wanting = |error: io::Error| unavailable(area.bytes as u128, &error.to_string());
        arena.commit(step).map_err(wanting)?;
    }
    Ok(())
}

/// Whether there is memory for the `left` bytes of a block that are not taken yet.
fn look(bytes: usize, left: usize) -> Result<(), Error> {
    let available = Available::read();
    if available.has(left as u64) {
        return Ok(());
    }
    Err(unavailable(bytes as u128, &available.to_string()))
}

fn unavailable(bytes: u128, found: &str) -> Error {
    Error::Allocation {
        bytes,
        size: human(bytes),
        found: found.to_owned(),
    }
}

fn plain(bytes: usize) -> Result<Memory, Error> {
    let wanting = || unavailable(bytes as u128, "the system gives no more to this process");
    let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT_BYTES).map_err(|_| wanting())?;
    // SAFETY: the layout is not empty.
    let at = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(wanting)?;
    Ok(Memory::Plain { at, layout })
}

impl<T: Element> SharedBuffer<T> {
    fn start(&self) -> *mut T {
        let (Memory::Shared { at, .. } | Memory::Plain { at, .. }) = &self.memory;
        at.as_ptr().cast()
    }

    /// Where its elements are, for calls as data ([`crate::Call`]).
    pub fn as_ptr(&self) -> *const T {
        self.start()
    }

    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.start()
    }

    /// Whether other ranks see it: false where there are none on this host, or they share no memory.
    pub fn is_shared(&self) -> bool {
        matches!(self.memory, Memory::Shared { .. })
    }
}

impl<T: Element> Deref for SharedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: valid for `count` elements, zero or written since, as long as self; every pattern is
        // a value. Others only read it.
        unsafe { std::slice::from_raw_parts(self.start(), self.count) }
    }
}

impl<T: Element> DerefMut for SharedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; others read it only during calls, which borrow it.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.count) }
    }
}

// SAFETY: its memory stays where it is.
unsafe impl<T: Element> Buffer<T> for SharedBuffer<T> {
    fn as_mut_ptr(&mut self) -> *mut T {
        self.start()
    }

    fn length(&self) -> usize {
        self.count
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for SharedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuffer")
            .field("is_shared", &self.is_shared())
            .field("elements", &&self[..])
            .finish_non_exhaustive()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self {
            Self::Shared {
                arena,
                local_rank,
                area,
                process,
                ..
            } => {
                // In a child it is still the parent's, and a lock may be held for ever.
                if process.is_current() {
                    arena.free(*local_rank, *area);
                }
            }
            // SAFETY: allocated with this layout, and nothing refers to it any more.
            Self::Plain { at, layout } => unsafe { dealloc(at.as_ptr(), *layout) },
        }
    }
}
