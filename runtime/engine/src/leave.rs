//! How a rank leaves the job.

use std::time::{Duration, Instant};

use rlaunch_transport::{Header, Kind, Progress};
use rlaunch_wire::notice::{Left, Notice, NoticeKind};
use rlaunch_wire::{Collective, DType, Descriptor};

use crate::Error;
use crate::core::Core;
use crate::group::Groups;

/// What may be needed for what was sent to arrive.
const CLOSE_MAX: Duration = Duration::from_secs(1);
const GOODBYE_MAX: Duration = Duration::from_millis(200);
const CLOSE_PERIOD: Duration = Duration::from_millis(1);

impl Core {
    /// Tells all that this rank is out, and lets what it sent arrive.
    pub(crate) fn leave(mut self) -> Result<(), Error> {
        let end = Descriptor {
            communicator: 0,
            sequence: self.group(Groups::WORLD).calls,
            collective: Collective::Barrier,
            dtype: DType::I32,
            op: None,
            root: 0,
            digest: 0,
            count: 0,
        };
        if self.group(Groups::WORLD).poison.is_none() {
            self.look();
            self.poll_control();
        }
        let poison = self.group(Groups::WORLD).poison.clone();
        self.end_all(&Error::Finalized);
        self.control
            .broadcast(self.rank, Notice::encoded(NoticeKind::Left(Left {})));
        if let Some(neighbours) = &self.neighbours {
            neighbours.arena.set_state(
                self.peers[self.rank as usize].local.unwrap_or(0),
                rlaunch_transport::shm::State::Left,
            );
        }
        for rank in 0..self.size() {
            let connection = self.peers[rank as usize].connection.as_ref();
            // Where nothing was ever sent, the notice is enough.
            if connection.is_some_and(|connection| connection.is_connected()) {
                let header = Header {
                    descriptor: end,
                    length_bytes: 0,
                    tag: 0,
                    kind: Kind::Leave,
                };
                self.post(rank, header);
            }
        }
        self.close(&end, Instant::now() + CLOSE_MAX);
        self.control.leave(GOODBYE_MAX);
        poison.map_or(Ok(()), Err)
    }

    fn close(&mut self, end: &Descriptor, deadline: Instant) {
        let is_open = |core: &Self, rank: &u32| {
            let peer = &core.peers[*rank as usize];
            *rank != core.rank && peer.failure.is_none()
        };
        let mut open: Vec<u32> = (0..self.size())
            .filter(|rank| is_open(self, rank))
            .collect();
        while !open.is_empty() && Instant::now() < deadline {
            open.retain(|rank| match self.flush_outbox(*rank, end) {
                Ok(false) => true,
                Ok(true) => {
                    let connection = self.peers[*rank as usize].connection.as_mut();
                    connection.is_some_and(|connection| {
                        !matches!(connection.poll_close(), Ok(Progress::Done) | Err(_))
                    })
                }
                Err(_) => false,
            });
            if !open.is_empty() {
                std::thread::sleep(CLOSE_PERIOD);
            }
        }
    }
}
