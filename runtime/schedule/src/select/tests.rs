use super::cost::amounts;
use super::*;
use crate::checker::{Matches, Place};
use crate::{Action, Program, Spec, program};

const HERE: Shape = Shape {
    world: 8,
    hosts: 1,
    lanes: 8,
};

fn all_reduce(bytes: usize, shape: Shape) -> Question {
    Question::new(Collective::AllReduce, bytes, shape)
}

/// What serves an all_reduce of one host.
fn flat() -> impl Iterator<Item = Algorithm> {
    let serving = Algorithm::serving(Collective::AllReduce);
    serving.filter(|one| *one != Algorithm::Hierarchical)
}

fn preferring(text: &str) -> Selector {
    Selector::new(Tuning::default(), text.parse().unwrap())
}

#[test]
fn short_vectors_take_few_steps_and_long_ones_few_bytes() {
    let selector = Selector::default();
    for shape in [HERE, Shape::of_strangers(8), Shape::of_one_host(2)] {
        let at = |bytes| selector.select(all_reduce(bytes, shape)).algorithm;
        assert_eq!(at(0), Algorithm::RecursiveDoubling);
        assert_eq!(at(8), Algorithm::RecursiveDoubling);
        for long in [64 << 20, usize::MAX] {
            let sends_least = [
                Algorithm::Ring,
                Algorithm::HalvingDoubling,
                Algorithm::Pairwise,
            ];
            assert!(
                sends_least.contains(&at(long)),
                "{long} bytes: {}",
                at(long)
            );
        }
    }
}

/// Whatever the call, there is a choice, and it can run.
#[test]
fn every_call_has_a_choice() {
    let selector = Selector::default();
    for &collective in Collective::ALL {
        if Algorithm::serving(collective).next().is_none() {
            continue;
        }
        for world in [1, 2, 3, 8, 13, 1000] {
            for power in 0..40 {
                for fold in [Fold::Any, Fold::InOrder, Fold::FromFirst] {
                    let shape = Shape::of(&Hosts::new((0..world).map(|rank| rank % 3)));
                    let question = Question {
                        fold,
                        widening: if power % 2 == 0 { 1 } else { 4 },
                        ..Question::new(collective, 1 << power, shape)
                    };
                    let choice = selector.select(question);
                    assert!(choice.algorithm.serves(collective) && choice.segment_bytes > 0);
                    assert!(choice.algorithm.folds(collective, fold));
                }
            }
        }
    }
}

#[test]
fn a_preference_decides_where_it_can() {
    let question = all_reduce(8, HERE);
    assert_eq!(
        preferring("ring").select(question).algorithm,
        Algorithm::Ring
    );
    let in_order = Question {
        fold: Fold::InOrder,
        ..question
    };
    assert!(
        preferring("ring")
            .select(in_order)
            .algorithm
            .keeps_order(Collective::AllReduce)
    );
    let without = preferring("all_reduce:^recursive_doubling").select(question);
    assert_ne!(without.algorithm, Algorithm::RecursiveDoubling);
}

#[test]
fn an_explanation_holds_the_choice_and_is_sorted() {
    let question = all_reduce(1 << 20, HERE);
    let selector = preferring("all_reduce:^tree");
    let predictions = selector.explain(question);
    assert_eq!(predictions.len(), flat().count());
    assert!(predictions.is_sorted_by_key(|one| one.picoseconds));
    let chosen: Vec<_> = predictions.iter().filter(|one| one.is_chosen).collect();
    assert_eq!(chosen.len(), 1);
    assert_eq!(chosen[0].choice, selector.select(question));
    let tree = predictions
        .iter()
        .find(|one| one.choice.algorithm == Algorithm::Tree);
    assert!(tree.is_some_and(|one| !one.is_allowed && !one.is_chosen));
}

/// What is long crosses the network once where hosts have several ranks.
#[test]
fn long_calls_between_hosts_go_in_lanes() {
    let selector = Selector::default();
    for per_host in [2, 4, 8] {
        let shape = Shape::of(&Hosts::blocks(2 * per_host, per_host));
        let chosen = |collective| {
            let question = Question::new(collective, 16 << 20, shape);
            selector.select(question).algorithm
        };
        for collective in [Collective::AllGather, Collective::ReduceScatter] {
            let chosen = chosen(collective);
            assert_eq!(chosen, Algorithm::Hierarchical, "{collective}, {per_host}");
        }
        // A chain of ranks placed host after host crosses it once as well.
        let chosen = chosen(Collective::Reduce);
        let crosses_once = [Algorithm::Hierarchical, Algorithm::Chain];
        assert!(crosses_once.contains(&chosen), "{chosen}, {per_host}");
    }
}

/// Where elements would grow, what sums at once wins sooner.
#[test]
fn widening_counts_against_what_rounds_at_each_hop() {
    let selector = Selector::default();
    let shape = Shape::of_strangers(4);
    let plain = Question::new(Collective::ReduceScatter, 1 << 20, shape);
    let widened = Question {
        widening: 2,
        ..plain
    };
    let time = |question, algorithm| {
        let predictions = selector.explain(question);
        let found = predictions
            .iter()
            .find(|one| one.choice.algorithm == algorithm);
        found.unwrap().picoseconds
    };
    assert!(time(widened, Algorithm::Ring) > time(plain, Algorithm::Ring));
    let at_once = Algorithm::Pairwise;
    assert_eq!(time(widened, at_once), time(plain, at_once));
    assert_eq!(selector.select(widened).algorithm, at_once);
}

