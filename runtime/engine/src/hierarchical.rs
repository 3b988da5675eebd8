//! Collectives over several hosts with several ranks each: inside the hosts by shared memory, between
//! them in lanes.
//!
//! A lane joins the ranks with one local number on every host. There are as many lanes as the
//! smallest host has members, so hosts may be of different size and ranks may lie in any order: the
//! vector is cut by lane, not by rank, and ranks beyond the lanes take part inside their host only.
//!
//! | | inside | between, in each lane | inside |
//! |---|---|---|---|
//! | all_reduce | reduce_scatter of the lanes' pieces | all_reduce of a piece | all_gather of the pieces |
//! | broadcast | on the root's host: scatter of the pieces | broadcast of a piece | all_gather |
//!
//! With h hosts and l lanes each host sends 2 (h-1)/h of the vector over its network (a broadcast:
//! the vector once), l streams at a time.

use std::sync::Arc;

use rlaunch_schedule::{Layout, chunk_range};
use rlaunch_transport::Progress;
use rlaunch_wire::{Collective, Descriptor, Op};

use crate::call::Counts;
use crate::collective::{Way, between};
use crate::core::Core;
use crate::group::{Group, GroupKey};
use crate::interpret::{Interpreter, Reducer, Task};
use crate::local::TeamOperation;
use crate::wait::Awaited;
use crate::{Call, Error};

/// One such call, one stage after the other.
#[derive(Debug)]
pub(crate) struct Hierarchical {
    key: GroupKey,
    descriptor: Descriptor,
    call: Call,
    lanes: Lanes,
    stage: u32,
    way: Way,
}

/// How a communicator lies on its hosts, seen by one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lanes {
    pub(crate) lanes: u32,
    pub(crate) hosts: u32,
    /// This member's host, and its number there.
    pub(crate) host: u32,
    pub(crate) local: u32,
    /// Members of this member's lane, by host; none where it is in no lane.
    pub(crate) lane: Vec<u32>,
}

const STAGES: u32 = 3;

impl Lanes {
    /// `hosts`: of each member, counted from 0. `None` where lanes gain nothing.
    pub(crate) fn new(hosts: &[u32], me: u32) -> Option<Self> {
        let count = hosts.iter().max()? + 1;
        if count < 2 || count as usize == hosts.len() {
            return None;
        }
        let members_of = |host: u32| {
            let members = 0..hosts.len() as u32;
            members.filter(move |member| hosts[*member as usize] == host)
        };
        let lanes = (0..count).map(|host| members_of(host).count()).min()? as u32;
        let host = hosts[me as usize];
        let local = members_of(host).position(|member| member == me)? as u32;
        let lane = if local < lanes {
            let nth = |host| members_of(host).nth(local as usize);
            (0..count).map(nth).collect::<Option<Vec<u32>>>()?
        } else {
            Vec::new()
        };
        Some(Self {
            lanes,
            hosts: count,
            host,
            local,
            lane,
        })
    }
}

/// The lanes for a call that goes this way. The same decision on all ranks.
pub(crate) fn serves(group: &Group, call: &Call, is_forced: bool) -> Option<Lanes> {
    let is_users = call
        .reduction
        .as_ref()
        .is_some_and(|one| one.op == Op::User);
    let is_served = matches!(
        call.collective,
        Collective::AllReduce | Collective::Broadcast
    );
    if is_forced || !is_served || is_users || !group.has_all_teams || call.count == 0 {
        return None;
    }
    Lanes::new(group.hosts.numbers(), group.me)
}

impl Hierarchical {
    /// `call` is of sums only.
    ///
    /// # Safety
    /// As [`crate::Communicator::run`], until the operation has ended.
    pub(crate) unsafe fn new(
        key: GroupKey,
        descriptor: Descriptor,
        call: Call,
        lanes: Lanes,
    ) -> Self {
        Self {
            key,
            descriptor,
            call,
            lanes,
            stage: 0,
            way: Way::Done,
        }
    }

    /// Elements of a lane's piece.
    fn piece(&self, lane: u32) -> std::ops::Range<usize> {
        chunk_range(self.call.count, self.lanes.lanes, lane)
    }

    fn output_at(&self, element: usize) -> *mut u8 {
        let bytes = element * self.call.dtype.size_bytes();
        self.call.output.wrapping_add(bytes)
    }

    /// The pieces of this host's members, of which those beyond the lanes have none.
    fn pieces(&self, near: usize) -> Vec<std::ops::Range<usize>> {
        let piece = |local: u32| {
            if local < self.lanes.lanes {
                self.piece(local)
            } else {
                0..0
            }
        };
        (0..near as u32).map(piece).collect()
    }

    fn own_piece(&self) -> std::ops::Range<usize> {
        if self.lanes.local < self.lanes.lanes {
            self.piece(self.lanes.local)
        } else {
            0..0
        }
    }

    fn begin_stage(&self, core: &mut Core) -> Way {
        match self.stage {
            0 => self.begin_inside(core),
            1 => self.begin_between(core),
            _ => self.begin_last(core),
        }
    }

