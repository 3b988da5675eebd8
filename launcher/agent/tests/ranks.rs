//! Ranks: how they start, what they find, how they end.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::{Duration, Instant};

use common::{Agent, assert_nothing_left, code, is_alive, kill, launch, sh};
use nix::sys::signal::Signal;
use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::to_agent::Message as ToAgentMessage;
use rlaunch_control::v1::{EnvVar, Launch, LaunchFailed, OutputStream, PythonProgram, Stdin};

/// Runs a job to its end.
async fn run(launch: Launch) -> common::Job {
    let mut agent = Agent::start().await;
    let mut job = agent.run(launch).await;
    job.finish().await;
    assert_nothing_left(&job.mark);
    job
}

fn failure(job: &common::Job) -> LaunchFailed {
    let failed = job.heard.iter().find_map(|message| match message {
        Message::LaunchFailed(failed) => Some(failed.clone()),
        _ => None,
    });
    failed.unwrap_or_else(|| panic!("no failure in {:?}", job.heard))
}

#[tokio::test]
async fn exit_codes_and_output_of_every_rank_arrive() {
    let mut agent = Agent::start().await;
    let mut job = agent
        .run(sh(3, "echo out $RANK; echo err $RANK >&2; exit $RANK"))
        .await;
    job.finish().await;
    let mut codes: Vec<(u32, i32, bool)> = Vec::new();
    for message in &job.heard {
        if let Message::Exited(exited) = message {
            codes.push((exited.rank, code(exited), exited.by_us));
        }
    }
    codes.sort_unstable();
    assert_eq!(codes, [(0, 0, false), (1, 1, false), (2, 2, false)]);
    for rank in 0..3 {
        let text = |stream| String::from_utf8(job.output(rank, stream)).unwrap();
        assert_eq!(text(OutputStream::Stdout), format!("out {rank}\n"));
        assert_eq!(text(OutputStream::Stderr), format!("err {rank}\n"));
    }
    assert!(matches!(job.heard.last(), Some(Message::Finished(_))));
    assert_eq!(job.next().await, None, "Finished is the last");
    assert!(agent.leave(job).await.success());
}

#[tokio::test]
async fn a_death_by_signal_is_told_as_one_and_not_as_ours() {
    for (signal, number) in [("KILL", 9), ("SEGV", 11), ("TERM", 15)] {
        let mut agent = Agent::start().await;
        let mut job = agent.run(sh(1, &format!("kill -{signal} $$"))).await;
        let exited = job.exited().await;
        assert_eq!((code(&exited), exited.by_us), (128 + number, false));
    }
}

#[tokio::test]
async fn what_cannot_start_is_named_with_its_reason() {
    let failed = failure(&run(launch(1, &["no-such-program-x", "a"])).await);
    assert_eq!(
        (failed.what.as_str(), failed.errno),
        ("program", nix::libc::ENOENT)
    );
    assert_eq!(failed.path, "no-such-program-x".as_bytes());
    let failed = failure(&run(launch(1, &["/etc/passwd"])).await);
    assert_eq!(
        (failed.what.as_str(), failed.errno),
        ("program", nix::libc::EACCES)
    );
    let mut absent = launch(2, &["true"]);
    absent.programs[0].directory = "/no/such/place".into();
    let failed = failure(&run(absent).await);
    assert_eq!(
        (failed.what.as_str(), failed.errno),
        ("directory", nix::libc::ENOENT)
    );
    assert_eq!(failed.path, "/no/such/place".as_bytes());
    let mut python = launch(1, &["-c", "pass"]);
    python.programs[0].python = Some(PythonProgram {
        interpreter: "/no/python".to_owned(),
        required: true,
    });
    let failed = failure(&run(python).await);
    assert_eq!(
        (failed.what.as_str(), &failed.path[..]),
        ("interpreter", &b"/no/python"[..])
    );
}

