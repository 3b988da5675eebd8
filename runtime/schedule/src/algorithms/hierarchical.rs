//! Hierarchical: what is to be sent is collected inside each host, goes between hosts in lanes, each
//! byte once, and is handed out inside.
//!
//! | collective | steps | bytes sent by a host | scratch | wins |
//! |---|---|---|---|---|
//! | all_reduce | 2 (H − 1) between hosts, 2 inside | 2 n (H − 1) / H | n | several ranks on each of several hosts, all but short vectors |
//! | reduce_scatter | H − 1 between, 2 inside | n (H − 1) / H | n | as all_reduce |
//! | all_gather | H − 1 between, 2 inside | n (H − 1) / H | none | as all_reduce |
//! | broadcast | H − 1 between, 2 inside, and a segment's time for each more | n | none | as all_reduce |
//! | reduce | as broadcast | n | n | as all_reduce |
//!
//! With L the least number of ranks on a host, lane l is the l-th rank of each host, and lanes are
//! rings over the H hosts (chains in a broadcast and a reduce). A vector's shard l goes in lane l; the
//! block of the j-th rank of a host goes in lane j mod L. Ranks beyond L take part inside their host
//! only. Runs in segments, so that the three stages overlap. Contributions are reduced host by host,
//! inside a host all at once: not in the order of ranks.

use crate::hosts::Hosts;
use crate::{Buffer, Program, ProgramBuilder, Slice, Spec};

/// A rank's place among hosts and lanes.
struct Place {
    members: Vec<Vec<u32>>,
    host: u32,
    /// Its number on its host.
    local: u32,
    lanes: u32,
}

impl Place {
    fn of(spec: &Spec, rank: u32) -> Self {
        let hosts: &Hosts = spec.hosts.as_ref().expect("a hierarchy of hosts");
        let members = hosts.members();
        let host = hosts.of(rank);
        let local = members[host as usize].iter().position(|one| *one == rank);
        let lanes = members.iter().map(Vec::len).min().expect("there is a host");
        Self {
            host,
            local: local.expect("a rank is on its host") as u32,
            lanes: lanes as u32,
            members,
        }
    }

    fn hosts(&self) -> u32 {
        self.members.len() as u32
    }

    /// The lane that this rank carries, if it carries one.
    fn lane(&self) -> Option<u32> {
        (self.local < self.lanes).then_some(self.local)
    }

    fn carrier(&self, host: u32, lane: u32) -> u32 {
        self.members[host as usize][lane as usize]
    }

    /// The host `distance` before this one on the ring.
    fn back(&self, distance: u32) -> u32 {
        (self.host + 2 * self.hosts() - distance) % self.hosts()
    }

    fn right(&self, lane: u32) -> u32 {
        self.carrier((self.host + 1) % self.hosts(), lane)
    }

    fn left(&self, lane: u32) -> u32 {
        self.carrier(self.back(1), lane)
    }

    /// The other ranks here, beginning behind this one.
    fn neighbours(&self) -> Vec<u32> {
        let here = &self.members[self.host as usize];
        let (before, behind) = here.split_at(self.local as usize);
        behind[1..].iter().chain(before).copied().collect()
    }

    /// Ranks of a host whose blocks go in a lane.
    fn blocks(&self, host: u32, lane: u32) -> impl Iterator<Item = u32> {
        let members = self.members[host as usize].iter().copied();
        members.skip(lane as usize).step_by(self.lanes as usize)
    }
}

