//! What the system allows: each limit that is too small is told in a line, and no crash; what needs no
//! more works.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Run, finish, forget_settings, rlaunch, wait_until};

/// `rlaunch WORDS` below `sh -c 'ulimit LIMIT'`.
fn limited(limit: &str, words: &[&str]) -> Run {
    let rlaunch = env!("CARGO_BIN_EXE_rlaunch");
    let script = format!("ulimit {limit} && exec {rlaunch} \"$@\"");
    finish(shell().args(["-c", &script, "sh"]).args(words))
}

fn shell() -> Command {
    let mut command = Command::new("sh");
    command
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(std::process::Stdio::null());
    forget_settings(&mut command);
    command
}

/// A file that may not grow is like a full disk: said, and the job goes on.
#[test]
fn a_file_past_its_limit_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    // Blocks of 512 bytes.
    let words = ["-np", "1", "--output-dir", logs.to_str().unwrap()];
    let words = [&words[..], &["sh", "-c", "seq 1 100000; echo end >&2"]].concat();
    let run = limited("-f 200", &words);
    assert_eq!(run.code, Some(125), "{}", run.stderr);
    for text in ["rank0.stdout: File too large", "bytes could not be written"] {
        assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
    }
    assert_eq!(run.stdout.lines().count(), 100_000);
}

/// Where not even a rank's environment may be written to a file.
#[test]
fn files_that_may_hold_nothing() {
    let run = limited("-f 0", &["-np", "1", "true"]);
    assert_eq!(run.code, Some(126), "{}", run.stderr);
    for text in [
        "rank 0 could not be started",
        "File too large",
        "`ulimit -f`",
    ] {
        assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
    }
}

/// What we ignore for ourselves is nothing that a rank inherits.
#[test]
fn ranks_die_of_their_own_limits() {
    let ignored = |status: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:\t"));
        // The C library keeps 32 and 33 for itself.
        u64::from_str_radix(line.unwrap(), 16).unwrap() & !(0b11 << 31)
    };
    let run = super::ranks(1, &[], "cat /proc/self/status");
    // These tests may run under nohup, and nohup holds for ranks.
    let own = ignored(&std::fs::read_to_string("/proc/self/status").unwrap());
    let hangup = own & 1;
    assert_eq!(ignored(&run.stdout), hangup, "{}", run.stderr);
    let script = "ulimit -f 1; head -c 10000 /dev/zero > $1/zeros";
    let folder = tempfile::tempdir().unwrap();
    let words = ["-np", "1", "sh", "-c", script, "sh"];
    let mut command = rlaunch();
    let run = finish(command.args(words).arg(folder.path()));
    assert_eq!(run.code, Some(128 + 25), "{}", run.stderr);
    assert!(run.stderr.contains("ulimit -f"), "{}", run.stderr);
}

#[test]
fn limits_that_let_nothing_begin() {
    for (limit, says) in [
        ("-n 16", "16 open files are too few"),
        ("-n 8", "8 open files are too few"),
        ("-s 64", "a stack of 64 KiB is too small"),
    ] {
        let run = limited(limit, &["-np", "1", "true"]);
        assert_eq!(run.code, Some(125), "{limit}: {}", run.stderr);
        let start = format!("rlaunch: {says}");
        assert!(run.stderr.starts_with(&start), "{limit}: {}", run.stderr);
        let option = format!("hint: `ulimit {}", &limit[..2]);
        assert!(run.stderr.contains(&option), "{limit}: {}", run.stderr);
    }
    // With many ranks the agent meets the limit, and the rank is named.
    let run = limited("-n 32", &["-np", "64", "--oversubscribe", "true"]);
    assert_eq!(run.code, Some(126), "{}", run.stderr);
    assert!(run.stderr.contains("Too many open files"), "{}", run.stderr);
    assert!(run.stderr.contains("`ulimit -n`"), "{}", run.stderr);
}

