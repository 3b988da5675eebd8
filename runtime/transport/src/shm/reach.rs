//! Memory of neighbours that lies outside of the arena, copied once by the kernel
//! (`process_vm_readv`, `process_vm_writev`).
//!
//! Whether the kernel allows it depends on the container, on namespaces and on yama, so each rank
//! tries: it leaves its process id in the arena, and where in its memory a random number lies that
//! the arena tells too. Who reads the same number there has the right process before it, and may read
//! on. Nothing of this is an error: without reach, data goes through the arena.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use super::{Arena, State};
use crate::nonce;

/// When the kernel copies between ranks, if it lets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SingleCopy {
    Off,
    /// Between two. Where more read one's memory, they wait for each other in the kernel, and find in
    /// staging what the first has brought to a cache they share.
    Pairs,
    Always,
}

/// The processes of all ranks of an arena, which this one can read and write.
#[derive(Debug)]
pub struct Reach {
    processes: Vec<Process>,
}

#[derive(Debug)]
struct Process {
    pid: libc::pid_t,
    token_address: u64,
    token: u64,
}

/// Read by the others; the same for all arenas of this process.
static TOKEN: OnceLock<u64> = OnceLock::new();

impl Arena {
    /// Tells the others how to find this rank's memory. Call before [`State::Present`].
    pub(super) fn introduce(&self, rank: u32, single_copy: SingleCopy) -> io::Result<()> {
        let is_always = single_copy == SingleCopy::Always;
        self.reaches_many.store(is_always, Ordering::Relaxed);
        let fresh = nonce()?;
        let token = TOKEN.get_or_init(|| {
            let bytes = fresh.first_chunk().copied().unwrap_or_default();
            // 0 is what a rank without reach tells.
            u64::from_le_bytes(bytes) | 1
        });
        // Where yama restricts who may look into a process, this allows it to those of this user, as
        // without yama. Fails where there is no yama.
        // SAFETY: no memory is passed.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
        let (pid, address, told) = self.introduction(rank);
        pid.store(std::process::id(), Ordering::Relaxed);
        address.store(std::ptr::from_ref(token) as u64, Ordering::Relaxed);
        told.store(*token, Ordering::Relaxed);
        Ok(())
    }

    /// The memory of all ranks, if this one can reach every one's; `None` also until all have come.
    #[inline]
    pub fn reach(&self) -> Option<&Reach> {
        match self.reach.get() {
            Some(found) => found.as_ref(),
            None => self.try_reach(),
        }
    }

    /// The same for a call of so many members: `None` also where it would not be worth it.
    pub fn reach_among(&self, members: u32) -> Option<&Reach> {
        let is_worth = members == 2 || self.reaches_many.load(Ordering::Relaxed);
        if is_worth { self.reach() } else { None }
    }

    #[cold]
    fn try_reach(&self) -> Option<&Reach> {
        if (0..self.ranks()).any(|rank| self.state(rank) == State::Absent) {
            return None;
        }
        let process = |rank| {
            let (pid, address, told) = self.introduction(rank);
            let process = Process {
                pid: libc::pid_t::try_from(pid.load(Ordering::Relaxed)).ok()?,
                token_address: address.load(Ordering::Relaxed),
                token: told.load(Ordering::Relaxed),
            };
            (process.token != 0 && process.is_there()).then_some(process)
        };
        let find = || (0..self.ranks()).map(process).collect::<Option<_>>();
        let found = self
            .reach
            .get_or_init(|| find().map(|processes| Reach { processes }));
        found.as_ref()
    }
}

impl Process {
    fn is_there(&self) -> bool {
        let mut found = 0u64;
        let to = std::ptr::from_mut(&mut found).cast();
        // SAFETY: the variable has room for 8 bytes.
        let read = unsafe { transfer(libc::process_vm_readv, self.pid, to, self.token_address, 8) };
        read.is_ok() && found == self.token
    }
}

impl Reach {
    /// Whether the rank's process still has its memory.
    pub fn is_there(&self, rank: u32) -> bool {
        self.processes[rank as usize].is_there()
    }

    /// Copies `bytes` at the address `from` of a rank's process to `to`.
    ///
    /// # Safety
    /// `to` is valid for writes of `bytes`, and nobody else uses it meanwhile. (What is wrong with
    /// the other's memory is an error.)
    pub unsafe fn read(&self, rank: u32, from: u64, to: *mut u8, bytes: usize) -> io::Result<()> {
        let pid = self.processes[rank as usize].pid;
        // SAFETY: as the caller vouches.
        unsafe { transfer(libc::process_vm_readv, pid, to, from, bytes) }
    }