/// From calls that take what a known machine would need, its constants come back, and its choices.
#[test]
fn a_machine_is_known_from_its_times() {
    let machine = Costs {
        inside: Link {
            latency: 2_000_000,
            message: 900_000,
            byte: 150,
        },
        reduced_byte: 30,
        copied_byte: 90,
        ..Costs::default()
    };
    let mut measurements = Vec::new();
    for world in [2, 3, 4, 8] {
        for power in 3..24 {
            let question = all_reduce(1 << power, Shape::of_one_host(world));
            for algorithm in flat() {
                let (choice, picoseconds) = machine.best(question, algorithm);
                measurements.push(Measurement {
                    question,
                    choice,
                    picoseconds: picoseconds as u64,
                });
            }
        }
    }
    let tuning = Tuning::from_measurements(Costs::default(), &measurements);
    let near = |found: u64, real: u64| found.abs_diff(real) * 20 <= real;
    assert!(near(tuning.costs.inside.latency, 2_000_000), "{tuning:?}");
    assert!(near(tuning.costs.inside.byte, 150), "{tuning:?}");
    assert_eq!(tuning.costs.between, Costs::default().between);

    let selector = Selector::new(tuning.clone(), Preference::default());
    for one in &measurements {
        let (best, least) = flat()
            .map(|algorithm| machine.best(one.question, algorithm))
            .min_by_key(|(_, time)| *time)
            .unwrap();
        let chosen = selector.select(one.question);
        let time = machine.picoseconds(one.question, chosen);
        assert!(
            time <= least,
            "{:?}: {chosen:?} instead of {best:?}",
            one.question
        );
    }
    assert_eq!(Tuning::from_text(&tuning.to_text()), Ok(tuning));
}

#[test]
fn what_changes_a_choice_changes_the_fingerprint() {
    let plain = Selector::default().fingerprint();
    assert_eq!(plain, Selector::default().fingerprint());
    assert_ne!(plain, preferring("ring").fingerprint());
    let mut tuning = Tuning::default();
    tuning.costs.copied_byte += 1;
    assert_ne!(
        plain,
        Selector::new(tuning, Preference::default()).fingerprint()
    );
}

/// The longest chain of messages, and the most bytes that a rank sends or receives, of programs for
/// one segment.
fn counted(spec: &Spec, bytes: u64) -> (u128, u128) {
    let programs: Vec<_> = (0..spec.world).map(|rank| program(spec, rank)).collect();
    let matches = Matches::of(&programs).unwrap();
    let part = match spec.collective_is_of_vectors() {
        true => bytes / u64::from(programs[0].cut),
        false => bytes / u64::from(spec.world),
    };
    let mut chain: Vec<Vec<u128>> = programs
        .iter()
        .map(|one| vec![0; one.steps.len()])
        .collect();
    // Depths only grow, along edges of which there are no circles.
    loop {
        let mut has_changed = false;
        for (rank, program) in programs.iter().enumerate() {
            for (index, step) in program.steps.iter().enumerate() {
                let place = Place {
                    rank: rank as u32,
                    step: index as u32,
                };
                let begin = |place: Place| {
                    let step = &programs[place.rank as usize].steps[place.step as usize];
                    let after = step
                        .after
                        .iter()
                        .map(|&one| chain[place.rank as usize][one as usize]);
                    after.max().unwrap_or(0)
                };
                let depth = match (matches.partner(place), step.action.writes()) {
                    (Some(partner), Some(_)) => begin(place).max(begin(partner)) + 1,
                    (Some(_), None) => begin(place), // a send is buffered here
                    (None, _) => begin(place),
                };
                has_changed |= std::mem::replace(&mut chain[rank][index], depth) != depth;
            }
        }
        if !has_changed {
            break;
        }
    }
    let steps = chain.iter().flatten().copied().max().unwrap_or(0);
    let moved = |program: &Program, is_send: bool| -> u64 {
        let actions = program
            .steps
            .iter()
            .map(|step| &step.action)
            .filter(|one| one.peer().is_some());
        let slices = actions.filter_map(|one| match one {
            Action::Send { from, .. } => is_send.then_some(*from),
            other => other.writes().filter(|_| !is_send),
        });
        slices.map(|slice| u64::from(slice.chunks) * part).sum()
    };
    let busiest = programs
        .iter()
        .map(|one| moved(one, true).max(moved(one, false)))
        .max();
    (steps, u128::from(busiest.unwrap_or(0)))
}

/// The model's steps and bytes are those of the programs.
#[test]
fn the_model_counts_what_programs_do() {
    for world in [2, 3, 4, 6, 8, 12, 16] {
        for &collective in Collective::ALL {
            let serving = Algorithm::serving(collective);
            for algorithm in serving.filter(|one| *one != Algorithm::Hierarchical) {
                let bytes = 48 * 1024;
                let spec = Spec::new(collective, algorithm, world);
                let question = Question::new(collective, bytes, Shape::of_one_host(world));
                let choice = Choice {
                    algorithm,
                    segment_bytes: bytes,
                };
                let [steps, _, moved, ..] = amounts(question, choice);
                let found = counted(&spec, bytes as u64);
                let what = format!(
                    "{collective} by {algorithm}, {world} ranks: model {steps}, {moved}, programs {found:?}"
                );
                let is_pipelined = matches!(algorithm, Algorithm::Chain | Algorithm::Tree);
                // Where P is no power of two ranks differ, and formulas round up.
                let is_exact = world.is_power_of_two() && collective != Collective::Exscan;
                assert!(is_pipelined || !is_exact || moved == found.1, "{what}");
                assert!(moved * 10 >= found.1 * 9, "{what}");
                // A reduce at one root has its messages at once, and a tree two at a time.
                let is_counted = algorithm != Algorithm::Linear && algorithm != Algorithm::Tree;
                assert!(
                    !is_counted || (found.0 <= steps && steps <= 2 * found.0),
                    "{what}"
                );
            }
        }
    }
}
