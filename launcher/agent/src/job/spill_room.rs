//! How much output may stand in files: of one stream, and of all streams of a job on this host.
//!
//! Each stream has its share of the host's room, so that one that prints much leaves the others theirs.
//! Where there are so many that a share would be too small for a few lines, they take from each other, and
//! the host's bound still holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rlaunch_wire::limits::{LINE_MAX_BYTES, OUTPUT_SPILL_HOST_MAX_BYTES, OUTPUT_SPILL_MAX_BYTES};

/// A few of the longest lines.
const STREAM_MIN_BYTES: u64 = 4 * LINE_MAX_BYTES as u64;

/// One stream's part, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    host_used: Arc<AtomicU64>,
    host_max: u64,
    used: u64,
    max: u64,
}

impl Room {
    /// Of the first of so many streams; see [`Room::another`].
    pub(crate) fn new(streams: usize) -> Self {
        let share = OUTPUT_SPILL_HOST_MAX_BYTES / (streams.max(1) as u64);
        let max = share.clamp(STREAM_MIN_BYTES, OUTPUT_SPILL_MAX_BYTES);
        Self::of(OUTPUT_SPILL_HOST_MAX_BYTES, max)
    }

    pub(super) fn of(host_max: u64, max: u64) -> Self {
        Self {
            host_used: Arc::default(),
            host_max,
            used: 0,
            max,
        }
    }

    /// Of another stream of the same host.
    pub(crate) fn another(&self) -> Self {
        Self {
            host_used: self.host_used.clone(),
            used: 0,
            ..*self
        }
    }

    pub(super) fn has(&self, bytes: u64) -> bool {
        self.used + bytes <= self.max && self.used_bytes() + bytes <= self.host_max
    }

    pub(super) fn take(&mut self, bytes: u64) {
        self.used += bytes;
        self.host_used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn give_back(&mut self, bytes: u64) {
        let bytes = bytes.min(self.used);
        self.used -= bytes;
        self.host_used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn give_back_all(&mut self) {
        self.give_back(self.used);
    }

    /// Of all streams.
    pub(super) fn used_bytes(&self) -> u64 {
        self.host_used.load(Ordering::Relaxed)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.give_back_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_the_hosts_room_and_never_more() {
        for (streams, max) in [
            (1, OUTPUT_SPILL_MAX_BYTES),
            (16, OUTPUT_SPILL_MAX_BYTES),
            (64, OUTPUT_SPILL_MAX_BYTES / 4),
            (4096, STREAM_MIN_BYTES),
        ] {
            let room = Room::new(streams);
            assert!(room.has(max) && !room.has(max + 1), "{streams}");
        }
        let host = Room::new(4096);
        let mut rooms: Vec<Room> = (0..4096).map(|_| host.another()).collect();
        let mut full = 0;
        for room in &mut rooms {
            match room.has(STREAM_MIN_BYTES) {
                true => room.take(STREAM_MIN_BYTES),
                false => full += 1,
            }
        }
        assert_eq!(host.used_bytes(), OUTPUT_SPILL_HOST_MAX_BYTES);
        assert!(full > 0);
        drop(rooms);
        assert_eq!(host.used_bytes(), 0);
    }
}
