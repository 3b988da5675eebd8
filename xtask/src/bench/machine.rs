//! One paragraph on where and when figures were taken.

use crate::{paths, sh};
use std::process::Command;

pub(super) fn describe() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |rest| {
        rest.trim_start_matches([' ', '\t', ':'])
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let date = sh::output(Command::new("date").args(["-u", "+%F %H:%M UTC"])).unwrap_or_default();
    let mut git = Command::new("git");
    git.args(["rev-parse", "--short", "HEAD"])
        .current_dir(paths::root());
    let commit = sh::output(&mut git).unwrap_or_default();
    format!(
        "{}, {cores} cores ({model}), Linux {}, load {}, commit {}.",
        date.trim(),
        kernel.trim(),
        load(),
        commit.trim()
    )
}

/// Processes that wanted to run, over the last minute: above about 0.5, figures are noise.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
