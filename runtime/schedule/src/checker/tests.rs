use super::*;
use crate::{Action, Algorithm, Hosts, Spec, program};
use rlaunch_wire::Collective;

fn programs(spec: &Spec) -> Vec<Program> {
    (0..spec.world).map(|rank| program(spec, rank)).collect()
}

/// All calls of a world that have programs, with some roots.
fn specs(world: u32, roots: &[u32]) -> Vec<Spec> {
    let mut specs = Vec::new();
    for &collective in Collective::ALL {
        for algorithm in Algorithm::serving(collective) {
            let spec = Spec::new(collective, algorithm, world);
            let has_root = spec.has_root();
            for &root in roots.iter().take(if has_root { roots.len() } else { 1 }) {
                let spec = spec.clone().with_root(if has_root { root } else { 0 });
                if algorithm == Algorithm::Hierarchical {
                    specs.extend(placements(world).map(|hosts| spec.clone().with_hosts(hosts)));
                    continue;
                }
                if crate::reduces(collective) && algorithm.keeps_order(collective) {
                    specs.push(spec.clone().with_order(true));
                }
                specs.push(spec);
            }
        }
    }
    specs
}

/// Hosts filled one after another, the last with what is left; filled in turn; one with most of the
/// ranks; a host for each rank.
fn placements(world: u32) -> impl Iterator<Item = Hosts> {
    let filled = [2, 4, world].map(|ranks| Hosts::blocks(world, ranks));
    let in_turn = [2, 3].map(|hosts| Hosts::new((0..world).map(|rank| rank % hosts)));
    let uneven = Hosts::new((0..world).map(|rank| u32::from(rank == world / 2)));
    let apart = Hosts::blocks(world, 1);
    filled.into_iter().chain(in_turn).chain([uneven, apart])
}

fn assert_right(spec: Spec) {
    if let Err(violation) = check(&programs(&spec)) {
        panic!("{spec:?}: {violation}");
    }
}

/// Every algorithm in every world up to 33, with every root up to 9 ranks and some beyond.
#[test]
fn all_algorithms_are_right() {
    for world in 1..34 {
        let roots: Vec<u32> = match world {
            1..10 => (0..world).collect(),
            _ => vec![0, 1, world / 2, world - 1],
        };
        specs(world, &roots).into_iter().for_each(assert_right);
    }
}

/// What runs in segments says so on all ranks, and rightly: a piece of several blocks is no range.
#[test]
fn single_blocks_are_single_everywhere() {
    for spec in specs(7, &[0, 3]) {
        let is_single = spec.algorithm.sends_single_blocks();
        if !is_single || spec.collective_is_of_vectors() {
            continue;
        }
        for step in programs(&spec).iter().flat_map(|program| &program.steps) {
            let slices = step
                .action
                .reads()
                .iter()
                .copied()
                .chain(step.action.writes());
            assert!(
                slices.into_iter().all(|slice| slice.chunks == 1),
                "{spec:?}: {step:?}"
            );
        }
    }
}

/// Whether the programs of a world have as many steps as there are pairs of ranks.
fn is_quadratic(spec: &Spec) -> bool {
    matches!(
        spec.algorithm,
        Algorithm::Ring
            | Algorithm::Pairwise
            | Algorithm::Hierarchical
            | Algorithm::ScatterAllGather
            | Algorithm::Bruck
    )
}

/// Larger worlds, beyond a machine word of ranks; up to 1,024 what takes few steps.
#[test]
fn large_worlds_are_right_too() {
    for world in [48, 65, 100] {
        specs(world, &[world / 3])
            .into_iter()
            .for_each(assert_right);
    }
    for world in [255, 512, 1000, 1024] {
        let few_steps = specs(world, &[world / 3])
            .into_iter()
            .filter(|spec| !is_quadratic(spec));
        few_steps.for_each(assert_right);
    }
}