#[tokio::test]
async fn an_absent_script_is_told_by_us_and_not_by_python() {
    let mut script = launch(1, &["no-such.py"]);
    script.programs[0].python = Some(PythonProgram::default());
    let failed = failure(&run(script).await);
    assert_eq!(
        (failed.what.as_str(), failed.errno),
        ("program", nix::libc::ENOENT)
    );
    assert_eq!(failed.path, "no-such.py".as_bytes());
}

#[tokio::test]
async fn a_program_with_a_slash_is_found_from_the_ranks_directory() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    // No #! line: the shell runs it, as any launcher that uses execvp would.
    std::fs::write(&script, "echo here $1; pwd\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let mut launch = launch(1, &["./script", "a b"]);
    launch.programs[0].directory = folder.path().as_os_str().as_encoded_bytes().to_vec().into();
    let job = run(launch).await;
    let path = folder.path().canonicalize().unwrap();
    assert_eq!(job.stdout(), format!("here a b\n{}\n", path.display()));
}

#[tokio::test]
async fn arguments_and_environment_travel_byte_for_byte() {
    let odd = [
        "a b",
        "it's",
        "$HOME",
        "",
        "new\nline",
        "back`tick`",
        "\"é\"",
    ];
    let mut words = vec![
        "sh",
        "-c",
        "printf '%s\\0' \"$@\"; printf '%s\\0' \"$ODD\"",
        "sh",
    ];
    words.extend(odd);
    let mut launch = launch(1, &words);
    let value = b"quote' \" newline\n back`tick` $X = \xff\xc3".to_vec();
    let variable = |name: &str, value: Vec<u8>| EnvVar {
        name: name.to_owned().into(),
        value: value.into(),
    };
    launch.programs[0]
        .environment
        .push(variable("ODD", value.clone()));
    launch.programs[0]
        .environment
        .push(variable("BASH_FUNC_f%%", b"() { echo x; }".to_vec()));
    launch.programs[0]
        .environment
        .push(variable("LARGE", vec![b'x'; 120_000]));
    let job = run(launch).await;
    let mut expected: Vec<u8> = Vec::new();
    for word in odd {
        expected.extend(word.as_bytes());
        expected.push(0);
    }
    expected.extend(value);
    expected.push(0);
    assert_eq!(job.output(0, OutputStream::Stdout), expected);
}

#[tokio::test]
async fn env_none_starts_from_nothing() {
    let mut launch = launch(1, &["env"]);
    launch.programs[0].clear_environment = true;
    let job = run(launch).await;
    let text = job.stdout();
    let mut names: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "PWD",
            "PYTHONUNBUFFERED",
            "RANK",
            "RLAUNCH_AGENT",
            "RLAUNCH_TEST_MARK"
        ]
    );
}

#[tokio::test]
async fn a_rank_has_a_session_default_signals_and_three_descriptors() {
    let script = "ps -o sid= -p $$ | tr -d ' '; echo $$; ls /proc/self/fd | wc -l; \
                  grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'";
    let job = run(sh(1, script)).await;
    let text = job.stdout();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], lines[1], "leader of its session");
    assert_eq!(lines[2], "4", "0, 1, 2 and the folder that ls reads");
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    // What nohup asked for is passed on.
    let hangup = mask(&own, "SigIgn:") & 1;
    // 32 and 33 are the C library's own; it does not let them be changed.
    let ignored = mask(&text, "SigIgn:") & !(3 << 31);
    assert_eq!((mask(&text, "SigBlk:"), ignored), (0, hangup));
}

#[tokio::test]
async fn term_is_followed_by_kill_after_the_time_asked() {
    let mut agent = Agent::start().await;
    let mut job = agent
        .run(sh(1, "trap '' TERM; echo ready; while :; do sleep 1; done"))
        .await;
    job.output_with("ready").await;
    let asked = Instant::now();
    job.terminate(Duration::from_millis(600)).await;
    let exited = job.exited().await;
    assert_eq!((code(&exited), exited.by_us), (137, true));
    assert!(
        asked.elapsed() >= Duration::from_millis(600),
        "{:?}",
        asked.elapsed()
    );
    job.finish().await;
    assert_nothing_left(&job.mark);
}

