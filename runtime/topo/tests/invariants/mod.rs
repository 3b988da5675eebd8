//! What holds for every machine, number of ranks and policy.

use std::collections::BTreeSet;

use rlaunch_topo::Machine;
use rlaunch_topo::assign::{Device, Plan, Refusal, Request, WhyCores, assign, usable_devices};
use rlaunch_topo::bind::Unit;
use rlaunch_topo::distance::Distance;
use rlaunch_topo::pairing::{Rejected, Seat, see};

use crate::machines;

/// Every policy for 1 to 16 ranks: devices are a permutation, no core is given twice, the nearest rail
/// is chosen, loads differ by one at most.
#[test]
fn invariants_hold_for_every_policy() {
    for (name, machine, _) in machines() {
        for ranks in 1..=16 {
            for unit in [
                None,
                Some(Unit::Cores(1)),
                Some(Unit::Cores(2)),
                Some(Unit::Numa),
            ] {
                for in_turn in [false, true] {
                    for (share_gpus, gpus_per_rank) in [
                        (false, None),
                        (true, None),
                        (false, Some(2)),
                        (false, Some(0)),
                    ] {
                        let request = Request {
                            ranks,
                            unit,
                            in_turn,
                            share_gpus,
                            gpus_per_rank,
                            ..Request::default()
                        };
                        let what = format!("{name}: {request:?}");
                        check(&machine, &request, &what);
                    }
                }
            }
        }
    }
}

fn check(machine: &Machine, request: &Request, what: &str) {
    let devices = usable_devices(machine, None).unwrap();
    let each = request
        .gpus_per_rank
        .unwrap_or(u32::from(!devices.is_empty())) as usize;
    let wanted = request.ranks as usize * each;
    let plan = match assign(machine, request) {
        Ok(plan) => plan,
        Err(Refusal::NoGpu) => {
            assert!(devices.is_empty() && each > 0, "{what}");
            return;
        }
        Err(Refusal::TooFew { .. }) => {
            assert!(wanted > devices.len() && !request.share_gpus, "{what}");
            return;
        }
        Err(error) => panic!("{what}: {error}"),
    };
    assert_eq!(plan.ranks.len(), request.ranks as usize, "{what}");
    check_devices(&plan, &devices, each, request, what);
    check_cores(machine, &plan, request, what);
    check_rails(machine, &plan, what);
}

fn check_devices(plan: &Plan, usable: &[Device], each: usize, request: &Request, what: &str) {
    let given: Vec<Device> = plan
        .ranks
        .iter()
        .flat_map(|rank| rank.devices.clone())
        .collect();
    assert_eq!(given.len(), plan.ranks.len() * each, "{what}");
    assert!(given.iter().all(|device| usable.contains(device)), "{what}");
    let unique: BTreeSet<&Device> = given.iter().collect();
    if !request.share_gpus {
        assert_eq!(unique.len(), given.len(), "{what}: a device twice");
    }
    let uses = |device: &Device| given.iter().filter(|it| *it == device).count();
    let most = usable.iter().map(uses).max().unwrap_or_default();
    let least = usable.iter().map(uses).min().unwrap_or_default();
    assert!(most - least <= 1, "{what}: uneven");
}

fn check_cores(machine: &Machine, plan: &Plan, request: &Request, what: &str) {
    let usable: BTreeSet<u32> = machine
        .usable
        .nodes
        .iter()
        .flat_map(|node| node.cores.iter().flat_map(|core| core.cpus.clone()))
        .collect();
    let cores: usize = machine
        .usable
        .nodes
        .iter()
        .map(|node| node.cores.len())
        .sum();
    let each = match request.unit {
        Some(Unit::Cores(each)) => each as usize,
        _ => 1,
    };
    let fits = request.ranks as usize * each <= cores;
    assert_eq!(plan.not_bound.is_none(), fits, "{what}");
    let mut seen = BTreeSet::new();
    for rank in &plan.ranks {
        let Some(bound) = &rank.cores else {
            assert!(!fits, "{what}");
            continue;
        };
        assert!(!bound.cpus.is_empty() && !bound.claims.is_empty(), "{what}");
        assert!(bound.cpus.iter().all(|cpu| usable.contains(cpu)), "{what}");
        if request.unit != Some(Unit::Numa) {
            assert!(
                bound.cpus.iter().all(|cpu| seen.insert(*cpu)),
                "{what}: a core twice"
            );
        }
        if let WhyCores::NearGpu { node } = rank.why_cores {
            let own = machine.nodes.iter().find(|it| it.number == node).unwrap();
            assert!(
                bound.cpus.iter().all(|cpu| own.cpus.contains(cpu)),
                "{what}"
            );
        }
    }
}

fn check_rails(machine: &Machine, plan: &Plan, what: &str) {
    let mut groups: Vec<(BTreeSet<usize>, Vec<&[usize]>)> = Vec::new();
    for rank in &plan.ranks {
        let own = &rank.network;
        assert_eq!(own.rails.is_empty(), plan.rails.is_empty(), "{what}");
        let unique: BTreeSet<&usize> = own.rails.iter().collect();
        assert_eq!(unique.len(), own.rails.len(), "{what}");
        assert_eq!(
            own.rails.len() + own.rejected.len(),
            plan.rails.len(),
            "{what}"
        );
        if let Some(first) = rank.devices.first() {
            let gpu = rlaunch_topo::assign::gpu(machine, *first).unwrap();
            let seat = Seat {
                place: gpu.place.clone(),
                pci: Some(gpu.address),
            };
            let class = |rail: usize| {
                see(machine, &seat, &plan.rails[rail])
                    .distance
                    .map(Distance::nccl)
            };
            let worst = own.rails.iter().map(|rail| class(*rail)).max();
            for (rail, _) in &own.rejected {
                let is_known = |class: &Option<_>| class.is_some();
                let other = Some(class(*rail));
                let nearer =
                    other.filter(|_| is_known(&class(*rail))) < worst && is_known(&class(*rail));
                assert!(!nearer, "{what}: {} is nearer", plan.rails[*rail].name);
            }
        }
        let shared = own
            .rejected
            .iter()
            .filter(|(_, why)| *why == Rejected::Spread);
        let equal: BTreeSet<usize> = own
            .rails
            .iter()
            .copied()
            .chain(shared.map(|(rail, _)| *rail))
            .collect();
        match groups.iter_mut().find(|(known, _)| *known == equal) {
            Some((_, users)) => users.push(&own.rails),
            None => groups.push((equal, vec![&own.rails])),
        }
    }
    for (rails, users) in groups {
        let load = |rail: &usize| users.iter().filter(|own| own.contains(rail)).count();
        let loads: Vec<usize> = rails.iter().map(load).collect();
        let (most, least) = (loads.iter().max(), loads.iter().min());
        let difference = most.unwrap_or(&0) - least.unwrap_or(&0);
        assert!(difference <= 1, "{what}: {loads:?}");
    }
}
