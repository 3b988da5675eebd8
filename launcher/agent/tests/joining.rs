//! The ranks' socket: hello, join, world, broadcasts, failures, leave.
//!
//! The test plays the ranks itself, from outside: the socket's name comes from a real rank.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use common::{Agent, Job, LONG, launch, sh};
use prost::Message as _;
use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::to_agent::Message as ToAgentMessage;
use rlaunch_control::v1::worker_service_client::WorkerServiceClient;
use rlaunch_control::v1::{self, StatusRequest};
use rlaunch_wire::PROTOCOL;
use rlaunch_wire::rank::{
    Broadcast, Hello, Join, Leave, Overdue, PeerFailed, Refused, ToAgent, ToAgentMessage as Say,
    ToRank, ToRankMessage as Hear, World,
};

struct Rank(UnixStream);

impl Rank {
    fn connect(name: &str) -> Self {
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let stream = UnixStream::connect_addr(&address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self(stream)
    }

    fn hello(name: &str, rank: u32) -> Self {
        let mut this = Self::connect(name);
        this.say(Say::Hello(Hello {
            protocol: PROTOCOL,
            rank,
            pid: 4242,
        }));
        this
    }

    fn say(&mut self, message: Say) {
        let bytes = ToAgent {
            message: Some(message),
        }
        .encode_to_vec();
        let len = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        self.0.write_all(&[&len[..], &bytes].concat()).unwrap();
    }

    /// None at the end.
    fn hear(&mut self) -> Option<Hear> {
        let mut len = [0; 4];
        self.0.read_exact(&mut len).ok()?;
        let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
        self.0.read_exact(&mut bytes).unwrap();
        ToRank::decode(bytes.as_slice()).unwrap().message
    }

    fn refused(&mut self) -> String {
        match self.hear() {
            Some(Hear::Refused(refused)) => refused.reason,
            other => panic!("{other:?}"),
        }
    }

    fn welcome(&mut self) {
        let Some(Hear::Welcome(welcome)) = self.hear() else {
            panic!("no welcome")
        };
        assert_eq!((welcome.job_id, welcome.secret), (vec![1; 16], vec![2; 32]));
        assert_eq!((welcome.world_size, welcome.host.as_str()), (3, "testhost"));
    }
}

/// A job of three ranks of which this host has 0 and 1; they tell the socket's name and sleep.
async fn start(agent: &mut Agent) -> (Job, String) {
    let mut launch = sh(2, "echo \"name=$RLAUNCH_AGENT\"; exec sleep 1000");
    launch.world_size = 3;
    let mut job = agent.run(launch).await;
    let name = job
        .hear(|message| match message {
            Message::Output(output) => {
                let text = String::from_utf8_lossy(&output.data).into_owned();
                Some(text.trim().strip_prefix("name=")?.to_owned())
            }
            _ => None,
        })
        .await;
    // The first output says nothing of the other rank, which may not be forked yet.
    for wanted in 0..2 {
        job.hear(|message| match message {
            Message::Started(started) if started.rank == wanted => Some(()),
            _ => None,
        })
        .await;
    }
    (job, name)
}

async fn joined(job: &mut Job, wanted: u32) -> Vec<u8> {
    job.hear(|message| match message {
        Message::Joined(joined) if joined.rank == wanted => Some(joined.card.to_vec()),
        _ => None,
    })
    .await
}

/// Both ranks of this host, joined.
async fn join(job: &mut Job, name: &str) -> [Rank; 2] {
    let mut ranks = [Rank::hello(name, 0), Rank::hello(name, 1)];
    for (number, rank) in (0..).zip(&mut ranks) {
        rank.welcome();
        rank.say(Say::Join(Join {
            card: vec![number; 3],
        }));
    }
    assert_eq!(joined(job, 0).await, [0; 3]);
    assert_eq!(joined(job, 1).await, [1; 3]);
    ranks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_join_and_hear_of_the_world_and_leave() {
    let mut agent = Agent::start().await;
    let (mut job, name) = start(&mut agent).await;
    let mut ranks = join(&mut job, &name).await;
    let cards = vec![vec![0; 3], vec![1; 3], vec![9; 3]];
    let sent = cards.iter().map(|card| card.clone().into()).collect();
    job.send(ToAgentMessage::World(v1::World { cards: sent }))
        .await;
    for rank in &mut ranks {
        assert_eq!(
            rank.hear(),
            Some(Hear::World(World {
                cards: cards.clone()
            }))
        );
    }
    ranks[1].say(Say::Leave(Leave {}));
    let left = job
        .hear(|message| match message {
            Message::Left(left) => Some(left.rank),
            _ => None,
        })
        .await;
    assert_eq!(left, 1);
    let mut status = WorkerServiceClient::new(agent.channel.clone());
    let reply = status.status(StatusRequest {}).await.unwrap().into_inner();
    let states: Vec<&str> = reply.ranks.iter().map(|rank| rank.state.as_str()).collect();
    assert_eq!((reply.world_size, states), (3, vec!["joined", "left"]));
    assert!(
        reply
            .ranks
            .iter()
            .all(|rank| rank.pid > 0 && rank.last_heard_us > 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_rank_says_all_others_hear() {
    let mut agent = Agent::start().await;
    let (mut job, name) = start(&mut agent).await;
    let mut ranks = join(&mut job, &name).await;
    // From a rank: to the other one here, and to the launcher for the rest, in the true name.
    ranks[0].say(Say::Broadcast(Broadcast {
        from: 77,
        payload: b"p".to_vec(),
    }));
    let broadcast = Broadcast {
        from: 0,
        payload: b"p".to_vec(),
    };
    assert_eq!(ranks[1].hear(), Some(Hear::Broadcast(broadcast)));
    let relayed = job
        .hear(|message| match message {
            Message::Broadcast(broadcast) => Some(broadcast.clone()),
            _ => None,
        })
        .await;
    assert_eq!((relayed.from, &relayed.payload[..]), (0, &b"p"[..]));
    // From another host: to both; the sender of before did not get its own.
    let payload = b"q".to_vec();
    let other = v1::Broadcast {
        from: 2,
        payload: payload.clone().into(),
    };
    job.send(ToAgentMessage::Broadcast(other)).await;
    for rank in &mut ranks {
        let broadcast = Broadcast {
            from: 2,
            payload: payload.clone(),
        };
        assert_eq!(rank.hear(), Some(Hear::Broadcast(broadcast)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peers_failure_is_told_to_all_and_to_who_comes_later() {
    let mut agent = Agent::start().await;
    let (job, name) = start(&mut agent).await;
    let mut early = Rank::hello(&name, 0);
    early.welcome();
    let (host, cause) = ("h2".to_owned(), "killed".to_owned());
    let failed = v1::PeerFailed {
        rank: 2,
        host: host.clone(),
        pid: 5,
        cause: cause.clone(),
    };
    job.send(ToAgentMessage::PeerFailed(failed)).await;
    let failed = Some(Hear::PeerFailed(PeerFailed {
        rank: 2,
        host,
        pid: 5,
        cause,
    }));
    assert_eq!(early.hear(), failed);
    let mut late = Rank::hello(&name, 1);
    late.welcome();
    assert_eq!(late.hear(), failed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_too_long_is_told_who_is_missing() {
    let mut agent = Agent::start().await;
    let (mut job, name) = start(&mut agent).await;
    let mut early = Rank::hello(&name, 0);
    early.welcome();
    early.say(Say::Overdue(Overdue {}));
    let rank = job
        .hear(|message| match message {
            Message::Overdue(overdue) => Some(overdue.rank),
            _ => None,
        })
        .await;
    assert_eq!(rank, 0);
    let text = "rank 1 of 3 did not come in time".to_owned();
    let reason = text.clone();
    job.send(ToAgentMessage::Missing(v1::Missing { rank, text }))
        .await;
    assert_eq!(early.hear(), Some(Hear::Refused(Refused { reason })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_join_is_refused_with_the_reason() {
    let mut agent = Agent::start().await;
    let (mut job, name) = start(&mut agent).await;
    let mut first = Rank::hello(&name, 1);
    first.welcome();
    let reason = Rank::hello(&name, 1).refused();
    assert!(
        reason.contains("rank 1") && reason.contains("process 4242"),
        "{reason}"
    );
    first.say(Say::Join(Join { card: Vec::new() }));
    joined(&mut job, 1).await;
    // Even after the first has gone: the world has its card.
    drop(first);
    let reason = Rank::hello(&name, 1).refused();
    assert!(reason.contains("joined already"), "{reason}");
    let reason = Rank::hello(&name, 2).refused();
    assert!(reason.contains("no rank 2"), "{reason}");
    let mut old = Rank::connect(&name);
    old.say(Say::Hello(Hello {
        protocol: PROTOCOL + 1,
        rank: 0,
        pid: 1,
    }));
    let reason = old.refused();
    assert!(
        reason.contains(&format!("protocol {}", PROTOCOL + 1)),
        "{reason}"
    );
    // A hello without a join takes no place for good.
    drop(Rank::hello(&name, 0));
    common::wait_for("a free place", || {
        matches!(Rank::hello(&name, 0).hear(), Some(Hear::Welcome(_))).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_on_the_socket_ends_that_connection_alone() {
    let mut agent = Agent::start().await;
    let (mut job, name) = start(&mut agent).await;
    for bytes in [&[0xff; 64][..], &[2, 0, 0, 0, 0xff, 0xff], &[0, 0, 0, 0]] {
        let mut bad = Rank::connect(&name);
        bad.0.write_all(bytes).unwrap();
        assert_eq!(bad.hear(), None);
    }
    let mut large = Rank::hello(&name, 0);
    large.welcome();
    large.say(Say::Join(Join {
        card: vec![0; 5000],
    }));
    assert_eq!(large.hear(), None, "a card past the limit");
    let mut good = Rank::hello(&name, 1);
    good.welcome();
    good.say(Say::Join(Join { card: Vec::new() }));
    joined(&mut job, 1).await;
}

/// A rank that reads nothing: the others, the launcher and the heartbeat go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rank_that_does_not_read_delays_nobody() {
    let mut agent = Agent::start().await;
    let (mut job, name) = start(&mut agent).await;
    let mut deaf = Rank::hello(&name, 0);
    deaf.welcome();
    let mut good = Rank::hello(&name, 1);
    good.welcome();
    let payload = vec![7; 1 << 20];
    for _ in 0..24 {
        let broadcast = v1::Broadcast {
            from: 2,
            payload: payload.clone().into(),
        };
        job.send(ToAgentMessage::Broadcast(broadcast)).await;
        let expected = Broadcast {
            from: 2,
            payload: payload.clone(),
        };
        assert_eq!(good.hear(), Some(Hear::Broadcast(expected)));
    }
    job.hear(|message| match message {
        Message::Log(log) if log.text.contains("rank 0 does not read") => Some(()),
        _ => None,
    })
    .await;
    while deaf.hear().is_some() {}
}

/// A Leave right before the exit must be told before it, or the exit looks like a failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leave_is_told_before_the_exit() {
    // Hello and Join, then Leave and exit, written by a rank itself.
    const RANK: &str = r"
import os, socket, struct
def message(tag, body):
    inner = bytes([tag << 3 | 2, len(body)]) + body
    return struct.pack('<I', len(inner)) + inner
rank = int(os.environ['RANK'])
s = socket.socket(socket.AF_UNIX)
s.connect('\0' + os.environ['RLAUNCH_AGENT'])
s.sendall(message(1, bytes([8, 1, 16, rank, 24, 1])) + message(2, b''))
s.recv(4)
s.sendall(message(4, b''))
os._exit(0)
";
    for _ in 0..10 {
        let mut agent = Agent::start().await;
        let mut job = agent.run(launch(4, &["python3", "-c", RANK])).await;
        job.finish().await;
        for rank in 0..4 {
            let order: Vec<&str> = job
                .heard
                .iter()
                .filter_map(|message| match message {
                    Message::Joined(joined) if joined.rank == rank => Some("joined"),
                    Message::Left(left) if left.rank == rank => Some("left"),
                    Message::Exited(exited) if exited.rank == rank => Some("exited"),
                    _ => None,
                })
                .collect();
            assert_eq!(order, ["joined", "left", "exited"]);
        }
        tokio::time::timeout(Duration::from_secs(10), agent.leave(job))
            .await
            .unwrap();
    }
}
