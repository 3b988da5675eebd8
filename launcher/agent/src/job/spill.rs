//! Output that the launcher has no credit for: first in memory, then in an unlinked file, then
//! not read any more, so that the printing rank waits.
//!
//! First in, first out. Of the file, what was given out is punched out again, so that its size on
//! disk is what still waits. A full disk is the same as a full spill, and a disk counts as full
//! while others still have [`SPILL_FREE_MIN_BYTES`] of it. What may stand in the files of one stream
//! and of a whole host is the [`Room`]'s to say; a stream of which nothing stands there is read, whatever
//! others have used up.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::sys::statvfs::fstatvfs;
use rlaunch_wire::limits::{LINE_MAX_BYTES, SPILL_FREE_MIN_BYTES};

use super::spill_room::Room;

/// Held in memory before the file is touched: what a reader that is only slow needs.
const MEMORY_MAX_BYTES: usize = 256 * 1024;
/// Punched out at a time.
const PUNCH_BYTES: u64 = 1 << 20;
/// What one more read can complete.
const COMPLETED_MAX_BYTES: u64 = 2 * LINE_MAX_BYTES as u64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) data: Vec<u8>,
    pub(crate) partial: bool,
    pub(crate) time_us: i64,
}

#[derive(Debug)]
pub(crate) struct Spill {
    room: Room,
    memory: VecDeque<Item>,
    memory_bytes: usize,
    file: Option<File>,
    /// What stands in the file, in order; all younger than what stands in memory, except what
    /// came after the disk was full.
    records: VecDeque<Record>,
    /// Where the next record goes.
    tail: u64,
    punched: u64,
    /// The file could not be made or written: what came after stands here and nothing more is
    /// taken until it is gone.
    overflow: VecDeque<Item>,
}

#[derive(Debug)]
struct Record {
    at: u64,
    len: usize,
    partial: bool,
    time_us: i64,
}

impl Spill {
    pub(crate) fn new(room: Room) -> Self {
        Self {
            room,
            memory: VecDeque::new(),
            memory_bytes: 0,
            file: None,
            records: VecDeque::new(),
            tail: 0,
            punched: 0,
            overflow: VecDeque::new(),
        }
    }

    /// May more be read? Leaves room for what one more read can complete; what does not fit all the
    /// same, since another stream took that room meanwhile, stands in memory and ends the reading.
    pub(crate) fn has_room(&self) -> bool {
        let needs_none = self.records.is_empty() && self.memory_bytes < MEMORY_MAX_BYTES;
        self.overflow.is_empty() && (needs_none || self.room.has(COMPLETED_MAX_BYTES))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.records.is_empty() && self.overflow.is_empty()
    }

    pub(crate) fn push(&mut self, item: Item) {
        if !self.overflow.is_empty() {
            return self.overflow.push_back(item);
        }
        let fits =
            self.memory.is_empty() || self.memory_bytes + item.data.len() <= MEMORY_MAX_BYTES;
        if self.records.is_empty() && fits {
            self.memory_bytes += item.data.len();
            return self.memory.push_back(item);
        }
        if self.write(&item).is_err() {
            self.overflow.push_back(item);
        }
    }

    /// Length of what [`Spill::pop`] would give.
    pub(crate) fn front_len(&self) -> Option<usize> {
        if let Some(item) = self.memory.front() {
            return Some(item.data.len());
        }
        if let Some(record) = self.records.front() {
            return Some(record.len);
        }
        self.overflow.front().map(|item| item.data.len())
    }

    pub(crate) fn pop(&mut self) -> io::Result<Option<Item>> {
        if let Some(item) = self.memory.pop_front() {
            self.memory_bytes -= item.data.len();
            return Ok(Some(item));
        }
        if let Some(record) = self.records.pop_front() {
            return self.read(&record).map(Some);
        }
        Ok(self.overflow.pop_front())
    }

    fn write(&mut self, item: &Item) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(unlinked_file()?);
        }
        let file = self.file.as_ref().expect("made above");
        let end = self.tail + item.data.len() as u64;
        if end / PUNCH_BYTES > self.tail / PUNCH_BYTES && !leaves_room(file) {
            return Err(Errno::ENOSPC.into());
        }
        let len = item.data.len() as u64;
        if !self.room.has(len) {
            return Err(Errno::EDQUOT.into());
        }
        file.write_all_at(&item.data, self.tail)?;
        self.room.take(len);
        let (partial, time_us) = (item.partial, item.time_us);
        self.records.push_back(Record {
            at: self.tail,
            len: item.data.len(),
            partial,
            time_us,
        });
        self.tail += len;
        Ok(())
    }

    fn read(&mut self, record: &Record) -> io::Result<Item> {
        let mut data = vec![0; record.len];
        let file = self.file.as_ref().expect("a record stands in a file");
        file.read_exact_at(&mut data, record.at)?;
        if self.records.is_empty() {
            // From the start again; what fails here only costs disk.
            file.set_len(0).ok();
            (self.tail, self.punched) = (0, 0);
            self.room.give_back_all();
        } else {
            self.punch(record.at + record.len as u64);
        }
        Ok(Item {
            data,
            partial: record.partial,
            time_us: record.time_us,
        })
    }

    /// A file system that cannot punch keeps the bytes, and `punched` stays, so the bound holds.
    fn punch(&mut self, done: u64) {
        let len = done - self.punched;
        if len < PUNCH_BYTES {
            return;
        }
        let file = self.file.as_ref().expect("a record stands in a file");
        let mode = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let (Ok(offset), Ok(bytes)) = (self.punched.try_into(), len.try_into()) else {
            return;
        };
        if fallocate(file, mode, offset, bytes).is_ok() {
            self.punched = done;
            self.room.give_back(len);
        }
    }
}

