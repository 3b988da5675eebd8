use super::*;
use crate::{Algorithm, Spec, program};
use rlaunch_wire::Collective;

fn programs(spec: Spec) -> Vec<Program> {
    (0..spec.world).map(|rank| program(spec, rank)).collect()
}

/// All calls of a world that have programs, with some roots.
fn specs(world: u32, roots: &[u32]) -> Vec<Spec> {
    let mut specs = Vec::new();
    for &collective in Collective::ALL {
        for algorithm in Algorithm::serving(collective) {
            let spec = Spec::new(collective, algorithm, world);
            let has_root = spec.has_root();
            for &root in roots.iter().filter(|&&root| root == 0 || has_root) {
                for in_order in [false, true] {
                    if !in_order
                        || (crate::reduces(collective) && algorithm.keeps_order(collective))
                    {
                        specs.push(spec.with_root(root).with_order(in_order));
                    }
                }
            }
        }
    }
    specs
}

fn assert_right(spec: Spec) {
    if let Err(violation) = check(&programs(spec)) {
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
