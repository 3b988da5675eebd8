//! Which networks, addresses and ports ranks use between hosts that start them by hand.

use crate::common::{JOB_LIMIT, cluster_with, write};
use rlaunch_harness::{Cluster, Finished, Running};
use std::path::Path;

const BUILD: &str = "/opt/build";
const HOSTS: [&str; 2] = ["node1", "node2"];

/// Two hosts with docker0 and virbr0 at the same addresses on both, and this build's rperf.
fn ready() -> Option<Cluster> {
    let build = Path::new(env!("CARGO_BIN_EXE_rlaunch")).parent()?;
    if !build.join("rperf").exists() {
        eprintln!(
            "SKIPPED: no rperf in {}; `cargo build` makes it",
            build.display()
        );
        return None;
    }
    cluster_with(2, |options| options.share(build, BUILD))
}

/// An all_reduce by one rank on each host, checked; `variables` go to both, or to one (`1:NAME`).
fn all_reduce(cluster: &Cluster, master: &str, variables: &[(&str, &str)]) -> Vec<Finished> {
    let ranks = HOSTS.iter().enumerate().map(|(rank, host)| {
        let program = format!("{BUILD}/rperf");
        let mut command = cluster.command(host, "/tmp", program).expect("it is up");
        command.args([
            "all_reduce",
            "-b",
            "8",
            "-e",
            "16M",
            "-f",
            "1024",
            "-n",
            "5",
            "-c",
            "1",
        ]);
        command.envs([("WORLD_SIZE", "2"), ("MASTER_ADDR", master)]);
        command.envs([("MASTER_PORT", "29500"), ("RLAUNCH_INIT_TIMEOUT", "20")]);
        command.env("RANK", rank.to_string());
        for (name, value) in variables {
            match name.split_once(':') {
                Some((only, name)) if only == rank.to_string() => command.env(name, value),
                Some(_) => &mut command,
                None => command.env(name, value),
            };
        }
        Running::start(command).expect("it can be started")
    });
    let ranks: Vec<Running> = ranks.collect();
    let ended = ranks.into_iter().map(|rank| rank.wait(JOB_LIMIT));
    ended
        .map(|rank| rank.unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

fn assert_works(ended: &[Finished]) {
    for rank in ended {
        assert!(rank.success(), "{}", rank.report());
    }
    let text = &ended[0].stdout;
    assert!(text.contains("16777216"), "{}", ended[0].report());
}

/// Bytes that left a host over a NIC so far.
fn sent(cluster: &Cluster, host: &str, nic: &str) -> u64 {
    let file = format!("/sys/class/net/{nic}/statistics/tx_bytes");
    let finished = cluster.exec(host, &["cat", &file]).expect("it is up");
    finished.stdout.trim().parse().expect("a number")
}

/// nccl#913, ompi#6377: bridges with one address on both hosts lead nowhere and don't matter; and
/// where two networks lead there, large messages use both.
#[test]
fn bridges_are_passed_over_and_two_networks_used_together() {
    let Some(cluster) = ready() else { return };
    let before = ["eth0", "ib0"].map(|nic| sent(&cluster, "node1", nic));
    assert_works(&all_reduce(&cluster, "10.77.0.1", &[]));
    let moved = ["eth0", "ib0"].map(|nic| sent(&cluster, "node1", nic));
    let moved = [moved[0] - before[0], moved[1] - before[1]];
    let all = moved[0] + moved[1];
    assert!(moved.iter().all(|bytes| *bytes > all / 10), "{moved:?}");
}

/// gloo#70: the host's own name leads to loopback in its /etc/hosts. Nobody else is told of that.
#[test]
fn a_name_that_leads_to_loopback_at_home_does_no_harm() {
    let Some(cluster) = ready() else { return };
    for host in HOSTS {
        let others = "10.77.0.1 node1\n10.77.0.2 node2\n";
        let own = format!("127.0.0.1 localhost\n127.0.1.1 {host}\n{others}");
        write(&cluster, host, "/etc/hosts", &own);
    }
    assert_works(&all_reduce(&cluster, "node1", &[]));
}

/// nccl-tests#219, aws-do-eks#51: other names on each host, in any launcher's variable; the other
/// family; and a few ports for everything.
#[test]
fn interfaces_family_and_ports_are_as_asked_for() {
    let Some(cluster) = ready() else { return };
    let names = [
        ("0:NCCL_SOCKET_IFNAME", "=eth0"),
        ("1:GLOO_SOCKET_IFNAME", "^docker,virbr,eth"),
    ];
    assert_works(&all_reduce(&cluster, "10.77.0.1", &names));
    assert_works(&all_reduce(
        &cluster,
        "fd77::1",
        &[("RLAUNCH_SOCKET_FAMILY", "6")],
    ));
    // One port for each host's only rank: rank 0's is for finding it as well.
    let ports = [("RLAUNCH_PORT_RANGE", "20000-20000")];
    assert_works(&all_reduce(&cluster, "10.77.0.1", &ports));
}

/// marin#6940: a filter that leaves nothing tells what there is.
#[test]
fn a_filter_that_leaves_nothing_lists_the_interfaces() {
    let Some(cluster) = ready() else { return };
    let ended = all_reduce(&cluster, "10.77.0.1", &[("1:NCCL_SOCKET_IFNAME", "hsn")]);
    assert!(!ended[1].success());
    let text = &ended[1].stderr;
    for part in [
        "NCCL_SOCKET_IFNAME=hsn leaves none",
        "eth0 10.77.0.2/24 (not asked for)",
    ] {
        assert!(text.contains(part), "{}", ended[1].report());
    }
}
