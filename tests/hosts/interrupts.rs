//! ^C in one of two jobs, and as often as people press it.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rlaunch_harness::{Cluster, Running};

use crate::common::{JOB_LIMIT, assert_no_ranks, assert_says, cluster, start};

/// Ranks that heed neither INT nor TERM, each with a child in a session of its own.
const STUBBORN: &str = "trap '' INT TERM; setsid sleep 1000 & echo ready; \
                        while [ ! -e /tmp/go ]; do sleep 0.05; done; echo survived";

fn stubborn(cluster: &Cluster, options: &[&str]) -> Running {
    let words = [
        &["-hostfile", "hosts"],
        options,
        &["/bin/sh", "-c", STUBBORN],
    ]
    .concat();
    let job = start(cluster, &words);
    job.await_stdout(JOB_LIMIT, |text| text.matches("ready").count() == 4)
        .unwrap();
    job
}

fn interrupt(job: &Running, times: u32) {
    for _ in 0..times {
        job.signal(Signal::SIGINT).unwrap();
        // Signals that come at once are one.
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn interrupts_end_one_job_however_many_they_are() {
    let Some(cluster) = cluster(2) else { return };
    // DeepSpeed#6807, #1216: another job of the same user, of the same words, on the same hosts.
    let other = stubborn(&cluster, &[]);
    let others = cluster.leftovers().unwrap().len();

    // prrte#943, #454: once is TERM, and KILL in its time.
    for (times, options) in [(1, ["--kill-after", "0.5"]), (2, ["--kill-after", "60"])] {
        let job = stubborn(&cluster, &options);
        let begin = Instant::now();
        interrupt(&job, times);
        let finished = job.wait(JOB_LIMIT).unwrap();
        assert_eq!(finished.code(), 130, "{}", finished.report());
        assert_says(
            &finished,
            &["stopped by SIGINT", "killed by rlaunch (KILL)"],
        );
        assert!(begin.elapsed() < Duration::from_secs(20));
        let is_settled = || cluster.leftovers().unwrap().len() <= others;
        while !is_settled() {
            assert!(
                begin.elapsed() < Duration::from_secs(30),
                "something is left"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    for host in ["node1", "node2"] {
        crate::common::write(&cluster, host, "/tmp/go", "");
    }
    let survived = other.wait(JOB_LIMIT).unwrap();
    assert!(survived.success(), "{}", survived.report());
    assert_eq!(survived.stdout.matches("survived").count(), 4);
    assert_no_ranks(&cluster, "both jobs");
    for host in ["node1", "node2"] {
        cluster.shell(host, "rm /tmp/go").unwrap();
    }

    // A third one does not wait for a host that can't be asked, and says how to look there.
    let job = stubborn(&cluster, &["--kill-after", "60", "--host-timeout", "3"]);
    cluster.black_hole("node2").unwrap();
    let begin = Instant::now();
    interrupt(&job, 3);
    let finished = job.wait(JOB_LIMIT).unwrap();
    assert_eq!(finished.code(), 130, "{}", finished.report());
    assert!(
        begin.elapsed() < Duration::from_secs(4),
        "{:?}",
        begin.elapsed()
    );
    let words = ["node2 did not answer", "`rlaunch reap -H node2` tells"];
    assert_says(&finished, &words);
    // Its agent is alone now, and ends its ranks by itself.
    let gone = |host: &str| {
        let all = cluster.processes(host).unwrap();
        !all.iter()
            .any(|process| process.command().contains("trap '' INT"))
    };
    while !(gone("node1") && gone("node2")) {
        assert!(begin.elapsed() < Duration::from_secs(40), "ranks are left");
        std::thread::sleep(Duration::from_millis(50));
    }
    // sshd of a host that is cut off goes in its own time.
    assert_no_ranks(&cluster, "a host that is cut off");
}
