//! Who else held the GPUs of the causing rank's host: told where the rank's own words are about a GPU.
//! A host that is shared has such holders at any time, and most failures have nothing to do with them.

use super::Verdict;
use super::why::{DeviceHolder, Why};
use crate::text::{clip, show};

/// In lower case.
const WORDS: [&str; 4] = ["cuda", "gpu", "nccl", "nvidia"];
const SHOWN_MAX: usize = 3;

/// One line for each holder, and what to try; none where the failure is about something else.
pub(super) fn told(verdict: &Verdict) -> Option<(Vec<String>, String)> {
    let holders = &verdict.findings.device_holders;
    if holders.is_empty() || !speaks_of_gpus(verdict) {
        return None;
    }
    let shown = &holders[..holders.len().min(SHOWN_MAX)];
    let mut lines: Vec<String> = shown.iter().map(line).collect();
    if holders.len() > shown.len() {
        lines.push(format!("and {} more", holders.len() - shown.len()));
    }
    let pids: Vec<String> = shown.iter().map(|holder| holder.pid.to_string()).collect();
    let pids = pids.join(" ");
    let hint = format!(
        "if nobody needs it any more, `kill {pids}` there frees the GPU; `rlaunch reap` finds what \
         jobs have left"
    );
    Some((lines, hint))
}

fn line(holder: &DeviceHolder) -> String {
    let DeviceHolder {
        pid,
        command,
        devices,
    } = holder;
    let devices: Vec<String> = devices.iter().map(|device| show(device)).collect();
    format!(
        "pid {pid} there, not of this job, holds {}: {}",
        devices.join(", "),
        clip(command)
    )
}

fn speaks_of_gpus(verdict: &Verdict) -> bool {
    let speaks = |text: &str| {
        let text = text.to_ascii_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    };
    let error = match &verdict.why {
        Some(Why::PythonError { line }) => Some(line.as_str()),
        _ => None,
    };
    let lines = verdict.last_lines.iter().map(|line| line.text.as_str());
    error.into_iter().chain(lines).any(speaks)
}
