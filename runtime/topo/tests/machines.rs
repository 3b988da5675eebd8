//! Machines on file, `tests/topologies/NAME`: invariants first, then what is shown of them.
//!
//! A new machine is a new folder with `machine.txt`, which `rlaunch topo --snapshot` writes; with
//! `topology.xml` it is looked at with that NCCL file too. `RLAUNCH_TEST_UPDATE=1` writes the machines
//! of `build` and all that is expected anew; the diff is to be read.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod build;
mod invariants;

use std::path::{Path, PathBuf};

use rlaunch_topo::assign::{Request, assign, usable_devices};
use rlaunch_topo::distance::Distance;
use rlaunch_topo::show;
use rlaunch_topo::{Machine, Tree, anonymous, nccl, parse, snapshot};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/topologies")
}

fn is_update() -> bool {
    std::env::var_os("RLAUNCH_TEST_UPDATE").is_some()
}

/// Name, machine, and whether its NCCL file was applied.
fn machines() -> Vec<(String, Machine, bool)> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("machine.txt").is_file())
        .collect();
    folders.sort();
    assert!(folders.len() >= 9, "{folders:?}");
    let mut machines = Vec::new();
    for path in folders {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let machine = parse(&snapshot::open(&path).unwrap());
        if let Ok(xml) = std::fs::read_to_string(path.join("topology.xml")) {
            let mut described = machine.clone();
            nccl::parse(&xml).unwrap().apply(&mut described).unwrap();
            machines.push((name.clone(), described, true));
        }
        machines.push((name, machine, false));
    }
    machines
}

fn machine(name: &str) -> Machine {
    parse(&snapshot::open(&folder().join(name)).unwrap())
}

fn golden(path: &Path, found: &str) -> Result<(), String> {
    if is_update() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, found).unwrap();
        return Ok(());
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let lines = expected.lines().zip(found.lines());
    match (
        expected == found,
        lines.enumerate().find(|(_, (a, b))| a != b),
    ) {
        (true, _) => Ok(()),
        (false, Some((index, (a, b)))) => Err(format!(
            "{}:{}:\n  expected {a}\n  found    {b}",
            path.display(),
            index + 1
        )),
        (false, None) => Err(format!("{}: differs in length", path.display())),
    }
}

