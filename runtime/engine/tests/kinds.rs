//! nccl#1092: what goes wrong in a network has a kind for each cause, and a text that names the thing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::TcpListener;
use std::time::Duration;

use common::{TCP, config, ranks, ranks_with};
use rlaunch_runtime::config::Rendezvous;
use rlaunch_runtime::{Config, Error, World};

/// One rank of a world of two, with these variables for its network, and what it is told.
fn joining(rank: u32, variables: &[(&str, &str)]) -> Error {
    let read = |name: &str| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let config = Config {
        rank,
        tcp: Config::from_variables(read).unwrap().tcp,
        init_timeout: Duration::from_millis(300),
        ..config(2, TCP)
    };
    World::new(config).unwrap_err()
}

fn assert_init(error: &Error, words: &[&str]) {
    assert!(matches!(error, Error::Init(_)), "{error:?}");
    let text = error.to_string();
    assert!(!text.to_lowercase().contains("internal error"), "{text}");
    for word in words {
        assert!(text.contains(word), "nothing about `{word}`: {text}");
    }
}

#[test]
fn ports_and_absent_ranks_are_told_apart_at_init() {
    let held = TcpListener::bind(("0.0.0.0", 0)).unwrap();
    let port = held.local_addr().unwrap().port();
    let range = format!("{port}-{port}");
    let no_port = joining(0, &[("RLAUNCH_PORT_RANGE", &range)]);
    assert_init(&no_port, &["RLAUNCH_PORT_RANGE", &range]);
    assert_init(&joining(0, &[]), &["[1]"]);
    assert_init(&joining(1, &[]), &["127.0.0.1", "rank 0"]);
}

#[test]
fn another_secret_is_told_as_such() {
    let config = config(2, TCP);
    let with_secret = |rank: u32| {
        let mut config = Config {
            rank,
            init_timeout: Duration::from_secs(1),
            ..config.clone()
        };
        if let Rendezvous::Star { secret, .. } = &mut config.rendezvous {
            *secret = Some(format!("of rank {rank}"));
        }
        config
    };
    std::thread::scope(|scope| {
        let zero = scope.spawn(|| World::new(with_secret(0)).unwrap_err());
        assert_init(
            &World::new(with_secret(1)).unwrap_err(),
            &["RLAUNCH_SECRET"],
        );
        zero.join().unwrap();
    });
}

type Call = fn(&World) -> Result<(), Error>;
type Kind = fn(&Error) -> bool;

/// Rank 1 does this, while rank 0 waits for a message from it.
#[test]
fn what_a_peer_does_instead_of_sending_has_kinds() {
    let cases: [(&str, Call, Kind); 4] = [
        (
            "aborts",
            |world| {
                world.abort("enough");
                Ok(())
            },
            |error| matches!(error, Error::Aborted { by, reason, .. } if by.rank == 1 && reason == "enough"),
        ),
        (
            "leaves",
            |_| Ok(()),
            |error| matches!(error, Error::PeerLeft { peer, .. } if peer.rank == 1),
        ),
        (
            "sends too much",
            |world| world.send(&[1u8; 100], 0, 0),
            |error| matches!(error, Error::MessageMismatch { sender, .. } if sender.rank == 1),
        ),
        (
            "is busy",
            |_| {
                std::thread::sleep(Duration::from_millis(600));
                Ok(())
            },
            |error| matches!(error, Error::Timeout { missing, .. } if missing[0].rank == 1),
        ),
    ];
    for (name, call, is_kind) in cases {
        let short = |config: Config| Config {
            timeout: Duration::from_millis(300),
            ..config
        };
        ranks_with(&config(2, TCP), short, |world| {
            if world.rank() == 1 {
                // Its own end is not what is looked at.
                let _ = call(&world);
                let _ = world.finalize();
                return;
            }
            let error = world.recv(&mut [0u8; 10], 1, 0).unwrap_err();
            assert!(is_kind(&error), "{name}: {error:?}");
            assert!(error.to_string().contains("rank 1 (host "), "{error}");
        });
    }
    ranks(&config(1, TCP), |world| world.finalize().unwrap());
}
