//! The hosts themselves: that they are hosts, that their faults are faults, and that nothing is
//! left of them.

#![allow(
    clippy::unwrap_used,
    reason = "a test that stops here has failed, and says where"
)]

use rlaunch_harness::{Cluster, Nic, Options, Where, state_folder};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// A promise that says "at once" may take this long on a machine that is busy.
const SOON: Duration = Duration::from_secs(20);

fn up(options: &Options) -> Option<Cluster> {
    if let Some(reason) = rlaunch_harness::unavailable() {
        eprintln!("SKIPPED: {reason}");
        return None;
    }
    Some(Cluster::up(options).unwrap())
}

/// Whether a TCP connection to an address comes about within some seconds.
fn connects(cluster: &Cluster, host: &str, address: &str, seconds: &str) -> bool {
    let connect = format!("exec 3<>/dev/tcp/{address}/22");
    cluster
        .exec(host, &["timeout", seconds, "bash", "-c", &connect])
        .unwrap()
        .success()
}

/// Generous: after a fault, the search for the peer's MAC address goes on once a second.
fn reaches(cluster: &Cluster, host: &str, address: &str) -> bool {
    connects(cluster, host, address, "15")
}

fn misses(cluster: &Cluster, host: &str, address: &str) -> bool {
    !connects(cluster, host, address, "0.5")
}

/// ssh works between any two hosts, by name, in both networks and both families, unasked.
#[test]
fn ssh_between_hosts() {
    let Some(cluster) = up(&Options::new(2)) else {
        return;
    };
    for (from, to, name) in [
        ("head", "node1", "node1"),
        ("node1", "node2-ib", "node2"),
        ("node2", "fd77::fe", "head"),
    ] {
        let shown = cluster.exec(from, &["ssh", to, "hostname"]).unwrap();
        assert!(shown.success(), "{from} to {to}: {}", shown.report());
        assert_eq!(shown.stdout.trim(), name);
    }
}

/// Files, shared memory, devices, identities and processes of one host are on no other.
#[test]
fn hosts_are_apart() {
    let Some(cluster) = up(&Options::new(2)) else {
        return;
    };
    let mark = "/usr/local/bin/mark";
    let written = cluster.shell(
        "node1",
        "set -e; for file in /tmp/mark /dev/shm/mark /usr/local/bin/mark $HOME/mark /run/mark; \
         do echo here > $file; done; mknod /dev/nvidia0 c 195 0",
    );
    assert!(written.unwrap().success());
    for host in ["head", "node2"] {
        let seen = cluster
            .shell(host, "ls /tmp /dev/shm /usr/local/bin /dev $HOME /run")
            .unwrap();
        assert!(
            !seen.stdout.contains("mark") && !seen.stdout.contains("nvidia0"),
            "{}",
            seen.stdout
        );
    }
    assert!(!Path::new(mark).exists() && !Path::new("/dev/nvidia0").exists());

    let identity = "cat /proc/sys/kernel/random/boot_id /etc/machine-id /etc/hostname";
    let one = cluster.shell("node1", identity).unwrap().stdout;
    let two = cluster.shell("node2", identity).unwrap().stdout;
    for (one, two) in one.lines().zip(two.lines()) {
        assert_ne!(one, two);
    }
    let sleeper = cluster.spawn("node1", &["sleep", "1000"]).unwrap();
    let pid = sleeper.machine_pid().unwrap();
    let on = |host: &str| cluster.processes(host).unwrap();
    assert!(on("node1").iter().any(|process| process.machine_pid == pid));
    assert!(
        on("node2").iter().all(|process| process.pid == 1),
        "{:?}",
        on("node2")
    );
}

