use super::*;

const HERE: Shape = Shape { world: 8, hosts: 1 };

fn all_reduce(bytes: usize, shape: Shape) -> Question {
    Question {
        collective: Collective::AllReduce,
        bytes,
        shape,
        in_order: false,
    }
}

fn preferring(text: &str) -> Selector {
    Selector::new(Tuning::default(), text.parse().unwrap())
}

#[test]
fn short_vectors_take_few_steps_and_long_ones_few_bytes() {
    let selector = Selector::default();
    for shape in [
        HERE,
        Shape { world: 8, hosts: 8 },
        Shape { world: 2, hosts: 1 },
    ] {
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
                for in_order in [false, true] {
                    let question = Question {
                        collective,
                        bytes: 1 << power,
                        shape: Shape {
                            world,
                            hosts: world.min(3),
                        },
                        in_order,
                    };
                    let choice = selector.select(question);
                    assert!(choice.algorithm.serves(collective) && choice.segment_bytes > 0);
                    assert!(!in_order || choice.algorithm.keeps_order(collective));
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
        in_order: true,
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
    assert_eq!(
        predictions.len(),
        Algorithm::serving(Collective::AllReduce).count()
    );
    assert!(predictions.is_sorted_by_key(|one| one.picoseconds));
    let chosen: Vec<_> = predictions.iter().filter(|one| one.is_chosen).collect();
    assert_eq!(chosen.len(), 1);
    assert_eq!(chosen[0].choice, selector.select(question));
    let tree = predictions
        .iter()
        .find(|one| one.choice.algorithm == Algorithm::Tree);
    assert!(tree.is_some_and(|one| !one.is_allowed && !one.is_chosen));
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
            let question = all_reduce(1 << power, Shape { world, hosts: 1 });
            for algorithm in Algorithm::serving(Collective::AllReduce) {
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
        let (best, least) = Algorithm::serving(Collective::AllReduce)
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
