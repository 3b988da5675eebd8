//! Which pairs of addresses may lead to a peer; pure. The handshake then tells which do.

use std::net::{IpAddr, SocketAddr};

use super::interfaces::{Interface, shares_network};

/// One way to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub remote: SocketAddr,
    /// The interface to leave by; else the system's routing decides.
    pub local: Option<(IpAddr, String)>,
}

/// How to reach one peer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routes {
    /// For the first connection, best first.
    pub first: Vec<Route>,
    /// Ways that can be used beside each other, each over interfaces of its own; empty where one
    /// way is all there is.
    pub rails: Vec<Route>,
}

/// Of known speeds only those that reach this share of the best one are used together: a chunk on
/// a much slower link holds up the message that it is part of.
const SPEED_SHARE_MIN: u32 = 2;

impl Routes {
    /// From this rank's chosen interfaces to the peer's addresses and port. `asked_for`: the user
    /// named the interfaces, so pairs that share no network count as well.
    pub fn new(
        local: &[Interface],
        remote: &[IpAddr],
        port: u16,
        same_host: bool,
        asked_for: bool,
    ) -> Self {
        // This host's own addresses can't lead elsewhere, though another host may have them too
        // (docker0); loopback means nothing elsewhere.
        let is_candidate = |address: &IpAddr| {
            same_host || !(address.is_loopback() || local.iter().any(|own| own.address == *address))
        };
        let mut candidates: Vec<IpAddr> = remote.iter().copied().filter(is_candidate).collect();
        let is_near = |address: IpAddr| {
            let mut near = local.iter().filter(|own| is_on(own, address));
            near.next().is_some()
        };
        // Stable: within a class the peer's order stands.
        candidates.sort_by_key(|address| {
            let is_wrong_loopback = address.is_loopback() != same_host;
            (is_wrong_loopback, !is_near(*address), address.is_ipv6())
        });
        let rails = if same_host {
            Vec::new()
        } else {
            rails(local, &candidates, port, asked_for)
        };
        let first = candidates.into_iter().map(|address| Route {
            remote: SocketAddr::from((address, port)),
            local: None,
        });
        Self {
            first: first.collect(),
            rails,
        }
    }
}

fn is_on(own: &Interface, address: IpAddr) -> bool {
    !own.is_loopback && own.prefix_bits > 0 && shares_network(own.address, address, own.prefix_bits)
}

/// Pairs each interface with one address of the peer, IPv4 before IPv6, none used twice.
fn rails(local: &[Interface], remote: &[IpAddr], port: u16, asked_for: bool) -> Vec<Route> {
    let speed_max = local.iter().filter_map(|own| own.speed_mbit).max();
    let is_fast = |own: &&Interface| match (own.speed_mbit, speed_max) {
        (Some(speed), Some(max)) => speed >= max / SPEED_SHARE_MIN,
        _ => true,
    };
    let mut usable: Vec<&Interface> = local
        .iter()
        .filter(|own| !own.is_loopback)
        .filter(is_fast)
        .collect();
    usable.sort_by_key(|own| own.address.is_ipv6());
    let mut free: Vec<IpAddr> = remote.to_vec();
    let mut names: Vec<&str> = Vec::new();
    let mut rails = Vec::new();
    for near_only in [true, false] {
        for own in &usable {
            let fits = |address: &IpAddr| {
                is_on(own, *address)
                    || (!near_only && asked_for && own.address.is_ipv4() == address.is_ipv4())
            };
            if names.contains(&own.name.as_str()) {
                continue;
            }
            let Some(at) = free.iter().position(fits) else {
                continue;
            };
            names.push(&own.name);
            rails.push(Route {
                remote: SocketAddr::from((free.remove(at), port)),
                local: Some((own.address, own.name.clone())),
            });
        }
    }
    if rails.len() > 1 { rails } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::interfaces::tests::interface;
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn remotes(routes: &[Route]) -> Vec<String> {
        let remotes = routes.iter().map(|route| route.remote.ip().to_string());
        remotes.collect()
    }

    fn local() -> Vec<Interface> {
        vec![
            interface("lo", "127.0.0.1/8"),
            interface("docker0", "172.17.0.1/16"),
            interface("a", "10.1.0.5/24"),
            interface("b", "10.2.0.5/24"),
        ]
    }

    #[test]
    fn near_addresses_come_first_and_own_or_loopback_ones_never() {
        let remote = addresses(&[
            "127.0.0.1",
            "172.17.0.1",
            "192.168.7.9",
            "10.2.0.9",
            "fd00::9",
        ]);
        let routes = Routes::new(&local(), &remote, 1, false, false);
        assert_eq!(
            remotes(&routes.first),
            ["10.2.0.9", "192.168.7.9", "fd00::9"]
        );
        assert!(routes.rails.is_empty(), "one way is no choice");
        let inside = Routes::new(&local(), &remote, 1, true, false);
        assert_eq!(remotes(&inside.first)[0], "127.0.0.1");
    }

    #[test]
    fn each_interface_is_paired_with_an_address_of_its_network() {
        let remote = addresses(&["172.17.0.1", "10.2.0.9", "10.1.0.9"]);
        let routes = Routes::new(&local(), &remote, 1, false, false);
        assert_eq!(remotes(&routes.rails), ["10.1.0.9", "10.2.0.9"]);
        let local_names = routes
            .rails
            .iter()
            .map(|rail| rail.local.clone().unwrap().1);
        assert!(local_names.eq(["a", "b"]));
    }

    #[test]
    fn two_interfaces_in_one_network_take_an_address_each() {
        let local = [interface("a", "10.1.0.5/24"), interface("b", "10.1.0.6/24")];
        let remote = addresses(&["10.1.0.8", "10.1.0.9"]);
        let routes = Routes::new(&local, &remote, 1, false, false);
        assert_eq!(remotes(&routes.rails), ["10.1.0.8", "10.1.0.9"]);
    }

    #[test]
    fn a_slow_link_is_left_out_and_far_ones_taken_when_asked_for() {
        let mut local = local();
        local[3].speed_mbit = Some(1000);
        local[2].speed_mbit = Some(100_000);
        let near = addresses(&["10.1.0.9", "10.2.0.9"]);
        let routes = Routes::new(&local, &near, 1, false, false);
        assert!(routes.rails.is_empty(), "{routes:?}");
        local[3].speed_mbit = None;
        let far = addresses(&["10.8.0.9", "10.9.0.9"]);
        assert!(
            Routes::new(&local[2..], &far, 1, false, false)
                .rails
                .is_empty()
        );
        assert_eq!(
            Routes::new(&local[2..], &far, 1, false, true).rails.len(),
            2
        );
    }
}