    /// Copies `bytes` at `from` to the address `to` of a rank's process.
    ///
    /// # Safety
    /// `from` is valid for reads of `bytes`, and that rank waits for them at `to`.
    pub unsafe fn write(
        &self,
        rank: u32,
        from: *const u8,
        to: u64,
        bytes: usize,
    ) -> io::Result<()> {
        let pid = self.processes[rank as usize].pid;
        // SAFETY: as the caller vouches; the kernel only reads the local range.
        unsafe { transfer(libc::process_vm_writev, pid, from.cast_mut(), to, bytes) }
    }
}

type Call = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> isize;

/// # Safety
/// As the call needs its local range.
unsafe fn transfer(
    call: Call,
    pid: libc::pid_t,
    local: *mut u8,
    remote: u64,
    bytes: usize,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes {
        let here = libc::iovec {
            iov_base: local.wrapping_add(done).cast(),
            iov_len: bytes - done,
        };
        let there = libc::iovec {
            iov_base: (remote as usize + done) as *mut libc::c_void,
            iov_len: bytes - done,
        };
        // SAFETY: as the caller vouches; both lists have one entry.
        let moved = unsafe { call(pid, &raw const here, 1, &raw const there, 1, 0) };
        match usize::try_from(moved) {
            // It stops short where memory is missing, and says so at the next attempt.
            Ok(moved) if moved > 0 => done += moved,
            Ok(_) => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
            Err(_) => {
                let error = io::Error::last_os_error();
                let is_ours = error.raw_os_error() == Some(libc::EFAULT) && is_missing(here);
                return Err(if is_ours { OwnBuffer.into() } else { error });
            }
        }
    }
    Ok(())
}

/// Why memory could not be copied: it is this rank's own that is not there.
#[derive(Debug, thiserror::Error)]
#[error("this rank's own buffer can't be used: part of its memory is not there, or is read-only")]
pub(crate) struct OwnBuffer;

impl From<OwnBuffer> for io::Error {
    fn from(error: OwnBuffer) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

/// Whether the first byte of a range of this process is not there: as behind the end of a mapped file.
fn is_missing(range: libc::iovec) -> bool {
    let mut byte = 0u8;
    let to = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let from = libc::iovec {
        iov_len: 1,
        ..range
    };
    // SAFETY: the variable has room for one byte; what is wrong with the range is an error.
    let read =
        unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) };
    read != 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> std::sync::Arc<Arena> {
        let arena = Arena::create(2).unwrap();
        for rank in 0..2 {
            arena.introduce(rank, SingleCopy::Pairs).unwrap();
        }
        arena
    }

    #[test]
    fn memory_is_reached_once_all_have_come() {
        let arena = pair();
        arena.set_state(0, State::Present);
        assert!(arena.reach().is_none());
        arena.set_state(1, State::Present);
        let reach = arena.reach().expect("one's own process can be read");
        let (given, mut taken) = ([7u8; 100], [0u8; 100]);
        let from = given.as_ptr() as u64;
        // SAFETY: both arrays have 100 bytes.
        unsafe { reach.read(1, from, taken.as_mut_ptr(), 100) }.unwrap();
        assert_eq!(given, taken);
        // SAFETY: as above.
        unsafe { reach.write(1, [9u8; 100].as_ptr(), taken.as_mut_ptr() as u64, 100) }.unwrap();
        assert_eq!(taken, [9; 100]);
    }

    #[test]
    fn another_process_under_the_number_is_not_read() {
        let arena = pair();
        for rank in 0..2 {
            arena.set_state(rank, State::Present);
        }
        // As if the number were of another pid namespace.
        arena.introduction(1).2.store(1, Ordering::Relaxed);
        assert!(arena.reach().is_none());
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let arena = pair();
        for rank in 0..2 {
            arena.set_state(rank, State::Present);
        }
        let reach = arena.reach().unwrap();
        let mut taken = [0u8; 8];
        // SAFETY: the array has 8 bytes.
        let error = unsafe { reach.read(1, 8, taken.as_mut_ptr(), 8) }.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
        let from = taken.as_ptr() as u64;
        // SAFETY: nothing is at that address, which is an error.
        let own =
            unsafe { reach.read(1, from, std::ptr::without_provenance_mut(8), 8) }.unwrap_err();
        assert!(own.to_string().contains("own buffer"), "{own}");
    }
}