pub(super) fn all_reduce(spec: &Spec, rank: u32) -> Program {
    let place = Place::of(spec, rank);
    let hosts = place.hosts();
    let mut builder = ProgramBuilder::new(spec, rank, place.lanes * hosts);
    let shard = |buffer, lane: u32| Slice::new(buffer, lane * hosts, hosts);
    let local = collect(&mut builder, &place, |lane| shard(Buffer::Input, lane));
    if let (Some(lane), Some(local)) = (place.lane(), local) {
        let part = |host: u32| lane * hosts + host;
        let own = |host: u32| Slice::new(local.buffer, local.first_chunk + host, 1);
        for step in 1..hosts {
            let (outgoing, incoming) = (place.back(step), place.back(step + 1));
            let sum = if step == 1 {
                own(outgoing)
            } else {
                Slice::output(part(outgoing))
            };
            builder.send(place.right(lane), sum);
            builder.recv_reduce(
                place.left(lane),
                own(incoming),
                Slice::output(part(incoming)),
            );
        }
        if hosts == 1 {
            builder.copy(local, shard(Buffer::Output, lane));
        }
        for step in 0..hosts - 1 {
            builder.send(place.right(lane), Slice::output(part(place.back(step))));
            builder.recv(place.left(lane), Slice::output(part(place.back(step + 1))));
        }
    }
    hand_out(&mut builder, &place, |lane| shard(Buffer::Output, lane));
    builder.finish()
}

pub(super) fn broadcast(spec: &Spec, rank: u32) -> Program {
    let place = Place::of(spec, rank);
    let mut builder = ProgramBuilder::new(spec, rank, place.lanes);
    let top = Place::of(spec, spec.root).host;
    let distance = (place.host + place.hosts() - top) % place.hosts();
    if rank == spec.root {
        for lane in (0..place.lanes).filter(|lane| place.carrier(top, *lane) != rank) {
            builder.send(place.carrier(top, lane), Slice::input(lane));
        }
        builder.copy(
            Slice::new(Buffer::Input, 0, place.lanes),
            Slice::new(Buffer::Output, 0, place.lanes),
        );
    }
    if let Some(lane) = place.lane() {
        if distance > 0 {
            builder.recv(place.left(lane), Slice::output(lane));
        } else if rank != spec.root {
            builder.recv(spec.root, Slice::output(lane));
        }
        if distance + 1 < place.hosts() {
            let own = if rank == spec.root {
                Slice::input
            } else {
                Slice::output
            };
            builder.send(place.right(lane), own(lane));
        }
    }
    // The root has it all, and its host's other ranks get a shard from each lane, as everywhere.
    for neighbour in place.neighbours() {
        if let Some(lane) = place.lane().filter(|_| neighbour != spec.root) {
            let own = if rank == spec.root {
                Slice::input
            } else {
                Slice::output
            };
            builder.send(neighbour, own(lane));
        }
    }
    for lane in (0..place.lanes).filter(|_| rank != spec.root) {
        if place.lane() != Some(lane) {
            builder.recv(place.carrier(place.host, lane), Slice::output(lane));
        }
    }
    builder.finish()
}

pub(super) fn reduce(spec: &Spec, rank: u32) -> Program {
    let place = Place::of(spec, rank);
    let mut builder = ProgramBuilder::new(spec, rank, place.lanes);
    let top = Place::of(spec, spec.root).host;
    let distance = (place.host + place.hosts() - top) % place.hosts();
    let local = collect(&mut builder, &place, Slice::input);
    if let (Some(lane), Some(mut sum)) = (place.lane(), local) {
        if distance + 1 < place.hosts() {
            let to = if rank == spec.root {
                Slice::output(lane)
            } else if sum.buffer == Buffer::Input {
                builder.scratch([lane])
            } else {
                sum
            };
            builder.recv_reduce(place.right(lane), sum, to);
            sum = to;
        }
        if distance > 0 {
            builder.send(place.left(lane), sum);
        } else if rank != spec.root {
            builder.send(spec.root, sum);
        } else if sum != Slice::output(lane) {
            builder.copy(sum, Slice::output(lane));
        }
    }
    for lane in (0..place.lanes).filter(|_| rank == spec.root) {
        if place.lane() != Some(lane) {
            builder.recv(place.carrier(top, lane), Slice::output(lane));
        }
    }
    builder.finish()
}

