//! Ranks that end badly: the exit code, the verdict, and that nothing is left, again and again.

use crate::cases::runs;
use crate::common::{
    CLEAN_LIMIT, JOB_LIMIT, assert_no_ranks, assert_says, cluster, cluster_with, python, run,
    share_python, start, write,
};
use rlaunch_harness::Finished;
use std::time::Duration;

/// Rank 0 is a single process, 1 a shell with children, 2 leaves a child in a session of its own,
/// and so does 3, which says its process id and then does what the test wants.
const RANKS: &str = "\
case $RANK in
0) exec sleep 1000;;
1) sleep 1000 & (sleep 1000; true); wait;;
2) setsid sleep 1000 & sleep 1000;;
3) setsid sleep 1000 >/dev/null 2>&1 </dev/null & sleep 1000 &
   echo first words; echo pid $$; echo last words >&2; eval \"$1\";;
esac";

fn repeated(name: &str, options: &[&str], act: &str, check: impl Fn(&Finished, u32)) {
    let Some(cluster) = cluster(2) else { return };
    let mut words = vec!["-np", "4", "-hostfile", "hosts", "--kill-after", "5"];
    words.extend(options);
    words.extend(["/bin/sh", "-c", RANKS, "sh", act]);
    let (mut seconds, mut slowest) = (0.0, Duration::ZERO);
    let runs = runs(5);
    for number in runs.clone() {
        let finished = run(&cluster, &words);
        assert_no_ranks(&cluster, &format!("{name}, run {number}"));
        check(&finished, number);
        let idle = cluster.await_idle(CLEAN_LIMIT);
        slowest = slowest.max(idle.unwrap_or_else(|error| panic!("{name}, run {number}: {error}")));
        seconds += finished.elapsed.as_secs_f64();
    }
    println!(
        "{name}: {0} of {0} runs right, {1:.2} s each, all quiet {2:.2} s later at the latest",
        runs.end,
        seconds / f64::from(runs.end),
        slowest.as_secs_f64()
    );
}

/// The id that rank 3 printed has to stand in the verdict.
fn assert_names_rank_3(finished: &Finished) {
    let pid = finished
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("pid "));
    let pid = pid.unwrap_or_else(|| panic!("rank 3's output is missing: {}", finished.report()));
    assert_says(
        finished,
        &["rank 3", "node2", &format!("pid {pid}"), "last words"],
    );
}

#[test]
fn exit_code_3() {
    repeated("exit 3", &[], "exit 3", |finished, number| {
        assert_eq!(finished.code(), 3, "run {number}: {}", finished.report());
        assert_names_rank_3(finished);
    });
}

#[test]
fn killed_by_signal_9() {
    repeated("SIGKILL", &[], "kill -9 $$", |finished, number| {
        assert_eq!(finished.code(), 137, "run {number}: {}", finished.report());
        assert_names_rank_3(finished);
        assert_says(finished, &["SIGKILL"]);
    });
}

#[test]
fn outlasts_the_timeout() {
    repeated(
        "--timeout 0.5",
        &["--timeout", "0.5"],
        "sleep 1000",
        |finished, number| {
            assert_eq!(finished.code(), 124, "run {number}: {}", finished.report());
            assert_says(finished, &["timeout"]);
        },
    );
}

/// Ranks that ignore TERM are killed after `--kill-after`; the exit code stays the first one's.
#[test]
fn ranks_that_ignore_term() {
    let Some(cluster) = cluster(2) else { return };
    let ranks = "trap '' TERM; echo ready; [ $RANK = 3 ] && exit 3; while :; do sleep 1000; done";
    let words = [
        "-np",
        "4",
        "-hostfile",
        "hosts",
        "--kill-after",
        "1",
        "/bin/sh",
        "-c",
        ranks,
    ];
    let finished = run(&cluster, &words);
    assert_eq!(finished.code(), 3, "{}", finished.report());
    assert!(
        finished.elapsed >= Duration::from_secs(1),
        "{}",
        finished.report()
    );
    assert_no_ranks(&cluster, "ranks that ignore TERM");
    cluster.await_idle(CLEAN_LIMIT).unwrap();
}

