//! Signals to the launcher: what ends a job, what ranks get, what suspends the whole.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::Pid;

use super::{finish, rlaunch, wait_until};

/// A job whose ranks have told their process ids.
struct Job {
    launcher: Child,
    stdout: BufReader<std::process::ChildStdout>,
    ranks: Vec<i32>,
}

impl Job {
    /// Two ranks of `sh -c 'echo $$; SCRIPT'`.
    fn start(options: &[&str], script: &str) -> Self {
        let mut command = rlaunch();
        command.args(["-np", "2", "--oversubscribe"]).args(options);
        command.args(["--", "sh", "-c", &format!("echo $$; {script}")]);
        Self::of(&mut command)
    }

    fn of(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = heeding(command).spawn().unwrap();
        let mut stdout = BufReader::new(launcher.stdout.take().unwrap());
        let mut pid = || {
            loop {
                let mut line = String::new();
                assert_ne!(
                    stdout.read_line(&mut line).unwrap(),
                    0,
                    "no rank tells its number"
                );
                if let Ok(pid) = line.trim().parse() {
                    return pid;
                }
            }
        };
        let ranks = vec![pid(), pid()];
        Self {
            launcher,
            stdout,
            ranks,
        }
    }

    fn pid(&self) -> i32 {
        self.launcher.id().cast_signed()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Exit code, rest of stdout, stderr; no rank may be left.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut talk) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        let mut stderr = self.launcher.stderr.take().unwrap();
        stderr.read_to_string(&mut talk).unwrap();
        let status = self.launcher.wait().unwrap();
        for rank in &self.ranks {
            wait_until("the rank's end", || {
                matches!(state(*rank), None | Some('Z'))
            });
        }
        (status.code(), out, talk)
    }
}

impl Drop for Job {
    /// Of a test that failed, too; the ranks end with their launcher.
    fn drop(&mut self) {
        self.launcher.kill().ok();
        self.launcher.wait().ok();
    }
}

/// The tests themselves may run where some signals are ignored, which the launcher would heed.
pub(super) fn heeding(command: &mut Command) -> &mut Command {
    let heed = || {
        for number in [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGTSTP,
        ] {
            // SAFETY: no handler is set, only what a terminal's programs have.
            unsafe { signal(number, SigHandler::SigDfl) }.map_err(io::Error::from)?;
        }
        Ok(())
    };
    // SAFETY: calls that may be made between fork and exec.
    unsafe { command.pre_exec(heed) }
}

fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

#[test]
fn ending_signals_give_128_and_their_number() {
    for (signal, code) in [
        (Signal::SIGINT, 130),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGQUIT, 131),
        (Signal::SIGXCPU, 152),
    ] {
        let job = Job::start(&[], "exec sleep 100");
        job.signal(signal);
        let (ended, _, talk) = job.end();
        assert_eq!(ended, Some(code), "{talk}");
        let words = format!("rlaunch: stopped by {signal}\n");
        assert!(talk.contains(&words), "{talk}");
    }
}

#[test]
fn a_second_interrupt_kills() {
    let job = Job::start(&[], "trap '' TERM INT; while :; do sleep 0.1; done");
    let start = Instant::now();
    job.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(200));
    job.signal(Signal::SIGINT);
    let (code, _, talk) = job.end();
    assert_eq!(code, Some(130), "{talk}");
    assert!(talk.contains("killed by rlaunch (KILL)"), "{talk}");
    assert!(start.elapsed() < Duration::from_secs(8), "{talk}");
}

/// A checkpoint takes its time: so long as `--kill-after` says.
#[test]
fn ranks_have_their_time_to_end() {
    let script = "trap 'sleep 1; echo saved; exit 0' TERM; while :; do sleep 0.02; done";
    let job = Job::start(&["--kill-after", "20"], script);
    job.signal(Signal::SIGTERM);
    let (code, out, talk) = job.end();
    assert_eq!(code, Some(143), "{talk}");
    assert_eq!(out.matches("saved").count(), 2, "{out}");
    assert!(talk.contains("KILL follows in 20 s"), "{talk}");
}

/// While hosts are still being reached; 198.51.100.1 is an address that nobody has.
#[test]
fn a_job_that_has_not_started_ends_at_once() {
    let mut command = rlaunch();
    command
        .args(["-H", "198.51.100.1:1", "true"])
        .stderr(Stdio::piped());
    let mut child = heeding(&mut command).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let mut talk = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut talk)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{talk}");
    assert!(
        talk.contains("stopped by SIGINT before the ranks were started"),
        "{talk}"
    );
}

#[test]
fn a_host_that_does_not_answer_is_named_in_time() {
    let run = super::run(&[
        "-H",
        "198.51.100.1:1,198.51.100.2:1",
        "--start-timeout",
        "0.5",
        "true",
    ]);
    assert_eq!(run.code, Some(125), "{}", run.stderr);
    let words = "rlaunch: 198.51.100.1, 198.51.100.2: not reached within 0.5 s (--start-timeout)";
    assert!(run.stderr.starts_with(words), "{}", run.stderr);
}