/// docker0 has the same address everywhere: who connects to "node2's" reaches himself.
#[test]
fn docker0_is_a_trap() {
    let Some(cluster) = up(&Options::new(2)) else {
        return;
    };
    let key = |host: &str, address: &str| {
        let scan = format!("ssh-keyscan -t ed25519 {address} 2>/dev/null | cut -d' ' -f3");
        cluster.shell(host, &scan).unwrap().stdout
    };
    let (own, peer) = (key("node2", "node1"), key("node1", "node2"));
    assert_eq!(key("node1", "172.17.0.1"), own);
    assert_eq!(key("node2", "172.17.0.1"), peer);
    assert_ne!(own, peer);
    let nics = cluster.shell("node1", "ip -brief address").unwrap().stdout;
    // Whether a bridge without spanning tree says UP or UNKNOWN is a matter of moments.
    for (nic, up) in [
        ("docker0 ", true),
        ("virbr0 ", true),
        ("eth1@eth1-p ", false),
    ] {
        let line = nics.lines().find(|line| line.starts_with(nic));
        let line = line.unwrap_or_else(|| panic!("no {nic}in {nics}"));
        assert_eq!(!line.contains("DOWN"), up, "{line}");
    }
}

/// Each fault takes away what it says and no more, and can be undone.
#[test]
fn faults_are_seen() {
    let Some(cluster) = up(&Options::new(3)) else {
        return;
    };
    let carrier = || {
        cluster
            .shell("node1", "cat /sys/class/net/eth0/carrier")
            .unwrap()
            .stdout
    };

    cluster.unplug("node1", Nic::Eth0).unwrap();
    assert_eq!(carrier().trim(), "0");
    assert!(misses(&cluster, "head", "node1") && reaches(&cluster, "head", "node1-ib"));
    cluster.plug("node1", Nic::Eth0).unwrap();
    assert!(reaches(&cluster, "head", "node1"));

    cluster.black_hole("node1").unwrap();
    assert_eq!(carrier().trim(), "1");
    assert!(misses(&cluster, "head", "node1") && misses(&cluster, "head", "node1-ib"));
    cluster.heal("node1").unwrap();
    assert!(reaches(&cluster, "head", "node1"));

    cluster.split(&["node1"], &["node2", "node3"]).unwrap();
    assert!(misses(&cluster, "node1", "node2") && reaches(&cluster, "node3", "node2"));
    assert!(reaches(&cluster, "head", "node1"));
    cluster.join().unwrap();
    assert!(reaches(&cluster, "node1", "node2"));
}

/// A killed host's peer is told at once; a powered-off one's is not. Both come back empty.
#[test]
fn hosts_die_and_come_back() {
    let Some(cluster) = up(&Options::new(2)) else {
        return;
    };
    let session = |host: &str| {
        let running = cluster
            .spawn("head", &["ssh", host, "echo there; sleep 1000"])
            .unwrap();
        running
            .await_stdout(SOON, |text| text.contains("there"))
            .unwrap();
        running
    };
    let told = session("node1");
    cluster.shell("node1", "touch /etc/mark").unwrap();
    cluster.kill("node1").unwrap();
    assert_eq!(told.wait(SOON).unwrap().code(), 255);
    assert!(cluster.processes("node1").unwrap().is_empty());
    assert!(cluster.exec("node1", &["true"]).is_err());

    let mut untold = session("node2");
    cluster.power_off("node2").unwrap();
    assert!(untold.ends_within(Duration::from_millis(500)).is_none());

    for host in ["node1", "node2"] {
        cluster.boot(host).unwrap();
        assert!(reaches(&cluster, "head", host));
    }
    assert!(
        !cluster
            .shell("node1", "ls /etc")
            .unwrap()
            .stdout
            .contains("mark")
    );
}

/// A program's end is passed on as it was: code, signal, output.
#[test]
fn programs_end_as_they_ended() {
    let Some(cluster) = up(&Options::new(1)) else {
        return;
    };
    let ended = cluster
        .shell("head", "echo out; echo err >&2; exit 7")
        .unwrap();
    assert_eq!(
        (ended.code(), &*ended.stdout, &*ended.stderr),
        (7, "out\n", "err\n")
    );
    let killed = cluster.shell("head", "kill -9 $$").unwrap();
    assert_eq!((killed.status.code(), killed.code()), (None, 137));
    let late = cluster.spawn("head", &["sleep", "1000"]).unwrap();
    assert!(
        late.wait(Duration::from_millis(50))
            .unwrap_err()
            .to_string()
            .contains("sleep")
    );
    cluster.await_idle(SOON).unwrap();
}