#[tokio::test]
async fn term_reaches_shells_and_their_children_and_stopped_ones() {
    let mut agent = Agent::start().await;
    let mut job = agent
        .run(sh(1, "sleep 100 & echo ready; wait; echo waited"))
        .await;
    job.output_with("ready").await;
    let pid = job.started_pid();
    kill(pid, Signal::SIGSTOP);
    let stopped = job
        .hear(|message| match message {
            Message::Stopped(stopped) => Some(*stopped),
            _ => None,
        })
        .await;
    assert_eq!(
        (stopped.signal, stopped.continued),
        (nix::libc::SIGSTOP, false)
    );
    job.terminate(Duration::from_secs(20)).await;
    let exited = job.exited().await;
    assert_eq!((code(&exited), exited.by_us), (143, true));
    job.finish().await;
    assert_nothing_left(&job.mark);
}

/// Of a rank's processes, to the nearest one that waits for it, and to no other.
#[tokio::test]
async fn a_signal_goes_to_whom_it_is_for() {
    let handles = "sleep 1000 & trap 'kill $! && echo got; exit 7' USR1; echo ready; \
                   while :; do sleep 0.05; done";
    let wrapped = format!("sh -c \"{}\"; exit $?", handles.replace('$', "\\$"));
    for script in [handles, &wrapped] {
        let mut agent = Agent::start().await;
        let mut job = agent.run(sh(1, script)).await;
        job.output_with("ready").await;
        let signal = rlaunch_control::v1::Signal {
            signal: nix::libc::SIGUSR1,
        };
        job.send(ToAgentMessage::Signal(signal)).await;
        job.output_with("got").await;
        let exited = job.exited().await;
        assert_eq!((code(&exited), exited.by_us), (7, false), "{script}");
        job.finish().await;
    }
}