pub(super) fn all_gather(spec: &Spec, rank: u32) -> Program {
    let place = Place::of(spec, rank);
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    for neighbour in place.neighbours() {
        builder.send(neighbour, Slice::input(0));
    }
    builder.copy(Slice::input(0), Slice::output(rank));
    for neighbour in place.neighbours().into_iter().rev() {
        builder.recv(neighbour, Slice::output(neighbour));
    }
    for step in 1..place.hosts() {
        let (outgoing, incoming) = (place.back(step - 1), place.back(step));
        if let Some(lane) = place.lane() {
            for block in place.blocks(outgoing, lane) {
                builder.send(place.right(lane), Slice::output(block));
            }
            for block in place.blocks(incoming, lane) {
                builder.recv(place.left(lane), Slice::output(block));
                for neighbour in place.neighbours() {
                    builder.send(neighbour, Slice::output(block));
                }
            }
        }
        for lane in (0..place.lanes).filter(|lane| place.lane() != Some(*lane)) {
            for block in place.blocks(incoming, lane) {
                builder.recv(place.carrier(place.host, lane), Slice::output(block));
            }
        }
    }
    builder.finish()
}

pub(super) fn reduce_scatter(spec: &Spec, rank: u32) -> Program {
    let place = Place::of(spec, rank);
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    // The blocks that are first on their way are first collected.
    for step in 1..=place.hosts() {
        let host = place.back(step);
        for lane in (0..place.lanes).filter(|lane| place.lane() != Some(*lane)) {
            for block in place.blocks(host, lane) {
                builder.send(place.carrier(place.host, lane), Slice::input(block));
            }
        }
        let Some(lane) = place.lane() else { continue };
        for block in place.blocks(host, lane) {
            let mut sum = sum_here(&mut builder, &place, block);
            let is_last = step == place.hosts();
            if step > 1 {
                let to = if is_last && block == rank {
                    Slice::output(0)
                } else if sum.buffer == Buffer::Input {
                    builder.scratch([block])
                } else {
                    sum
                };
                builder.recv_reduce(place.left(lane), sum, to);
                sum = to;
            }
            if !is_last {
                builder.send(place.right(lane), sum);
            } else if block != rank {
                builder.send(block, sum);
            } else if sum != Slice::output(0) {
                builder.copy(sum, Slice::output(0));
            }
        }
    }
    if place.lane().is_none() {
        builder.recv(
            place.carrier(place.host, place.local % place.lanes),
            Slice::output(0),
        );
    }
    builder.finish()
}

/// The sum of this host's contributions to a block, in a new chunk of scratch where there are others.
fn sum_here(builder: &mut ProgramBuilder, place: &Place, block: u32) -> Slice {
    let neighbours = place.neighbours();
    if neighbours.is_empty() {
        return Slice::input(block);
    }
    let mut inputs = vec![Slice::input(block)];
    for &neighbour in &neighbours {
        let arrived = builder.scratch([block]);
        builder.recv(neighbour, arrived);
        inputs.push(arrived);
    }
    let to = inputs[1];
    builder.reduce(inputs, to);
    to
}

/// Sends each lane's shard to its carrier here; a carrier sums what it gets. None for other ranks.
fn collect(
    builder: &mut ProgramBuilder,
    place: &Place,
    shard: impl Fn(u32) -> Slice,
) -> Option<Slice> {
    for lane in (0..place.lanes).filter(|lane| place.lane() != Some(*lane)) {
        builder.send(place.carrier(place.host, lane), shard(lane));
    }
    let own = shard(place.lane()?);
    let neighbours = place.neighbours();
    if neighbours.is_empty() {
        return Some(own);
    }
    let mut inputs = vec![own];
    for &neighbour in &neighbours {
        let arrived = builder.scratch(own.range());
        builder.recv(neighbour, arrived);
        inputs.push(arrived);
    }
    let to = inputs[1];
    builder.reduce(inputs, to);
    Some(to)
}

/// Each carrier gives its shard to all others here.
fn hand_out(builder: &mut ProgramBuilder, place: &Place, shard: impl Fn(u32) -> Slice) {
    if let Some(lane) = place.lane() {
        for neighbour in place.neighbours() {
            builder.send(neighbour, shard(lane));
        }
    }
    for lane in (0..place.lanes).filter(|lane| place.lane() != Some(*lane)) {
        builder.recv(place.carrier(place.host, lane), shard(lane));
    }
}