/// A folder is shared where asked for, and one that is hidden looks empty, except for shares.
#[test]
fn shared_and_hidden_folders() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "text").unwrap();
    let options = Options::new(1)
        .hide("/usr/share")
        .share(folder.path(), "/job/data")
        .share_on(
            Where::Head,
            folder.path().join("file"),
            "/usr/share/only/file",
        );
    let Some(cluster) = up(&options) else { return };
    let show = |host: &str, line: &str| cluster.shell(host, line).unwrap().stdout;
    assert_eq!(show("node1", "cat /job/data/file; ls /usr/share"), "text");
    assert_eq!(
        show("head", "cat /usr/share/only/file; ls /usr/share"),
        "textonly\n"
    );
    show("node1", "echo new > /job/data/other");
    assert_eq!(
        fs::read_to_string(folder.path().join("other")).unwrap(),
        "new\n"
    );
}

/// Two clusters with the same addresses don't see each other; when they are gone nothing is left.
#[test]
fn clusters_side_by_side_leave_nothing() {
    let (Some(one), Some(two)) = (up(&Options::new(1)), up(&Options::new(1))) else {
        return;
    };
    one.shell("node1", "touch /tmp/one").unwrap();
    let seen = two.exec("head", &["ssh", "node1", "ls /tmp"]).unwrap();
    assert!(
        seen.success() && seen.stdout.is_empty(),
        "{}",
        seen.report()
    );

    let firsts = [&one, &two]
        .map(|cluster| ["head", "node1"].map(|host| cluster.machine_pid(host).unwrap()));
    let networks: Vec<_> = firsts
        .iter()
        .flatten()
        .map(|pid| namespace(*pid, "net").unwrap())
        .collect();
    let runaway = one
        .shell("node1", "setsid sleep 1000 >/dev/null 2>&1 & echo $!")
        .unwrap();
    assert!(runaway.success());
    drop(one);
    let stops = move || {
        let _cluster = two;
        panic!("on purpose: a test that fails must leave nothing either");
    };
    assert!(std::thread::spawn(stops).join().is_err());
    for pid in firsts.iter().flatten() {
        assert!(namespace(*pid, "net").is_none_or(|network| !networks.contains(&network)));
    }
    assert!(
        all_namespaces("net")
            .iter()
            .all(|network| !networks.contains(network))
    );
    let own = format!("{}-", std::process::id());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(
        !mounts.contains(state_folder().join(&own).to_str().unwrap()),
        "{mounts}"
    );
}

/// Network namespaces hold on to nothing but descriptors: this is what `ip netns` would look for.
fn namespace(pid: i32, kind: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/{kind}"))
        .ok()
        .map(|data| data.ino())
}

fn all_namespaces(kind: &str) -> Vec<u64> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| namespace(pid, kind)).collect()
}

/// An owner that is killed takes its hosts along, and the next cluster removes its folder.
#[test]
fn a_killed_owner_leaves_nothing() {
    let Some(_) = up(&Options::new(1)) else {
        return;
    };
    let hosts = env!("CARGO_BIN_EXE_hosts");
    let mut owner = std::process::Command::new(hosts)
        .args([
            "--name",
            &format!("test-{}", std::process::id()),
            "keep",
            "2",
        ])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(owner.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let pids: Vec<i32> = line
        .split_ascii_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    assert_eq!(pids.len(), 3, "{line}");
    assert!(pids.iter().all(|pid| namespace(*pid, "net").is_some()));
    let mark = format!("{}-", owner.id());
    let folders = || {
        let entries = fs::read_dir(state_folder()).unwrap().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&mark))
            .count()
    };
    assert_eq!(folders(), 1);

    owner.kill().unwrap();
    owner.wait().unwrap();
    let start = std::time::Instant::now();
    while pids.iter().any(|pid| namespace(*pid, "net").is_some()) {
        assert!(start.elapsed() < SOON, "hosts outlive their owner");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(up(&Options::new(1)));
    assert_eq!(folders(), 0);
}
