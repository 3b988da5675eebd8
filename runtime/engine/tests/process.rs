//! Ranks as real processes: death, silence, absence and departure, told to every other rank.
//!
//! The test binary runs itself again as the ranks (`rank_process`, told what to do by `TEST_ROLE`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use common::process::{free_port, say, start};
use common::ranks;
use rlaunch_runtime::{Error, Op, World};

#[test]
#[ignore = "run by the other tests, as a rank"]
fn rank_process() {
    let Ok(role) = std::env::var("TEST_ROLE") else {
        return;
    };
    let world = match rlaunch_runtime::init() {
        Ok(world) => world,
        Err(error) => return say(&format!("init: {error}")),
    };
    say("joined");
    let result = play(&role, &world);
    if let Err(error) = &result {
        say(&error.to_string());
    }
    // Dropping says goodbye, as a program with an error does.
}

fn play(role: &str, world: &World) -> Result<(), Error> {
    let mut buffer = vec![1.0f32; 100_000];
    match role {
        "small loop" => loop {
            world.barrier()?;
        },
        "loop" => loop {
            buffer.fill(1.0);
            world.all_reduce(&mut buffer, Op::Sum)?;
        },
        // Rank 0 is outside of any call for long, as in a computation.
        "busy" if world.rank() == 0 => {
            std::thread::sleep(Duration::from_secs(30));
            Ok(())
        }
        "busy" => world.all_reduce(&mut buffer, Op::Sum),
        "exit" if world.rank() == 1 => std::process::exit(0),
        "leave" if world.rank() == 1 => Ok(()),
        "exit" | "leave" => world.all_reduce(&mut buffer, Op::Sum),
        "shrink" => shrink(world),
        other => panic!("role {other:?}"),
    }
}

/// Goes on with whoever is left, for as long as this rank lives.
fn shrink(world: &World) -> Result<(), Error> {
    let mut current = world.duplicate()?;
    say("ready");
    loop {
        let mut buffer = vec![1.0f32; 200_000];
        if let Err(error) = current.all_reduce(&mut buffer, Op::Sum) {
            say(&error.to_string());
            current = current.shrink()?;
            let mut ranks = vec![0u32; current.size() as usize];
            current.all_gather(&[world.rank()], &mut ranks)?;
            say(&format!("left: {ranks:?}"));
        }
    }
}

/// One after the other is killed, rank 0, which relays the others' words, among them.
#[test]
fn survivors_of_kills_go_on_again_and_again() {
    for transport in ["shm", "tcp"] {
        let mut ranks = start(4, 4, transport, "shrink", &[]);
        for rank in &mut ranks {
            assert_eq!(rank.line(), "joined");
        }
        for rank in &mut ranks {
            assert_eq!(rank.line(), "ready");
        }
        let mut left = vec![0usize, 1, 2, 3];
        for victim in [2, 0] {
            ranks[victim].signal(libc::SIGKILL);
            let begin = Instant::now();
            left.retain(|rank| *rank != victim);
            for rank in &left {
                let line = ranks[*rank].line();
                assert!(
                    line.contains(&format!("rank {victim} (host")),
                    "{transport}: {line}"
                );
                assert_eq!(ranks[*rank].line(), format!("left: {left:?}"));
            }
            let took = begin.elapsed();
            assert!(took < Duration::from_secs(6), "{transport}: {took:?}");
        }
    }
}

/// Who is stopped is given up by all that live, again and again, and told when it comes back.
#[test]
fn survivors_of_stopped_ranks_agree_on_one_world() {
    for transport in ["shm", "tcp"] {
        let mut ranks = start(5, 5, transport, "shrink", &[("RLAUNCH_TIMEOUT", "1")]);
        for expected in ["joined", "ready"] {
            for rank in &mut ranks {
                assert_eq!(rank.line(), expected);
            }
        }
        let mut left = vec![0usize, 1, 2, 3, 4];
        for victim in [3, 1] {
            ranks[victim].signal(libc::SIGSTOP);
            left.retain(|rank| *rank != victim);
            for rank in &left {
                let line = ranks[*rank].line();
                assert!(line.contains(" waited "), "{transport}: {line}");
            }
            for rank in &left {
                assert_eq!(
                    ranks[*rank].line(),
                    format!("left: {left:?}"),
                    "{transport}"
                );
            }
        }
        for victim in [3, 1] {
            ranks[victim].signal(libc::SIGCONT);
            loop {
                let line = ranks[victim].line();
                assert!(
                    !line.is_empty() && !line.starts_with("left"),
                    "{transport}: {line}"
                );
                if line.contains("went on without this rank") {
                    break;
                }
            }
        }
    }
}

