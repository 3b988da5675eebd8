//! Hosts that fall silent: the launcher says which within ten seconds at `--host-timeout 8`.

use crate::common::{CLEAN_LIMIT, JOB_LIMIT, cluster, start};
use rlaunch_harness::{Cluster, HarnessError, Nic};
use std::time::{Duration, Instant};

/// `--host-timeout 8` and two seconds, as promised.
const NAMED_LIMIT: Duration = Duration::from_secs(10);

fn lose(
    name: &str,
    options: &[&str],
    fault: impl FnOnce(&Cluster) -> Result<(), HarnessError>,
) -> Option<Cluster> {
    let cluster = cluster(3)?;
    let ranks = "setsid sleep 1000 & echo ready; sleep 1000";
    let mut words = vec![
        "-hostfile",
        "hosts",
        "--host-timeout",
        "8",
        "--kill-after",
        "1",
    ];
    words.extend(options);
    words.extend(["/bin/sh", "-c", ranks]);
    let job = start(&cluster, &words);
    job.await_stdout(JOB_LIMIT, |text| text.matches("ready").count() == 6)
        .unwrap();

    fault(&cluster).unwrap();
    let start = Instant::now();
    let named = |text: &str| {
        text.lines()
            .any(|line| line.contains("host node2 was lost"))
    };
    let named = job.await_stderr(NAMED_LIMIT, named);
    let named = named.unwrap_or_else(|error| panic!("{name}: the lost host is not named: {error}"));
    let finished = job.wait(JOB_LIMIT).unwrap();
    println!("{name}: named after {:.1} s", named.as_secs_f64());
    assert_ne!(finished.code(), 0, "{name}: {}", finished.report());
    let others = || {
        let left = cluster.leftovers().unwrap();
        left.into_iter()
            .filter(|(host, _)| host != "node2")
            .collect::<Vec<_>>()
    };
    let limit = NAMED_LIMIT + CLEAN_LIMIT;
    while !others().is_empty() {
        assert!(
            start.elapsed() < limit,
            "{name}: left on the others: {:#?}",
            others()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(cluster)
}

#[test]
fn power_off() {
    lose("power off", &[], |cluster| cluster.power_off("node2"));
}

/// Agents hold to the same rule as the launcher: the host that nobody reaches ends its ranks too.
#[test]
fn black_hole() {
    let Some(cluster) = lose("black hole", &[], |cluster| cluster.black_hole("node2")) else {
        return;
    };
    let start = Instant::now();
    let left = || {
        cluster
            .processes("node2")
            .unwrap()
            .into_iter()
            .filter(|process| process.name == "sleep")
            .collect::<Vec<_>>()
    };
    while !left().is_empty() {
        assert!(
            start.elapsed() < Duration::from_secs(15),
            "still on node2: {:#?}",
            left()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// As a black hole, with the system's ssh, whose own keepalives must not be needed.
#[test]
fn unplugged_with_the_ssh_program() {
    lose(
        "unplugged, ssh program",
        &["--ssh-program", "ssh"],
        |cluster| cluster.unplug("node2", Nic::Eth0),
    );
}
