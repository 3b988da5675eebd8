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
    let ports = free_ports();
    Config {
        world_size,
        transports,
        timeout: at_most(Duration::from_secs(60)),
        init_timeout: at_most(Duration::from_secs(30)),
        rendezvous: Rendezvous::Star {
            address: "127.0.0.1".into(),
            run_id: format!("{}-{}", std::process::id(), ports[0]),
            ports,
            secret: Some("secret".into()),
        },
        ..Config::alone()
    }
}

/// What a promise allows, times `RLAUNCH_TEST_PATIENCE`: under a sanitizer, or where the machine may stand
/// still for a while, time proves nothing.
pub(crate) fn at_most(longest: Duration) -> Duration {
    let patience = std::env::var("RLAUNCH_TEST_PATIENCE").ok();
    longest * patience.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Free when they are returned. One may be taken in between, by another test's sockets; rank 0 then
/// listens on the next.
fn free_ports() -> Vec<u16> {
    let probe = |_| TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let probes: Vec<TcpListener> = (0..4).map(probe).collect();
    let port = |probe: &TcpListener| probe.local_addr().unwrap().port();
    probes.iter().map(port).collect()
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
