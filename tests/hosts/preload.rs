//! `--preload`: files for hosts that share none with the launcher.

use crate::common::{assert_says, cluster, run, run_well, write};
use rlaunch_harness::Cluster;
use std::os::unix::fs::PermissionsExt;

fn read(cluster: &Cluster, host: &str, path: &str) -> Option<Vec<u8>> {
    std::fs::read(cluster.path_on(host, path).unwrap()).ok()
}

const WORDS: [&str; 7] = [
    "-hostfile",
    "two",
    "--preload",
    "data",
    "--preload",
    "./run.sh",
    "./run.sh",
];

/// One cluster serves all cases, one after the other.
#[test]
fn files_for_hosts_that_share_none() {
    let Some(cluster) = cluster(2) else { return };
    write(
        &cluster,
        "head",
        "/job/two",
        "node1 slots=1\nnode2 slots=1\n",
    );
    arrive_whole(&cluster);
    what_differs_is_refused(&cluster);
    the_directory_itself(&cluster);
}

/// Files, folders, links and modes; and the same again.
fn arrive_whole(cluster: &Cluster) {
    let setup = "cd /job && mkdir -p data/deep/empty && printf one > data/one && \
                 head -c 20000000 /dev/urandom > data/deep/large && ln -s ../one data/deep/link && \
                 printf '#!/bin/sh\\necho \"rank $RANK\"\\ncat data/deep/link\\n' > run.sh && chmod 755 run.sh";
    assert!(cluster.shell("head", setup).unwrap().success());
    let finished = run_well(cluster, &WORDS);
    assert_eq!(
        finished.stdout.matches("one").count(),
        2,
        "{}",
        finished.report()
    );
    let large = read(cluster, "head", "/job/data/deep/large").unwrap();
    for node in ["node1", "node2"] {
        let there = read(cluster, node, "/job/data/deep/large");
        assert!(there.as_ref() == Some(&large), "{node}");
        let path = cluster.path_on(node, "/job/run.sh").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        let folder = cluster.path_on(node, "/job/data/deep/empty").unwrap();
        assert!(folder.is_dir(), "{node}");
    }
    let again = run_well(cluster, &WORDS);
    assert_eq!(again.stdout.matches("one").count(), 2, "{}", again.report());
}

/// By name, and then nothing is copied to any host.
fn what_differs_is_refused(cluster: &Cluster) {
    write(cluster, "node2", "/job/data/one", "changed there");
    write(cluster, "head", "/job/data/new", "new");
    let refused = run(cluster, &WORDS);
    assert_eq!(refused.code(), 125, "{}", refused.report());
    let said = [
        "node2: /job/data/one has 13 bytes there, 3 here",
        "--preload-replace",
    ];
    assert_says(&refused, &said);
    let kept = read(cluster, "node2", "/job/data/one").unwrap();
    assert_eq!(kept, b"changed there");
    assert_eq!(read(cluster, "node1", "/job/data/new"), None, "copied");
    let replace: Vec<&str> = ["--preload-replace"].into_iter().chain(WORDS).collect();
    run_well(cluster, &replace);
    assert_eq!(read(cluster, "node2", "/job/data/one").unwrap(), b"one");
    assert_eq!(read(cluster, "node1", "/job/data/new").unwrap(), b"new");
}

/// It is on no host before, and a path may be absolute. What is not here is told before any host is
/// asked.
fn the_directory_itself(cluster: &Cluster) {
    let setup = "mkdir /only && printf x > /only/here && printf y > /etc/y && cd /only";
    assert!(cluster.shell("head", setup).unwrap().success());
    let words = "-hostfile /job/two --preload . --preload /etc/y /bin/cat here /etc/y";
    let line = format!("cd /only && rlaunch {words}");
    let made = cluster.shell("head", &line).unwrap();
    assert!(made.success(), "{}", made.report());
    assert_eq!(made.stdout.replace('\n', ""), "xyxy", "{}", made.report());
    let absent = run(cluster, &["-H", "node1", "--preload", "nothing", "true"]);
    assert_eq!(absent.code(), 2, "{}", absent.report());
    assert_says(&absent, &["--preload nothing: No such file"]);
}
