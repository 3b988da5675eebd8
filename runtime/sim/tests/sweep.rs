//! All algorithms over worlds, lengths and seeds; and programs made wrong, which must be found.

use rlaunch_schedule::{Action, Algorithm, Hosts, Program, Slice, Spec, check, reduces};
use rlaunch_sim::{Network, Outcome, Scenario, Settings, Stuck, run};
use rlaunch_wire::Collective;

const LENGTHS: [usize; 4] = [0, 1, 7, 64];

/// Every algorithm with each collective that it serves, in order of ranks too where it can; with hosts
/// of two ranks, and two hosts filled in turn.
fn specs(world: u32, root: u32) -> Vec<Spec> {
    let mut specs = Vec::new();
    for &collective in Collective::ALL {
        for algorithm in Algorithm::serving(collective) {
            let spec = Spec::new(collective, algorithm, world);
            let root = if spec.has_root() { root } else { 0 };
            let spec = spec.with_root(root);
            if algorithm == Algorithm::Hierarchical {
                let in_turn = Hosts::new((0..world).map(|rank| rank % 2));
                specs.push(spec.clone().with_hosts(Hosts::blocks(world, 2)));
                specs.push(spec.with_hosts(in_turn));
                continue;
            }
            if reduces(collective) && algorithm.keeps_order(collective) {
                specs.push(spec.clone().with_order(true));
            }
            specs.push(spec);
        }
    }
    specs
}

/// Fewer for larger worlds, for time.
fn seeds(world: u32) -> std::ops::Range<u64> {
    match world {
        1..10 => 0..4,
        _ => u64::from(world % 2)..u64::from(world % 2) + 3,
    }
}

fn outcome(
    scenario: &Scenario,
    programs: &[Program],
    network: &Network,
    settings: &Settings,
) -> Result<Outcome, Stuck> {
    let manner = scenario.manner(programs);
    run(programs, scenario.given(), manner, network, settings)
}

fn check_scenario(scenario: &Scenario, settings: &Settings) {
    let network = Network {
        ranks_per_host: 3,
        ..Network::default()
    };
    let verdict = match outcome(scenario, &scenario.programs(), &network, settings) {
        Ok(outcome) => scenario
            .verify(&outcome.outputs)
            .map_err(|wrong| wrong.to_string()),
        Err(stuck) => Err(stuck.to_string()),
    };
    if let Err(error) = verdict {
        panic!("{scenario:?}, {settings:?}: {error}");
    }
}

/// Apart and in place, in one segment and in three.
#[test]
fn all_algorithms_are_right_in_any_order() {
    for world in 1..18 {
        for seed in seeds(world) {
            for spec in specs(world, (seed as u32 * 7) % world) {
                for count in LENGTHS {
                    let scenario = Scenario {
                        spec: spec.clone(),
                        count,
                        segments: if seed < 2 { 1 } else { 3 },
                        in_place: seed % 2 == 1,
                        seed,
                    };
                    check_scenario(&scenario, &Settings::wild(seed));
                }
            }
        }
    }
}

