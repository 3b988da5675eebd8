//! Who runs where, and on which cores: several programs, numbers in turn, binding.

use crate::common::{
    JOB, JOB_LIMIT, assert_says, cluster, cluster_with, module, python, run, run_well,
    share_python, start, write,
};
use rlaunch_harness::{Cluster, Finished, Running};

/// Every line of stdout, sorted.
fn lines(finished: &Finished) -> Vec<String> {
    let mut lines: Vec<String> = finished.stdout.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Where ranks go and what they are called, by the programs that run there.
#[test]
fn programs_and_numbers_in_turn() {
    let Some(cluster) = cluster(2) else { return };
    let script = "echo $RANK $(hostname) $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK $MASTER_ADDR";
    let said = |words: &[&str]| {
        let mut all = words.to_vec();
        all.extend(["/bin/sh", "-c", script]);
        let finished = run_well(&cluster, &all);
        let lines = lines(&finished);
        let parts = lines.iter().map(|line| {
            let (who, address) = line.rsplit_once(' ').unwrap();
            assert!(
                address.ends_with(".1") || address.ends_with("::1"),
                "{line}"
            );
            who.to_owned()
        });
        parts.collect::<Vec<_>>()
    };
    let in_turn = [
        "0 node1 0/2 0",
        "1 node2 0/2 1",
        "2 node1 1/2 0",
        "3 node2 1/2 1",
    ];
    assert_eq!(said(&["-hostfile", "hosts", "--map-by", "node"]), in_turn);
    assert_eq!(said(&["-hostfile", "hosts", "--rank-by", "node"]), in_turn);
    let one_each = ["0 node1 0/1 0", "1 node2 0/1 1"];
    assert_eq!(
        said(&["-hostfile", "hosts", "--map-by", "ppr:1:node"]),
        one_each
    );
    programs_on_hosts_of_their_own(&cluster, script);
    directories(&cluster);
    hosts_of_their_own_kind(&cluster);
}

/// The first program's host is node 0, and the others meet there.
fn programs_on_hosts_of_their_own(cluster: &Cluster, script: &str) {
    let finished = run_well(
        cluster,
        &[
            "-H",
            "node2",
            "-np",
            "1",
            "/bin/sh",
            "-c",
            script,
            ":",
            "-H",
            "node1:2",
            "-x",
            "A=1",
            "--wdir",
            "/made/here",
            "/bin/sh",
            "-c",
            &format!("{script} $A $RLAUNCH_APPNUM $(pwd)"),
        ],
    );
    let lines = lines(&finished);
    let address = lines[0].rsplit_once(' ').unwrap().1;
    assert!(
        ["10.77.0.2", "10.78.0.2", "fd77::2", "fd78::2"].contains(&address),
        "{lines:?}"
    );
    let expected = [
        format!("0 node2 0/1 0 {address}"),
        format!("1 node1 0/2 1 {address} 1 1 /made/here"),
        format!("2 node1 1/2 1 {address} 1 1 /made/here"),
    ];
    assert_eq!(lines, expected);
    assert_says(
        &finished,
        &["rlaunch: node1: directory /made/here is created"],
    );
    assert!(!cluster.path_on("node2", "/made").unwrap().exists());
}

/// One that one host has and one lacks; one that can't be made there.
fn directories(cluster: &Cluster) {
    cluster
        .shell("node1", "mkdir /half; echo > /plain")
        .unwrap();
    let finished = run_well(cluster, &["-hostfile", "hosts", "--wdir", "/half", "pwd"]);
    assert_eq!(finished.stdout, "/half\n".repeat(4));
    assert_says(&finished, &["rlaunch: node2: directory /half is created"]);
    let finished = run(
        cluster,
        &["-hostfile", "hosts", "--wdir", "/plain/sub", "pwd"],
    );
    assert_eq!(finished.code(), 126, "{}", finished.report());
    assert_says(
        &finished,
        &[
            "node1: directory /plain/sub can't be made: not a directory",
            "--wdir DIR",
        ],
    );
}

/// What the hostfile says of one host: its directory, variables, GPUs, interfaces.
fn hosts_of_their_own_kind(cluster: &Cluster) {
    let file = "[[host]]\nname = \"node1\"\nslots = 1\nworkdir = \"/one\"\nenv = { A = \"host\" }\n\
                [[host]]\nname = \"node2\"\nslots = 1\ngpus = [1, 2]\nnics = [\"eth0\"]\n";
    write(cluster, "head", "/job/kinds.toml", file);
    let script = "echo $RANK $(pwd) A=$A,$B $CUDA_VISIBLE_DEVICES $RLAUNCH_SOCKET_IFNAME";
    let words = ["-hostfile", "kinds.toml", "/bin/sh", "-c", script];
    let refused = run(cluster, &words);
    assert_eq!(refused.code(), 126, "{}", refused.report());
    assert_says(&refused, &["rlaunch: node1: there is no directory /one"]);
    cluster.shell("node1", "mkdir /one").unwrap();
    let finished = run_well(cluster, &[&["-x", "B=b"], &words[..]].concat());
    assert_eq!(
        lines(&finished),
        ["0 /one A=host,b", "1 /job A=,b 1,2 =eth0"]
    );
    let finished = run_well(
        cluster,
        &[&["-x", "A=a", "-wdir", "/"], &words[..]].concat(),
    );
    assert_eq!(lines(&finished), ["0 / A=a,", "1 / A=a, 1,2 =eth0"]);
    write(
        cluster,
        "head",
        "/job/nic",
        "node1 slots=1\nnode2 slots=1 nics=eth0,ib7\n",
    );
    let refused = run(cluster, &["-hostfile", "nic", "true"]);
    assert_eq!(refused.code(), 2, "{}", refused.report());
    assert_says(
        &refused,
        &[
            "node2: there is no interface ib7, which nics= names",
            "there are eth0",
        ],
    );
}

/// Ranks whose neighbours are elsewhere compute the same.
#[test]
fn ranks_in_turn_reduce() {
    let Some(python) = python().filter(|_| module().is_some()) else {
        return;
    };
    let Some(cluster) = cluster_with(2, |options| share_python(options, &python)) else {
        return;
    };
    let text = "\
import numpy as np, rlaunch as rl
rl.init()
for count in (1, 1000, 300_000):
    data = np.full(count, rl.rank() + 1, dtype=np.float64)
    assert (rl.all_reduce(data) == 10).all()
    part = np.full(3, rl.rank(), dtype=np.int32)
    assert (rl.all_gather(part)[:, 0] == [0, 1, 2, 3]).all()
print('well')
";
    for host in ["node1", "node2"] {
        write(&cluster, host, "/job/script.py", text);
    }
    let python = python.to_str().unwrap();
    let words = [
        "-hostfile",
        "hosts",
        "--map-by",
        "node",
        "--python",
        python,
        "script.py",
    ];
    assert_eq!(run_well(&cluster, &words).stdout, "well\n".repeat(4));
}

const CORES: &str = "grep Cpus_allowed_list /proc/self/status | tr -d '\\t' | sed s/.*://";

/// All that hosts give, and two cores of it; none where this machine has but one.
fn two_cores(cluster: &Cluster) -> Option<(String, [String; 2])> {
    let all = cluster.shell("node1", CORES).unwrap().stdout;
    let all = all.trim().to_owned();
    let first = |list: &str| list.split([',', '-']).next().unwrap_or_default().to_owned();
    let second = match all.split_once(['-', ',']) {
        Some((one, rest)) if all[one.len()..].starts_with(',') => first(rest),
        Some((one, _)) => (one.parse::<u32>().unwrap() + 1).to_string(),
        None => {
            eprintln!("SKIPPED: binding needs two cores, and {all} may be used");
            return None;
        }
    };
    Some((all.clone(), [first(&all), second]))
}

/// By default ranks may use all that their host gives; bound ones have cores of their own, those
/// of other jobs are left alone, and a cpuset is honoured.
#[test]
fn ranks_are_bound_as_asked() {
    let Some(cluster) = cluster(2) else { return };
    let Some((all, [one, two])) = two_cores(&cluster) else {
        return;
    };
    let here = |words: &[&str]| {
        let mut words = words.to_vec();
        words.extend(["-H", "node1:2", "/bin/sh", "-c", CORES]);
        run_well(&cluster, &words)
    };
    let open = here(&["--report-bindings"]);
    assert_eq!(open.stdout, format!("{all}\n{all}\n"));
    assert_says(
        &open,
        &[
            "rank 1 on node1 (pid ",
            &format!("): not bound, may use cores {all}"),
        ],
    );

    let bound = here(&["--bind-to", "core", "--report-bindings"]);
    let own = lines(&bound);
    let has = |list: &String, core: &String| list.split(',').any(|cpu| cpu == core);
    assert!(
        own.len() == 2 && has(&own[0], &one) && has(&own[1], &two),
        "{own:?} {one} {two}"
    );
    let told = |line: &String| {
        bound
            .stderr
            .contains(&format!("): bound to cores {line}\n"))
    };
    assert!(own.iter().all(told), "{}", bound.report());
    assert_eq!(
        here(&["-np", "1", "--bind-to", "numa"]).stdout,
        format!("{all}\n")
    );

    // The next attempt finds the cores of the last one free.
    let script = format!("{CORES}; exit $((1 - TORCHELASTIC_RESTART_COUNT))");
    let words = [
        "-H",
        "node1:2",
        "--bind-to",
        "core",
        "--max-restarts",
        "1",
        "/bin/sh",
        "-c",
    ];
    let again = run_well(&cluster, &[&words[..], &[&script]].concat());
    assert!(!again.stderr.contains("not bound"), "{}", again.report());
    let map = here(&["--bind-to", "core", "--dry-run", "--json"]);
    let map: serde_json::Value = serde_json::from_str(&map.stdout).unwrap();
    let planned = map["ranks"][1]["cores"][0].to_string();
    assert_eq!(planned, two);
    two_jobs(&cluster, &all, [&one, &two]);
    inside_a_cpuset(&cluster, &two);
    numa_nodes_and_gpus(&cluster, [&one, &two]);
}

/// Each has a core; a third job is told that none is left, and runs all the same.
fn two_jobs(cluster: &Cluster, all: &str, cores: [&String; 2]) {
    let script = format!("{CORES}; sleep 100");
    let words = [
        "-np",
        "1",
        "-H",
        "node1",
        "--bind-to",
        "core",
        "/bin/sh",
        "-c",
    ];
    let begin = |script: &str| {
        let job = start(cluster, &[&words[..], &[script]].concat());
        job.await_stdout(JOB_LIMIT, |text| text.contains('\n'))
            .unwrap();
        job
    };
    let jobs = [begin(&script), begin(&script)];
    let own = jobs.each_ref().map(|job| job.stdout().trim().to_owned());
    for (own, core) in own.iter().zip(cores) {
        assert!(
            own.split(',').any(|cpu| cpu == *core),
            "{own} has not {core}"
        );
    }
    let usable = all.split([',', '-']).count();
    if usable == 2 && cores[1] == all.split([',', '-']).nth(1).unwrap() {
        let third = run_well(cluster, &[&words[..], &[CORES]].concat());
        assert_eq!(third.stdout.trim(), all);
        let why = "node1: ranks are not bound: 1 core is needed, and of 2 other jobs have \
                   claimed 2";
        assert_says(&third, &[why]);
    }
    for job in jobs {
        job.signal(nix::sys::signal::Signal::SIGTERM).unwrap();
        job.wait(JOB_LIMIT).unwrap();
    }
    let again = run_well(cluster, &[&words[..], &[CORES]].concat());
    assert!(
        again.stdout.trim().split(',').any(|cpu| cpu == cores[0]),
        "{}",
        again.report()
    );
}

/// As under `docker --cpuset-cpus`, a scheduler, taskset.
fn inside_a_cpuset(cluster: &Cluster, core: &str) {
    let inside = |words: &[&str]| {
        let mut command = cluster.command("head", JOB, "taskset").unwrap();
        command
            .args(["-c", core, "/usr/local/bin/rlaunch"])
            .args(words);
        let finished = Running::start(command).unwrap().wait(JOB_LIMIT).unwrap();
        assert!(finished.success(), "{}", finished.report());
        finished
    };
    // One core may be used: one slot.
    for options in [&[][..], &["--bind-to", "core"], &["--bind-to", "numa"]] {
        let words = [options, &["/bin/sh", "-c", CORES]].concat();
        assert_eq!(inside(&words).stdout, format!("{core}\n"), "{options:?}");
    }
    let words = [
        "-np",
        "2",
        "--oversubscribe",
        "--bind-to",
        "core",
        "/bin/sh",
        "-c",
        CORES,
    ];
    let crowded = inside(&words);
    assert_eq!(crowded.stdout, format!("{core}\n{core}\n"));
    let why = "localhost: ranks are not bound: 2 cores are needed, and 1 may be used here";
    assert_says(&crowded, &[why]);
}

/// A host whose two cores are two NUMA nodes, and then one with a GPU on each, the other way round.
fn numa_nodes_and_gpus(cluster: &Cluster, [one, two]: [&str; 2]) {
    let shell = |line: &str| {
        let done = cluster.shell("node2", line).unwrap();
        assert!(done.success(), "{}", done.report());
    };
    let said = |words: &[&str]| {
        let mut all = vec!["-np", "2", "--tag-output"];
        all.extend(words);
        all.extend(["/bin/sh", "-c", CORES]);
        let cores = lines(&run_well(cluster, &all));
        cores
            .iter()
            .map(|line| line.rsplit(' ').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let node = "/sys/devices/system/node";
    shell(&format!(
        "mount -t tmpfs none {node} && mkdir {node}/node0 {node}/node1 && \
         echo {one} > {node}/node0/cpulist && echo {two} > {node}/node1/cpulist"
    ));
    let here = ["-H", "node2:2", "--bind-to", "numa"];
    assert_eq!(said(&here), [one, two]);
    assert_eq!(
        said(&[&here[..], &["--map-by", "numa"]].concat()),
        [one, two]
    );
    shell(
        "mount -t tmpfs none /proc/driver && mount -t tmpfs none /sys/bus/pci/devices && \
         for gpu in 0:1 1:0; do mkdir -p /proc/driver/nvidia/gpus/0000:0${gpu%:*}:00.0 \
         /sys/bus/pci/devices/0000:0${gpu%:*}:00.0 && \
         echo ${gpu#*:} > /sys/bus/pci/devices/0000:0${gpu%:*}:00.0/numa_node; done",
    );
    assert_eq!(said(&here), [two, one]);
    let other_way = ["-x", "CUDA_VISIBLE_DEVICES=1,0"];
    assert_eq!(said(&[&here[..], &other_way].concat()), [one, two]);
    write(cluster, "head", "/job/gpus", "node2 gpus=1,0\n");
    assert_eq!(
        said(&["-hostfile", "gpus", "--bind-to", "core"]),
        [one, two]
    );
    let unknown = ["-x", "CUDA_VISIBLE_DEVICES=GPU-1,GPU-2"];
    assert_eq!(said(&[&here[..], &unknown].concat()), [one, two]);
}
