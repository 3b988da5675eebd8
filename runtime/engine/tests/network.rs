//! Ports, families and numbers of sockets, by ranks of one host that share no memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::TcpListener;
use std::time::Duration;

use common::{SHM, TCP, config, ranks};
use rlaunch_runtime::config::Rendezvous;
use rlaunch_runtime::{Config, Op};

/// Sums over all ranks, of a message that one socket carries and of one that is spread.
fn sums(config: &Config) {
    let sizes = [1, 300_000];
    let results = ranks(config, |world| {
        sizes.map(|count| {
            let mut data = vec![world.rank() as f32 + 1.0; count];
            world.all_reduce(&mut data, Op::Sum).unwrap();
            data
        })
    });
    let sum = (1..=config.world_size).sum::<u32>() as f32;
    for result in results.iter().flatten() {
        assert!(result.iter().all(|value| *value == sum));
    }
}

#[test]
fn several_sockets_and_either_family_give_the_same_result() {
    for (sockets, family) in [("1", "4"), ("3", "6"), ("4", "4")] {
        let mut config = config(3, TCP);
        let read = |name: &str| match name {
            "RLAUNCH_SOCKETS" => Some(sockets.to_owned()),
            "RLAUNCH_SOCKET_FAMILY" => Some(family.to_owned()),
            _ => None,
        };
        config.tcp = Config::from_variables(read).unwrap().tcp;
        sums(&config);
    }
}

/// aws-do-eks#51, marin#6940: also where all ranks are on one host.
#[test]
fn a_filter_that_matches_no_interface_is_refused_with_those_there_are() {
    let with_filter = |name: &'static str, value: &'static str| {
        let read = move |asked: &str| (asked == name).then(|| value.to_owned());
        let mut config = config(2, TCP);
        config.tcp = Config::from_variables(read).unwrap().tcp;
        config
    };
    let config = with_filter("RLAUNCH_SOCKET_IFNAME", "nosuch");
    let error = rlaunch_runtime::World::new(config).unwrap_err().to_string();
    assert!(
        error.contains("RLAUNCH_SOCKET_IFNAME=nosuch matches none"),
        "{error}"
    );
    assert!(error.contains("lo 127.0.0.1/8"), "{error}");
    for (name, value) in [
        ("RLAUNCH_SOCKET_IFNAME", "lo"),
        ("RLAUNCH_SOCKET_IFNAME", "nosuch,lo"),
        ("NCCL_SOCKET_IFNAME", "nosuch"),
    ] {
        sums(&with_filter(name, value));
    }
}

/// nccl#388: with a range of as many ports as ranks no other one is listened on; one less is an
/// error that names the range.
#[test]
fn a_range_of_as_many_ports_as_ranks_is_enough() {
    const RANKS: u16 = 4;
    let (low, high) = free_range(RANKS);
    let mut config = config(u32::from(RANKS), TCP);
    let range = |high: u16| {
        let read = move |name: &str| {
            let is_range = name == "RLAUNCH_PORT_RANGE";
            is_range.then(|| format!("{low}-{high}"))
        };
        Config::from_variables(read).unwrap().tcp
    };
    config.tcp = range(high);
    if let Rendezvous::Star { ports, .. } = &mut config.rendezvous {
        *ports = (low..=high).collect();
    }
    sums(&config);
    let held: Vec<_> = (low..=high)
        .map(|port| TcpListener::bind(("0.0.0.0", port)).unwrap())
        .collect();
    config.tcp = range(high);
    let error = rlaunch_runtime::World::new(config).unwrap_err().to_string();
    assert!(
        error.contains(&format!("RLAUNCH_PORT_RANGE={low}-{high}")),
        "{error}"
    );
    drop(held);
}

/// Ports in a row that nobody has now.
fn free_range(count: u16) -> (u16, u16) {
    let free = |port| TcpListener::bind(("0.0.0.0", port)).is_ok();
    for _ in 0..100 {
        let probe = TcpListener::bind(("0.0.0.0", 0)).unwrap();
        let first = probe.local_addr().unwrap().port();
        drop(probe);
        let Some(last) = first.checked_add(count - 1) else {
            continue;
        };
        if (first..=last).all(free) {
            return (first, last);
        }
    }
    panic!("no {count} free ports in a row");
}

/// By a socket that happens to go out from it, say.
#[test]
fn a_port_that_is_busy_for_a_moment_is_waited_for() {
    let busy = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut config = config(2, SHM);
    if let Rendezvous::Star { ports, .. } = &mut config.rendezvous {
        *ports = vec![busy.local_addr().unwrap().port()];
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(busy);
        });
        ranks(&config, |world| world.barrier().unwrap());
    });
}
