//! Hosts that have no rlaunch: how it gets there, and what stands in the way.

use crate::common::{JOB_LIMIT, assert_says, cluster, run, run_well, start, write};
use rlaunch_harness::Cluster;
use std::path::Path;

const HELLO: &[&str] = &[
    "-np",
    "2",
    "-H",
    "node1,node2",
    "/bin/sh",
    "-c",
    "echo hello from $(hostname)",
];

fn assert_hello(cluster: &Cluster, words: &[&str]) {
    let finished = run_well(cluster, words);
    let mut lines: Vec<&str> = finished.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["hello from node1", "hello from node2"],
        "{}",
        finished.report()
    );
}

/// `INODE TIME PATH` of each executable that stands in a host's cache.
fn cached(cluster: &Cluster, host: &str) -> Vec<String> {
    let list = "find $HOME/.cache/rlaunch -type f -name rlaunch -printf '%i %T@ %p\\n'";
    let found = cluster.shell(host, list).unwrap();
    found.stdout.lines().map(str::to_owned).collect()
}

/// The executable is pushed to a host once; a second job finds it.
#[test]
fn pushed_once() {
    let Some(cluster) = cluster(2) else { return };
    for host in ["node1", "node2"] {
        assert!(cached(&cluster, host).is_empty());
        assert!(!cluster.shell(host, "command -v rlaunch").unwrap().success());
    }
    assert_hello(&cluster, HELLO);
    let first = ["node1", "node2"].map(|host| cached(&cluster, host));
    assert!(first.iter().all(|files| files.len() == 1), "{first:?}");
    assert_hello(&cluster, HELLO);
    assert_eq!(["node1", "node2"].map(|host| cached(&cluster, host)), first);
}

/// An executable that was cut short or changed is not run; a good one takes its place.
#[test]
fn a_damaged_copy_is_replaced() {
    let Some(cluster) = cluster(2) else { return };
    assert_hello(&cluster, HELLO);
    let files = cached(&cluster, "node1");
    let path = files[0].rsplit(' ').next().unwrap();
    cluster
        .shell("node1", &format!("truncate -s 1000 {path}"))
        .unwrap();
    assert_hello(&cluster, HELLO);
}

/// Start-up files that print, on both streams, and change the folder disturb nothing.
#[test]
fn noisy_start_up_files() {
    let Some(cluster) = cluster(2) else { return };
    let noise = "echo welcome to this host; echo take care >&2; cd /usr\n\
                 head -c 10000 /dev/zero | tr '\\0' '#'; echo\n";
    let home = home(&cluster);
    write(&cluster, "node1", &format!("{home}/.bashrc"), noise);
    assert_hello(&cluster, HELLO);
}

fn home(cluster: &Cluster) -> String {
    cluster
        .shell("head", "echo $HOME")
        .unwrap()
        .stdout
        .trim()
        .to_owned()
}

/// Any login shell will do.
#[test]
fn login_shells() {
    let Some(cluster) = cluster(2) else { return };
    let shells = [
        "/bin/sh",
        "/bin/dash",
        "/bin/bash",
        "/usr/bin/zsh",
        "/usr/bin/fish",
        "/bin/tcsh",
    ];
    for shell in shells {
        if !Path::new(shell).exists() {
            println!("SKIPPED: no {shell} here");
            continue;
        }
        let change =
            format!("sed -i '1s|:[^:]*$|:{shell}|' /etc/passwd && grep ^root: /etc/passwd");
        let changed = cluster.shell("node1", &change).unwrap();
        assert!(
            changed.stdout.trim().ends_with(shell),
            "{}",
            changed.report()
        );
        assert_hello(&cluster, HELLO);
    }
}

/// An unknown key is refused with what to run; it is added only when asked for, and only if it is
/// new: a changed one is never taken.
#[test]
fn host_keys_are_checked() {
    let Some(cluster) = cluster(2) else { return };
    let known = format!("{}/.ssh/known_hosts", home(&cluster));
    let text = std::fs::read_to_string(cluster.path_on("head", &known).unwrap()).unwrap();

    write(&cluster, "head", &known, "");
    let refused = run(&cluster, HELLO);
    assert_eq!(refused.code(), 125, "{}", refused.report());
    assert_says(&refused, &["node1", "hint:", "--ssh-accept-new"]);
    let accepting: Vec<&str> = std::iter::once("--ssh-accept-new")
        .chain(HELLO.iter().copied())
        .collect();
    assert_hello(&cluster, &accepting);
    assert_hello(&cluster, HELLO);

    let swapped = text
        .replace("node1,", "swap,")
        .replace("node2,", "node1,")
        .replace("swap,", "node2,");
    write(&cluster, "head", &known, &swapped);
    let refused = run(&cluster, &accepting);
    assert_eq!(refused.code(), 125, "{}", refused.report());
    assert_says(&refused, &["CHANGED"]);
}

/// The system's ssh does it too.
#[test]
fn ssh_program() {
    let Some(cluster) = cluster(2) else { return };
    let words: Vec<&str> = ["--ssh-program", "ssh"]
        .into_iter()
        .chain(HELLO.iter().copied())
        .collect();
    assert_hello(&cluster, &words);
}

/// What is missing on a host is said with the host's name and the remedy, before any rank runs.
#[test]
fn missing_on_a_host() {
    let Some(cluster) = cluster(2) else { return };
    let absent = run(&cluster, &["-H", "node1,node2", "/usr/bin/absent-program"]);
    assert_ne!(absent.code(), 0, "{}", absent.report());
    assert_says(&absent, &["absent-program", "node", "hint:"]);

    cluster.shell("head", "mkdir -p /only/here").unwrap();
    cluster.shell("node1", "mkdir -p /only/here").unwrap();
    let words = [
        "--wdir",
        "/only/here",
        "-H",
        "node1,node2",
        "/bin/sh",
        "-c",
        "echo ran",
    ];
    let made = run_well(&cluster, &words);
    assert_says(&made, &["node2", "/only/here is created"]);
    assert!(!made.stderr.contains("node1"), "{}", made.report());
    // Where it can't be made that is said.
    cluster
        .shell("node2", "rm -r /only && echo >/only")
        .unwrap();
    let nowhere = run(&cluster, &words);
    assert_ne!(nowhere.code(), 0, "{}", nowhere.report());
    assert_says(
        &nowhere,
        &["/only/here", "node2", "not a directory", "--wdir"],
    );
    assert!(!nowhere.stdout.contains("ran"), "{}", nowhere.report());
}

/// A host that is not there is named, with what was tried.
#[test]
fn unreachable_host() {
    let Some(cluster) = cluster(2) else { return };
    let words = ["-H", "node1,nowhere", "true"];
    let unknown = run(&cluster, &words);
    assert_eq!(unknown.code(), 125, "{}", unknown.report());
    assert_says(&unknown, &["nowhere"]);
    cluster.kill("node2").unwrap();
    let refused = start(&cluster, &["-H", "node1,node2", "true"])
        .wait(JOB_LIMIT)
        .unwrap();
    assert_eq!(refused.code(), 125, "{}", refused.report());
    assert_says(&refused, &["node2", "refused"]);
}
