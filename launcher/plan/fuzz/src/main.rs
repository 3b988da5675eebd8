//! libFuzzer on the targets of the garbage tests: inputs that take new ways are kept and changed
//! further.
//!
//! `RLAUNCH_FUZZ_TARGET` names the target, `RLAUNCH_FUZZ_SEEDS` a folder, one that the fuzzer reads,
//! which what is known is written to first. The rest are libFuzzer's own words. An input that broke
//! something goes to `corpus/TARGET`, a file each, and the tests hold it from then on.

#![no_main]

#[path = "../../tests/garbage/targets.rs"]
mod targets;

use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use targets::Target;

static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(init: begin(), |bytes: &[u8]| {
    if let Some(target) = TARGET.get() {
        (target.take)(bytes);
    }
});

fn begin() {
    let name = std::env::var("RLAUNCH_FUZZ_TARGET").unwrap_or_default();
    let Some(target) = targets::ALL.into_iter().find(|target| target.name == name) else {
        eprintln!("RLAUNCH_FUZZ_TARGET={name:?} is no target");
        std::process::exit(2);
    };
    if let Some(folder) = std::env::var_os("RLAUNCH_FUZZ_SEEDS") {
        let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for (number, bytes) in target.known(&plan).iter().enumerate() {
            let file = Path::new(&folder).join(format!("known-{number}"));
            if let Err(error) = std::fs::write(&file, bytes) {
                eprintln!("{}: {error}", file.display());
                std::process::exit(2);
            }
        }
    }
    let _first = TARGET.set(target);
}
