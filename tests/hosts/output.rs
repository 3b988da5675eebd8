//! What ranks on many hosts print, through slow readers and with much of it.

use crate::common::{CLEAN_LIMIT, JOB_LIMIT, assert_no_ranks, cluster, run_well, start};
use rlaunch_harness::Running;
use std::time::Duration;

/// Long lines of eight ranks on four hosts are never mixed or broken, with tags and without.
#[test]
fn lines_are_whole() {
    let Some(cluster) = cluster(4) else { return };
    let print = "line=$(head -c 20000 /dev/zero | tr '\\0' $RANK); i=0; \
                 while [ $i -lt 100 ]; do echo $line; i=$((i+1)); done";
    for option in ["--merge-stderr", "--tag-output"] {
        let words = ["-hostfile", "hosts", option, "/bin/sh", "-c", print];
        let finished = run_well(&cluster, &words);
        let mut counts = [0; 8];
        for line in finished.stdout.lines() {
            let text = &line[line.len().saturating_sub(20_000)..];
            let first = text.as_bytes()[0];
            let tag = format!("[{}]<stdout>: ", char::from(first));
            let tag = if option == "--tag-output" { &tag } else { "" };
            assert!(line.starts_with(tag) && line.len() == tag.len() + 20_000);
            assert!(text.bytes().all(|byte| byte == first));
            counts[usize::from(first - b'0')] += 1;
        }
        assert_eq!(counts, [100; 8]);
    }
}

/// Each rank of two hosts has its copy of stdin, and its files lie beside the launcher.
#[test]
fn input_and_files_of_other_hosts() {
    let Some(cluster) = cluster(2) else { return };
    let line = "head -c 3000000 /dev/zero | rlaunch -hostfile hosts --stdin all --merge-stderr \
                --output-dir logs --only 3 /bin/sh -c 'wc -c; echo of $RANK >&2'";
    let mut command = cluster.command("head", crate::common::JOB, "bash").unwrap();
    command.args(["-c", line]);
    let finished = Running::start(command).unwrap().wait(JOB_LIMIT).unwrap();
    assert!(finished.success(), "{}", finished.report());
    assert_eq!(finished.stdout, "3000000\nof 3\n");
    for rank in 0..4 {
        let path = format!("/job/logs/rank{rank}.stdout");
        let text = std::fs::read_to_string(cluster.path_on("head", &path).unwrap());
        assert_eq!(text.unwrap(), format!("3000000\nof {rank}\n"));
    }
}

/// A reader that takes nothing for longer than `--host-timeout` costs no host and no byte.
#[test]
fn a_stalled_reader_loses_nothing() {
    let Some(cluster) = cluster(2) else { return };
    let line = "rlaunch -hostfile hosts --host-timeout 3 /bin/sh -c 'yes 12345678901234 | head -n 1000000' \
                | (sleep 7; wc -l); exit ${PIPESTATUS[0]}";
    let mut command = cluster.command("head", crate::common::JOB, "bash").unwrap();
    command.args(["-c", line]);
    let finished = Running::start(command).unwrap().wait(JOB_LIMIT).unwrap();
    assert!(finished.success(), "{}", finished.report());
    assert_eq!(finished.stdout.trim(), "4000000", "{}", finished.report());
}

/// Ranks that have printed very much and then fail are no reason to wait for it, and their last
/// lines are still the last ones.
#[test]
fn last_lines_of_a_talkative_rank() {
    let Some(cluster) = cluster(2) else { return };
    let print = "seq 1 200000; [ $RANK = 2 ] && { echo the very end; exit 9; }; sleep 1000";
    let job = start(&cluster, &["-hostfile", "hosts", "/bin/sh", "-c", print]);
    let finished = job.wait(JOB_LIMIT).unwrap();
    assert_eq!(finished.code(), 9, "{}", finished.stderr);
    assert!(
        finished.stderr.contains("rank 2 on node2"),
        "{}",
        finished.stderr
    );
    assert!(
        finished.stderr.contains("the very end"),
        "{}",
        finished.stderr
    );
    assert_no_ranks(&cluster, "a talkative rank");
}

/// A job that succeeds takes along what its ranks left in the background, and does not wait for it.
#[test]
fn success_leaves_nothing_either() {
    let Some(cluster) = cluster(2) else { return };
    let leave = "(setsid env -i /bin/sleep 1000 &) ; setsid sleep 1000 & echo done";
    let finished = run_well(&cluster, &["-hostfile", "hosts", "/bin/sh", "-c", leave]);
    assert_eq!(finished.stdout, "done\n".repeat(4));
    assert!(
        finished.elapsed < Duration::from_secs(30),
        "{}",
        finished.report()
    );
    assert_no_ranks(&cluster, "a job that succeeded");
    cluster.await_idle(CLEAN_LIMIT).unwrap();
}

/// Two jobs on the same hosts: the end of one is not the end of the other.
#[test]
fn jobs_don_t_touch_each_other() {
    let Some(cluster) = cluster(2) else { return };
    let wait = "echo ready; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo survived";
    let other = start(&cluster, &["-hostfile", "hosts", "/bin/sh", "-c", wait]);
    other
        .await_stdout(JOB_LIMIT, |text| text.matches("ready").count() == 4)
        .unwrap();
    let fails = ["-hostfile", "hosts", "/bin/sh", "-c", "exit 4"];
    assert_eq!(start(&cluster, &fails).wait(JOB_LIMIT).unwrap().code(), 4);
    for host in ["node1", "node2"] {
        crate::common::write(&cluster, host, "/tmp/go", "");
    }
    let finished = other.wait(JOB_LIMIT).unwrap();
    assert!(finished.success(), "{}", finished.report());
    assert_eq!(
        finished.stdout.matches("survived").count(),
        4,
        "{}",
        finished.report()
    );
}
