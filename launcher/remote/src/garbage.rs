//! Everything here that parses text of others (ssh, its files, hosts), fed with anything: no panic,
//! no hang, and what must hold of any input.
//!
//! For the tests, which take what the fuzzer found telling (`fuzz/corpus`) as it is and changed at
//! random, and for the fuzzer (`launcher/remote/fuzz`), which looks for inputs that take new ways.

use std::path::Path;

use crate::bootstrap;
use crate::settings;
use crate::ssh;
use crate::words;

pub struct Target {
    pub name: &'static str,
    /// Panics where what must hold does not.
    pub take: fn(&[u8]),
}

pub const ALL: [Target; 4] = [
    Target {
        name: "ssh_config",
        take: ssh_config,
    },
    Target {
        name: "known_hosts",
        take: known_hosts,
    },
    Target {
        name: "key_file",
        take: key_file,
    },
    Target {
        name: "greeting",
        take: greeting,
    },
];

/// What `ssh -G` prints, a configuration file, a command line.
fn ssh_config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    settings::take_garbage(&text);
    if let Some(split) = words::split(&text) {
        assert!(!split.is_empty());
    }
}

fn known_hosts(bytes: &[u8]) {
    ssh::take_garbage_hosts(&String::from_utf8_lossy(bytes));
}

fn key_file(bytes: &[u8]) {
    ssh::take_garbage_key(&String::from_utf8_lossy(bytes));
}

fn greeting(bytes: &[u8]) {
    bootstrap::take_garbage(bytes);
}

/// Files of `fuzz/corpus/TARGET`.
pub fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let folder = folder.join(target.name);
    let entries = std::fs::read_dir(&folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let read = |path: &_| std::fs::read(path).expect("a file of the corpus");
    files.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// SplitMix64.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).unwrap()
        }

        /// Bytes that mean something, pieces cut, doubled, moved, taken from another input.
        fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
            const TELLING: &[u8] = b" \t\n\r=\"'#%~*?!|@,:;[]{}$\\\0\xff0aZ";
            for _ in 0..=self.below(4) {
                let at = self.below(bytes.len() + 1);
                match self.below(6) {
                    0 if at < bytes.len() => bytes[at] = TELLING[self.below(TELLING.len())],
                    1 => bytes.truncate(at),
                    2 => bytes.extend_from_within(at..),
                    3 => bytes.insert(at, TELLING[self.below(TELLING.len())]),
                    4 => bytes.rotate_left(at),
                    _ => bytes.extend(&other[self.below(other.len() + 1)..]),
                }
                bytes.truncate(4096);
            }
        }
    }

    #[test]
    fn anything_is_understood_or_refused() {
        let seconds = std::env::var("RLAUNCH_GARBAGE_SECONDS").ok();
        let seconds = seconds.map_or(0.2, |text| text.parse().unwrap());
        for target in ALL {
            let known = corpus(&target);
            assert!(known.len() > 2, "{}", target.name);
            known.iter().for_each(|bytes| (target.take)(bytes));
            let (mut random, mut count) = (Random(1), 0u64);
            let end = Instant::now() + Duration::from_secs_f64(seconds);
            while Instant::now() < end {
                let mut bytes = known[random.below(known.len())].clone();
                let other = random.below(known.len());
                random.change(&mut bytes, &known[other]);
                (target.take)(&bytes);
                count += 1;
            }
            println!("{}: {} known, {count} changed", target.name, known.len());
        }
    }
}
