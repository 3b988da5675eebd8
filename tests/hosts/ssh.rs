//! SSH as users have it: keys, ports, shells, clocks, from a terminal and without one.

use crate::common::{JOB_LIMIT, assert_says, cluster, rlaunch, run, run_well, start, write};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::openpty;
use rlaunch_harness::{Cluster, HOME};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

fn shell(cluster: &Cluster, host: &str, line: &str) {
    let done = cluster.shell(host, line).unwrap();
    assert!(done.success(), "{host}: {line}: {}", done.report());
}

/// `rlaunch WORDS` on a terminal, where each of `answers` is typed once the text before it is
/// there. What the terminal showed, and the exit code.
fn on_a_terminal(cluster: &Cluster, words: &[&str], answers: &[(&str, &str)]) -> (String, i32) {
    let pty = openpty(None, None).unwrap();
    let mut command = rlaunch(cluster, words);
    let end = || pty.slave.try_clone().unwrap();
    command.stdin(end()).stdout(end()).stderr(end());
    let own = || {
        // SAFETY: a system call on numbers; the process has begun a session of its own.
        match unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: `own` makes system calls only.
    unsafe { command.pre_exec(own) };
    let mut child = command.spawn().unwrap();
    drop(command);
    drop(pty.slave);
    let mut terminal = File::from(pty.master);
    let (mut shown, mut answers) = (String::new(), answers.iter());
    let mut next = answers.next();
    let mut buffer = [0; 4096];
    let end = Instant::now() + JOB_LIMIT;
    loop {
        let mut wait = [PollFd::new(terminal.as_fd(), PollFlags::POLLIN)];
        let left = end.saturating_duration_since(Instant::now());
        let ready = poll(&mut wait, PollTimeout::try_from(left).unwrap()).unwrap();
        if ready == 0 {
            child.kill().unwrap();
            panic!("nothing happens any more: {shown}");
        }
        // The end of a terminal is an error.
        let Ok(length @ 1..) = terminal.read(&mut buffer) else {
            break;
        };
        shown += &String::from_utf8_lossy(&buffer[..length]);
        while let Some((prompt, answer)) = next.filter(|(prompt, _)| shown.contains(prompt)) {
            let _ = prompt;
            terminal.write_all(answer.as_bytes()).unwrap();
            next = answers.next();
        }
    }
    (shown, child.wait().unwrap().code().unwrap_or(-1))
}

/// The passphrase of a key is asked for once, unseen, and serves for all hosts; without a terminal
/// one line says what to do. ^C at the question ends the launch.
#[test]
fn an_encrypted_key() {
    let Some(cluster) = cluster(3) else { return };
    shell(
        &cluster,
        "head",
        "ssh-keygen -q -p -P '' -N 'open sesame' -f ~/.ssh/id_ed25519",
    );
    let job = ["-np", "3", "-H", "node1,node2,node3", "hostname"];
    for program in [None, Some(["--ssh-program", "ssh"])] {
        let words: Vec<&str> = program.into_iter().flatten().chain(job).collect();
        let answers = [
            ("for all hosts: ", "wrong\n"),
            ("That is not it", "open sesame\n"),
        ];
        let (shown, code) = on_a_terminal(&cluster, &words, &answers);
        assert_eq!(code, 0, "{shown}");
        for host in ["node1", "node2", "node3"] {
            assert!(shown.contains(&format!("{host}\r\n")), "{shown}");
        }
        assert_eq!(shown.matches("/.ssh/id_ed25519").count(), 2, "{shown}");
        assert!(
            !shown.contains("wrong") && !shown.contains("sesame"),
            "{shown}"
        );
    }
    let (shown, code) = on_a_terminal(&cluster, &job, &[("for all hosts: ", "\x03")]);
    assert_ne!(code, 0, "{shown}");
    assert!(!shown.contains("cannot reach"), "{shown}");

    let finished = run(&cluster, &job);
    assert_eq!(finished.code(), 125, "{}", finished.report());
    assert_says(&finished, &["no terminal", "ssh-add ", "/.ssh/id_ed25519"]);
}

/// Hosts that know each other's machines need no key of the user. Only the ssh program can, and it
/// is chosen for it.
#[test]
fn host_based_logins() {
    let Some(cluster) = cluster(2) else { return };
    shell(
        &cluster,
        "head",
        "rm ~/.ssh/id_ed25519 && cp /run/host/host_key /etc/ssh/ssh_host_ed25519_key && \
         ssh-keygen -y -f /run/host/host_key >/etc/ssh/ssh_host_ed25519_key.pub && \
         printf 'EnableSSHKeysign yes\\nHostbasedAuthentication yes\\n' >/etc/ssh/ssh_config",
    );
    let known = cluster
        .path_on("head", format!("{HOME}/.ssh/known_hosts"))
        .unwrap();
    let known = std::fs::read_to_string(known).unwrap();
    for host in ["node1", "node2"] {
        write(&cluster, host, &format!("{HOME}/.ssh/known_hosts"), &known);
        shell(
            &cluster,
            host,
            "echo 'head root' >~/.shosts && chmod 600 ~/.shosts && \
             printf '10.77.0.254 head\\n' >>/etc/hosts && \
             printf 'HostbasedAuthentication yes\\nIgnoreRhosts no\\n\
             HostbasedUsesNameFromPacketOnly yes\\n' >>/run/host/sshd_config && kill -HUP 1",
        );
    }
    let words = ["-v", "-np", "2", "-H", "node1,node2", "hostname"];
    let finished = run_well(&cluster, &words);
    assert_says(&finished, &["because the host takes host-based logins"]);
}

/// ompi#2224, #12090, #7120: a port is `port=N` or `--ssh-port`; another port is another host, also
/// of this machine, which `--ssh-always` reaches by ssh at all.
#[test]
fn ports_and_this_machine() {
    let Some(cluster) = cluster(1) else { return };
    let second = "/usr/sbin/sshd -f /run/host/sshd_config -p 2222 -o SetEnv=SSHD=second";
    for host in ["node1", "head"] {
        shell(&cluster, host, second);
    }
    let which = "echo $RANK $(hostname) ${SSHD:-first}";
    let reached = |words: &[&str]| {
        let finished = run_well(&cluster, &[words, &["/bin/sh", "-c", which]].concat());
        let mut lines: Vec<String> = finished.stdout.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let port = ["--ssh-port", "2222"];
    assert_eq!(
        reached(&[&port[..], &["-H", "node1"]].concat()),
        ["0 node1 second"]
    );
    let text = "node1 port=2222 slots=1\nnode1 slots=1\nhead port=2222 slots=1\nhead slots=1\n";
    write(&cluster, "head", "/job/ports", text);
    let ranks = [
        "0 node1 second",
        "1 node1 first",
        "2 head second",
        "3 head first",
    ];
    assert_eq!(reached(&["--hostfile", "ports"]), ranks);
    // Without the switch this machine needs no ssh, and no port.
    assert_eq!(
        reached(&[&port[..], &["-H", "head"]].concat()),
        ["0 head first"]
    );
    let always = [&port[..], &["--ssh-always", "-H", "head"]].concat();
    assert_eq!(reached(&always), ["0 head second"]);
    let unknown = run(
        &cluster,
        &["--plm_rsh_args", "-p 2222", "-H", "node1", "true"],
    );
    assert_ne!(unknown.code(), 0, "{}", unknown.report());
    let refused = run(&cluster, &["--ssh-port", "2223", "-H", "node1", "true"]);
    assert_says(&refused, &["node1:2223", "connection refused", "port=N"]);
}

/// A start-up file that takes its time; one that stops shells which are not interactive; a PATH
/// without anything; names that hosts don't know, the launcher's among them; folders of which none
/// can take the agent.
#[test]
fn hosts_as_they_are_found() {
    let Some(cluster) = cluster(2) else { return };
    let job = [
        "-np",
        "2",
        "-H",
        "node1,node2",
        "/bin/sh",
        "-c",
        "echo $MASTER_ADDR",
    ];
    write(
        &cluster,
        "node1",
        &format!("{HOME}/.bashrc"),
        "sleep 2\ncase $- in *i*) ;; *) return;; esac\n",
    );
    write(
        &cluster,
        "node2",
        &format!("{HOME}/.bashrc"),
        "export PATH=/nowhere\nunset LANG\n",
    );
    for host in ["node1", "node2"] {
        write(&cluster, host, "/etc/hosts", "127.0.0.1 localhost\n");
    }
    let finished = run_well(&cluster, &job);
    assert_eq!(
        finished.stdout,
        "10.77.0.1\n10.77.0.1\n",
        "{}",
        finished.report()
    );

    // Others may write where the agent stands: it is not run for long.
    shell(
        &cluster,
        "node1",
        "echo >~/.bashrc; chmod 777 ~/.cache/rlaunch",
    );
    let refused = run(&cluster, &job);
    assert_eq!(refused.code(), 125, "{}", refused.report());
    assert_says(
        &refused,
        &["node1", "/.cache/rlaunch: others may write there"],
    );
    let full = "rm -r ~/.cache/rlaunch; mount -t tmpfs -o size=64k tmpfs ~/.cache; \
                mount -o remount,noexec /tmp && mount -t tmpfs -o noexec tmpfs /var/tmp";
    shell(&cluster, "node1", full);
    let refused = run(&cluster, &job);
    assert_eq!(refused.code(), 125, "{}", refused.report());
    let reasons = [
        "cannot reach node1",
        "/.cache/rlaunch: No space left on device",
        "/tmp/rlaunch-0: mounted noexec",
        "/var/tmp/rlaunch-0: mounted noexec",
    ];
    assert_says(&refused, &reasons);
    assert!(!refused.stderr.contains("node2"), "{}", refused.report());
    shell(&cluster, "node1", "umount /var/tmp");
    run_well(&cluster, &job);
}

/// A host whose clock is hours ahead: which rank failed first is still seen, and nothing waits.
#[test]
fn a_clock_that_is_off() {
    let Some(cluster) = cluster(2) else { return };
    let code = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <time.h>\n\
        int clock_gettime(clockid_t c, struct timespec *t) {\n\
        static int (*real)(clockid_t, struct timespec *);\n\
        if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, \"clock_gettime\");\n\
        int r = real(c, t); if (c == CLOCK_REALTIME) t->tv_sec += 18000; return r; }\n";
    write(&cluster, "node1", "/job/off.c", code);
    let built = cluster
        .shell("node1", "cc -shared -fPIC -o /job/off.so /job/off.c")
        .unwrap();
    if !built.success() {
        eprintln!("SKIPPED: no C compiler: {}", built.report());
        return;
    }
    write(
        &cluster,
        "node1",
        &format!("{HOME}/.bashrc"),
        "export LD_PRELOAD=/job/off.so\n",
    );
    let ranks = "[ $RANK = 1 ] && sleep 0.15; exit $((RANK + 3))";
    let words = ["-np", "2", "-H", "node1,node2", "/bin/sh", "-c", ranks];
    for _ in 0..3 {
        let finished = start(&cluster, &words)
            .wait(Duration::from_secs(20))
            .unwrap();
        assert_eq!(finished.code(), 3, "{}", finished.report());
        assert_says(&finished, &["rank 0", "node1"]);
    }
}
