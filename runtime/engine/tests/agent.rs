//! Joining through an agent: a small one in a thread, which speaks `wire::rank`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use common::{SHM, config, ranks};
use prost::Message;
use rlaunch_runtime::config::Rendezvous;
use rlaunch_runtime::{Config, Error, Op};
use rlaunch_wire::rank::{
    PeerFailed, Refused, ToAgent, ToAgentMessage, ToRank, ToRankMessage, Welcome, World,
};

fn read(stream: &mut UnixStream) -> Option<ToAgentMessage> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut bytes).ok()?;
    ToAgent::decode(&bytes[..]).unwrap().message
}

fn write(stream: &mut UnixStream, message: ToRankMessage) {
    let bytes = ToRank {
        message: Some(message),
    }
    .encode_to_vec();
    stream
        .write_all(&(bytes.len() as u32).to_le_bytes())
        .unwrap();
    stream.write_all(&bytes).unwrap();
}

/// Accepts one rank and welcomes it.
fn greet(listener: &UnixListener, job: u8, world_size: u32) -> (u32, UnixStream) {
    let mut stream = listener.accept().unwrap().0;
    let Some(ToAgentMessage::Hello(hello)) = read(&mut stream) else {
        panic!("no hello")
    };
    let welcome = Welcome {
        job_id: vec![job; 16],
        secret: b"job secret".to_vec(),
        world_size,
        host: "node7".into(),
    };
    write(&mut stream, ToRankMessage::Welcome(welcome));
    (hello.rank, stream)
}

/// Accepts all ranks up to the world; returns their streams in rank order.
fn admit(listener: &UnixListener, job: u8, world_size: u32) -> Vec<UnixStream> {
    let mut members = Vec::new();
    for _ in 0..world_size {
        let (rank, mut stream) = greet(listener, job, world_size);
        let Some(ToAgentMessage::Join(join)) = read(&mut stream) else {
            panic!("no join")
        };
        members.push((rank, join.card, stream));
    }
    members.sort_by_key(|(rank, ..)| *rank);
    let cards: Vec<_> = members.iter().map(|(_, card, _)| card.clone()).collect();
    let mut streams: Vec<_> = members.into_iter().map(|(.., stream)| stream).collect();
    for stream in &mut streams {
        write(
            stream,
            ToRankMessage::World(World {
                cards: cards.clone(),
            }),
        );
    }
    streams
}

fn agent_config(name: &str, world_size: u32) -> (Config, UnixListener) {
    let socket = format!("rlaunch-test-{name}-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&socket).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let rendezvous = Rendezvous::Agent { socket };
    (
        Config {
            rendezvous,
            ..config(world_size, SHM)
        },
        listener,
    )
}

#[test]
fn ranks_join_work_and_leave() {
    let (config, listener) = agent_config("join", 3);
    std::thread::scope(|scope| {
        let agent = scope.spawn(move || {
            let streams = admit(&listener, 1, 3);
            let mut left = 0;
            for mut stream in streams {
                while let Some(message) = read(&mut stream) {
                    left += u32::from(matches!(message, ToAgentMessage::Leave(_)));
                }
            }
            left
        });
        ranks(&config, |world| {
            assert_eq!(world.host(), "node7");
            let mut sum = [1.0f32; 10];
            world.all_reduce(&mut sum, Op::Sum).unwrap();
            assert_eq!(sum, [3.0; 10]);
            world.finalize().unwrap();
        });
        assert_eq!(agent.join().unwrap(), 3, "each rank says that it leaves");
    });
}

#[test]
fn the_launchers_word_on_a_death_ends_the_wait() {
    let (config, listener) = agent_config("death", 2);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut streams = admit(&listener, 2, 2);
            std::thread::sleep(Duration::from_millis(50));
            let failed = PeerFailed {
                rank: 1,
                host: "node8".into(),
                pid: 99,
                cause: "killed by SIGKILL".into(),
            };
            write(&mut streams[0], ToRankMessage::PeerFailed(failed));
            while read(&mut streams[0]).is_some() {}
        });
        ranks(&config, |world| {
            if world.rank() == 1 {
                // Alive but silent until rank 0 has heard.
                std::thread::sleep(Duration::from_millis(500));
                // Not to be told at the process's end.
                world.finalize().unwrap_err();
                return;
            }
            let error = world.barrier().unwrap_err();
            let Error::PeerFailed { peer, cause, .. } = &error else {
                panic!("{error}")
            };
            assert_eq!((peer.pid, cause.as_str()), (99, "killed by SIGKILL"));
        });
    });
}

/// The agent knows the ranks of its host alone: the launcher says who is missing, when it is asked.
#[test]
fn who_is_missing_at_init_is_asked_for() {
    let (config, listener) = agent_config("late", 2);
    let config = Config {
        init_timeout: Duration::from_millis(200),
        ..config
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (_, mut stream) = greet(&listener, 3, 2);
            assert!(matches!(read(&mut stream), Some(ToAgentMessage::Join(_))));
            let overdue = read(&mut stream);
            assert!(matches!(overdue, Some(ToAgentMessage::Overdue(_))));
            let reason = "rank 1 of 2 did not come in time (on node8)".to_owned();
            write(&mut stream, ToRankMessage::Refused(Refused { reason }));
            while read(&mut stream).is_some() {}
        });
        let error = rlaunch_runtime::World::new(config).unwrap_err();
        assert_eq!(
            error.to_string(),
            "can't join the job: rank 1 of 2 did not come in time (on node8)"
        );
    });
}

#[test]
fn no_agent_is_an_error_that_says_so() {
    let rendezvous = Rendezvous::Agent {
        socket: "rlaunch-test-nobody".into(),
    };
    let error = rlaunch_runtime::World::new(Config {
        rendezvous,
        ..config(2, SHM)
    })
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("RLAUNCH_AGENT=rlaunch-test-nobody"),
        "{error}"
    );
}
