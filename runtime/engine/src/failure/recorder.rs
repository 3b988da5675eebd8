//! The flight recorder: the last operations of each communicator, readable at any time.
//!
//! One writer at a time (whoever holds the engine's lock) and any readers, which take no lock: a
//! dump must come out while a call hangs. Each entry carries a version that is odd while it is
//! written; a reader that sees it change looks again, and after a few times leaves the entry out.
//!
//! A small call that is over before its wait looks at a clock begins by the coarse one, up to 4 ms early,
//! though not before what ended before it, and took no time; the begin of one that waits is put right at
//! that look, a few microseconds late.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use rlaunch_wire::Descriptor;

use super::clock::{at, coarse_now, exact_now};

/// Operations remembered for each communicator.
pub(crate) const OPERATIONS: usize = 64;
/// An operation of so many bytes takes long beside two looks at the clock.
const EXACT_BYTES_MIN: u64 = 16 * 1024;
/// Looks at an entry that is being written.
const LOOKS: usize = 16;

/// One communicator's last operations.
#[derive(Debug)]
pub(crate) struct Recorder {
    entries: Box<[Entry]>,
    /// Operations ever begun.
    begun: AtomicU64,
    epoch: u64,
    /// The last exact time.
    latest: AtomicU64,
}

/// Names an operation for its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot(u64);

#[derive(Debug, Default)]
struct Entry {
    version: AtomicU64,
    words: [AtomicU64; WORDS],
}

const WORDS: usize = 9;
/// After the descriptor's four words.
const PEER_AND_TAG: usize = 4;
const BYTES: usize = 5;
const BEGUN_AT: usize = 6;
const ENDED_AT: usize = 7;
const STATE: usize = 8;
const NOBODY: u32 = u32::MAX;

/// How far an operation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum OperationState {
    Running = 0,
    Done = 1,
    Failed = 2,
}

/// One operation, as the flight recorder remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationRecord {
    /// What was called: communicator, number, type, count.
    pub call: Descriptor,
    /// Of send and recv; `None` for any source.
    pub peer: Option<u32>,
    /// Of send and recv; `None` for any tag.
    pub tag: Option<u32>,
    /// Payload on this rank.
    pub bytes: u64,
    pub state: OperationState,
    /// Since the world was made.
    pub begun: Duration,
    /// How long it took, or has been running by now; 0 if it had to wait for nobody.
    pub took: Duration,
}

/// What an operation is about, beside its descriptor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct About {
    pub(crate) peer: Option<u32>,
    pub(crate) tag: Option<u32>,
    pub(crate) bytes: u64,
}

impl Recorder {
    pub(crate) fn new(epoch: Instant) -> Self {
        Self {
            entries: (0..OPERATIONS).map(|_| Entry::default()).collect(),
            begun: AtomicU64::new(0),
            epoch: at(epoch),
            latest: AtomicU64::new(0),
        }
    }

    /// One writer at a time.
    #[inline]
    pub(crate) fn begin(&self, call: &Descriptor, about: About) -> Slot {
        let number = self.begun.load(Ordering::Relaxed);
        let peer_and_tag =
            u64::from(about.peer.unwrap_or(NOBODY)) << 32 | u64::from(about.tag.unwrap_or(NOBODY));
        let descriptor = call.encode();
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(descriptor.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        }
        words[PEER_AND_TAG] = peer_and_tag;
        words[BYTES] = about.bytes;
        words[BEGUN_AT] = self.now(about.bytes);
        self.entry(number).write(&words);
        self.begun.store(number + 1, Ordering::Release);
        Slot(number)
    }

    /// Exact for an operation that is long beside a look at the clock; else not before what is known.
    #[inline]
    fn now(&self, bytes: u64) -> u64 {
        if bytes >= EXACT_BYTES_MIN {
            self.note(exact_now())
        } else {
            coarse_now().max(self.latest.load(Ordering::Relaxed))
        }
    }

    fn note(&self, now: u64) -> u64 {
        self.latest.store(now, Ordering::Relaxed);
        now
    }

