//! Memory that ranks take from the arena while the job runs: areas of communicators, and buffers
//! that neighbours read and write in place.
//!
//! Behind the arena's fixed part each rank has a *zone* of the file. Only the zone's owner hands out
//! what lies in it, so no lock is shared between processes and none can be left held by a dead one.
//! Zones are far larger than any machine's memory and cost nothing where untouched: an area becomes
//! memory when it is committed, and is given back to the system when freed. A process maps a zone
//! whole when it first needs something in it, so what a rank freed and took again lies at the same
//! address as before, and no mapping ever goes stale.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::Arena;
use super::arena::PAGE_BYTES;

/// A rank's zone where no limit makes it smaller.
const ZONE_BYTES_MAX: usize = 1 << 38;
/// Of the address space that limits leave, at most this part goes to zones.
const LIMIT_PART: usize = 4;

/// Part of a zone, by its place in the arena's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    pub offset: u64,
    pub bytes: usize,
}

/// The zones of an arena, as one process sees them.
#[derive(Debug)]
pub(super) struct Zones {
    begin: usize,
    zone_bytes: usize,
    zones: Vec<Zone>,
}

#[derive(Debug, Default)]
struct Zone {
    /// Where this process has it, once it was needed.
    base: OnceLock<usize>,
    /// Kept by the owner alone.
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// Bytes from the zone's begin on that were ever handed out.
    end: usize,
    /// What of them is free again: offset within the zone → bytes. Neighbours are joined.
    free: BTreeMap<usize, usize>,
    /// Areas of teams that this rank has left and others may still use, with the teams' members.
    retired: Vec<(Area, Vec<u32>)>,
}

impl Zones {
    /// How large zones may be under this process's limits; a multiple of a page.
    pub(super) fn choose_bytes(fixed: usize, ranks: u32) -> usize {
        let smallest = [Resource::RLIMIT_FSIZE, Resource::RLIMIT_AS]
            .into_iter()
            .filter_map(|resource| getrlimit(resource).ok())
            .map(|(soft, _)| soft)
            .filter(|soft| *soft != RLIM_INFINITY)
            .min();
        let Some(limit) = smallest else {
            return ZONE_BYTES_MAX;
        };
        let room = usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .saturating_sub(fixed);
        (room / LIMIT_PART / ranks as usize).min(ZONE_BYTES_MAX) / PAGE_BYTES * PAGE_BYTES
    }

    /// `None` where `bytes` are not zones of `ranks` ranks.
    pub(super) fn new(begin: usize, bytes: usize, ranks: u32) -> Option<Self> {
        let zone_bytes = bytes / ranks as usize;
        let fits = zone_bytes * ranks as usize == bytes && zone_bytes.is_multiple_of(PAGE_BYTES);
        fits.then(|| Self {
            begin,
            zone_bytes,
            zones: (0..ranks).map(|_| Zone::default()).collect(),
        })
    }

    fn begin_of(&self, rank: u32) -> usize {
        self.begin + rank as usize * self.zone_bytes
    }

    fn taken(&self, rank: u32) -> MutexGuard<'_, Taken> {
        let taken = self.zones[rank as usize].taken.lock();
        taken.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// The first free place, else the end.
    fn take(&mut self, bytes: usize, zone_bytes: usize) -> Option<usize> {
        let found = self.free.iter().find(|(_, room)| **room >= bytes);
        if let Some((&offset, &room)) = found {
            self.free.remove(&offset);
            if room > bytes {
                self.free.insert(offset + bytes, room - bytes);
            }
            return Some(offset);
        }
        let offset = self.end;
        let end = offset.checked_add(bytes).filter(|end| *end <= zone_bytes)?;
        self.end = end;
        Some(offset)
    }

    fn give_back(&mut self, offset: usize, bytes: usize) {
        let (mut begin, mut end) = (offset, offset + bytes);
        if let Some(room) = self.free.remove(&end) {
            end += room;
        }
        let before = self.free.range(..begin).next_back();
        if let Some((&other, &room)) = before
            && other + room == begin
        {
            self.free.remove(&other);
            begin = other;
        }
        if end == self.end {
            self.end = begin;
        } else {
            self.free.insert(begin, end - begin);
        }
    }
}

