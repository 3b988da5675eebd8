//! Worlds for tests: ranks as threads of this process.

#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod process;

use std::net::TcpListener;
use std::time::Duration;

use rlaunch_runtime::config::{Rendezvous, Transports};
use rlaunch_runtime::{Config, World};

pub(crate) const SHM: Transports = Transports {
    shm: true,
    tcp: false,
};
pub(crate) const TCP: Transports = Transports {
    shm: false,
    tcp: true,
};

pub(crate) const BOTH: Transports = Transports {
    shm: true,
    tcp: true,
};

/// A configuration of rank 0; the others differ in the rank alone.
pub(crate) fn config(world_size: u32, transports: Transports) -> Config {
    // The port is free again when it is returned; a thief in between shows as an init error.
    let probe = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = probe.local_addr().unwrap().port();
    Config {
        world_size,
        transports,
        timeout: Duration::from_secs(60),
        init_timeout: Duration::from_secs(30),
        rendezvous: Rendezvous::Star {
            address: "127.0.0.1".into(),
            ports: vec![port],
            run_id: format!("{}-{port}", std::process::id()),
            secret: Some("secret".into()),
        },
        ..Config::alone()
    }
}

/// Runs `body` as every rank of a world; returns the results by rank.
pub(crate) fn ranks<R: Send>(config: &Config, body: impl Fn(World) -> R + Sync) -> Vec<R> {
    ranks_with(config, |config| config, body)
}

/// The same with a configuration that `change` makes of each rank's.
pub(crate) fn ranks_with<R: Send>(
    config: &Config,
    change: impl Fn(Config) -> Config,
    body: impl Fn(World) -> R + Sync,
) -> Vec<R> {
    let body = &body;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..config.world_size)
            .map(|rank| {
                let config = change(Config {
                    rank,
                    ..config.clone()
                });
                scope.spawn(move || body(World::new(config).unwrap()))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}
