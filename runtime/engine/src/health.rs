//! Who is alive, who disagrees: looked at now and then from within calls.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use prost::Message;
use rlaunch_transport::shm::State;
use rlaunch_wire::Descriptor;

use crate::core::Core;
use crate::framed::poll_descriptors;
use crate::{Error, Rank};
use rlaunch_wire::notice::{Notice, NoticeKind, Waiting, descriptor};

/// When to look, and at whom.
#[derive(Debug)]
pub(crate) struct Watch {
    next_look: Instant,
    next_look_coarse_ms: u64,
    /// Processes of neighbours, by rank. Readable once ended.
    pub(crate) processes: Vec<(u32, OwnedFd)>,
    /// The control link leads to rank 0, not to an agent.
    pub(crate) is_leader_link: bool,
    /// Some peer has told that it waits.
    pub(crate) someone_waits: bool,
}

/// Between two looks inside a wait; a system call each.
const LOOK_PERIOD: Duration = Duration::from_millis(1);
/// Between two looks at the start of calls that never wait.
const LOOK_PERIOD_COARSE_MS: u64 = 8;

impl Watch {
    pub(crate) fn new(processes: Vec<(u32, OwnedFd)>, is_leader_link: bool) -> Self {
        Self {
            next_look: Instant::now(),
            next_look_coarse_ms: 0,
            processes,
            is_leader_link,
            someone_waits: false,
        }
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next_look
    }

    /// By a clock that costs next to nothing.
    pub(crate) fn is_due_coarse(&mut self) -> bool {
        let now = coarse_ms();
        if now < self.next_look_coarse_ms {
            return false;
        }
        self.next_look_coarse_ms = now + LOOK_PERIOD_COARSE_MS;
        true
    }
}

fn coarse_ms() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec. It can't fail for this clock; zero would only mean
    // that the next look is late.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

impl Core {
    /// One look at control link and neighbours. What it finds becomes the world's error.
    pub(crate) fn look(&mut self, during: &Descriptor) {
        self.watch.next_look = Instant::now() + LOOK_PERIOD;
        if let Some(network) = &self.network {
            network.poll();
        }
        let links = self.control.descriptors();
        let streams = self.open_streams();
        let processes = self
            .watch
            .processes
            .iter()
            .map(|(_, process)| process.as_raw_fd());
        let watched: Vec<_> = (links.iter().copied().chain(processes))
            .map(|descriptor| (descriptor, libc::POLLIN))
            .chain(streams.iter().map(|(_, stream)| (*stream, libc::POLLRDHUP)))
            .collect();
        if watched.is_empty() {
            return;
        }
        let ready = poll_descriptors(&watched, Duration::ZERO);
        self.note_who_left();
        let (of_links, rest) = ready.split_at(links.len());
        let (of_processes, of_streams) = rest.split_at(self.watch.processes.len());
        if of_links.contains(&true) {
            self.poll_control(&during.to_string());
        }
        if of_processes.contains(&true) {
            let watched = self.watch.processes.iter().zip(of_processes);
            let ended = watched.filter_map(|((rank, _), ended)| ended.then_some(*rank));
            let ended: Vec<u32> = ended.collect();
            self.handle_ended(&ended, &during.to_string());
        }
        for ((rank, _), ended) in streams.iter().zip(of_streams) {
            if *ended && self.poison.is_none() {
                self.handle_hangup(*rank, during);
            }
        }
    }

    /// Streams of peers that have not said goodbye.
    fn open_streams(&self) -> Vec<(u32, std::os::fd::RawFd)> {
        let peers = self.peers.iter().filter(|peer| !peer.has_left);
        peers
            .filter_map(|peer| {
                let stream = peer.connection.as_ref()?.stream()?;
                Some((peer.identity.rank, stream))
            })
            .collect()
    }

    /// The peer sends no more. If it said goodbye, that is in the stream; else it died. What came
    /// before and is not yet wanted hides the end for now.
    fn handle_hangup(&mut self, rank: u32, during: &Descriptor) {
        if let Err(error) = self.next_header(rank, during)
            && !self.peers[rank as usize].has_left
        {
            self.fail(error);
        }
    }

    fn note_who_left(&mut self) {
        let Some(neighbours) = &self.neighbours else {
            return;
        };
        for peer in self.peers.iter_mut().filter(|peer| !peer.has_left) {
            if let Some(local) = peer.local {
                peer.has_left = neighbours.arena.state(local) == State::Left;
            }
        }
    }