/// Of what takes many steps one collective of each algorithm at 1,024; all of them take minutes.
#[test]
fn a_thousand_ranks_are_right_by_each_algorithm() {
    let world = 1024;
    let spec = |collective, algorithm| Spec::new(collective, algorithm, world);
    let in_hosts = |hosts| spec(Collective::Reduce, Algorithm::Hierarchical).with_hosts(hosts);
    let sample = [
        spec(Collective::ReduceScatter, Algorithm::Ring),
        spec(Collective::AllGather, Algorithm::Pairwise),
        spec(Collective::AllGather, Algorithm::Bruck),
        spec(Collective::Broadcast, Algorithm::ScatterAllGather).with_root(341),
        in_hosts(Hosts::blocks(world, 8)),
        in_hosts(Hosts::new((0..world).map(|rank| rank % 3))),
    ];
    sample.into_iter().for_each(assert_right);
}

/// One of several equal parts of all that takes many steps, so that they can run side by side.
fn assert_thousands_are_right(part: usize) {
    for world in [256, 1000, 1024] {
        let many_steps = specs(world, &[world / 3]).into_iter().filter(is_quadratic);
        for (number, spec) in many_steps.enumerate() {
            if number % 2 == part {
                assert_right(spec);
            }
        }
    }
}

#[test]
#[ignore = "takes minutes: cargo x check --deep"]
fn all_of_a_thousand_ranks_are_right_one_half() {
    assert_thousands_are_right(0);
}

#[test]
#[ignore = "takes minutes: cargo x check --deep"]
fn all_of_a_thousand_ranks_are_right_other_half() {
    assert_thousands_are_right(1);
}

fn all_reduce(algorithm: Algorithm, world: u32) -> Vec<Program> {
    programs(&Spec::new(Collective::AllReduce, algorithm, world))
}

/// Each single edge of the recursive doubling is needed: dropping one is found.
#[test]
fn a_dropped_edge_is_a_hazard() {
    let good = all_reduce(Algorithm::RecursiveDoubling, 8);
    let mut dropped = 0;
    for rank in 0..good.len() {
        for step in 0..good[rank].steps.len() {
            for edge in 0..good[rank].steps[step].after.len() {
                let mut bad = good.clone();
                bad[rank].steps[step].after.remove(edge);
                // An edge may be implied by a chain of others; then nothing is lost.
                if let Err(violation) = check(&bad) {
                    assert!(matches!(violation, Violation::Hazard { .. }), "{violation}");
                    dropped += 1;
                }
            }
        }
    }
    assert!(dropped > 10, "only {dropped} dropped edges were found");
}

#[test]
fn a_dropped_message_is_unmatched() {
    let mut bad = all_reduce(Algorithm::Ring, 3);
    bad[1].steps.pop();
    let verdict = check(&bad);
    assert!(
        matches!(verdict, Err(Violation::Unmatched { .. })),
        "{verdict:?}"
    );
}

/// Two ranks that first send, then receive into other memory, block each other.
#[test]
fn sends_that_wait_for_each_other_are_a_deadlock() {
    let mut bad = all_reduce(Algorithm::RecursiveDoubling, 2);
    for program in &mut bad {
        program.steps[1].after = vec![0];
    }
    let verdict = check(&bad);
    assert!(
        matches!(verdict, Err(Violation::Deadlock { .. })),
        "{verdict:?}"
    );
}

/// An output that is written while the input is sent is a fault only in place, and found.
#[test]
fn a_program_that_is_wrong_in_place_is_found() {
    let mut bad = all_reduce(Algorithm::RecursiveDoubling, 2);
    for program in &mut bad {
        let Action::RecvReduce { to, .. } = &mut program.steps[1].action else {
            panic!("send, receive, copy");
        };
        *to = Slice::output(0);
        program.steps.truncate(2);
    }
    let verdict = check(&bad);
    assert!(
        matches!(verdict, Err(Violation::Hazard { .. })),
        "{verdict:?}"
    );
}