fn no_errors(results: impl Iterator<Item = Result<(), String>>) {
    let wrong: Vec<String> = results.filter_map(Result::err).collect();
    assert!(
        wrong.is_empty(),
        "RLAUNCH_TEST_UPDATE=1 writes anew:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn machines_on_file_are_those_that_are_built_here() {
    let all = build::machines();
    for (name, tree) in &all {
        assert_eq!(Tree::parse(&tree.write()).as_ref(), Ok(tree), "{name}");
    }
    no_errors(
        all.iter()
            .map(|(name, tree)| golden(&folder().join(name).join("machine.txt"), &tree.write())),
    );
}

#[test]
fn what_is_shown_of_each_machine() {
    let mut results = Vec::new();
    for (name, machine, described) in machines() {
        let view = show::view(machine);
        let path = |file: &str| {
            folder().join(&name).join(match described {
                true => format!("{file}-nccl"),
                false => file.to_owned(),
            })
        };
        results.push(golden(
            &path("shown").with_extension("txt"),
            &show::text(&view),
        ));
        results.push(golden(
            &path("shown").with_extension("svg"),
            &show::svg(&view),
        ));
    }
    no_errors(results.into_iter());
}

/// What a bug report holds is enough to see the same machine.
#[test]
fn without_its_names_a_machine_is_the_same() {
    for (name, tree) in build::machines() {
        let shown = |tree: &Tree| show::text(&show::common(&show::view(parse(tree))));
        assert_eq!(shown(&tree), shown(&anonymous(&tree)), "{name}");
    }
}

/// Names of the rails of each device.
fn rails_of(machine: &Machine) -> Vec<String> {
    let ranks = usable_devices(machine, None).unwrap().len().max(1);
    let request = Request {
        ranks: u32::try_from(ranks).unwrap(),
        ..Request::default()
    };
    let plan = assign(machine, &request).unwrap();
    let names = plan.ranks.iter().map(|rank| {
        let names = rank
            .network
            .rails
            .iter()
            .map(|rail| plan.rails[*rail].name.clone());
        names.collect::<Vec<_>>().join(" ")
    });
    names.collect()
}

/// What the makers' guides say of these machines.
#[test]
fn known_machines_come_out_as_their_makers_say() {
    let expected = [
        "mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11",
    ];
    assert_eq!(rails_of(&machine("dgx-h100")), expected);
    let pairs = [
        "mlx5_0", "mlx5_0", "mlx5_1", "mlx5_1", "mlx5_2", "mlx5_2", "mlx5_3", "mlx5_3",
    ];
    assert_eq!(rails_of(&machine("hgx-4-nics")), pairs);
    assert_eq!(rails_of(&machine("dgx-1v")), pairs);
    assert_eq!(rails_of(&machine("far-nic")), ["mlx5_0"; 4]);
    assert_eq!(rails_of(&machine("bonded-ethernet")), ["bond0.120"; 2]);
    assert_eq!(rails_of(&machine("desktop")), ["enp10s0"; 2]);
    assert_eq!(rails_of(&machine("sriov-container")), ["mlx5_6", "mlx5_7"]);
    assert_eq!(rails_of(&machine("cpu-only")), ["mlx5_0"]);
    // The first NVLinks of DGX-1's public figure; pairs without one are told by PCIe.
    let view = show::view(machine("dgx-1v"));
    let row = |gpu: usize| {
        view.distances[gpu][..8]
            .iter()
            .map(|it| it.unwrap().to_string())
    };
    let row = |gpu: usize| row(gpu).collect::<Vec<_>>().join(" ");
    assert_eq!(row(0), "X NV1 NV1 NV2 NV2 SYS SYS SYS");
    assert_eq!(row(4), "NV2 SYS SYS SYS X NV1 NV1 NV2");
}

/// NCCL's file tells what a cloud's virtual PCI hides.
#[test]
fn a_nccl_file_replaces_the_virtual_tree() {
    let all = machines();
    let find = |described: bool| {
        let found = all
            .iter()
            .find(|(name, _, it)| name == "cloud-vm" && *it == described);
        &found.unwrap().1
    };
    let view = show::view(find(false).clone());
    assert_eq!(view.distances[0][8], Some(Distance::Phb));
    assert_eq!(
        view.distances[0][9], None,
        "two root buses, NUMA nodes unknown"
    );
    let view = show::view(find(true).clone());
    assert_eq!(view.distances[0][8], Some(Distance::Pix));
    assert_eq!(view.distances[0][9], Some(Distance::Phb));
    assert_eq!(view.distances[0][10], Some(Distance::Sys));
    let node = |machine: &Machine| machine.gpus[7].place.node;
    assert_eq!((node(find(false)), node(find(true))), (None, Some(1)));
}

/// Whatever a tree holds, it is a machine, and all that is made of one can be made of it.
#[test]
fn garbage_is_a_machine_too() {
    let mut seed = 1_u64;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let words = [
        "",
        "-1",
        "0",
        "4294967295",
        "18446744073709551616",
        "0-4294967295",
        "x",
        "é",
        "0x",
        "32.0 GT/s",
        "0000:00:00.0",
        "../..",
        "ACTIVE",
        "{}",
        "{\"gpus\":[{}]}",
        "a b\nc: d\n",
        "400 Gb/sec",
        "::",
        "9,8,7",
    ];
    for (name, _, _) in machines() {
        let text = std::fs::read_to_string(folder().join(&name).join("machine.txt")).unwrap();
        for _ in 0..25 {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for _ in 0..=next(40) {
                let at = 1 + next(lines.len() - 1);
                let other = 1 + next(lines.len() - 1);
                match next(5) {
                    0 => lines.swap(at, other),
                    1 => drop(lines.remove(at)),
                    2 => {
                        let name = lines[at].split(" = ").next().unwrap_or_default().to_owned();
                        lines[at] = format!("{name} = {}", words[next(words.len())]);
                    }
                    3 => {
                        let name = lines[at]
                            .split(" -> ")
                            .next()
                            .unwrap_or_default()
                            .to_owned();
                        lines[at] = format!("{name} -> {}", words[next(words.len())]);
                    }
                    _ => {
                        let cut = next(lines[at].chars().count() + 1);
                        lines[at] = lines[at].chars().take(cut).collect();
                    }
                }
            }
            let Ok(tree) = Tree::parse(&lines.join("\n")) else {
                continue;
            };
            let view = show::view(parse(&tree));
            let _ = (show::text(&view), show::svg(&show::common(&view)));
            serde_json::to_string(&view).unwrap();
            let request = Request {
                ranks: 1 + u32::try_from(next(16)).unwrap(),
                share_gpus: true,
                ..Request::default()
            };
            let _ = assign(&view.machine, &request);
        }
    }
}
