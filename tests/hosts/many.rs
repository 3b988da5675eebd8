//! Many hosts: all of them start, and those that can't are named.

use crate::common::{assert_says, cluster_with, run, run_well, write};
use rlaunch_harness::HOME;
use std::time::{Duration, Instant};

/// Around 64, where launchers that start hosts by a tree have hung; and the most that a cluster has.
const COUNTS: [usize; 9] = [1, 63, 64, 65, 66, 72, 128, 129, 130];
/// For 128 ranks on a machine that is busy; a hang would take longer.
const START_LIMIT: Duration = Duration::from_secs(40);

/// ompi#4578, #4465, #6198, #7087: nothing depends on how many there are. Hosts that do not answer
/// are all named at the end of their time, and no other.
#[test]
fn every_number_of_hosts_starts_and_missing_ones_are_named() {
    // As on a cluster with one home for all: the agent is brought once.
    let shared = tempfile::tempdir().unwrap();
    let all = cluster_with(130, |mut options| {
        options.decoys = false;
        options.share(shared.path(), "/tmp/rlaunch-0")
    });
    let Some(cluster) = all else { return };
    run_well(&cluster, &["-H", "node1", "true"]);
    let share = "cp -a ~/.cache/rlaunch/. /tmp/rlaunch-0/ && rm -r ~/.cache/rlaunch";
    assert!(cluster.shell("node1", share).unwrap().success());

    let hosts: String = (1..=130)
        .map(|host| format!("node{host} slots=1\n"))
        .collect();
    write(&cluster, "head", "/job/hosts", &hosts);
    for count in COUNTS {
        let start = Instant::now();
        let count = count.to_string();
        let words = [
            "--hostfile",
            "hosts",
            "-np",
            &count,
            "/bin/sh",
            "-c",
            "echo $RANK $HOSTNAME",
        ];
        let words = words.map(|word| word.replace("$HOSTNAME", "$(hostname)"));
        let finished = run_well(&cluster, &words.each_ref().map(String::as_str));
        let mut lines: Vec<&str> = finished.stdout.lines().collect();
        lines.sort_by_key(|line| line.split(' ').next().unwrap().parse::<u32>().unwrap());
        let expected = (1..=lines.len()).map(|host| format!("{} node{host}", host - 1));
        assert!(lines.iter().copied().eq(expected), "{lines:?}");
        assert_eq!(lines.len().to_string(), count);
        let took = start.elapsed();
        assert!(took < START_LIMIT, "{count} hosts: {took:?}");
        println!("{count} hosts: {took:?}");
    }

    // Fewer open files than hosts: the launcher may have more, and takes them.
    let script = "ulimit -Sn 128 && exec rlaunch --hostfile hosts true";
    assert!(
        cluster
            .shell("head", &format!("cd /job && {script}"))
            .unwrap()
            .success()
    );

    for host in ["node7", "node128"] {
        cluster.black_hole(host).unwrap();
    }
    // The whole job's limit, and each connection's own.
    let late = run(
        &cluster,
        &["--start-timeout", "12", "--hostfile", "hosts", "true"],
    );
    assert_eq!(late.code(), 125, "{}", late.report());
    assert_says(&late, &["node7, node128", "--start-timeout"]);
    assert!(!late.stderr.contains("node8"), "{}", late.report());
    let config = "KexAlgorithms curve25519-sha256\nConnectTimeout 3\n";
    write(&cluster, "head", &format!("{HOME}/.ssh/config"), config);
    let refused = run(&cluster, &["--hostfile", "hosts", "true"]);
    assert_eq!(refused.code(), 125, "{}", refused.report());
    let named = ["cannot reach node7 ", "cannot reach node128 ", "3 s"];
    assert_says(&refused, &named);
    let count = refused.stderr.matches("cannot reach").count();
    assert_eq!(count, 2, "{}", refused.report());
}