/// More ranks than cores share a session, each in a group of its own, and a signal reaches all of them.
#[tokio::test]
async fn ranks_that_share_cores_share_a_session_and_its_signals() {
    let ranks = std::thread::available_parallelism().map_or(1, usize::from) as u32 + 1;
    let mut agent = Agent::start().await;
    let script = "trap 'echo got; exit 7' USR1; echo $(ps -o sid=,pgid= -p $$) $$; \
                  while :; do sleep 0.05; done";
    let mut job = agent.run(sh(ranks, script)).await;
    let lines = |job: &common::Job, rank| {
        let text = String::from_utf8(job.output(rank, OutputStream::Stdout)).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    while (0..ranks).any(|rank| lines(&job, rank).is_empty()) {
        job.next().await.expect("the job goes on");
    }
    let signal = rlaunch_control::v1::Signal {
        signal: nix::libc::SIGUSR1,
    };
    job.send(ToAgentMessage::Signal(signal)).await;
    job.finish().await;
    let mut sessions = Vec::new();
    for rank in 0..ranks {
        let lines = lines(&job, rank);
        let words: Vec<&str> = lines[0].split(' ').collect();
        assert_eq!(words[1], words[2], "leader of its group");
        assert_ne!(words[0], words[2], "in another's session");
        sessions.push(words[0].to_owned());
        assert_eq!(lines[1], "got");
    }
    assert!(sessions.iter().all(|session| *session == sessions[0]));
    assert_nothing_left(&job.mark);
}

#[tokio::test]
async fn a_background_child_in_its_own_session_is_named_and_gone_at_the_end() {
    for round in 0..10 {
        let mut agent = Agent::start().await;
        let script = "setsid sh -c 'trap \"\" TERM HUP; echo $$; while :; do sleep 1; done' & \
                      read x < /dev/null; sleep 0.1; exit 7";
        let mut launch = sh(1, script);
        launch.kill_after_ms = 200;
        let mut job = agent.run(launch).await;
        assert_eq!(code(&job.exited().await), 7, "round {round}");
        job.finish().await;
        assert!(
            common::marked(&job.mark).is_empty(),
            "round {round}: left after Finished"
        );
        let named = job.heard.iter().any(
            |message| matches!(message, Message::Leftover(left) if left.command.contains("trap")),
        );
        assert!(named, "round {round}: not named in {:?}", job.heard);
    }
}

#[tokio::test]
async fn what_finishes_by_itself_after_its_rank_is_left_to() {
    let job = run(sh(1, "{ sleep 0.2; echo last words; } & echo first")).await;
    assert_eq!(job.stdout(), "first\nlast words\n");
    let named = job
        .heard
        .iter()
        .any(|message| matches!(message, Message::Leftover(_)));
    assert!(!named, "{:?}", job.heard);
}

#[tokio::test]
async fn stdin_reaches_the_rank_that_has_one_and_ends() {
    let mut agent = Agent::start().await;
    let mut launch = sh(2, "n=$(wc -c); echo $RANK:$n");
    launch.ranks[1].stdin = true;
    let mut job = agent.run(launch).await;
    let data = vec![b'x'; 300_000];
    for chunk in data.chunks(50_000) {
        let data = chunk.to_vec().into();
        job.send(ToAgentMessage::Stdin(Stdin {
            rank: 1,
            data,
            ..Stdin::default()
        }))
        .await;
    }
    job.send(ToAgentMessage::Stdin(Stdin {
        rank: 1,
        end: true,
        ..Stdin::default()
    }))
    .await;
    job.finish().await;
    assert_eq!(job.output(0, OutputStream::Stdout), b"0:0\n");
    assert_eq!(job.output(1, OutputStream::Stdout), b"1:300000\n");
    let taken: u64 = job
        .heard
        .iter()
        .map(|message| match message {
            Message::StdinTaken(taken) => taken.bytes,
            _ => 0,
        })
        .sum();
    assert_eq!(taken, 300_000);
}

#[tokio::test]
async fn a_terminal_is_one_and_takes_what_is_typed() {
    let mut agent = Agent::start().await;
    let script = "test -t 0 && test -t 1 && test -t 2 && tty < /dev/tty > /dev/null && \
                  echo ready && read line && echo got $line && echo err >&2 && cat";
    let mut launch = sh(1, script);
    launch.pty = true;
    launch.ranks[0].stdin = true;
    let mut job = agent.run(launch).await;
    job.output_with("ready").await;
    let type_in = |text: &str, end| {
        ToAgentMessage::Stdin(Stdin {
            rank: 0,
            data: text.to_owned().into(),
            end,
            ..Stdin::default()
        })
    };
    job.send(type_in("hello\n", false)).await;
    job.output_with("err").await;
    job.send(type_in("more\n", true)).await;
    assert_eq!(code(&job.exited().await), 0);
    job.finish().await;
    assert_eq!(job.stdout(), "ready\ngot hello\nerr\nmore\n");
}

#[tokio::test]
async fn a_shell_without_stdin_does_not_wait_for_the_terminal() {
    let mut launch = sh(1, "cat; test -t 1 && echo done");
    launch.pty = true;
    assert_eq!(run(launch).await.stdout(), "done\n");
}

#[tokio::test]
async fn python_is_found_and_unbuffered() {
    let mut launch = launch(
        1,
        &[
            "-c",
            "import sys; print(sys.argv[1:], end=''); input()",
            "x y",
        ],
    );
    launch.programs[0].python = Some(PythonProgram {
        interpreter: "/no/python".to_owned(),
        required: false,
    });
    launch.ranks[0].stdin = true;
    let mut agent = Agent::start().await;
    let mut job = agent.run(launch).await;
    // Seen while the rank still runs: without a newline, without a flush.
    job.output_with("['x y']").await;
    assert!(is_alive(job.started_pid()));
    job.send(ToAgentMessage::Stdin(Stdin {
        end: true,
        ..Stdin::default()
    }))
    .await;
    job.finish().await;
}