    /// The operation waits: it has begun about now, if its begin is not known exactly.
    pub(crate) fn wait(&self, slot: Slot) {
        let entry = self.entry(slot.0);
        let is_exact = entry.words[BYTES].load(Ordering::Relaxed) >= EXACT_BYTES_MIN;
        if self.remembers(slot) && !is_exact {
            let now = self.note(exact_now());
            entry.change(|words| words[BEGUN_AT].store(now, Ordering::Relaxed));
        }
    }

    /// One writer at a time. An operation that was overwritten meanwhile is left alone. `has_waited`:
    /// its begin was put right.
    #[inline]
    pub(crate) fn end(&self, slot: Slot, is_ok: bool, has_waited: bool) {
        if !self.remembers(slot) {
            return;
        }
        let state = if is_ok {
            OperationState::Done
        } else {
            OperationState::Failed
        };
        let entry = self.entry(slot.0);
        let is_exact = entry.words[BYTES].load(Ordering::Relaxed) >= EXACT_BYTES_MIN;
        let ended_at = (has_waited || is_exact).then(|| self.note(exact_now()));
        entry.change(|words| {
            let ended_at = ended_at.unwrap_or_else(|| words[BEGUN_AT].load(Ordering::Relaxed));
            words[ENDED_AT].store(ended_at, Ordering::Relaxed);
            words[STATE].store(state as u64, Ordering::Relaxed);
        });
    }

    fn remembers(&self, slot: Slot) -> bool {
        self.begun.load(Ordering::Relaxed) - slot.0 <= OPERATIONS as u64
    }

    /// The operations remembered, oldest first.
    pub(crate) fn records(&self) -> Vec<OperationRecord> {
        let begun = self.begun.load(Ordering::Acquire);
        let oldest = begun.saturating_sub(OPERATIONS as u64);
        let now = exact_now();
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        (oldest..begun)
            .filter_map(|number| {
                let words = self.entry(number).read()?;
                let mut descriptor = [0; Descriptor::BYTES];
                for (bytes, word) in descriptor.chunks_exact_mut(8).zip(words) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
                let state = match words[STATE] {
                    1 => OperationState::Done,
                    2 => OperationState::Failed,
                    _ => OperationState::Running,
                };
                let ended = match state {
                    OperationState::Running => now,
                    _ => words[ENDED_AT],
                };
                let known = |value: u64| Some(value as u32).filter(|value| *value != NOBODY);
                Some(OperationRecord {
                    call: Descriptor::decode(&descriptor)?,
                    peer: known(words[PEER_AND_TAG] >> 32),
                    tag: known(words[PEER_AND_TAG] & u64::from(NOBODY)),
                    bytes: words[BYTES],
                    state,
                    begun: between(self.epoch, words[BEGUN_AT]),
                    took: between(words[BEGUN_AT], ended),
                })
            })
            .collect()
    }

    /// The latest call that was begun and is not over.
    pub(crate) fn last_running(&self) -> Option<Descriptor> {
        let records = self.records().into_iter().rev();
        let mut running = records.filter(|record| record.state == OperationState::Running);
        running.next().map(|record| record.call)
    }

    /// The latest call, over or not.
    pub(crate) fn last(&self) -> Option<Descriptor> {
        self.records().last().map(|record| record.call)
    }

    #[inline]
    fn entry(&self, number: u64) -> &Entry {
        &self.entries[number as usize % OPERATIONS]
    }
}

impl Entry {
    #[inline]
    fn write(&self, words: &[u64; WORDS]) {
        self.change(|places| {
            for (place, word) in places.iter().zip(words) {
                place.store(*word, Ordering::Relaxed);
            }
        });
    }

    #[inline]
    fn change(&self, change: impl FnOnce(&[AtomicU64; WORDS])) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        change(&self.words);
        self.version.store(version + 2, Ordering::Release);
    }

    /// `None` while it is being written, or was never.
    fn read(&self) -> Option<[u64; WORDS]> {
        (0..LOOKS).find_map(|_| {
            let version = self.version.load(Ordering::Acquire);
            let words = std::array::from_fn(|index| self.words[index].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            let is_whole = version.is_multiple_of(2)
                && version > 0
                && self.version.load(Ordering::Relaxed) == version;
            is_whole.then_some(words)
        })
    }
}