#[test]
fn signals_for_programs_reach_every_rank() {
    let script = "trap 'echo USR1' USR1; trap 'echo USR2; exit 0' USR2; trap 'echo WINCH' WINCH; \
                  trap 'echo URG' URG; while :; do sleep 0.02; done";
    let job = Job::start(&[], script);
    std::thread::sleep(Duration::from_millis(300));
    for signal in [
        Signal::SIGUSR1,
        Signal::SIGWINCH,
        Signal::SIGURG,
        Signal::SIGUSR2,
    ] {
        job.signal(signal);
        std::thread::sleep(Duration::from_millis(150));
    }
    let (code, out, talk) = job.end();
    assert_eq!(code, Some(0), "{talk}");
    for word in ["USR1", "USR2", "WINCH", "URG"] {
        assert_eq!(out.matches(word).count(), 2, "{word}: {out}");
    }
}

/// It is the user's will, as a signal to the launcher is: nobody is blamed, and nothing starts again.
#[test]
fn a_reaped_job_is_ended_by_its_user() {
    let mut command = rlaunch();
    command.args(["-np", "2", "--oversubscribe", "--max-restarts", "3", "--"]);
    command.args(["sh", "-c", "echo $$; sleep 1000; exit"]);
    let job = Job::of(&mut command);
    let environment = std::fs::read(format!("/proc/{}/environ", job.ranks[0])).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    let mut variables = environment.split('\0');
    let id = variables.find_map(|it| it.strip_prefix("RLAUNCH_JOB_ID="));
    let reap = finish(rlaunch().args(["reap", "--job", id.unwrap(), "--end"]));
    assert_eq!(reap.code, Some(0), "{}", reap.stderr);
    let (code, _, talk) = job.end();
    assert_eq!(code, Some(143), "{talk}");
    assert!(
        talk.contains("`rlaunch reap --end` ends this job\n"),
        "{talk}"
    );
    assert!(!talk.contains("hint"), "{talk}");
}

/// A rank without a handler ends by what was forwarded: that is its own end, not the agent's doing.
#[test]
fn a_forwarded_signal_without_a_handler_is_the_cause() {
    let job = Job::start(&[], "exec sleep 100");
    job.signal(Signal::SIGUSR1);
    let (code, _, talk) = job.end();
    assert_eq!(code, Some(138), "{talk}");
    assert!(talk.contains("was ended by SIGUSR1\n"), "{talk}");
}

/// ^Z stops launcher and ranks, for longer than a host may be silent; `fg` continues all.
#[test]
fn the_whole_job_is_suspended_and_resumed() {
    let script = "trap 'echo continues' CONT; sleep 1000 & i=0; \
                  while [ $i -lt 100 ]; do i=$((i+1)); sleep 0.01; done; kill $!; echo done";
    let job = Job::start(&["--host-timeout", "3", "--timeout", "5"], script);
    let all = |wanted: char| {
        let mut pids = job.ranks.iter().chain([&0]).copied();
        pids.all(|pid| state(if pid == 0 { job.pid() } else { pid }) == Some(wanted))
    };
    let children = || {
        let rank = job.ranks[0];
        std::fs::read_to_string(format!("/proc/{rank}/task/{rank}/children")).unwrap()
    };
    job.signal(Signal::SIGTSTP);
    wait_until("all have stopped", || all('T'));
    let sleeping = children();
    assert!(
        sleeping
            .split(' ')
            .filter_map(|pid| pid.parse().ok())
            .all(|pid| matches!(state(pid), Some('T' | 'Z')))
    );
    // Longer than --host-timeout, and --timeout has no say in it either.
    std::thread::sleep(Duration::from_secs(5));
    assert!(all('T'));
    job.signal(Signal::SIGCONT);
    wait_until("all continue", || !all('T'));
    let (code, out, talk) = job.end();
    assert_eq!(code, Some(0), "{talk}");
    assert_eq!(out.matches("done").count(), 2, "{out}");
    assert_eq!(talk, "", "nobody is reported stopped, lost or silent");
}

/// A suspended job is ended by KILL of its launcher, and by TERM once it continues.
#[test]
fn a_suspended_job_can_be_ended() {
    for (signal, code) in [(Signal::SIGKILL, None), (Signal::SIGTERM, Some(143))] {
        let job = Job::start(&[], "while :; do sleep 0.05; done");
        job.signal(Signal::SIGTSTP);
        wait_until("the launcher stops", || state(job.pid()) == Some('T'));
        job.signal(signal);
        if code.is_some() {
            job.signal(Signal::SIGCONT);
        }
        assert_eq!(job.end().0, code);
    }
}

/// Nothing can be said any more, but nothing is left either.
#[test]
fn a_killed_launcher_leaves_nothing() {
    let job = Job::start(&[], "exec sleep 100");
    job.signal(Signal::SIGKILL);
    assert_eq!(job.end().0, None);
}

/// nohup: a hangup ends nothing, and ranks ignore it too.
#[test]
fn an_ignored_hangup_stays_ignored() {
    let mut command = Command::new("nohup");
    command
        .arg(env!("CARGO_BIN_EXE_rlaunch"))
        .env("XDG_CONFIG_HOME", "/nonexistent");
    command.args(["-np", "2", "--oversubscribe", "--", "sh", "-c"]);
    command
        .arg("echo $$; kill -HUP $$; sleep 0.3; echo survived")
        .stdin(Stdio::null());
    let job = Job::of(&mut command);
    job.signal(Signal::SIGHUP);
    let (code, out, talk) = job.end();
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "survived\nsurvived\n"),
        "{talk}"
    );
}