/// Where the file system says nothing of its room, there is some until a write fails.
fn leaves_room(file: &File) -> bool {
    fstatvfs(file).map_or(true, |found| {
        found
            .blocks_available()
            .saturating_mul(found.fragment_size())
            >= SPILL_FREE_MIN_BYTES
    })
}

/// On a disk if there is one to write on; else where files are memory.
fn unlinked_file() -> io::Result<File> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    let mut folders = [std::env::temp_dir(), "/var/tmp".into(), "/tmp".into()];
    folders.sort_by_key(|folder| is_memory(folder));
    for folder in folders {
        match unlinked_in(&folder) {
            Ok(file) => return Ok(file),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn is_memory(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC)
}

fn unlinked_in(folder: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
        Ok(file) => Ok(file),
        // A file system without O_TMPFILE.
        Err(_) => {
            let path = folder.join(format!(".rlaunch-spill-{}", crate::random::hex::<8>()));
            let file = options.create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
    }
}

#[cfg(test)]
mod tests {
    use rlaunch_wire::limits::OUTPUT_SPILL_MAX_BYTES as STREAM_MAX_BYTES;

    use super::*;

    fn item(number: i64, len: usize) -> Item {
        let data = (0..len)
            .map(|at| u8::try_from((at as i64 + number) % 251).unwrap())
            .collect();
        Item {
            data,
            partial: number % 3 == 0,
            time_us: number,
        }
    }

    #[test]
    fn what_goes_in_comes_out_in_order_through_memory_and_file() {
        let mut spill = Spill::new(Room::new(1));
        let (mut pushed, mut popped) = (0, 0);
        // More in than out, then all out, twice, so that the file starts again.
        for _ in 0..2 {
            for _ in 0..100 {
                for _ in 0..3 {
                    spill.push(item(pushed, 40_000 + usize::try_from(pushed).unwrap()));
                    pushed += 1;
                }
                let len = spill.front_len().unwrap();
                let got = spill.pop().unwrap().unwrap();
                assert_eq!(got.data.len(), len);
                assert_eq!(got, item(popped, 40_000 + usize::try_from(popped).unwrap()));
                popped += 1;
            }
            assert!(spill.tail - spill.punched < STREAM_MAX_BYTES);
            while let Some(got) = spill.pop().unwrap() {
                assert_eq!(got, item(popped, 40_000 + usize::try_from(popped).unwrap()));
                popped += 1;
            }
            assert!(spill.is_empty() && spill.tail == 0);
        }
        assert_eq!(pushed, popped);
    }

    #[test]
    fn the_file_has_a_bound_and_reading_makes_room() {
        let mut spill = Spill::new(Room::new(1));
        let mut count = 0;
        while spill.has_room() {
            spill.push(item(0, 1 << 20));
            count += 1;
            assert!(count < 100, "no bound");
        }
        assert!(spill.tail <= STREAM_MAX_BYTES);
        for _ in 0..count - 1 {
            spill.pop().unwrap().unwrap();
        }
        assert!(spill.has_room());
    }

    #[test]
    fn a_full_disk_loses_nothing_and_takes_no_more() {
        let mut spill = Spill {
            file: Some(File::options().write(true).open("/dev/full").unwrap()),
            ..Spill::new(Room::new(1))
        };
        for number in 0..4 {
            spill.push(item(number, 200_000));
        }
        assert!(!spill.has_room());
        for number in 0..4 {
            assert_eq!(spill.pop().unwrap().unwrap(), item(number, 200_000));
        }
        assert!(spill.has_room() && spill.is_empty());
    }
    /// Of two streams that share the host's room, one prints all of it full. The other one is read as
    /// long as nothing of it has to go there, waits then, and nothing is lost.
    #[test]
    fn the_host_has_a_bound_and_only_who_prints_past_it_waits() {
        const HOST_BYTES: u64 = 8 << 20;
        let room = Room::of(HOST_BYTES, HOST_BYTES);
        let mut loud = Spill::new(room.another());
        let mut quiet = Spill::new(room.another());
        let mut count = 0;
        while loud.has_room() {
            loud.push(item(count, 1 << 20));
            count += 1;
            assert!(count < 100, "no bound");
        }
        assert!(room.used_bytes() <= HOST_BYTES);
        for number in 0..3 {
            assert!(quiet.has_room(), "{number} items of little");
            quiet.push(item(number, 60_000));
        }
        for number in 3..9 {
            quiet.push(item(number, 1 << 20));
        }
        assert!(!quiet.has_room() && room.used_bytes() <= HOST_BYTES);
        for number in 0..count {
            assert_eq!(loud.pop().unwrap().unwrap(), item(number, 1 << 20));
        }
        for number in 0..9 {
            assert_eq!(quiet.pop().unwrap().unwrap().time_us, number);
        }
        assert!(quiet.has_room() && quiet.is_empty() && loud.is_empty());
        assert_eq!(room.used_bytes(), 0);
        loud.push(item(0, 1 << 20));
        loud.push(item(1, 1 << 20));
        assert_ne!(room.used_bytes(), 0);
        drop(loud);
        assert_eq!(room.used_bytes(), 0, "of a stream that ended otherwise");
    }
}
