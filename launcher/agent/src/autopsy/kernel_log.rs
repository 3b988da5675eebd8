//! The kernel's log, where this user may read it: did the out-of-memory killer end this process?
//!
//! ```text
//! 3,1042,47407336692,-;Memory cgroup out of memory: Killed process 2854 (python3) total-vm:…
//! ```

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use nix::libc;

/// A record is at most 8 KiB, a buffer of the kernel rarely has more of them.
const RECORD_MAX_BYTES: usize = 8192;
const RECORDS_MAX: usize = 50_000;
/// The log's clock and the monotonic one differ by little.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(60);
/// Numbers in the log are those of the first pid namespace, which has this name.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Whether the log tells that the killer ended process `pid` after `since` on the monotonic clock.
pub(super) fn tells_of(pid: i32, since: Duration) -> bool {
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    if namespace.is_ok_and(|name| name.as_os_str() != FIRST_PID_NAMESPACE) {
        return false;
    }
    let log = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/kmsg");
    log.is_ok_and(|log| search(log, pid, since.saturating_sub(CLOCKS_APART_MAX)))
}

fn search(mut log: File, pid: i32, since: Duration) -> bool {
    let mut record = [0; RECORD_MAX_BYTES];
    for _ in 0..RECORDS_MAX {
        match log.read(&mut record) {
            Ok(0) => return false,
            Ok(bytes) => {
                if is_it(&String::from_utf8_lossy(&record[..bytes]), pid, since) {
                    return true;
                }
            }
            // EPIPE: overwritten meanwhile; the next read goes on behind.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    false
}

fn is_it(record: &str, pid: i32, since: Duration) -> bool {
    let Some((head, text)) = record.split_once(';') else {
        return false;
    };
    let stamp = head.split(',').nth(2).and_then(|text| text.parse().ok());
    let is_late = stamp.is_some_and(|stamp| Duration::from_micros(stamp) >= since);
    is_late && text.contains(&format!("Killed process {pid} ("))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_killers_words_name_the_process() {
        let record = "3,1042,47407336692,-;Memory cgroup out of memory: Killed process 2854 \
                      (python3) total-vm:114224kB, anon-rss:19328kB, oom_score_adj:0\n";
        let since = Duration::from_secs(47_000);
        assert!(is_it(record, 2854, since));
        assert!(!is_it(record, 285, since));
        assert!(
            !is_it(record, 2854, Duration::from_secs(48_000)),
            "an earlier one"
        );
        assert!(!is_it("garbage", 2854, Duration::ZERO));
    }
}
