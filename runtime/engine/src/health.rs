//! Who is alive, who disagrees: looked at now and then from within calls.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rlaunch_transport::shm::State;
use rlaunch_wire::rank::PeerFailed;
use rlaunch_wire::{Collective, Descriptor};

use crate::core::{Cause, Core};
use crate::driver::ANNOUNCE_AFTER;
use crate::failure::Departure;
use crate::failure::clock::coarse_now;
use crate::framed::poll_descriptors;
use crate::{Error, Rank};

/// When to look, and at whom.
#[derive(Debug)]
pub(crate) struct Watch {
    next_look: Instant,
    next_look_coarse: u64,
    calls: u32,
    /// Processes of neighbours, by rank. Readable once ended.
    pub(crate) processes: Vec<(u32, OwnedFd)>,
    /// The control link leads to rank 0, not to an agent.
    pub(crate) is_leader_link: bool,
    /// Some peer has told that it waits.
    pub(crate) someone_waits: bool,
    /// Those that are out, until the others were asked what they do.
    pub(crate) departed: Vec<Departure>,
    pub(crate) is_asking: bool,
}

/// Between two looks inside a wait; a system call each.
const LOOK_PERIOD: Duration = Duration::from_millis(1);
/// Between two looks at the start of calls that never wait.
const LOOK_PERIOD_COARSE_NS: u64 = 8_000_000;
const CALLS_PER_CLOCK: u32 = 8;

impl Watch {
    pub(crate) fn new(processes: Vec<(u32, OwnedFd)>, is_leader_link: bool) -> Self {
        Self {
            next_look: Instant::now(),
            next_look_coarse: 0,
            calls: 0,
            processes,
            is_leader_link,
            someone_waits: false,
            departed: Vec::new(),
            is_asking: false,
        }
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next_look
    }

    /// At the start of a call: by a clock that costs little, and not at each.
    #[inline]
    pub(crate) fn is_due_coarse(&mut self) -> bool {
        self.calls = self.calls.wrapping_add(1);
        self.calls.is_multiple_of(CALLS_PER_CLOCK) && self.is_due_by_clock()
    }

    fn is_due_by_clock(&mut self) -> bool {
        let now = coarse_now();
        if now < self.next_look_coarse {
            return false;
        }
        self.next_look_coarse = now + LOOK_PERIOD_COARSE_NS;
        true
    }
}

