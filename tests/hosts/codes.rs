//! Exit codes on real hosts, again and again: `RLAUNCH_TEST_RUNS=200` is the deep check's.

use nix::sys::signal::Signal;
use rlaunch_harness::{Cluster, Process};

use crate::cases::{CASES, delay, runs};
use crate::common::{CLEAN_LIMIT, JOB_LIMIT, assert_no_ranks, cluster, run, start};

const JOB: [&str; 6] = ["-np", "4", "-hostfile", "hosts", "--kill-after", "2"];

#[test]
fn exit_codes_of_jobs() {
    let Some(cluster) = cluster(2) else { return };
    for case in CASES {
        for number in runs(1) {
            let words = [&JOB[..], case.options, &["--"], case.words].concat();
            let ended = run(&cluster, &words);
            let name = case.name;
            assert!(
                case.codes.contains(&ended.code()),
                "{name}, run {number}: {}",
                ended.report()
            );
            assert_no_ranks(&cluster, &format!("{name}, run {number}"));
        }
    }
}

/// kill -9, some moment into the job: of the launcher, of a host's agent, of its keeper, of sshd's
/// process there and of the ssh program here.
#[test]
fn exit_codes_of_killed_parts() {
    let Some(cluster) = cluster(2) else { return };
    let program = &["--ssh-program", "ssh"][..];
    for (part, options, code) in [
        ("launcher", &[][..], 137),
        ("agent", &[], 123),
        ("keeper", &[], 125),
        ("sshd", &[], 123),
        ("ssh", program, 123),
        ("agent", program, 123),
    ] {
        for number in runs(1) {
            kill(&cluster, part, options, code, number);
        }
    }
}

fn kill(cluster: &Cluster, part: &str, options: &[&str], code: i32, number: u32) {
    let script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let words = [&JOB[..], options, &["/bin/sh", "-c", script]].concat();
    let job = start(cluster, &words);
    job.await_stdout(JOB_LIMIT, |text| text.matches("ready").count() == 4)
        .unwrap();
    std::thread::sleep(delay(number, 30));
    if part == "launcher" {
        job.signal(Signal::SIGKILL).unwrap();
    } else {
        let host = if part == "ssh" { "head" } else { "node2" };
        let processes = cluster.processes(host).unwrap();
        let victim = find(&processes, part);
        victim.signal(Signal::SIGKILL);
    }
    let ended = job.wait(JOB_LIMIT).unwrap();
    let name = format!("{part}, {options:?}, run {number}");
    assert_eq!(ended.code(), code, "{name}: {}", ended.report());
    let idle = cluster.await_idle(CLEAN_LIMIT);
    idle.unwrap_or_else(|error| panic!("{name}: {error}"));
}

fn find<'a>(processes: &'a [Process], part: &str) -> &'a Process {
    let parent = |child: &Process| {
        let parent = |process: &&Process| process.machine_pid == child.machine_parent;
        processes.iter().find(parent).expect("its parent")
    };
    if part == "ssh" {
        let is_node2 =
            |process: &&Process| process.name == "ssh" && process.command().contains("node2");
        return processes.iter().find(is_node2).expect("ssh runs");
    }
    let rank = processes
        .iter()
        .find(|process| process.command().starts_with("/bin/sh -c trap"));
    let keeper = parent(rank.expect("a rank runs"));
    match part {
        "keeper" => keeper,
        "agent" => parent(keeper),
        _ => parent(parent(keeper)),
    }
}