    /// Pieces to the lanes.
    fn begin_inside(&self, core: &mut Core) -> Way {
        let group = core.group(self.key);
        let near = group.near.clone();
        let own = self.own_piece();
        let pieces = self.pieces(near.len());
        let (lengths, offsets): (Vec<usize>, Vec<usize>) = pieces
            .iter()
            .map(|piece| (piece.len(), piece.start))
            .unzip();
        let reduces = self.descriptor.collective == Collective::AllReduce;
        if group.team.is_none() {
            let bytes = self.call.count * self.call.dtype.size_bytes();
            if reduces && bytes > 0 {
                // SAFETY: both are valid for the vector; `copy` allows for them being the same.
                unsafe { std::ptr::copy(self.call.input, self.call.output, bytes) };
            }
            return Way::Done;
        }
        let call = if reduces {
            let counts = Counts {
                recv: lengths,
                recv_offsets: offsets,
                ..Counts::default()
            };
            Call {
                collective: Collective::ReduceScatterV,
                output: self.output_at(own.start),
                count: 0,
                counts: Some(Arc::new(counts)),
                ..self.call.clone()
            }
        } else {
            let root = near
                .iter()
                .position(|member| *member == self.descriptor.root);
            let Some(root) = root else {
                return Way::Done;
            };
            let counts = Counts {
                send: lengths,
                send_offsets: offsets,
                ..Counts::default()
            };
            Call {
                collective: Collective::ScatterV,
                root: root as u32,
                input: self.call.output,
                output: self.output_at(own.start),
                count: own.len(),
                counts: Some(Arc::new(counts)),
                ..self.call.clone()
            }
        };
        // SAFETY: as `new`'s caller vouched: the pieces lie in the call's vector.
        Way::Team(unsafe { TeamOperation::new(group, self.key, &call, self.descriptor) })
    }

    /// A piece in its lane.
    fn begin_between(&self, core: &mut Core) -> Way {
        let own = self.own_piece();
        let Some(root_host) = self.root_host(core) else {
            return Way::Done;
        };
        if self.lanes.lane.is_empty() {
            return Way::Done;
        }
        let size = self.call.dtype.size_bytes();
        let collective = self.descriptor.collective;
        let root = if collective == Collective::Broadcast {
            root_host
        } else {
            0
        };
        let bytes = own.len() * size;
        let (world, me) = (self.lanes.hosts, self.lanes.host);
        let (plan, segment_bytes) = between(core, collective, bytes, world, me, root);
        let group = core.group(self.key);
        let ranks = self.lanes.lane.iter();
        let ranks: Arc<[u32]> = ranks.map(|member| group.ranks[*member as usize]).collect();
        let op = self.call.reduction.as_ref().map(|reduction| reduction.op);
        let task = Task {
            plan,
            layout: Layout::Vector { count: own.len() },
            segment_bytes,
            descriptor: self.descriptor,
            reducer: op.map(|op| Reducer {
                dtype: self.call.dtype,
                op,
                user: None,
            }),
            ranks,
            input: self.output_at(own.start),
            output: self.output_at(own.start),
        };
        // SAFETY: as `new`'s caller vouched; the piece lies in the output.
        Way::Schedule(Box::new(unsafe { Interpreter::new(core, task) }))
    }

    fn root_host(&self, core: &Core) -> Option<u32> {
        let hosts = &core.group(self.key).hosts;
        hosts.numbers().get(self.descriptor.root as usize).copied()
    }

    /// The pieces to everybody on the host.
    fn begin_last(&self, core: &mut Core) -> Way {
        let group = core.group(self.key);
        if group.team.is_none() {
            return Way::Done;
        }
        let own = self.own_piece();
        let pieces = self.pieces(group.near.len());
        let counts = Counts {
            recv: pieces.iter().map(ExactSizeIterator::len).collect(),
            recv_offsets: pieces.iter().map(|piece| piece.start).collect(),
            ..Counts::default()
        };
        let call = Call {
            collective: Collective::AllGatherV,
            reduction: None,
            root: 0,
            input: self.output_at(own.start),
            count: 0,
            counts: Some(Arc::new(counts)),
            ..self.call.clone()
        };
        // SAFETY: as `new`'s caller vouched: the pieces lie in the call's output, each in its place.
        Way::Team(unsafe { TeamOperation::new(group, self.key, &call, self.descriptor) })
    }

    pub(crate) fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        let mut has_moved = false;
        while self.stage < STAGES {
            if matches!(self.way, Way::Done) {
                self.way = self.begin_stage(core);
            }
            match self.way.poll(core)? {
                Progress::Done => {
                    self.way.end(core);
                    self.way = Way::Done;
                    self.stage += 1;
                    has_moved = true;
                }
                Progress::Idle if has_moved => return Ok(Progress::Moved),
                progress => return Ok(progress),
            }
        }
        Ok(Progress::Done)
    }

    pub(crate) fn awaited(&self, core: &Core) -> Vec<Awaited> {
        self.way.awaited(core)
    }

    pub(crate) fn end(&mut self, core: &mut Core) {
        self.way.end(core);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_host_says_how_many_lanes() {
        // Host 0: members 0, 2, 4; host 1: members 1, 3.
        let hosts = [0, 1, 0, 1, 0];
        let lanes = |me| Lanes::new(&hosts, me).unwrap();
        assert_eq!((lanes(0).lanes, lanes(0).hosts), (2, 2));
        assert_eq!(lanes(0).lane, [0, 1]);
        assert_eq!((lanes(3).host, lanes(3).local), (1, 1));
        assert_eq!(lanes(3).lane, [2, 3]);
        // The third of host 0 is in no lane.
        assert_eq!((lanes(4).local, lanes(4).lane.len()), (2, 0));
    }

    #[test]
    fn one_host_or_a_rank_each_needs_no_lanes() {
        assert_eq!(Lanes::new(&[0, 0, 0], 1), None);
        assert_eq!(Lanes::new(&[0, 1, 2], 1), None);
    }
}
