//! What strangers, damaged wires and other versions may send: everything that parses bytes of others
//! is fed with valid messages, with what the fuzzer found telling (`fuzz/corpus`), and with both
//! changed at random. `targets` has what may not happen.
//!
//! A run is repeated by its seed. `RLAUNCH_GARBAGE_SECONDS` says how long each test goes on
//! (`cargo x check --deep` does); else it is a moment.

mod targets;

use std::time::{Duration, Instant};

use targets::Target;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// One to four changes: bits, bytes that matter in many formats, pieces cut, doubled, moved.
    fn change(&mut self, bytes: &mut Vec<u8>) {
        const TELLING: [u8; 8] = [0, 1, 0x7F, 0x80, 0xFF, 0xFE, b'\n', 0x0A];
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(6) {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                1 if !bytes.is_empty() => bytes[at] = TELLING[self.below(TELLING.len())],
                2 => bytes.truncate(at),
                3 => {
                    let piece = bytes[at..].to_vec();
                    bytes.extend_from_slice(&piece);
                    bytes.truncate(4096);
                }
                4 => bytes.insert(at, self.next() as u8),
                _ if !bytes.is_empty() => bytes.rotate_left(at),
                _ => {}
            }
        }
    }
}

/// Feeds what is known as it is, then changed for a while.
fn feed(target: &Target) {
    let seconds = std::env::var("RLAUNCH_GARBAGE_SECONDS").ok();
    let seconds = seconds.map_or(0.2, |text| text.parse().expect("RLAUNCH_GARBAGE_SECONDS"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let known = target.known();
    let mut random = Random(1);
    let mut count = 0_u64;
    known.iter().for_each(|bytes| (target.take)(bytes));
    while Instant::now() < end {
        let mut bytes = known[random.below(known.len())].clone();
        random.change(&mut bytes);
        (target.take)(&bytes);
        count += 1;
    }
    println!("{}: {} known, {count} changed", target.name, known.len());
}

#[test]
fn descriptors_are_understood_exactly_or_not_at_all() {
    feed(&targets::DESCRIPTOR);
}

#[test]
fn message_headers_are_understood_exactly_or_not_at_all() {
    feed(&targets::HEADER);
}

#[test]
fn frames_are_understood_exactly_or_not_at_all() {
    feed(&targets::FRAME);
}

#[test]
fn messages_between_rank_and_agent_survive_any_bytes() {
    feed(&targets::MESSAGE);
}

/// A stranger who says all that can be said without the secret is never let in, whatever follows.
#[test]
fn an_acceptor_believes_nobody_without_the_secret() {
    feed(&targets::ACCEPTOR);
}

#[test]
fn a_connector_believes_no_reply_without_the_secret() {
    feed(&targets::CONNECTOR);
}