/// TERM and INT to the launcher end the job everywhere, with 128 + the signal.
#[test]
fn signals_to_the_launcher() {
    use nix::sys::signal::Signal;
    let Some(cluster) = cluster(2) else { return };
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let ranks = "setsid sleep 1000 & echo ready; sleep 1000";
        let job = start(&cluster, &["-hostfile", "hosts", "/bin/sh", "-c", ranks]);
        job.await_stdout(JOB_LIMIT, |text| text.matches("ready").count() == 4)
            .unwrap();
        job.signal(signal).unwrap();
        let finished = job.wait(JOB_LIMIT).unwrap();
        assert_eq!(finished.code(), code, "{}", finished.report());
        assert_no_ranks(&cluster, signal.as_str());
        cluster.await_idle(CLEAN_LIMIT).unwrap();
    }
}

/// A Python rank that prints without flushing is seen while it runs, and quoted in the verdict.
#[test]
fn python_output_is_live() {
    let Some(python) = python() else { return };
    let Some(cluster) = cluster_with(1, |options| share_python(options, &python)) else {
        return;
    };
    let program = "import sys, time\nprint('alive')\nfor _ in range(6000):\n    \
                   time.sleep(0.01)\n    if __import__('os').path.exists('/tmp/go'):\n        \
                   print('the end is near')\n        sys.exit(5)\n";
    write(&cluster, "node1", "/job/live.py", program);
    let python = python.to_str().unwrap();
    let job = start(
        &cluster,
        &["-np", "1", "-H", "node1", "--python", python, "live.py"],
    );
    job.await_stdout(JOB_LIMIT, |text| text.contains("alive"))
        .unwrap();
    write(&cluster, "node1", "/tmp/go", "");
    let finished = job.wait(JOB_LIMIT).unwrap();
    assert_eq!(finished.code(), 5, "{}", finished.report());
    assert_says(&finished, &["rank 0", "node1", "the end is near"]);
}

/// A file stands in for a GPU: who else has it open is told where the rank speaks of GPUs.
#[test]
fn who_holds_a_gpu_is_named() {
    let Some(cluster) = cluster(1) else { return };
    let made = cluster.shell("node1", "touch /dev/nvidia0");
    assert!(made.unwrap().success());
    let hold = "exec sleep 1000 </dev/nvidia0";
    let worker = cluster.spawn("node1", &["/bin/sh", "-c", hold]).unwrap();
    let is_it = |process: &rlaunch_harness::Process| process.command() == "sleep 1000";
    let start = std::time::Instant::now();
    while !cluster.processes("node1").unwrap().iter().any(is_it) {
        assert!(start.elapsed() < JOB_LIMIT);
        std::thread::sleep(Duration::from_millis(10));
    }
    // The ranks hold it too, and are no strangers.
    let script = "exec 3</dev/nvidia0; [ $RANK = 1 ] || exec sleep 999; \
                  echo \"RuntimeError: CUDA error: out of memory\" >&2; exit 1";
    let finished = run(&cluster, &["-H", "node1:2", "/bin/sh", "-c", script]);
    assert_eq!(finished.code(), 1, "{}", finished.report());
    let words = [
        "there, not of this job, holds /dev/nvidia0: sleep 1000",
        "there frees the GPU",
    ];
    assert_says(&finished, &words);
    assert!(
        !finished.stderr.contains("sleep 999"),
        "{}",
        finished.report()
    );
    let words = ["-H", "node1:2", "/bin/sh", "-c", "exit 2"];
    let silent = run(&cluster, &words);
    assert!(!silent.stderr.contains("nvidia"), "{}", silent.report());
    drop(worker);
}