#[test]
fn large_worlds_are_right_too() {
    for world in [24, 33, 64] {
        for spec in specs(world, 5) {
            for count in [1, 65] {
                let scenario = Scenario {
                    spec: spec.clone(),
                    count,
                    segments: 2,
                    in_place: count == 1,
                    seed: u64::from(world),
                };
                check_scenario(&scenario, &Settings::wild(scenario.seed));
                check_scenario(&scenario, &Settings::calm());
            }
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

fn check_once(spec: Spec) {
    let scenario = Scenario {
        spec,
        count: 3,
        segments: 2,
        in_place: true,
        seed: 1024,
    };
    check_scenario(&scenario, &Settings::wild(scenario.seed));
}

/// One collective of each algorithm that takes many steps.
fn check_many_steps(world: u32) {
    let spec = |collective, algorithm| Spec::new(collective, algorithm, world);
    let sample = [
        spec(Collective::ReduceScatter, Algorithm::Ring),
        spec(Collective::AllGather, Algorithm::Pairwise),
        spec(Collective::AllToAll, Algorithm::Bruck),
        spec(Collective::Broadcast, Algorithm::ScatterAllGather).with_root(world / 3),
        spec(Collective::AllReduce, Algorithm::Hierarchical).with_hosts(Hosts::blocks(world, 8)),
    ];
    sample.into_iter().for_each(check_once);
}

/// What takes few steps with each collective; of the rest one collective of each algorithm.
#[test]
fn a_thousand_ranks_are_right_by_each_algorithm() {
    let few_steps = specs(1024, 341).into_iter();
    few_steps
        .filter(|spec| !is_quadratic(spec))
        .for_each(check_once);
    check_many_steps(300);
}

#[test]
#[ignore = "takes minutes: cargo x check --deep"]
fn a_thousand_ranks_in_many_steps_are_right() {
    check_many_steps(1024);
}

fn completed(programs: &[Program], scenario: &Scenario, settings: &Settings) -> Outcome {
    outcome(scenario, programs, &Network::default(), settings).expect("nothing waits for ever")
}

fn all_reduce(algorithm: Algorithm, world: u32, count: usize) -> Scenario {
    Scenario {
        spec: Spec::new(Collective::AllReduce, algorithm, world),
        count,
        segments: 1,
        in_place: false,
        seed: 1,
    }
}

/// Without the edges from receives to the sends that pass on what came, partial sums go astray. The
/// simulator sees wrong numbers under some seed; the checker says so without running at all.
#[test]
fn a_missing_edge_gives_wrong_numbers() {
    let scenario = all_reduce(Algorithm::Ring, 4, 16);
    let mut programs = scenario.programs();
    for step in &mut programs[2].steps {
        if matches!(step.action, Action::Send { .. }) {
            step.after.clear();
        }
    }
    let wrong = (0..20).filter(|&seed| {
        let settings = Settings::wild(seed);
        let outcome = completed(&programs, &scenario, &settings);
        scenario.verify(&outcome.outputs).is_err()
    });
    assert!(wrong.count() > 0, "twenty seeds hid the missing edges");
    assert!(check(&programs).is_err());
}

/// A rank of the recursive doubling that overwrites what it is still sending.
#[test]
fn overwriting_what_is_being_sent_gives_wrong_numbers() {
    let scenario = all_reduce(Algorithm::RecursiveDoubling, 8, 64);
    let mut programs = scenario.programs();
    let own = Slice::scratch(0);
    for program in &mut programs {
        for step in &mut program.steps {
            let slices: Vec<&mut Slice> = match &mut step.action {
                Action::Send { from, .. } => vec![from],
                Action::RecvReduce { local, to, .. } => vec![local, to],
                _ => Vec::new(),
            };
            for slice in slices
                .into_iter()
                .filter(|slice| slice.buffer == own.buffer)
            {
                *slice = own;
            }
        }
    }
    let wrong = (0..20).filter(|&seed| {
        let settings = Settings {
            buffered_bytes_max: 0,
            ..Settings::wild(seed)
        };
        let outcome = completed(&programs, &scenario, &settings);
        scenario.verify(&outcome.outputs).is_err()
    });
    assert!(wrong.count() > 0, "twenty seeds hid the overwriting");
    assert!(check(&programs).is_err());
}

#[test]
fn a_deadlock_is_told() {
    let scenario = all_reduce(Algorithm::RecursiveDoubling, 2, 4);
    let mut programs = scenario.programs();
    for program in &mut programs {
        program.steps[1].after = vec![0]; // receive after the send that waits for a receive
    }
    let verdict = outcome(&scenario, &programs, &Network::default(), &Settings::calm());
    assert!(
        matches!(verdict, Err(Stuck::Deadlock { .. })),
        "{verdict:?}"
    );
}

/// The same seed gives the same run, to the nanosecond.
#[test]
fn a_seed_repeats_its_run() {
    let scenario = all_reduce(Algorithm::Ring, 7, 64);
    let go = |seed| completed(&scenario.programs(), &scenario, &Settings::wild(seed));
    assert_eq!(go(3), go(3));
    assert_ne!(go(3).time_ns, go(4).time_ns);
}

/// Times and traffic are what the headers of the algorithms say.
#[test]
fn costs_are_as_documented() {
    let link = Network::default().inside; // eight ranks on one host
    let time_of = |algorithm, count| {
        let scenario = all_reduce(algorithm, 8, count);
        completed(&scenario.programs(), &scenario, &Settings::calm())
    };
    let ring = time_of(Algorithm::Ring, 8 * 3000);
    let chunk_bytes = 3000 * 8;
    assert_eq!(
        ring.time_ns,
        14 * (link.latency_ns + link.duration_ns(chunk_bytes))
    );
    assert_eq!(ring.traffic.len(), 8);
    assert!(
        ring.traffic
            .values()
            .all(|one| one.messages == 14 && one.bytes == 14 * chunk_bytes)
    );

    let doubling = time_of(Algorithm::RecursiveDoubling, 8 * 3000);
    let whole_ns = link.latency_ns + link.duration_ns(8 * chunk_bytes);
    assert_eq!(doubling.time_ns, 3 * whole_ns);
    assert!(time_of(Algorithm::Ring, 8).time_ns > time_of(Algorithm::RecursiveDoubling, 8).time_ns);
    assert!(ring.time_ns < doubling.time_ns);
}