/// `done    12.345 s   0.000123 s  all_reduce #3 of 100 float32, sum (400 bytes)`
impl fmt::Display for OperationRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            OperationState::Running => "running",
            OperationState::Done => "done",
            OperationState::Failed => "failed",
        };
        let (begun, took) = (self.begun.as_secs_f64(), self.took.as_secs_f64());
        write!(
            f,
            "{state:<7} at {begun:>11.6} s for {took:>10.6} s  {}",
            self.call
        )?;
        if let Some(peer) = self.peer {
            write!(f, ", peer {peer}")?;
        }
        if let Some(tag) = self.tag {
            write!(f, ", tag {tag}")?;
        }
        write!(f, " ({} bytes)", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use rlaunch_wire::{Collective, DType};

    use super::*;

    fn call(sequence: u64) -> Descriptor {
        Descriptor {
            communicator: 3,
            sequence,
            collective: Collective::AllReduce,
            dtype: DType::F32,
            op: None,
            root: 0,
            digest: 0,
            count: sequence,
        }
    }

    #[test]
    fn the_last_operations_are_there_in_order() {
        let recorder = Recorder::new(Instant::now());
        for number in 0..100 {
            let bytes = number * 4;
            let tag = (number % 2 == 0).then_some(number as u32);
            let about = About {
                bytes,
                tag,
                peer: None,
            };
            let slot = recorder.begin(&call(number), about);
            if number != 99 {
                recorder.end(slot, number != 98, false);
            }
        }
        let records = recorder.records();
        assert_eq!(records.len(), OPERATIONS);
        for (record, number) in records.iter().zip(36..) {
            assert_eq!(record.call, call(number));
            assert_eq!(record.bytes, number * 4);
            assert_eq!(record.tag.is_some(), number % 2 == 0);
            assert_eq!(record.peer, None);
        }
        let states: Vec<_> = records[61..].iter().map(|record| record.state).collect();
        use OperationState::{Done, Failed, Running};
        assert_eq!(states, [Done, Failed, Running]);
        assert!(records.windows(2).all(|two| two[0].begun <= two[1].begun));
        assert!(
            records[63].to_string().contains("running"),
            "{}",
            records[63]
        );
    }

    #[test]
    fn times_are_those_of_the_clock() {
        let recorder = Recorder::new(Instant::now());
        let slot = recorder.begin(&call(0), About::default());
        let begin = Instant::now();
        recorder.wait(slot);
        std::thread::sleep(Duration::from_millis(20));
        recorder.end(slot, true, true);
        let took = recorder.records()[0].took;
        let longest = begin.elapsed() + Duration::from_millis(5);
        assert!(
            took >= Duration::from_millis(18) && took < longest,
            "{took:?}"
        );
    }

    #[test]
    fn an_end_that_comes_too_late_harms_nobody() {
        let recorder = Recorder::new(Instant::now());
        let late = recorder.begin(&call(0), About::default());
        for number in 1..=OPERATIONS as u64 {
            recorder.begin(&call(number), About::default());
        }
        recorder.end(late, false, true);
        let is_running = |record: &OperationRecord| record.state == OperationState::Running;
        assert!(recorder.records().iter().all(is_running));
    }

    #[test]
    fn a_reader_never_sees_a_torn_entry() {
        const ROUNDS: u64 = if cfg!(miri) { 200 } else { 20_000 };
        let recorder = Recorder::new(Instant::now());
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for number in 0..ROUNDS {
                    let bytes = number;
                    let about = About {
                        bytes,
                        ..About::default()
                    };
                    let slot = recorder.begin(&call(number), about);
                    recorder.end(slot, true, number % 2 == 0);
                }
            });
            while !writer.is_finished() {
                for record in recorder.records() {
                    assert_eq!(record.call.count, record.bytes);
                    assert_eq!(record.call.sequence, record.bytes);
                }
            }
        });
    }
}
