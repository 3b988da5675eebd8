//! What people and schedulers may write: everything that parses text of others is fed with the
//! hostfiles of the repository, with what the fuzzer found telling (`fuzz/corpus`), and with both
//! changed at random. `targets` has what must hold.
//!
//! `RLAUNCH_GARBAGE_SECONDS` says how long each test goes on; else it is a moment.
#![expect(
    clippy::disallowed_methods,
    reason = "a test that reads files and the clock; the crate does not"
)]

mod targets;

use std::path::Path;
use std::time::{Duration, Instant};

use targets::Target;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }

    /// One to four changes: bytes that mean something here, pieces cut, doubled, of another input.
    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        const TELLING: &[u8] = b"[]-,:@=#/\"' \t\r\n0129*?.%$\\\0\xff\xc3x";
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let byte = TELLING[self.below(TELLING.len())];
            match self.below(5) {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at),
                3 if at < bytes.len() => drop(bytes.remove(at)),
                _ => {
                    let from = self.below(other.len() + 1);
                    bytes.splice(at..at, other[from..].iter().take(40).copied());
                    bytes.truncate(4096);
                }
            }
        }
    }
}

/// Feeds what is known as it is, then changed for a while.
fn feed(target: &Target) {
    let seconds = std::env::var("RLAUNCH_GARBAGE_SECONDS").ok();
    let seconds = seconds.map_or(0.3, |text| text.parse().expect("RLAUNCH_GARBAGE_SECONDS"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let known = target.known(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(!known.is_empty(), "{}: nothing to begin with", target.name);
    let mut random = Random(1);
    let mut count = 0_u64;
    known.iter().for_each(|bytes| (target.take)(bytes));
    while Instant::now() < end {
        let mut bytes = known[random.below(known.len())].clone();
        let other = &known[random.below(known.len())];
        random.change(&mut bytes, other);
        (target.take)(&bytes);
        count += 1;
    }
    println!("{}: {} known, {count} changed", target.name, known.len());
}

#[test]
fn hostfiles_are_understood_exactly_or_not_at_all() {
    feed(&targets::ALL[0]);
}

#[test]
fn hostfiles_in_toml_too() {
    feed(&targets::ALL[1]);
}

#[test]
fn lists_of_hosts_name_hosts() {
    feed(&targets::ALL[2]);
}

#[test]
fn lists_of_nodes_name_nodes() {
    feed(&targets::ALL[3]);
}

#[test]
fn variables_are_such_as_a_process_can_have() {
    feed(&targets::ALL[4]);
}
