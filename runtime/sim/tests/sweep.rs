//! All algorithms over worlds, lengths and seeds; and programs made wrong, which must be found.

use rlaunch_schedule::{Action, Algorithm, Buffer, Program, check};
use rlaunch_sim::{Network, Outcome, Scenario, Settings, Stuck, run};
use rlaunch_wire::Collective;

const LENGTHS: [usize; 8] = [0, 1, 2, 3, 7, 16, 17, 64];

/// Every algorithm with the collective that it serves.
fn algorithms() -> impl Iterator<Item = (Collective, Algorithm)> {
    Collective::ALL[..5].iter().flat_map(|&collective| {
        let serving = Algorithm::ALL
            .iter()
            .filter(move |algorithm| algorithm.serves(collective));
        serving.map(move |&algorithm| (collective, algorithm))
    })
}

fn check_scenario(scenario: &Scenario, settings: &Settings) {
    let network = Network {
        ranks_per_host: 3,
        ..Network::default()
    };
    let verdict = match run(&scenario.programs(), scenario.inputs(), &network, settings) {
        Ok(outcome) => scenario
            .verify(&outcome.outputs)
            .map_err(|wrong| wrong.to_string()),
        Err(stuck) => Err(stuck.to_string()),
    };
    if let Err(error) = verdict {
        panic!("{scenario:?}, {settings:?}: {error}");
    }
}

#[test]
fn all_algorithms_are_right_in_any_order() {
    for (collective, algorithm) in algorithms() {
        for world in 1..18 {
            for count in LENGTHS {
                for seed in 0..5 {
                    let root = (seed as u32 * 7) % world;
                    let scenario = Scenario {
                        collective,
                        algorithm,
                        world,
                        root,
                        count,
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
    for (collective, algorithm) in algorithms() {
        for world in [24, 31, 32, 33, 48, 63, 64] {
            for count in [1, 64, 130] {
                let seed = u64::from(world);
                let scenario = Scenario {
                    collective,
                    algorithm,
                    world,
                    root: 5,
                    count,
                    seed,
                };
                check_scenario(&scenario, &Settings::wild(seed));
                check_scenario(&scenario, &Settings::calm());
            }
        }
    }
}

fn completed(programs: &[Program], scenario: &Scenario, settings: &Settings) -> Outcome {
    run(programs, scenario.inputs(), &Network::default(), settings).expect("nothing waits for ever")
}

fn ring_all_reduce(world: u32, count: usize) -> Scenario {
    let (collective, algorithm) = (Collective::AllReduce, Algorithm::Ring);
    Scenario {
        collective,
        algorithm,
        world,
        root: 0,
        count,
        seed: 1,
    }
}

/// Without the edges from receives to the sends that pass on what came, partial sums go astray. The
/// simulator sees wrong numbers under some seed; the checker says so without running at all.
#[test]
fn a_missing_edge_gives_wrong_numbers() {
    let scenario = ring_all_reduce(4, 16);
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
    assert!(check(Collective::AllReduce, 0, &programs).is_err());
}

/// A rank of the recursive doubling that overwrites what it is still sending.
#[test]
fn overwriting_what_is_being_sent_gives_wrong_numbers() {
    let mut scenario = ring_all_reduce(4, 64);
    scenario.algorithm = Algorithm::RecursiveDoubling;
    let mut programs = scenario.programs();
    for program in &mut programs {
        for step in &mut program.steps {
            match &mut step.action {
                Action::Send { from, .. } => from.buffer = Buffer::Output,
                Action::RecvReduce { local, to, .. } => {
                    local.buffer = Buffer::Output;
                    to.buffer = Buffer::Output;
                }
                Action::Recv { .. } | Action::Copy { .. } => {}
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
    assert!(check(Collective::AllReduce, 0, &programs).is_err());
}

#[test]
fn a_deadlock_is_told() {
    let mut scenario = ring_all_reduce(2, 4);
    scenario.algorithm = Algorithm::RecursiveDoubling;
    let mut programs = scenario.programs();
    for program in &mut programs {
        program.steps[1].after = vec![0]; // receive after the send that waits for a receive
    }
    let verdict = run(
        &programs,
        scenario.inputs(),
        &Network::default(),
        &Settings::calm(),
    );
    assert!(
        matches!(verdict, Err(Stuck::Deadlock { .. })),
        "{verdict:?}"
    );
}

/// The same seed gives the same run, to the nanosecond.
#[test]
fn a_seed_repeats_its_run() {
    let scenario = ring_all_reduce(7, 64);
    let go = |seed| completed(&scenario.programs(), &scenario, &Settings::wild(seed));
    assert_eq!(go(3), go(3));
    assert_ne!(go(3).time_ns, go(4).time_ns);
}

/// Times and traffic are what the headers of the algorithms say.
#[test]
fn costs_are_as_documented() {
    let link = Network::default().inside; // eight ranks on one host
    let time_of = |algorithm, count| {
        let scenario = Scenario {
            algorithm,
            ..ring_all_reduce(8, count)
        };
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
