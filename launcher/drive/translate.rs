//! From an agent's words to the supervisor's events. Pure.

use rlaunch_control::v1::{self, from_agent::Message};
use rlaunch_plan::exit_code;
use rlaunch_plan::supervise::{Ending, Event};
use rlaunch_plan::verdict::{DeviceHolder, Findings, OutOfMemory, SharedMemory, Victim};

use super::launch::lossy;
use crate::output::Stream;

/// What a message means for the supervisor; none if it is not its business.
pub(super) fn event(host: usize, message: Message) -> Option<Event> {
    Some(match message {
        Message::Started(v1::Started {
            rank,
            pid,
            host_time_us,
            ..
        }) => Event::Started {
            rank,
            pid,
            host_time_us,
        },
        Message::Exited(exited) => ended(exited),
        Message::Stopped(v1::Stopped {
            rank,
            signal,
            continued,
        }) => Event::Stopped {
            rank,
            signal,
            continued,
        },
        Message::Left(v1::Left { rank }) => Event::Left { rank },
        Message::LaunchFailed(v1::LaunchFailed {
            rank,
            what,
            path,
            errno,
        }) => Event::LaunchFailed {
            rank,
            what,
            path: lossy(&path),
            errno,
        },
        Message::Leftover(v1::Leftover {
            pid,
            command,
            state,
            why,
        }) => Event::Leftover {
            host,
            pid,
            command,
            state,
            why,
        },
        Message::Finished(_) => Event::Finished { host },
        _ => return None,
    })
}

fn ended(exited: v1::Exited) -> Event {
    let ending = match exited.how {
        Some(v1::exited::How::Code(code)) => Ending::Code(code),
        Some(v1::exited::How::Signal(signal)) => Ending::Signal(signal),
        // Never sent; must not read as success.
        None => Ending::Code(i32::from(exit_code::LAUNCHER)),
    };
    let v1::Exited {
        rank,
        core_dumped,
        by_us,
        keeper_killed,
        host_time_us,
        findings,
        ..
    } = exited;
    Event::Exited {
        rank,
        ending,
        core_dumped,
        by_us,
        keeper_killed,
        host_time_us,
        findings: found(findings.unwrap_or_default()),
    }
}

fn found(findings: v1::Findings) -> Findings {
    let v1::Findings {
        out_of_memory,
        shared_memory,
        core_pattern,
        device_holders,
    } = findings;
    Findings {
        oom: out_of_memory.map(|found| OutOfMemory {
            victim: if found.is_rank {
                Victim::Rank
            } else {
                Victim::Group
            },
            limit_bytes: Some(found.limit_bytes).filter(|limit| *limit > 0),
        }),
        shm: shared_memory.map(|found| SharedMemory {
            size_bytes: found.size_bytes,
            free_bytes: found.free_bytes,
        }),
        core_pattern: Some(core_pattern).filter(|pattern| !pattern.is_empty()),
        device_holders: device_holders
            .into_iter()
            .map(|holder| DeviceHolder {
                pid: holder.pid,
                command: holder.command,
                devices: holder.devices,
            })
            .collect(),
    }
}

/// Of the number on the wire.
pub(super) fn stream(number: i32) -> Stream {
    if number == v1::OutputStream::Stderr as i32 {
        Stream::Stderr
    } else {
        Stream::Stdout
    }
}

/// The rank that a message is about.
pub(super) fn rank_of(message: &Message) -> Option<u32> {
    match message {
        Message::Started(it) => Some(it.rank),
        Message::Output(it) => Some(it.rank),
        Message::OutputEnd(it) => Some(it.rank),
        Message::Exited(it) => Some(it.rank),
        Message::Stopped(it) => Some(it.rank),
        Message::Joined(it) => Some(it.rank),
        Message::Left(it) => Some(it.rank),
        Message::Overdue(it) => Some(it.rank),
        Message::LaunchFailed(it) => Some(it.rank),
        Message::StdinTaken(it) => Some(it.rank),
        Message::Broadcast(it) => Some(it.from),
        Message::Heartbeat(_)
        | Message::Leftover(_)
        | Message::Log(_)
        | Message::Suspended(_)
        | Message::Reaped(_)
        | Message::Finished(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report that says nothing of how must not read as success.
    #[test]
    fn an_ending_without_a_code_is_no_success() {
        let exited = v1::Exited {
            rank: 1,
            pid: 2,
            ..v1::Exited::default()
        };
        match event(0, Message::Exited(exited)) {
            Some(Event::Exited {
                ending: Ending::Code(code),
                ..
            }) => assert_ne!(code, 0),
            other => panic!("{other:?}"),
        }
    }
}
