//! Signals to the launcher reach ranks on other hosts; ^Z suspends them all.

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rlaunch_harness::Cluster;

use crate::common::{CLEAN_LIMIT, JOB_LIMIT, assert_no_ranks, cluster, rlaunch, start};

/// Ranks trap what they can, count, and leave a child in a session of its own.
const RANKS: &str = "trap 'echo USR1' USR1; setsid sleep 1000 & echo ready; i=0; \
                     while [ ! -e /tmp/end ]; do sleep 0.05; done; echo done";

/// The states of all ranks and of what they started.
fn states(cluster: &Cluster) -> Vec<char> {
    let on = |host| {
        let processes = cluster.processes(host).unwrap().into_iter();
        let ours = processes.filter(|process| {
            let command = process.command();
            command.starts_with("/bin/sh -c trap") || command.starts_with("sleep 1000")
        });
        ours.map(|process| process.state).collect::<Vec<_>>()
    };
    ["node1", "node2"].into_iter().flat_map(on).collect()
}

fn await_states(cluster: &Cluster, what: &str, fits: impl Fn(char) -> bool) {
    let start = Instant::now();
    loop {
        let states = states(cluster);
        // Four ranks with a child each.
        if states.len() >= 8 && states.iter().all(|state| fits(*state)) {
            return;
        }
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{what}: {states:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Over libssh2 and over the ssh program, for longer than a host may be silent.
#[test]
fn the_whole_job_is_suspended_and_resumed() {
    let Some(cluster) = cluster(2) else { return };
    for options in [&[][..], &["--ssh-program", "ssh"]] {
        let mut words = vec!["-hostfile", "hosts", "--host-timeout", "3"];
        words.extend(options);
        words.extend(["/bin/sh", "-c", RANKS]);
        let job = start(&cluster, &words);
        job.await_stdout(JOB_LIMIT, |text| text.matches("ready").count() == 4)
            .unwrap();
        job.signal(Signal::SIGTSTP).unwrap();
        await_states(&cluster, "all stop", |state| state == 'T');
        std::thread::sleep(Duration::from_secs(5));
        await_states(&cluster, "all are still stopped", |state| state == 'T');
        job.signal(Signal::SIGCONT).unwrap();
        await_states(&cluster, "all continue", |state| state != 'T');
        job.signal(Signal::SIGUSR1).unwrap();
        job.await_stdout(JOB_LIMIT, |text| text.matches("USR1").count() == 4)
            .unwrap();
        for host in ["node1", "node2"] {
            cluster.shell(host, "touch /tmp/end").unwrap();
        }
        let finished = job.wait(JOB_LIMIT).unwrap();
        assert!(finished.success(), "{options:?} {}", finished.report());
        assert_eq!(
            finished.stdout.matches("done").count(),
            4,
            "{}",
            finished.report()
        );
        // The shells tell of their own sleep, which has no handler.
        let ours = finished.stderr.lines();
        let told: Vec<&str> = ours
            .filter(|line| line.starts_with("rlaunch") && !line.contains("left behind"))
            .collect();
        assert!(
            told.is_empty(),
            "nobody is stopped, lost or silent: {told:?}"
        );
        for host in ["node1", "node2"] {
            cluster.shell(host, "rm /tmp/end").unwrap();
        }
    }
}

/// A launcher that is killed while all is suspended leaves nothing.
#[test]
fn a_suspended_job_whose_launcher_is_killed() {
    let Some(cluster) = cluster(2) else { return };
    let job = start(&cluster, &["-hostfile", "hosts", "/bin/sh", "-c", RANKS]);
    job.await_stdout(JOB_LIMIT, |text| text.matches("ready").count() == 4)
        .unwrap();
    job.signal(Signal::SIGTSTP).unwrap();
    await_states(&cluster, "all stop", |state| state == 'T');
    job.signal(Signal::SIGKILL).unwrap();
    job.wait(JOB_LIMIT).unwrap();
    cluster.await_idle(CLEAN_LIMIT).unwrap();
    assert_no_ranks(&cluster, "a suspended job");
}

/// A rank's terminal on another host has the size of ours, and follows its changes.
#[test]
fn terminals_have_the_size_of_ours() {
    let Some(cluster) = cluster(1) else { return };
    let pair = openpty(None, None).unwrap();
    let ours = pair.slave;
    let resize = |rows: &str, columns: &str| {
        let mut stty = Command::new("stty");
        stty.args(["rows", rows, "cols", columns]);
        let terminal: OwnedFd = ours.try_clone().unwrap();
        assert!(stty.stdin(terminal).status().unwrap().success());
    };
    resize("50", "132");
    let script = "trap 'stty size </dev/tty; exit 0' WINCH; stty size </dev/tty; \
                  while :; do sleep 0.02; done";
    let mut command = rlaunch(
        &cluster,
        &["-H", "node1", "-np", "1", "--pty", "/bin/sh", "-c", script],
    );
    command.stdin(ours.try_clone().unwrap());
    let mut job = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(job.stdout.take().unwrap()).lines();
    // Should this fail, the hosts go down, and all that runs on them.
    assert_eq!(lines.next().unwrap().unwrap(), "50 132");
    resize("40", "100");
    let helper = job.id();
    let children = std::fs::read_to_string(format!("/proc/{helper}/task/{helper}/children"));
    let launcher: i32 = children.unwrap().trim().parse().unwrap();
    kill(Pid::from_raw(launcher), Signal::SIGWINCH).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "40 100");
    assert_eq!(job.wait().unwrap().code(), Some(0));
    cluster.await_idle(CLEAN_LIMIT).unwrap();
}
