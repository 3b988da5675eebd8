//! Messages that are not asked for yet, and how many of them may be set aside in memory.
//!
//! What a peer sends for a call that has not begun here stands in the way of what is asked for behind it.
//! A program may begin a call there and wait for another one here, so setting aside must not end before
//! the memory does: up to [`BYTES_MAX`] of a peer always, beyond that while all together leave most of
//! the machine's memory free. A peer's calls send at most what their own buffers hold. Past the bound the
//! stream waits, and the timeout's text says for what.

use rlaunch_transport::{Header, Incoming, Kind, Progress, Sink};
use rlaunch_wire::Descriptor;

use super::{Stream, owner};
use crate::Error;
use crate::core::Core;

/// Looks at a message of another operation before it is set aside.
const PATIENCE: u32 = 64;
/// Bytes of one peer that may be set aside whatever the machine's memory.
const BYTES_MAX: usize = 64 << 20;
/// Of the memory that is available, the part that may be used beyond that.
const AVAILABLE_DIVISOR: usize = 4;

/// Whether `bytes` more may be set aside of a peer with `of_peer` bytes there, `of_all` with the others.
fn has_room(of_peer: usize, of_all: usize, bytes: usize) -> bool {
    if of_peer.saturating_add(bytes) <= BYTES_MAX {
        return true;
    }
    let file = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    // What is set aside already is not available any more.
    bytes <= may_be_used(&file, of_all)
}

/// Bytes; 0 where the file does not say.
fn may_be_used(file: &str, used: usize) -> usize {
    let available = file.lines().find_map(|line| {
        let value = line.strip_prefix("MemAvailable:")?.trim();
        let kibibytes: usize = value.strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    });
    let whole = available.unwrap_or(0).saturating_add(used);
    (whole / AVAILABLE_DIVISOR).saturating_sub(used)
}

#[derive(Debug)]
pub(super) struct Aside {
    pub(super) header: Header,
    pub(super) body: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Intake {
    pub(super) header: Header,
    pub(super) body: Vec<u64>,
    pub(super) incoming: Incoming,
    pub(super) goes: Goes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    Aside,
    Nowhere,
}

impl Core {
    /// Deals with a message at the head that is not the asker's: true when it has gone.
    pub(super) fn pass_over(
        &mut self,
        rank: u32,
        header: Header,
        call: &Descriptor,
    ) -> Result<bool, Error> {
        let stream = &mut self.peers[rank as usize].stream;
        stream.looks += 1;
        if stream.looks < PATIENCE {
            return Ok(false);
        }
        stream.looks = 0;
        let (bytes, of_peer) = (header.length_bytes as usize, stream.aside_bytes);
        if header.kind != Kind::Collective {
            return Ok(false);
        }
        let of_all = self.peers.iter().map(|peer| peer.stream.aside_bytes).sum();
        let stream = &mut self.peers[rank as usize].stream;
        if !has_room(of_peer, of_all, bytes) {
            stream.held_up_by = Some(header.descriptor);
            return Ok(false);
        }
        stream.aside_bytes += bytes;
        self.begin_intake(rank, header, Goes::Aside);
        self.take_in(rank, call)
    }

    pub(super) fn aside_for(&self, rank: u32, call: &Descriptor) -> Option<Header> {
        let stream = &self.peers[rank as usize].stream;
        let at = stream.find_aside(call)?;
        Some(stream.aside[at].header)
    }

    pub(super) fn begin_intake(&mut self, rank: u32, header: Header, goes: Goes) {
        self.peers[rank as usize].stream.held_up_by = None;
        let length = match goes {
            Goes::Nowhere => 0,
            Goes::Aside => header.length_bytes as usize,
        };
        let mut body = vec![0u64; length.div_ceil(8)];
        let sink = match goes {
            Goes::Nowhere => Sink::Discard,
            Goes::Aside => Sink::Copy {
                to: body.as_mut_ptr().cast(),
                streaming: false,
            },
        };
        self.peers[rank as usize].stream.intake = Some(Intake {
            header,
            body,
            incoming: Incoming::new(sink),
            goes,
        });
    }

    /// Goes on with a message that is set aside or thrown away; true when none is left.
    pub(super) fn take_in(&mut self, rank: u32, call: &Descriptor) -> Result<bool, Error> {
        let Some(mut intake) = self.peers[rank as usize].stream.intake.take() else {
            return Ok(true);
        };
        // SAFETY: the body was made for the header's length, and moves do not move its heap.
        let result = unsafe { self.connection(rank).poll_payload(&mut intake.incoming) };
        match result {
            Ok(Progress::Done) => {
                let Intake { header, body, .. } = intake;
                match intake.goes {
                    Goes::Nowhere => {}
                    Goes::Aside => {
                        let stream = &mut self.peers[rank as usize].stream;
                        stream.aside.push_back(Aside { header, body });
                    }
                }
                Ok(true)
            }
            Ok(_) => {
                self.peers[rank as usize].stream.intake = Some(intake);
                Ok(false)
            }
            Err(error) => Err(self.explain(rank, error, call)),
        }
    }

    /// What was set aside for a communicator that is gone.
    pub(crate) fn forget_aside(&mut self, id: u32) {
        for peer in &mut self.peers {
            let stream = &mut peer.stream;
            stream
                .aside
                .retain(|message| message.header.descriptor.communicator != id);
            let bytes = |message: &Aside| message.header.length_bytes as usize;
            stream.aside_bytes = stream.aside.iter().map(bytes).sum();
        }
    }
}

impl Stream {
    /// What stands in the way of what is asked for, for messages; else empty.
    pub(crate) fn obstacle(&self, rank: u32) -> String {
        self.held_up_by.map_or_else(String::new, |call| {
            let megabytes = self.aside_bytes >> 20;
            format!(
                ", behind {call} of rank {rank}, which this rank has not begun, and of which \
                 {megabytes} MiB are set aside already"
            )
        })
    }

    pub(super) fn find_aside(&self, call: &Descriptor) -> Option<usize> {
        let is_for = |message: &Aside| owner(&message.header.descriptor) == owner(call);
        self.aside.iter().position(is_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_what_is_available_may_be_used() {
        let file = "MemTotal:  8000 kB\nMemAvailable:    4000 kB\n";
        assert_eq!(may_be_used(file, 0), 1000 * 1024);
        assert_eq!(may_be_used(file, 1024), 1000 * 1024 + 256 - 1024);
        assert_eq!(may_be_used("", 7), 0);
        assert!(has_room(0, 0, BYTES_MAX) && !has_room(1, 1, usize::MAX));
    }
}
