//! Ranks that go on after a host, or rank 0, is gone: `--on-failure continue`.

use crate::common::{JOB_LIMIT, cluster_with, module, python, share_python, start, write};
use rlaunch_harness::{Cluster, Running};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The least that rlaunch takes; ranks are told within [`TOLD_WITHIN`] of it.
const HOST_TIMEOUT: Duration = Duration::from_secs(3);
const TOLD_WITHIN: Duration = Duration::from_secs(2);
const HOSTS: [&str; 2] = ["node1", "node2"];

/// Each collective, and messages, by a thread with a communicator of its own. Each tells when and how
/// it ended; then those that are left go on, without those that are not.
const EACH_COLLECTIVE: &str = "\
import sys, threading, time
import numpy as np
import rlaunch as rl
rl.init()
me, size = rl.rank(), rl.size()
part, whole = np.ones(20_000), np.ones((size, 20_000))
flat, counts = whole.reshape(-1), [20_000] * size

def say(line):
    sys.stdout.write(line + chr(10))
    sys.stdout.flush()

def around(comm):
    got = np.empty_like(part)
    request = comm.irecv(got, (me - 1) % size)
    comm.send(part, (me + 1) % size)
    request.wait()

calls = {
    'barrier': lambda comm: comm.barrier(),
    'broadcast': lambda comm: comm.broadcast(part.copy()),
    'reduce': lambda comm: comm.reduce(part),
    'all_reduce': lambda comm: comm.all_reduce(part.copy(), 'max'),
    'scan': lambda comm: comm.scan(part.copy(), 'max'),
    'exscan': lambda comm: comm.exscan(part.copy(), 'max'),
    'all_gather': lambda comm: comm.all_gather(part),
    'gather': lambda comm: comm.gather(part),
    'scatter': lambda comm: comm.scatter(whole, out=np.empty_like(part)),
    'reduce_scatter': lambda comm: comm.reduce_scatter(whole),
    'all_to_all': lambda comm: comm.all_to_all(whole.copy()),
    'all_gather_v': lambda comm: comm.all_gather_v(part, counts),
    'gather_v': lambda comm: comm.gather_v(part, counts),
    'scatter_v': lambda comm: comm.scatter_v(flat, counts, out=np.empty_like(part)),
    'reduce_scatter_v': lambda comm: comm.reduce_scatter_v(flat, counts),
    'all_to_all_v': lambda comm: comm.all_to_all_v(flat, counts, counts),
    'messages': around,
}

def again_and_again(name, comm):
    try:
        for turn in range(100_000_000):
            calls[name](comm)
            if turn == 3:
                say('ready')
    except rl.Error as error:
        text = str(error).replace(chr(10), ' ')
        say(f'told {name} {me} {time.time():.3f} {type(error).__name__} {text}')

threads = [threading.Thread(target=again_and_again, args=(name, rl.duplicate())) for name in calls]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
left = rl.shrink()
total = left.all_reduce(np.full(50_000, me, dtype=np.int64))
print(f'left {list(left.ranks())} {total[-1]}', flush=True)
";
const COLLECTIVES: usize = 17;

/// Rank 0 kills itself, then rank 1: each time the others shrink and go on.
const ONE_AFTER_THE_OTHER: &str = "\
import os, signal
import numpy as np
import rlaunch as rl
rl.init()
me, comm = rl.rank(), rl.duplicate()
for victim in (0, 1):
    data = np.ones(50_000)
    try:
        for turn in range(1_000_000):
            if turn == 20 and me == victim:
                os.kill(os.getpid(), signal.SIGKILL)
            comm.all_reduce(data, 'max')
    except rl.PeerFailedError as error:
        assert error.peer == victim, error
        assert 'SIGKILL' in str(error), error
    comm = comm.shrink()
    print(f'left {list(comm.ranks())}', flush=True)
parts = comm.split(color=me % 2)
assert parts.size() == 1 and comm.all_gather_object(me) == [2, 3]
";

fn ready() -> Option<(Cluster, String)> {
    let python = python()?;
    module()?;
    let cluster = cluster_with(2, |options| share_python(options, &python))?;
    Some((cluster, python.to_str()?.to_owned()))
}

fn begin(cluster: &Cluster, python: &str, text: &str) -> Running {
    for host in HOSTS {
        write(cluster, host, "/job/script.py", text);
    }
    let words = ["-hostfile", "hosts", "--on-failure", "continue"];
    let more = ["--host-timeout", "3", "--python", python, "script.py"];
    start(cluster, &[&words[..], &more].concat())
}

fn seconds_now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_secs_f64()
}

/// A host loses its power while each collective is under way between it and the other one.
fn lose(victim: &str, dead: [u32; 2], left: [u32; 2]) {
    let Some((cluster, python)) = ready() else {
        return;
    };
    let job = begin(&cluster, &python, EACH_COLLECTIVE);
    let all_run = |text: &str| text.matches("ready").count() == 4 * COLLECTIVES;
    job.await_stdout(JOB_LIMIT, all_run).unwrap();
    cluster.power_off(victim).unwrap();
    let off = seconds_now();
    let finished = job.wait(JOB_LIMIT).unwrap();
    let lines = || finished.stdout.lines();
    let told: Vec<&str> = lines()
        .filter_map(|line| line.strip_prefix("told "))
        .collect();
    assert_eq!(told.len(), 2 * COLLECTIVES, "{}", finished.report());
    for line in told {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let took = words[2].parse::<f64>().unwrap() - off;
        let latest = (HOST_TIMEOUT + TOLD_WITHIN).as_secs_f64();
        assert!(took < latest, "after {took:.1} s: {line}");
        let names_one = |rank: &u32| line.contains(&format!("rank {rank} (host {victim}, pid "));
        assert!(dead.iter().any(names_one), "{line}");
        let call = match words[0] {
            "messages" => " #",
            name => &format!("{name} #"),
        };
        assert!(line.contains(call), "{line}");
    }
    let expected = format!("left {left:?} {}", left[0] + left[1]);
    assert_eq!(
        lines().filter(|line| *line == expected).count(),
        2,
        "{}",
        finished.report()
    );
}

#[test]
fn a_host_that_loses_its_power_is_named_in_each_collective() {
    lose("node2", [2, 3], [0, 1]);
}

/// The same with the host of rank 0, without which nobody's word is passed on.
#[test]
fn the_host_of_rank_0_is_no_exception() {
    lose("node1", [0, 1], [2, 3]);
}

#[test]
fn ranks_of_two_hosts_shrink_without_rank_0() {
    let Some((cluster, python)) = ready() else {
        return;
    };
    let job = begin(&cluster, &python, ONE_AFTER_THE_OTHER);
    let finished = job.wait(JOB_LIMIT).unwrap();
    let count = |line: &str| finished.stdout.lines().filter(|one| *one == line).count();
    assert_eq!(count("left [1, 2, 3]"), 3, "{}", finished.report());
    assert_eq!(count("left [2, 3]"), 2, "{}", finished.report());
}