impl Core {
    /// One look at control link and neighbours. What it finds becomes the error of the communicators
    /// that it concerns.
    pub(crate) fn look(&mut self) {
        let now = Instant::now();
        self.watch.next_look = now + LOOK_PERIOD;
        self.end_revoked(now);
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
            self.note_who_left();
            return;
        }
        let ready = poll_descriptors(&watched, Duration::ZERO);
        self.note_who_left();
        let (of_links, rest) = ready.split_at(links.len());
        let (of_processes, of_streams) = rest.split_at(self.watch.processes.len());
        if of_links.contains(&true) {
            self.poll_control();
        }
        if of_processes.contains(&true) {
            let watched = self.watch.processes.iter().zip(of_processes);
            let ended = watched.filter_map(|((rank, _), ended)| ended.then_some(*rank));
            let ended: Vec<u32> = ended.collect();
            self.handle_ended(&ended);
        }
        for ((rank, _), ended) in streams.iter().zip(of_streams) {
            if *ended && self.peers[*rank as usize].failure.is_none() {
                self.handle_hangup(*rank);
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
    fn handle_hangup(&mut self, rank: u32) {
        // The error is noted with the peer, for all communicators.
        let _ = self.head(rank, &Descriptor::NONE);
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

    fn handle_ended(&mut self, ended: &[u32]) {
        // It may have left in order between the two looks.
        self.note_who_left();
        self.watch
            .processes
            .retain(|(rank, _)| !ended.contains(rank));
        for rank in ended {
            if self.peers[*rank as usize].has_left {
                continue;
            }
            self.linger(*rank);
            self.fail_peer(*rank, &Cause::Failed("its process ended".into()));
        }
    }

    /// The launcher or rank 0 knows that a rank's process ended.
    pub(crate) fn handle_peer_failed(&mut self, failed: PeerFailed) {
        let Some(peer) = self.peers.get_mut(failed.rank as usize) else {
            return;
        };
        // It may know the process better than the card told.
        peer.identity = Rank {
            rank: failed.rank,
            host: failed.host,
            pid: failed.pid,
        };
        self.lose_peer(failed.rank, &Cause::Failed(failed.cause));
    }

    pub(crate) fn handle_lost_link(&mut self) {
        if !self.watch.is_leader_link {
            let cause = Cause::Failed("the agent of its host ended".into());
            self.lose_peer(self.rank, &cause);
            return;
        }
        let leader = &self.peers[0];
        // Where rank 0 has finalized it relays no more; connections and processes still tell.
        if !leader.has_left && !leader.is_leaving {
            self.lose_peer(0, &Cause::Failed("its process ended".into()));
        }
    }

    /// Who keeps a call waiting. Of those that it waits for at once, some only wait themselves, as
    /// they tell: then it is those who don't.
    pub(crate) fn missing(
        &self,
        call: &Descriptor,
        mut awaited: Vec<u32>,
        waited: Duration,
    ) -> Vec<u32> {
        if !matches!(call.collective, Collective::Send | Collective::Recv) {
            let told = |rank: u32| {
                let calls = self.peers[rank as usize].waits_in.iter().rev();
                let mut here = calls.filter(|theirs| theirs.communicator == call.communicator);
                here.next().map(|theirs| theirs.sequence)
            };
            let members = self.members(call.communicator).into_iter();
            let others: Vec<u32> = members.filter(|rank| *rank != self.rank).collect();
            let is_silent = |rank: &u32| told(*rank).is_none_or(|theirs| theirs < call.sequence);
            let silent: Vec<u32> = others.iter().copied().filter(is_silent).collect();
            if others.iter().all(|rank| told(*rank).is_none()) {
                // Nobody is heard: perhaps of rank 0, which passes it on.
                let is_relayed = self.watch.is_leader_link && waited > ANNOUNCE_AFTER * 2;
                awaited.extend(others.into_iter().filter(|rank| *rank == 0 && is_relayed));
            } else if !silent.is_empty() {
                return silent;
            }
        }
        awaited.sort_unstable();
        awaited.dedup();
        awaited
    }

    /// This rank's call against another's; the lower rank stands first in the message.
    pub(crate) fn mismatch(&self, mine: Descriptor, peer: u32, theirs: Descriptor) -> Error {
        let mine = (self.identity(self.rank), Box::new(mine));
        let theirs = (self.identity(peer), Box::new(theirs));
        let is_lower = self.rank < peer;
        let (lower, higher) = if is_lower {
            (mine, theirs)
        } else {
            (theirs, mine)
        };
        let ((left_rank, left), (right_rank, right)) = (lower, higher);
        Error::Mismatch {
            left_rank,
            left,
            right_rank,
            right,
            detail: String::new(),
        }
    }

    /// Compares what others wait in with this rank's calls of the same number.
    pub(crate) fn compare_waits(&mut self) {
        let mut is_open = false;
        let mut found = Vec::new();
        for (rank, peer) in self.peers.iter().enumerate() {
            for theirs in &peer.waits_in {
                // Communicators without this rank, or that are not made here yet.
                let Some(key) = self.groups.find(theirs.communicator) else {
                    continue;
                };
                let history = &self.group(key).history;
                let oldest = history.front().map_or(0, |call| call.sequence);
                // What is older must have completed here.
                let Some(index) = theirs.sequence.checked_sub(oldest) else {
                    continue;
                };
                match history.get(index as usize) {
                    Some(mine) if mine != theirs => found.push((key, *mine, rank, *theirs)),
                    Some(_) => {}
                    // This rank has not come there yet.
                    None => is_open = true,
                }
            }
        }
        self.watch.someone_waits = is_open;
        for (key, mine, rank, theirs) in found {
            let error = self.mismatch(mine, rank as u32, theirs);
            self.fail(key, error);
        }
    }
}