/// Also of a rank that computes, or hangs in a call.
#[test]
fn a_signal_prints_the_last_operations() {
    let directory = std::env::temp_dir().join(format!("rlaunch-recorder-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("rank{rank}").to_str().unwrap().to_owned();
    let more = [("RLAUNCH_RECORDER_FILE", file.as_str())];
    let mut ranks = start(2, 2, "shm", "busy", &more);
    for rank in &mut ranks {
        assert_eq!(rank.line(), "joined");
    }
    for (number, expected) in [(0, "the world, made by init"), (1, "running")] {
        let begin = Instant::now();
        loop {
            ranks[number].signal(libc::SIGUSR2);
            std::thread::sleep(Duration::from_millis(20));
            let text = std::fs::read_to_string(directory.join(format!("rank{number}")));
            if text.is_ok_and(|text| text.contains(expected)) {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(10), "rank {number}");
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_killed_rank_is_named_by_all_within_two_seconds() {
    for transport in ["shm", "tcp"] {
        for victim in [0, 1] {
            let mut ranks = start(3, 3, transport, "loop", &[]);
            for rank in &mut ranks {
                assert_eq!(rank.line(), "joined");
            }
            let pid = ranks[victim].child.id();
            ranks[victim].signal(libc::SIGKILL);
            let begin = Instant::now();
            for (number, rank) in ranks.iter_mut().enumerate() {
                if number != victim {
                    let line = rank.line();
                    let expected = format!("rank {victim} (host ");
                    assert!(
                        line.contains(&expected) && line.contains(&format!("pid {pid}")),
                        "{transport}, rank {number}: {line}"
                    );
                    assert!(line.contains("all_reduce #"), "{line}");
                }
            }
            assert!(
                begin.elapsed() < Duration::from_secs(2),
                "{:?}",
                begin.elapsed()
            );
        }
    }
}

#[test]
fn a_death_is_noticed_without_the_help_of_rank_0() {
    for transport in ["shm", "tcp"] {
        let mut ranks = start(3, 3, transport, "busy", &[]);
        for rank in &mut ranks {
            assert_eq!(rank.line(), "joined");
        }
        ranks[2].signal(libc::SIGKILL);
        let begin = Instant::now();
        let line = ranks[1].line();
        assert!(line.contains("rank 2 (host"), "{transport}: {line}");
        assert!(
            begin.elapsed() < Duration::from_secs(2),
            "{:?}",
            begin.elapsed()
        );
    }
}

#[test]
fn a_rank_that_exits_or_leaves_early_is_an_error() {
    for transport in ["shm", "tcp"] {
        for role in ["exit", "leave"] {
            let begin = Instant::now();
            let mut ranks = start(3, 3, transport, role, &[]);
            for number in [0, 2] {
                assert_eq!(ranks[number].line(), "joined");
                let line = ranks[number].line();
                assert!(line.contains("rank 1 (host"), "{transport}, {role}: {line}");
            }
            assert!(
                begin.elapsed() < Duration::from_secs(4),
                "{:?}",
                begin.elapsed()
            );
        }
    }
}

#[test]
fn a_stopped_rank_is_named_when_time_is_up() {
    for (transport, role) in [("shm", "small loop"), ("shm", "loop"), ("tcp", "loop")] {
        let mut ranks = start(2, 2, transport, role, &[("RLAUNCH_TIMEOUT", "1")]);
        for rank in &mut ranks {
            assert_eq!(rank.line(), "joined");
        }
        ranks[1].signal(libc::SIGSTOP);
        let begin = Instant::now();
        let line = ranks[0].line();
        let waited = begin.elapsed();
        assert!(
            line.contains("waited 1.") && line.contains("rank 1 (host"),
            "{line}"
        );
        assert!(waited > Duration::from_millis(900) && waited < Duration::from_secs(3));
        ranks[1].signal(libc::SIGCONT);
        // The rank that was given up learns why.
        let line = ranks[1].line();
        assert!(line.contains("rank 0 (host"), "{line}");
    }
}

#[test]
fn a_missing_rank_is_listed_at_init() {
    let mut ranks = start(4, 3, "shm", "loop", &[("RLAUNCH_INIT_TIMEOUT", "1")]);
    for rank in &mut ranks {
        let line = rank.line();
        assert!(
            line.contains("init: ") && line.contains("ranks [3] of 4"),
            "{line}"
        );
    }
}

#[test]
fn two_processes_with_one_rank_are_refused() {
    let port = free_port().to_string();
    let more = [
        ("RLAUNCH_PORT", port.as_str()),
        ("RANK", "1"),
        ("RLAUNCH_INIT_TIMEOUT", "20"),
    ];
    // Rank 0 and two that both say 1.
    let mut zero = start(3, 1, "shm", "loop", &[("RLAUNCH_PORT", port.as_str())]);
    let mut twins = start(3, 2, "shm", "loop", &more);
    // One of the two is refused; the other waits with rank 0.
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for twin in &mut twins {
            let send = send.clone();
            scope.spawn(move || send.send(twin.line()));
        }
        let line = receive.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(line.contains("two processes have RANK=1"), "{line}");
        zero[0].child.kill().unwrap();
    });
}

#[test]
fn strangers_at_the_bootstrap_port_change_nothing() {
    let port = free_port();
    let text = port.to_string();
    let mut ranks = start(2, 1, "tcp", "loop", &[("RLAUNCH_PORT", &text)]);
    let connect = || loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            return stream;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut garbage = connect();
    garbage.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    // Dropped, not answered.
    assert_eq!(garbage.read(&mut [0; 8]).unwrap_or(0), 0);
    let _silent = connect();
    let wrong = start(
        2,
        1,
        "tcp",
        "loop",
        &[
            ("RLAUNCH_PORT", text.as_str()),
            ("RANK", "1"),
            ("RLAUNCH_SECRET", "wrong"),
            ("RLAUNCH_INIT_TIMEOUT", "1"),
        ],
    )
    .remove(0)
    .line();
    assert!(wrong.contains("RLAUNCH_SECRET"), "{wrong}");
    let mut right = start(
        2,
        1,
        "tcp",
        "loop",
        &[("RLAUNCH_PORT", text.as_str()), ("RANK", "1")],
    );
    assert_eq!(right[0].line(), "joined");
    assert_eq!(ranks[0].line(), "joined");
}

/// MASTER_PORT is torch's; another job has the ports next to it too.
#[test]
fn two_jobs_side_by_side_beside_a_store_on_master_port() {
    let store = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = store.local_addr().unwrap().port();
    let job = |master_port: u16| {
        let master_port = master_port.to_string();
        let variables = |name: &str| {
            let value = match name {
                "RANK" => "0",
                "WORLD_SIZE" => "3",
                "MASTER_ADDR" => "127.0.0.1",
                "MASTER_PORT" => master_port.as_str(),
                "RLAUNCH_INIT_TIMEOUT" => "20",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let config = rlaunch_runtime::Config::from_variables(variables).unwrap();
        ranks(&config, |world| {
            assert!(!world.is_authenticated());
            let mut sum = [1i32];
            world.all_reduce(&mut sum, Op::Sum).unwrap();
            assert_eq!(sum, [3]);
            world.finalize().unwrap();
        });
    };
    std::thread::scope(|scope| {
        scope.spawn(|| job(port));
        scope.spawn(|| job(port - 1));
    });
    // Nobody has spoken to the store.
    store.set_nonblocking(true).unwrap();
    while let Ok((mut stranger, _)) = store.accept() {
        // The job whose MASTER_PORT is one lower may knock; it leaves again.
        stranger
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut said = Vec::new();
        let _ = stranger.read_to_end(&mut said);
        assert!(said.starts_with(b"rlaunch1") || said.is_empty());
    }
}
