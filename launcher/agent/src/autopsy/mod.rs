//! What the host knows of a rank's end that its wait status does not tell.
//!
//! SIGKILL is the out-of-memory killer's and everybody else's; SIGBUS comes of a full `/dev/shm` and
//! of a file that shrank. Both leave traces that fade: a counter rises, free space comes back as
//! the dead process's memory is freed. So [`Autopsy::sample`] looks every second while the job
//! runs, and [`Autopsy::findings`] compares. Nothing is claimed without evidence, and a host that
//! shows none of this (no cgroups, no `/dev/kmsg`) has no findings.

mod kernel_log;
mod memory_group;

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::statvfs::statvfs;
use nix::time::{ClockId, clock_gettime};
use rlaunch_control::v1::{DeviceHolder, Findings, OutOfMemory, SharedMemory};

use crate::devices::Gpus;
use memory_group::MemoryGroup;

/// One a second. A data loader tells of its killed worker within 5 s.
const SAMPLES_MAX: usize = 10;
/// Looking through all processes takes its time.
const HOLDERS_FRESH: Duration = Duration::from_secs(1);

pub(crate) struct Autopsy {
    group: Option<MemoryGroup>,
    samples: VecDeque<Sample>,
    /// On the kernel's clock.
    began: Duration,
    /// Who holds GPUs, and when that was looked at: ranks fail together.
    holders: Option<(Instant, Vec<DeviceHolder>)>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Processes of the group that the out-of-memory killer ended so far.
    oom_kills: u64,
    shm_free_bytes: u64,
}

impl Autopsy {
    /// At the job's start, before any rank runs.
    pub(crate) fn begin() -> Self {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
        let mut autopsy = Self {
            group: MemoryGroup::own(),
            samples: VecDeque::new(),
            began: now.map_or(Duration::ZERO, Duration::from),
            holders: None,
        };
        autopsy.sample();
        autopsy
    }

    pub(crate) fn sample(&mut self) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        let sample = self.look();
        self.samples.push_back(sample);
    }

    /// Of a process that ended by `status` just now, not by us.
    pub(crate) fn findings(&mut self, pid: i32, status: libc::c_int) -> Findings {
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        let is_failure = signal.is_some() || libc::WEXITSTATUS(status) != 0;
        if !is_failure {
            return Findings::default();
        }
        let bus = signal == Some(libc::SIGBUS)
            || (signal.is_none() && libc::WEXITSTATUS(status) == 128 + libc::SIGBUS);
        Findings {
            out_of_memory: self.out_of_memory(pid, signal == Some(libc::SIGKILL)),
            shared_memory: if bus { self.shared_memory() } else { None },
            core_pattern: if signal.is_some() && libc::WCOREDUMP(status) {
                read_word("/proc/sys/kernel/core_pattern")
            } else {
                String::new()
            },
            device_holders: self.device_holders(),
        }
    }

    fn device_holders(&mut self) -> Vec<DeviceHolder> {
        let now = Instant::now();
        match &self.holders {
            Some((at, holders)) if now < *at + HOLDERS_FRESH => holders.clone(),
            _ => {
                let holders = Gpus::of_this_machine().holders(nix::unistd::getpid().as_raw());
                self.holders.insert((now, holders)).1.clone()
            }
        }
    }

    fn out_of_memory(&self, pid: i32, killed: bool) -> Option<OutOfMemory> {
        let limit_bytes = self.group.as_ref().and_then(MemoryGroup::limit_bytes);
        let found = |is_rank| OutOfMemory {
            is_rank,
            limit_bytes: limit_bytes.unwrap_or(0),
        };
        if killed && kernel_log::tells_of(pid, self.began) {
            return Some(found(true));
        }
        let before = self.samples.front()?.oom_kills;
        (self.look().oom_kills > before).then(|| found(false))
    }

    fn shared_memory(&self) -> Option<SharedMemory> {
        let now = statvfs(SHM).ok()?;
        let least = self.samples.iter().map(|sample| sample.shm_free_bytes);
        let least = least.min().unwrap_or(u64::MAX);
        Some(SharedMemory {
            size_bytes: now.blocks() * now.fragment_size(),
            free_bytes: least.min(now.blocks_available() * now.fragment_size()),
        })
    }

    fn look(&self) -> Sample {
        let shm = statvfs(SHM).ok();
        Sample {
            oom_kills: self.group.as_ref().map_or(0, MemoryGroup::oom_kills),
            shm_free_bytes: shm
                .map_or(u64::MAX, |shm| shm.blocks_available() * shm.fragment_size()),
        }
    }
}

const SHM: &str = "/dev/shm";

fn read_word(path: impl AsRef<Path>) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}
