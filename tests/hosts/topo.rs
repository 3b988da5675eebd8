//! `rlaunch topo` of hosts: each is asked, those that are alike are shown once.

use crate::common::{cluster, run, write};
use rlaunch_harness::Finished;

fn json(finished: &Finished) -> serde_json::Value {
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", finished.report()))
}

#[test]
fn hosts_are_shown_and_those_that_are_alike_once() {
    let Some(cluster) = cluster(3) else { return };
    let all = run(&cluster, &["topo", "-hostfile", "/job/hosts"]);
    assert_eq!(
        (all.code(), all.stderr.as_str()),
        (0, ""),
        "{}",
        all.report()
    );
    assert!(
        all.stdout.starts_with("node[1-3]: the same\n"),
        "{}",
        all.report()
    );
    assert_eq!(all.stdout.matches("What belongs together").count(), 1);

    // Each with its own address, which the common picture leaves out.
    let own = run(&cluster, &["topo", "-hostfile", "/job/hosts", "--json"]);
    let entries = json(&own);
    for (index, host) in ["node1", "node2", "node3"].iter().enumerate() {
        let entry = &entries[index];
        assert_eq!(entry["host"], *host, "{}", own.report());
        assert!(
            entry["machine"]["interfaces"]
                .to_string()
                .contains("addresses\":[\"")
        );
    }

    // One has an interface less, and is of another kind.
    cluster.shell("node2", "ip link set docker0 down").unwrap();
    let two = run(&cluster, &["topo", "-hostfile", "/job/hosts"]);
    assert!(
        two.stdout.starts_with("node[1,3]: the same\n"),
        "{}",
        two.report()
    );
    assert!(two.stdout.contains("\nnode2:\n"), "{}", two.report());
}

/// A host that can't be asked is named; the others are shown.
#[test]
fn a_host_that_cannot_be_asked_is_named() {
    let Some(cluster) = cluster(1) else { return };
    let some = run(&cluster, &["topo", "-H", "node1,nosuch", "--json"]);
    assert_eq!(some.code(), 125, "{}", some.report());
    assert!(some.stderr.contains("nosuch"), "{}", some.report());
    assert_eq!(json(&some)[0]["host"], "node1", "{}", some.report());
}

/// NCCL's file is looked up on the host, by the name that it has there.
#[test]
fn the_topology_file_is_the_hosts() {
    let Some(cluster) = cluster(2) else { return };
    let other = "<system><cpu numaid='0'><pci busid='00ff:01:00.0'/></cpu></system>";
    write(&cluster, "node2", "/job/topology.xml", other);
    let words = [
        "topo",
        "-hostfile",
        "/job/hosts",
        "--topo-file",
        "/job/topology.xml",
    ];
    let typed = run(&cluster, &words);
    assert_eq!(typed.code(), 125, "{}", typed.report());
    let told = |part: &str| assert!(typed.stderr.contains(part), "{}", typed.report());
    told("node1: --topo-file /job/topology.xml: No such file");
    told("node2: --topo-file /job/topology.xml: none of the devices");

    let variable = "NCCL_TOPO_FILE=/job/topology.xml exec rlaunch topo -hostfile /job/hosts";
    let named = cluster.shell("head", variable).unwrap();
    assert_eq!(named.code(), 0, "{}", named.report());
    assert!(
        named.stdout.starts_with("node[1-2]: the same\n"),
        "{}",
        named.report()
    );
    assert_eq!(
        named.stderr.matches("shown without it").count(),
        2,
        "{}",
        named.report()
    );
}
