//! `rlaunch reap`: what is left is found and ended, and nothing else.

use crate::common::{JOB_LIMIT, cluster, is_rlaunch, rlaunch, run, start};
use nix::sys::signal::Signal;
use rlaunch_harness::{Cluster, Finished, Process, Running};
use std::time::Duration;

/// A data loader in the rank's session, a daemon in one of its own, and one that hides as
/// setproctitle does: without an environment. They all ignore polite requests.
const WORKERS: &str = "trap '' TERM HUP; sh -c 'trap \"\" TERM; exec sleep 1001' & \
                       setsid sleep 1002 & setsid env -i /bin/sleep 1003 & \
                       env -i /bin/sleep 1004 & echo ready; while :; do sleep 1000; done";

fn job(cluster: &Cluster) -> Running {
    let job = start(cluster, &["-H", "node1:2", "/bin/sh", "-c", WORKERS]);
    job.await_stdout(JOB_LIMIT, |text| text.matches("ready").count() == 2)
        .unwrap_or_else(|error| panic!("the job does not start: {error}"));
    job
}

fn sleeping(cluster: &Cluster, seconds: &str) -> Vec<Process> {
    let all = cluster.processes("node1").unwrap();
    let ends = format!("sleep {seconds}");
    all.into_iter()
        .filter(|process| process.command().ends_with(&ends) && process.state != 'Z')
        .collect()
}

/// Agent and keeper at the same moment, as the OOM killer or an administrator may.
fn kill_both(cluster: &Cluster, but: &[Process]) {
    let all = cluster.processes("node1").unwrap();
    let ours: Vec<&Process> = all
        .iter()
        .filter(|process| is_rlaunch(process) && !but.iter().any(|one| one.pid == process.pid))
        .collect();
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        ours.iter().for_each(|process| process.signal(signal));
    }
}

fn reap(cluster: &Cluster, words: &[&str]) -> Finished {
    let all: Vec<&str> = ["reap", "-H", "node1"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    run(cluster, &all)
}

/// Two jobs of one program; one loses its agent and keeper. Its children are found, those of the
/// other and everybody else's are not touched, and in the end nothing is left, no record either.
#[test]
fn finds_and_ends_what_was_left_and_nothing_else() {
    let Some(cluster) = cluster(1) else { return };
    let clean = reap(&cluster, &[]);
    assert_eq!(
        (clean.code(), clean.stdout.as_str()),
        (0, "nothing is left on node1\n")
    );

    let other = job(&cluster);
    let others = cluster.processes("node1").unwrap();
    let stranger = cluster.spawn("node1", &["/bin/sh", "-c", WORKERS]).unwrap();
    let first = job(&cluster);
    // The record says with each heartbeat that all is well; the workers are older than that.
    std::thread::sleep(Duration::from_millis(2500));
    kill_both(&cluster, &others);
    first.wait(JOB_LIMIT).unwrap();

    let found = reap(&cluster, &[]);
    assert_eq!(found.code(), 1, "{}", found.report());
    assert_eq!(
        found.stdout.matches("is over and left").count(),
        1,
        "{}",
        found.report()
    );
    assert_eq!(
        found.stdout.matches("is running").count(),
        1,
        "{}",
        found.report()
    );
    assert_evidence(&found);
    // Looking ends nothing.
    assert_eq!(sleeping(&cluster, "1001").len(), 5);

    let ended = reap(&cluster, &["--end", "--kill-after", "300ms"]);
    assert_eq!(ended.code(), 1, "hints are left: {}", ended.report());
    assert_eq!(sleeping(&cluster, "1001").len(), 3, "{}", ended.report());
    assert_eq!(sleeping(&cluster, "1004").len(), 3, "{}", ended.report());
    assert_eq!(sleeping(&cluster, "1002").len(), 5, "{}", ended.report());
    let ended = reap(&cluster, &["--end", "--hinted", "--json"]);
    assert_eq!(ended.code(), 0, "{}", ended.report());
    assert_eq!(sleeping(&cluster, "1002").len(), 3, "{}", ended.report());
    assert!(
        ended.stdout.contains("\"sure\": false"),
        "{}",
        ended.report()
    );
    let records = || {
        cluster
            .shell("node1", "ls /tmp/rlaunch-0/jobs")
            .unwrap()
            .stdout
    };
    assert_eq!(records().lines().count(), 1, "{}", records());

    end_the_other(&cluster, other);
    assert_eq!(records(), "");
    // The stranger's are as they were; so is what nothing speaks for any more.
    assert_eq!(sleeping(&cluster, "1001").len(), 1);
    assert_eq!(reap(&cluster, &[]).code(), 0);
    drop(stranger);
}

/// The ranks' shells died with the keeper; of what they started, all but what hides is found.
fn assert_evidence(found: &Finished) {
    for (seconds, session) in [("1001", true), ("1004", true), ("1002", false)] {
        let lines = found
            .stdout
            .lines()
            .filter(|line| line.ends_with(&format!("sleep {seconds}")));
        let lines: Vec<&str> = lines.collect();
        assert_eq!(lines.len(), 2, "{seconds}: {}", found.report());
        let said = if session {
            "session"
        } else {
            "a hint: by its environment"
        };
        assert!(
            lines.iter().all(|line| line.contains(said)),
            "{}",
            found.report()
        );
    }
}

/// A job that runs is ended only if it is named.
fn end_the_other(cluster: &Cluster, other: Running) {
    let all = reap(cluster, &["--end"]);
    assert_eq!(all.code(), 0, "{}", all.report());
    assert!(all.stdout.contains("is running"), "{}", all.report());
    let id = all
        .stdout
        .split("job ")
        .nth(1)
        .and_then(|rest| rest.get(..8))
        .unwrap();
    let ended = reap(cluster, &["--job", id, "--end"]);
    assert_eq!(ended.code(), 0, "{}", ended.report());
    assert!(
        ended.stdout.contains("was running and has been ended"),
        "{}",
        ended.report()
    );
    let finished = other.wait(JOB_LIMIT).unwrap();
    assert_eq!(finished.code(), 143, "{}", finished.report());
    let words = "rlaunch: node1: `rlaunch reap --end` ends this job\n";
    assert!(finished.stderr.contains(words), "{}", finished.report());
    assert!(!finished.stderr.contains("hint"), "{}", finished.report());
    let unknown = rlaunch(cluster, &["reap", "--job", "xyz"]);
    let unknown = Running::start(unknown).unwrap().wait(JOB_LIMIT).unwrap();
    assert_eq!(unknown.code(), 2, "{}", unknown.report());
}