#[test]
fn a_contribution_taken_twice_is_found() {
    let mut bad = all_reduce(Algorithm::Ring, 2);
    // The gathered chunk is added instead of copied.
    for program in &mut bad {
        let last = program.steps.last_mut().unwrap();
        let Action::Recv { from, to } = last.action else {
            panic!("a ring ends with a receive");
        };
        last.action = Action::RecvReduce {
            from,
            local: Slice::input(to.first_chunk),
            to,
            incoming_first: false,
        };
    }
    let verdict = check(&bad);
    assert!(
        matches!(verdict, Err(Violation::Twice { .. })),
        "{verdict:?}"
    );
}

/// A ring loses the order of ranks, and a swapped operand too.
#[test]
fn a_lost_order_is_found() {
    let mut ring = all_reduce(Algorithm::Ring, 3);
    ring.iter_mut()
        .for_each(|program| program.spec.in_order = true);
    let verdict = check(&ring);
    assert!(
        matches!(verdict, Err(Violation::OutOfOrder { .. })),
        "{verdict:?}"
    );

    let spec = Spec::new(Collective::Scan, Algorithm::Chain, 3).with_order(true);
    let mut scan = programs(&spec);
    for step in scan.iter_mut().flat_map(|program| &mut program.steps) {
        if let Action::RecvReduce { incoming_first, .. } = &mut step.action {
            *incoming_first = false;
        }
    }
    let verdict = check(&scan);
    assert!(
        matches!(verdict, Err(Violation::OutOfOrder { .. })),
        "{verdict:?}"
    );
}

/// Blocks in the wrong places are the wrong result, and lengths that differ do not meet.
#[test]
fn blocks_are_held_to_their_places() {
    let swap = |collective| {
        let mut bad = programs(&Spec::new(collective, Algorithm::Pairwise, 3));
        for step in &mut bad[0].steps {
            if let Action::Recv { to, .. } = &mut step.action {
                to.first_chunk = 3 - to.first_chunk; // 1 and 2
            }
        }
        check(&bad)
    };
    let verdict = swap(Collective::AllToAll);
    assert!(
        matches!(verdict, Err(Violation::WrongResult { .. })),
        "{verdict:?}"
    );
    let verdict = swap(Collective::AllToAllV);
    assert!(
        matches!(verdict, Err(Violation::MatchDiffers { .. })),
        "{verdict:?}"
    );
}

/// The order between rounds is all that a barrier is.
#[test]
fn a_barrier_without_order_is_found() {
    let mut bad = programs(&Spec::new(Collective::Barrier, Algorithm::Dissemination, 8));
    for step in &mut bad[3].steps {
        step.after.clear();
    }
    let verdict = check(&bad);
    assert!(
        matches!(verdict, Err(Violation::LeavesEarly { .. })),
        "{verdict:?}"
    );
}

#[test]
fn bad_indexes_are_named() {
    let good = all_reduce(Algorithm::RecursiveDoubling, 2);
    let broken = |change: &dyn Fn(&mut Program)| {
        let mut bad = good.clone();
        change(&mut bad[1]);
        check(&bad).unwrap_err()
    };
    let (rank, step) = (1, 0);
    let not_earlier = Violation::NotEarlier {
        rank,
        step,
        after: 0,
    };
    assert_eq!(
        broken(&|program| program.steps[0].after = vec![0]),
        not_earlier
    );
    let to_itself = |program: &mut Program| {
        let from = Slice::input(0);
        program.steps[0].action = Action::Send { to: 1, from };
    };
    let no_such_peer = Violation::NoSuchPeer {
        rank,
        step,
        peer: 1,
    };
    assert_eq!(broken(&to_itself), no_such_peer);
    let past_the_end = Violation::PastTheEnd { rank, step: 1 };
    assert_eq!(broken(&|program| program.scratch.clear()), past_the_end);
    assert_eq!(
        broken(&|program| program.cut = 2),
        Violation::CutDiffers {
            rank,
            cut: 2,
            expected: 1
        }
    );
    let another = Violation::NotItsProgram { rank, of_rank: 0 };
    assert_eq!(broken(&|program| program.rank = 0), another);
}
