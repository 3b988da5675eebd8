//! Ranks that talk to each other over several hosts, and what they are told when a peer fails.

use crate::common::{
    CLEAN_LIMIT, JOB_LIMIT, assert_says, cluster_with, module, python, share_python, start, write,
};
use rlaunch_harness::{Cluster, Finished, Running};
use std::time::Duration;

const HOSTS: &[&str] = &["node1", "node2"];

/// Two ranks on each of two hosts begin a script.
fn begin(python: &str, cluster: &Cluster, text: &str) -> Running {
    for host in HOSTS {
        write(cluster, host, "/job/script.py", text);
    }
    let words = [
        "-hostfile",
        "hosts",
        "--kill-after",
        "5",
        "--python",
        python,
        "script.py",
    ];
    start(cluster, &words)
}

fn script(python: &str, cluster: &Cluster, text: &str) -> Finished {
    begin(python, cluster, text)
        .wait(JOB_LIMIT)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn ready() -> Option<(Cluster, String)> {
    let python = python()?;
    module()?;
    let cluster = cluster_with(2, |options| share_python(options, &python))?;
    Some((
        cluster,
        python.to_str().expect("a path in UTF-8").to_owned(),
    ))
}

/// A rank that is killed while all are busy: the verdict names it, and every other rank gets an
/// error that names it within two seconds, on its own host and on the other.
#[test]
fn a_dead_peer_is_an_error() {
    let Some((cluster, python)) = ready() else {
        return;
    };
    let text = "\
import os, signal, time
import numpy as np
import rlaunch as rl
signal.signal(signal.SIGTERM, signal.SIG_IGN)
rl.init()
data = np.ones(100_000, dtype=np.float32)
for turn in range(1_000_000):
    if turn == 50 and rl.rank() == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    before = time.monotonic()
    try:
        rl.all_reduce(data)
    except rl.PeerFailedError as error:
        print(f'told {rl.rank()} {time.monotonic() - before:.3f} {error.peer}', flush=True)
        raise SystemExit(1)
";
    let finished = script(&python, &cluster, text);
    assert_eq!(finished.code(), 137, "{}", finished.report());
    assert_says(&finished, &["rank 3 on node2", "SIGKILL"]);
    let told: Vec<Vec<&str>> = finished
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("told "))
        .map(|line| line.split(' ').collect())
        .collect();
    assert_eq!(told.len(), 3, "{}", finished.report());
    for words in told {
        let seconds: f64 = words[1].parse().unwrap();
        assert!(seconds < 2.0, "rank {}: {seconds} s", words[0]);
        assert_eq!(words[2], "3", "{}", finished.report());
    }
    cluster.await_idle(CLEAN_LIMIT).unwrap();
}

/// A count that differs on one rank is an error on every rank, not a hang.
#[test]
fn a_mismatch_is_an_error() {
    let Some((cluster, python)) = ready() else {
        return;
    };
    let text = "\
import signal
import numpy as np
import rlaunch as rl
signal.signal(signal.SIGTERM, signal.SIG_IGN)
rl.init()
rl.barrier()
try:
    rl.all_reduce(np.ones(1001 if rl.rank() == 2 else 1000))
    rl.barrier()
except rl.Error as error:
    print(f'told {rl.rank()} {type(error).__name__} {error}', flush=True)
    raise SystemExit(1)
";
    let finished = script(&python, &cluster, text);
    assert_eq!(finished.code(), 1, "{}", finished.report());
    let told: Vec<&str> = finished
        .stdout
        .lines()
        .filter(|line| line.starts_with("told "))
        .collect();
    assert_eq!(told.len(), 4, "{}", finished.report());
    for line in told {
        assert!(line.contains("MismatchError"), "{line}");
        assert!(line.contains("1001") && line.contains("1000"), "{line}");
    }
}

/// Every collective and a message around the ring give what they must, between and inside hosts.
#[test]
fn everything_over_two_hosts() {
    let Some((cluster, python)) = ready() else {
        return;
    };
    let text = "\
import numpy as np
import rlaunch as rl
rl.init()
me, all_ranks = rl.rank(), rl.size()
for kind in (np.int32, np.int64, np.float32, np.float64):
    for count in (0, 1, 7, 4096, 300_001):
        data = np.full(count, me + 1, dtype=kind)
        assert (rl.all_reduce(data) == 10).all()
        data = np.full(count, me, dtype=kind)
        assert (rl.broadcast(data, root=2) == 2).all()
        parts = rl.all_gather(np.full(count, me, dtype=kind)).reshape(all_ranks, count)
        assert all((part == index).all() for index, part in enumerate(parts))
        mine = rl.reduce_scatter(np.repeat(np.arange(all_ranks, dtype=kind), count).reshape(all_ranks, count))
        assert mine.size == count and (mine == all_ranks * me).all()
        got = np.zeros(count, dtype=kind)
        if me % 2 == 0:
            rl.send(np.full(count, me, dtype=kind), (me + 1) % all_ranks)
            rl.recv(got, (me - 1) % all_ranks)
        else:
            rl.recv(got, (me - 1) % all_ranks)
            rl.send(np.full(count, me, dtype=kind), (me + 1) % all_ranks)
        assert (got == (me - 1) % all_ranks).all()
rl.barrier()
print('right', flush=True)
";
    let finished = script(&python, &cluster, text);
    assert!(finished.success(), "{}", finished.report());
    assert_eq!(finished.stdout, "right\n".repeat(4));
    let shared = cluster.shell("node1", "ls -A /dev/shm").unwrap();
    assert_eq!(shared.stdout, "", "left in /dev/shm");
}

/// A host that loses its power while all are busy, with the default --host-timeout: it is the host
/// that is named, not a rank whose connection to it broke first.
#[test]
fn a_lost_host_is_named_although_ranks_notice_it_too() {
    let Some((cluster, python)) = ready() else {
        return;
    };
    let text = "\
import numpy as np
import rlaunch as rl
rl.init()
data = np.ones(100_000, dtype=np.float32)
for turn in range(100_000_000):
    rl.all_reduce(data)
    if turn == 50:
        print('ready', flush=True)
";
    let job = begin(&python, &cluster, text);
    job.await_stdout(JOB_LIMIT, |text| text.matches("ready").count() == 4)
        .unwrap();
    cluster.power_off("node2").unwrap();
    let finished = job.wait(Duration::from_secs(60)).unwrap();
    assert_eq!(finished.code(), 123, "{}", finished.report());
    assert_says(&finished, &["host node2 was lost"]);
}