impl Arena {
    /// Takes `bytes` of `rank`'s zone (whole pages), which must be this process's own. They read as zero and are
    /// not committed yet.
    pub fn allocate(&self, rank: u32, bytes: usize) -> io::Result<Area> {
        self.sweep(rank);
        let bytes = bytes.max(1).next_multiple_of(PAGE_BYTES);
        let zones = &self.zones;
        let offset = zones.taken(rank).take(bytes, zones.zone_bytes);
        let offset = offset.ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Area {
            offset: (zones.begin_of(rank) + offset) as u64,
            bytes,
        })
    }

    /// Where the first area ever allocated lies.
    pub(super) fn first_place(&self) -> u64 {
        self.zones.begin as u64
    }

    /// Gives an area of this process's own zone back to the system. Nobody may touch it any more.
    pub fn free(&self, rank: u32, area: Area) {
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let punched = fallocate(self.memory(), hole, area.offset as i64, area.bytes as i64);
        // Memory that could not be emptied must not be handed out as zeros.
        if punched.is_ok() {
            let offset = area.offset as usize - self.zones.begin_of(rank);
            self.zones.taken(rank).give_back(offset, area.bytes);
        }
    }

    /// Frees a team's area once all its members have closed it.
    pub(super) fn retire(&self, rank: u32, area: Area, members: &[u32]) {
        self.zones
            .taken(rank)
            .retired
            .push((area, members.to_vec()));
        self.sweep(rank);
    }

    fn sweep(&self, rank: u32) {
        let retired = std::mem::take(&mut self.zones.taken(rank).retired);
        for (area, members) in retired {
            let base = self.locate(area);
            if base.is_ok_and(|base| super::team::is_closed(self, base, &members)) {
                self.free(rank, area);
            } else {
                self.zones.taken(rank).retired.push((area, members));
            }
        }
    }

    /// Makes part of a zone memory, so that no access can fail for want of it.
    pub fn commit(&self, area: Area) -> io::Result<()> {
        let begin = area.offset as usize / PAGE_BYTES * PAGE_BYTES;
        let end = (area.offset as usize + area.bytes).next_multiple_of(PAGE_BYTES);
        let (begin, bytes) = (begin as i64, (end - begin) as i64);
        Ok(fallocate(
            self.memory(),
            FallocateFlags::empty(),
            begin,
            bytes,
        )?)
    }

    /// Where this process sees that place of the file. Valid as long as the arena.
    pub fn locate(&self, area: Area) -> io::Result<NonNull<u8>> {
        let zones = &self.zones;
        let beyond = || io::Error::other("a place outside of the shared memory's zones");
        let at = (area.offset as usize)
            .checked_sub(zones.begin)
            .ok_or_else(beyond)?;
        let (rank, within) = (at / zones.zone_bytes.max(1), at % zones.zone_bytes.max(1));
        if rank >= zones.zones.len() || area.bytes > zones.zone_bytes - within {
            return Err(beyond());
        }
        let base = self.zone_base(rank as u32)?;
        // SAFETY: inside the mapping of that zone, as just checked.
        Ok(unsafe { base.add(within) })
    }

    /// The place in the file of memory in `rank`'s zone; `None` for any other memory.
    pub fn place_of(&self, rank: u32, pointer: *const u8, bytes: usize) -> Option<u64> {
        let zones = &self.zones;
        let base = *zones.zones[rank as usize].base.get()?;
        let within = (pointer as usize).checked_sub(base)?;
        let fits = within < zones.zone_bytes && bytes <= zones.zone_bytes - within;
        fits.then(|| (zones.begin_of(rank) + within) as u64)
    }

    fn zone_base(&self, rank: u32) -> io::Result<NonNull<u8>> {
        let zone = &self.zones.zones[rank as usize];
        if zone.base.get().is_none() {
            let mapped = self.map_zone(rank)?;
            if zone.base.set(mapped.as_ptr() as usize).is_err() {
                // Another thread was first.
                self.unmap_zone(mapped);
            }
        }
        let base = zone.base.get().copied().unwrap_or_default();
        NonNull::new(base as *mut u8).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    fn map_zone(&self, rank: u32) -> io::Result<NonNull<u8>> {
        let length = NonZeroUsize::new(self.zones.zone_bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let base = unsafe {
            mmap(
                None,
                length,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE,
                self.memory(),
                self.zones.begin_of(rank) as i64,
            )?
        };
        Ok(base.cast())
    }

    fn unmap_zone(&self, base: NonNull<u8>) {
        // SAFETY: made by `map_zone` with this length; nothing points into it any more.
        let _ = unsafe { munmap(base.cast(), self.zones.zone_bytes) };
    }

    pub(super) fn unmap_zones(&mut self) {
        for zone in &mut self.zones.zones {
            let base = zone
                .base
                .take()
                .and_then(|base| NonNull::new(base as *mut u8));
            if let Some(base) = base {
                // SAFETY: made by `map_zone` with this length; no reference outlives the arena.
                let _ = unsafe { munmap(base.cast(), self.zones.zone_bytes) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_is_taken_again() {
        let arena = Arena::create(2).unwrap();
        let areas: Vec<Area> = (0..4).map(|_| arena.allocate(1, 10_000).unwrap()).collect();
        arena.free(1, areas[1]);
        arena.free(1, areas[2]);
        let joined = arena.allocate(1, 2 * areas[1].bytes).unwrap();
        assert_eq!(joined.offset, areas[1].offset);
        for area in [joined, areas[0], areas[3]] {
            arena.free(1, area);
        }
        assert_eq!(arena.zones.taken(1).end, 0);
        assert!(arena.zones.taken(1).free.is_empty());
    }

    #[test]
    fn freed_memory_reads_as_zero_when_taken_again() {
        let arena = Arena::create(1).unwrap();
        for _ in 0..2 {
            let area = arena.allocate(0, 1 << 20).unwrap();
            arena.commit(area).unwrap();
            let memory = arena.locate(area).unwrap();
            // SAFETY: committed, ours alone.
            let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), area.bytes) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(1);
            arena.free(0, area);
        }
    }

    #[test]
    fn two_mappings_agree_on_places() {
        let maker = Arena::create(2).unwrap();
        let memory = maker.memory().try_clone().unwrap();
        let other = Arena::map(memory, 2).unwrap();
        let area = maker.allocate(0, 64).unwrap();
        let (here, there) = (maker.locate(area).unwrap(), other.locate(area).unwrap());
        assert_ne!(here, there);
        // SAFETY: both lie in live mappings, of one page.
        unsafe { here.write(7) };
        // SAFETY: as above.
        assert_eq!(unsafe { there.read() }, 7);
        assert_eq!(maker.place_of(0, here.as_ptr(), 64), Some(area.offset));
        assert_eq!(maker.place_of(0, std::ptr::null(), 1), None);
        assert_eq!(other.place_of(1, there.as_ptr(), 1), None);
    }

    #[test]
    fn a_place_outside_of_the_zones_is_refused() {
        let arena = Arena::create(2).unwrap();
        for offset in [0, u64::MAX, 1 << 62] {
            assert!(arena.locate(Area { offset, bytes: 1 }).is_err());
        }
    }
}