    fn handle_ended(&mut self, ended: &[u32], during: &str) {
        // It may have left in order between the two looks.
        self.note_who_left();
        self.watch
            .processes
            .retain(|(rank, _)| !ended.contains(rank));
        for rank in ended {
            if self.peers[*rank as usize].has_left {
                continue;
            }
            self.linger(during);
            let peer = self.identity(*rank);
            let cause = String::from("its process ended");
            let error = Error::PeerFailed {
                peer,
                cause,
                during: during.into(),
            };
            self.fail(error);
        }
    }

    pub(crate) fn handle_notice(&mut self, from: u32, payload: &[u8], during: &str) {
        let Some(from_peer) = self.peers.get_mut(from as usize) else {
            return;
        };
        let Ok(Notice { kind: Some(kind) }) = Notice::decode(payload) else {
            return;
        };
        match kind {
            NoticeKind::Waiting(waiting) => {
                from_peer.waits_in = waiting
                    .calls
                    .iter()
                    .filter_map(|call| descriptor(call))
                    .collect();
                self.watch.someone_waits = true;
                self.compare_waits();
            }
            NoticeKind::Left(_) => {
                from_peer.is_leaving = true;
                let connection = from_peer.connection.as_ref();
                // Else it says so behind all it sent.
                from_peer.has_left |= !connection.is_some_and(|peer| peer.is_connected());
            }
            NoticeKind::Disagreement(told) => {
                let (Some(left), Some(right)) = (descriptor(&told.left), descriptor(&told.right))
                else {
                    return;
                };
                let (Some(left_rank), Some(right_rank)) =
                    (self.known(told.left_rank), self.known(told.right_rank))
                else {
                    return;
                };
                let (left, right) = (Box::new(left), Box::new(right));
                let error = Error::Mismatch {
                    left_rank,
                    left,
                    right_rank,
                    right,
                };
                self.poison.get_or_insert(error);
            }
            NoticeKind::Failed(failed) => {
                let Some(peer) = self.known(failed.rank) else {
                    return;
                };
                let during = during.into();
                let error = if failed.has_left {
                    Error::PeerLeft { peer, during }
                } else {
                    Error::PeerFailed {
                        peer,
                        cause: failed.cause,
                        during,
                    }
                };
                self.poison.get_or_insert(error);
            }
        }
    }

    fn known(&self, rank: u32) -> Option<Rank> {
        self.peers
            .get(rank as usize)
            .map(|peer| peer.identity.clone())
    }

    pub(crate) fn handle_lost_link(&mut self, during: &str) {
        let leader = &self.peers[0];
        if self.watch.is_leader_link && (leader.has_left || leader.is_leaving) {
            // Rank 0 has finalized and relays no more; connections and processes still tell.
            return;
        }
        let error = if self.watch.is_leader_link {
            let (peer, cause) = (self.identity(0), "its process ended".into());
            Error::PeerFailed {
                peer,
                cause,
                during: during.into(),
            }
        } else {
            let (peer, cause) = (
                self.identity(self.rank),
                "the agent of its host ended".into(),
            );
            Error::PeerFailed {
                peer,
                cause,
                during: during.into(),
            }
        };
        self.poison.get_or_insert(error);
    }

    /// Tells the others in which call this rank waits.
    pub(crate) fn announce_wait(&mut self) {
        let calls = self
            .history
            .iter()
            .map(|call| call.encode().to_vec())
            .collect();
        let notice = Notice::encoded(NoticeKind::Waiting(Waiting { calls }));
        self.control.broadcast(self.rank, notice);
    }

    /// Compares what others wait in with this rank's calls of the same number.
    pub(crate) fn compare_waits(&mut self) {
        let Some(oldest) = self.history.front().map(|call| call.sequence) else {
            return;
        };
        let mut is_open = false;
        let mut found = None;
        for (rank, peer) in self.peers.iter().enumerate() {
            for theirs in &peer.waits_in {
                match theirs.sequence.checked_sub(oldest) {
                    // So old that it must have completed here.
                    None => {}
                    Some(index) => match self.history.get(index as usize) {
                        Some(mine) if mine != theirs => found = Some((*mine, rank, *theirs)),
                        Some(_) => {}
                        // This rank has not come there yet.
                        None => is_open = true,
                    },
                }
            }
        }
        self.watch.someone_waits = is_open;
        if let Some((mine, rank, theirs)) = found {
            let error = self.mismatch(mine, rank as u32, theirs);
            self.fail(error);
        }
    }
}
