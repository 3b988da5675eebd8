//! kill -9 of each of our own processes: nothing may be left, anywhere, five seconds later.

use crate::common::{CLEAN_LIMIT, JOB_LIMIT, cluster, is_rlaunch, start, write};
use nix::sys::signal::Signal;
use rlaunch_harness::{Cluster, Finished, Process, Running};

/// A shell with children, one of them in a session of its own, that ignores polite requests.
const RANKS: &str = "trap '' TERM HUP INT; setsid sleep 1000 & sleep 1000 & echo ready; while :; do sleep 1000; done";

/// Two ranks on node1, one on node2 and one on head itself, all running.
fn job(cluster: &Cluster, options: &[&str]) -> Running {
    write(
        cluster,
        "head",
        "/job/mixed",
        "node1 slots=2\nnode2 slots=1\nhead slots=1\n",
    );
    let mut words = vec!["-hostfile", "mixed"];
    words.extend(options);
    words.extend(["/bin/sh", "-c", RANKS]);
    let job = start(cluster, &words);
    job.await_stdout(JOB_LIMIT, |text| text.matches("ready").count() == 4)
        .unwrap_or_else(|error| panic!("the job does not start: {error}"));
    job
}

/// Kills what `choose` picks of a host's processes: one reached by ssh, by the ssh program, and
/// the one that the launcher runs on. The job has to fail, saying which host.
fn kill_on_hosts(name: &str, places: &[Place], choose: impl Fn(&[Process]) -> Process) {
    for (host, options) in places {
        let Some(cluster) = cluster(2) else { return };
        let options: Vec<&str> = ["--kill-after", "1"]
            .iter()
            .chain(*options)
            .copied()
            .collect();
        let job = job(&cluster, &options);
        let victim = choose(&cluster.processes(host).unwrap());
        victim.signal(Signal::SIGKILL);
        let finished = settle(&cluster, &format!("{name} on {host}"), job);
        assert_ne!(finished.code(), 0, "{name}: {}", finished.report());
        assert!(
            finished.stderr.contains(host),
            "{name} on {host}: {}",
            finished.report()
        );
    }
}

/// A host and the options that lead to it.
type Place = (&'static str, &'static [&'static str]);
const REMOTE: &[Place] = &[("node1", &[]), ("node1", &["--ssh-program", "ssh"])];
const ALL: &[Place] = &[REMOTE[0], REMOTE[1], ("head", &[])];

fn settle(cluster: &Cluster, name: &str, job: Running) -> Finished {
    let idle = cluster.await_idle(CLEAN_LIMIT);
    let idle = idle.unwrap_or_else(|error| panic!("{name}: {error}\n{}", job.stderr()));
    println!("{name}: nothing left after {:.2} s", idle.as_secs_f64());
    for host in cluster.hosts() {
        // A host that is off has none; one that never had a rank has not even the folder.
        let Ok(folder) = cluster.path_on(host, "/tmp/rlaunch-0/jobs") else {
            continue;
        };
        let records = std::fs::read_dir(folder).into_iter().flatten();
        assert_eq!(records.count(), 0, "{name}: {host} still has a record");
    }
    job.wait(JOB_LIMIT).unwrap()
}

/// The keeper is the ranks' parent, the agent is the keeper's.
fn keeper(processes: &[Process]) -> Process {
    let rank = processes
        .iter()
        .find(|process| process.command().starts_with("/bin/sh -c trap"))
        .expect("a rank runs");
    parent(processes, rank)
}

fn parent(processes: &[Process], child: &Process) -> Process {
    let found = processes
        .iter()
        .find(|process| process.machine_pid == child.machine_parent);
    found
        .unwrap_or_else(|| panic!("{child} has no parent in {processes:#?}"))
        .clone()
}

#[test]
fn kill_the_agent() {
    kill_on_hosts("agent", ALL, |processes| {
        let agent = parent(processes, &keeper(processes));
        assert!(is_rlaunch(&agent), "{agent}");
        agent
    });
}

#[test]
fn kill_the_keeper() {
    kill_on_hosts("keeper", ALL, keeper);
}

/// The process of sshd that serves the agent's connection.
#[test]
fn kill_the_connection() {
    kill_on_hosts("sshd connection", REMOTE, |processes| {
        let agent = parent(processes, &keeper(processes));
        let sshd = parent(processes, &agent);
        assert!(sshd.name.starts_with("sshd"), "{sshd}");
        sshd
    });
}

#[test]
fn kill_the_launcher() {
    for options in [
        &["--kill-after", "1"][..],
        &["--kill-after", "1", "--ssh-program", "ssh"],
    ] {
        let Some(cluster) = cluster(2) else { return };
        let job = job(&cluster, options);
        job.signal(Signal::SIGKILL).unwrap();
        let finished = settle(&cluster, "launcher", job);
        assert_eq!(finished.code(), 137, "{}", finished.report());
    }
}

/// A whole host that dies says so to nobody; the launcher sees it by the connection that closes.
#[test]
fn kill_a_host() {
    let Some(cluster) = cluster(2) else { return };
    let job = job(&cluster, &["--kill-after", "1"]);
    cluster.kill("node2").unwrap();
    let finished = settle(&cluster, "host", job);
    assert_ne!(finished.code(), 0, "{}", finished.report());
    assert!(finished.stderr.contains("node2"), "{}", finished.report());
}