/// Of a user who is not root: no such limit holds for root.
#[test]
fn the_limit_of_processes_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("rlaunch");
    std::fs::copy(env!("CARGO_BIN_EXE_rlaunch"), &program).unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let user = if nix::unistd::geteuid().is_root() {
        "setpriv --reuid 54321 --regid 54321 --clear-groups"
    } else {
        ""
    };
    for processes in 1..=14 {
        let script = format!(
            "exec prlimit --nproc={processes} {user} {} -np 4 --oversubscribe true",
            program.display()
        );
        let run = finish(shell().args(["-c", &script]).env("HOME", folder.path()));
        if run.code == Some(0) {
            continue;
        }
        assert!(matches!(run.code, Some(125 | 126)), "{}", run.stderr);
        assert!(run.stderr.starts_with("rlaunch: "), "{}", run.stderr);
        assert!(run.stderr.contains("`ulimit -u"), "{}", run.stderr);
        assert!(!run.stderr.contains("ssh "), "{}", run.stderr);
    }
}

/// A warning of CPU time that runs out ends the launcher in order, and no agent.
#[test]
fn a_warning_of_cpu_time_is_no_lost_host() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = "echo $PPID > $1/keeper; while [ ! -e $1/go ]; do sleep 0.02; done";
    let mut command = rlaunch();
    command.args(["-np", "1", "sh", "-c", script, "sh"]);
    command.arg(folder.path());
    let keeper_file = folder.path().join("keeper");
    let watcher = std::thread::spawn(move || {
        let keeper = || {
            std::fs::read_to_string(&keeper_file)
                .ok()?
                .trim()
                .parse::<i32>()
                .ok()
        };
        wait_until("the rank's start", || keeper().is_some());
        let keeper = keeper().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{keeper}/stat")).unwrap();
        let behind = stat.rsplit(") ").next().unwrap();
        let agent: i32 = behind.split(' ').nth(1).unwrap().parse().unwrap();
        for pid in [agent, keeper] {
            kill(Pid::from_raw(pid), Signal::SIGXCPU).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
        std::fs::write(go, "").unwrap();
    });
    let run = finish(&mut command);
    watcher.join().unwrap();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

/// A hard limit of CPU time kills the agent, not the host.
#[test]
fn an_agent_that_is_killed_is_told_by_its_signal() {
    let script = "read _ _ _ agent _ < /proc/$PPID/stat; kill -KILL $agent; sleep 100";
    let run = limited("-t 1000", &["-np", "1", "sh", "-c", script]);
    assert_eq!(run.code, Some(123), "{}", run.stderr);
    let told = "its connection broke: its agent was ended by SIGKILL (`ulimit -t` is 1000)";
    assert!(run.stderr.contains(told), "{}", run.stderr);
}

/// As daemons start programs: what is closed is nothing, and no other file takes its number.
#[test]
fn closed_standard_streams() {
    let rlaunch = env!("CARGO_BIN_EXE_rlaunch");
    for (closed, shown) in [
        ("<&-", "out\n"),
        (">&-", ""),
        ("2>&-", "out\n"),
        ("<&- >&- 2>&-", ""),
    ] {
        for options in ["", "--stdin 0", "--pty", "--output-dir \"$0\""] {
            let script = format!(
                "{rlaunch} -np 1 {options} sh -c 'cat; echo out; echo err >&2; exit 3' {closed}"
            );
            let folder = tempfile::tempdir().unwrap();
            let run = finish(shell().args(["-c", &script]).arg(folder.path()));
            assert_eq!(run.code, Some(3), "{script}: {}", run.stderr);
            let shown = if options == "--pty" && !shown.is_empty() {
                "out\nerr\n"
            } else {
                shown
            };
            assert_eq!(run.stdout, shown, "{script}: {}", run.stderr);
        }
    }
}

/// The launcher takes more open files than it was given, for many hosts; its ranks, also those of a later
/// attempt, have what it was given.
#[test]
fn ranks_have_the_limit_of_open_files_that_we_were_given() {
    let script = "ulimit -Sn; exit $((1 - TORCHELASTIC_RESTART_COUNT))";
    let words = ["-np", "1", "--max-restarts", "1", "sh", "-c", script];
    let run = limited("-Sn 100", &words);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout, "100\n100\n", "{}", run.stderr);
}
