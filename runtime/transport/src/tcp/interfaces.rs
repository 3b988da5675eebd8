//! This host's interfaces, and which of them carry data: pure but for [`interfaces`].
//!
//! One grammar, whatever variable it comes from (`RLAUNCH_SOCKET_IFNAME`, else NCCL's, else
//! Gloo's): words between commas, each the beginning of a name, `=` and a whole name, or a network
//! (`10.1.0.0/16`); a `^` in front of all excludes them. Names never decide without being given:
//! what can't be reached is found out when connections are made.

use std::fmt::{self, Write as _};
use std::io;
use std::net::IpAddr;

use nix::net::if_::InterfaceFlags;

/// One address of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub address: IpAddr,
    pub prefix_bits: u8,
    pub is_up: bool,
    pub is_loopback: bool,
    /// As its driver says; `None` where it says nothing.
    pub speed_mbit: Option<u32>,
}

/// IPv4, IPv6, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    #[default]
    Any,
    V4,
    V6,
}

/// The interfaces that somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceFilter {
    /// The variable, for messages.
    source: String,
    text: String,
    excludes: bool,
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Prefix(String),
    Exact(String),
    Network(IpAddr, u8),
}

/// No interface is left; every one is named with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no interface for data: {reason}; this host has {list}; hint: choose with \
     RLAUNCH_SOCKET_IFNAME (eth, =eth0, ^docker, 10.1.0.0/16) and RLAUNCH_SOCKET_FAMILY (4, 6)"
)]
pub struct NoInterface {
    reason: String,
    list: String,
}

impl InterfaceFilter {
    /// Reads `text`, the value of the variable `source`. The error says what is wrong with it.
    pub fn parse(source: &str, text: &str) -> Result<Self, String> {
        let (excludes, mut rest) = match text.trim().strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, text.trim()),
        };
        // NCCL's: an = in front holds for all words.
        let mut all_exact = false;
        if let Some(behind) = rest.strip_prefix('=') {
            (all_exact, rest) = (true, behind);
        }
        let mut words = Vec::new();
        for word in rest.split(',').map(str::trim) {
            let (is_exact, word) = match word.strip_prefix('=') {
                Some(word) => (true, word),
                None => (all_exact, word),
            };
            if word.is_empty() {
                return Err(format!("{source}={text:?}: an empty name"));
            }
            words.push(match parse_network(word) {
                Some(Ok((address, bits))) => Word::Network(address, bits),
                Some(Err(())) => {
                    return Err(format!(
                        "{source}={text:?}: {word:?} is no network; write it like 10.1.0.0/16"
                    ));
                }
                None if is_exact => Word::Exact(word.into()),
                None => Word::Prefix(word.into()),
            });
        }
        Ok(Self {
            source: source.into(),
            text: text.into(),
            excludes,
            words,
        })
    }

    pub fn allows(&self, interface: &Interface) -> bool {
        let is_named = self.words.iter().any(|word| match word {
            Word::Prefix(prefix) => interface.name.starts_with(prefix),
            Word::Exact(name) => interface.name == *name,
            Word::Network(network, bits) => shares_network(*network, interface.address, *bits),
        });
        is_named != self.excludes
    }

    /// An error where it names what to use, and this host has nothing of it, not even loopback or one
    /// that is down.
    pub fn check_matches(&self, all: &[Interface]) -> Result<(), NoInterface> {
        if self.excludes || all.iter().any(|interface| self.allows(interface)) {
            return Ok(());
        }
        let shown: Vec<String> = all.iter().map(Interface::to_string).collect();
        Err(NoInterface {
            reason: format!("{self} matches none"),
            list: match shown.is_empty() {
                true => NO_ADDRESS.into(),
                false => shown.join(", "),
            },
        })
    }

    /// The variable that it was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it names what to use, rather than what not.
    pub fn is_positive(&self) -> bool {
        !self.excludes
    }
}

/// `eth0 10.1.0.5/24`
impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.name, self.address, self.prefix_bits)
    }
}

impl fmt::Display for InterfaceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.source, self.text)
    }
}

/// `None`: not meant as a network.
fn parse_network(word: &str) -> Option<Result<(IpAddr, u8), ()>> {
    let (address, bits) = word.split_once('/')?;
    let (Ok(address), Ok(bits)) = (address.parse::<IpAddr>(), bits.parse::<u8>()) else {
        return Some(Err(()));
    };
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    Some(if bits <= bits_max {
        Ok((address, bits))
    } else {
        Err(())
    })
}

/// Whether the first `bits` of both are the same.
pub(super) fn shares_network(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let differing_from = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        _ => return false,
    };
    differing_from >= u32::from(bits)
}

/// What may carry data between hosts, in the system's order, and loopback for inside the host.
/// An error where nothing leads out of this host; loopback alone is then of use still.
pub fn choose(
    all: &[Interface],
    filter: Option<&InterfaceFilter>,
    family: Family,
) -> (Vec<Interface>, Result<(), NoInterface>) {
    let mut chosen = Vec::new();
    let mut list = String::new();
    for interface in all {
        let rejection = rejection(interface, filter, family);
        if rejection.is_none() || (interface.is_loopback && interface.is_up) {
            chosen.push(interface.clone());
        }
        let separator = if list.is_empty() { "" } else { ", " };
        let reason = rejection.unwrap_or("loopback, which leads to no other host");
        let _ = write!(list, "{separator}{interface} ({reason})");
    }
    // Hosts of another family's loopback only would not hear each other.
    chosen.retain(|interface| family.has(interface.address));
    if chosen.iter().any(|interface| !interface.is_loopback) {
        return (chosen, Ok(()));
    }
    let reason = match filter {
        Some(filter) => format!("{filter} leaves none"),
        None => "none leads to other hosts".into(),
    };
    if list.is_empty() {
        list.push_str(NO_ADDRESS);
    }
    (chosen, Err(NoInterface { reason, list }))
}

const NO_ADDRESS: &str = "no interface with an address";

fn rejection(
    interface: &Interface,
    filter: Option<&InterfaceFilter>,
    family: Family,
) -> Option<&'static str> {
    let is_link_local =
        matches!(interface.address, IpAddr::V6(address) if address.is_unicast_link_local());
    match () {
        () if !interface.is_up => Some("down"),
        () if !family.has(interface.address) => Some("not of the family asked for"),
        () if is_link_local => Some("link-local, which means nothing on another host"),
        () if filter.is_some_and(|filter| !filter.allows(interface)) => Some("not asked for"),
        () => None,
    }
}

impl Family {
    pub fn has(self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// Asks the system: one entry for each address.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut interfaces = Vec::new();
    for entry in nix::ifaddrs::getifaddrs()? {
        let Some(address) = entry.address.as_ref().and_then(ip) else {
            continue;
        };
        let prefix_bits = match entry.netmask.as_ref().and_then(ip) {
            Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
            Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
            None => 0,
        };
        let speed =
            std::fs::read_to_string(format!("/sys/class/net/{}/speed", entry.interface_name));
        interfaces.push(Interface {
            address,
            prefix_bits: prefix_bits as u8,
            is_up: entry.flags.contains(InterfaceFlags::IFF_UP),
            is_loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK)
                || address.is_loopback(),
            speed_mbit: speed.ok().and_then(|text| text.trim().parse().ok()),
            name: entry.interface_name,
        });
    }
    Ok(interfaces)
}

fn ip(address: &nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(IpAddr::V4(v4.ip()));
    }
    address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn interface(name: &str, address: &str) -> Interface {
        let (address, bits) = address.split_once('/').unwrap();
        let address: IpAddr = address.parse().unwrap();
        Interface {
            name: name.into(),
            address,
            prefix_bits: bits.parse().unwrap(),
            is_up: true,
            is_loopback: address.is_loopback(),
            speed_mbit: None,
        }
    }

    fn host() -> Vec<Interface> {
        vec![
            interface("lo", "127.0.0.1/8"),
            interface("eth0", "10.1.0.5/24"),
            interface("eth0", "fd00::5/64"),
            interface("eth0", "fe80::5/64"),
            interface("eth1", "10.2.0.5/24"),
            interface("eth10", "10.3.0.5/24"),
            interface("docker0", "172.17.0.1/16"),
        ]
    }

    fn names(text: Option<&str>, family: Family) -> Vec<String> {
        let filter = text.map(|text| InterfaceFilter::parse("V", text).unwrap());
        let (chosen, _) = choose(&host(), filter.as_ref(), family);
        let outward = chosen.iter().filter(|interface| !interface.is_loopback);
        outward
            .map(|interface| interface.address.to_string())
            .collect()
    }

    #[test]
    fn one_grammar_serves_prefixes_names_exclusions_and_networks() {
        let v4 = Family::V4;
        assert_eq!(names(Some("eth1"), v4), ["10.2.0.5", "10.3.0.5"]);
        assert_eq!(names(Some("=eth1"), v4), ["10.2.0.5"]);
        assert_eq!(names(Some("=eth0,eth1"), v4), ["10.1.0.5", "10.2.0.5"]);
        assert_eq!(names(Some("eth0,=eth10"), v4), ["10.1.0.5", "10.3.0.5"]);
        assert_eq!(names(Some("^docker,eth1"), v4), ["10.1.0.5"]);
        assert_eq!(names(Some("^=eth1,docker0"), v4), ["10.1.0.5", "10.3.0.5"]);
        assert_eq!(names(Some("10.2.0.0/15"), v4), ["10.2.0.5", "10.3.0.5"]);
        assert_eq!(names(Some("fd00::/16"), Family::Any), ["fd00::5"]);
        assert_eq!(
            names(None, Family::V6),
            ["fd00::5"],
            "link-local is left out"
        );
    }

    #[test]
    fn a_filter_that_leaves_nothing_lists_all_with_the_reason() {
        let filter = InterfaceFilter::parse("NCCL_SOCKET_IFNAME", "ib").unwrap();
        let (chosen, result) = choose(&host(), Some(&filter), Family::Any);
        assert!(chosen.iter().all(|interface| interface.is_loopback));
        let text = result.unwrap_err().to_string();
        assert!(text.contains("NCCL_SOCKET_IFNAME=ib leaves none"), "{text}");
        assert!(text.contains("eth1 10.2.0.5/24 (not asked for)"), "{text}");
        assert!(text.contains("fe80::5/64 (link-local"), "{text}");
    }

    #[test]
    fn a_filter_that_matches_nothing_lists_what_there_is() {
        let check = |text: &str| {
            let filter = InterfaceFilter::parse("RLAUNCH_SOCKET_IFNAME", text).unwrap();
            filter
                .check_matches(&host())
                .map_err(|error| error.to_string())
        };
        for fine in ["lo", "eth", "ib,=eth1", "^nothing", "10.3.0.0/16"] {
            assert_eq!(check(fine), Ok(()));
        }
        for wrong in ["ib", "=eth", "192.168.0.0/16"] {
            let text = check(wrong).unwrap_err();
            assert!(
                text.contains(&format!("RLAUNCH_SOCKET_IFNAME={wrong} matches none")),
                "{text}"
            );
            assert!(
                text.contains("lo 127.0.0.1/8, eth0 10.1.0.5/24, "),
                "{text}"
            );
        }
    }

    #[test]
    fn a_filter_that_means_nothing_is_refused() {
        for text in ["", "^", "eth0,,eth1", "10.0.0/8", "10.0.0.0/33"] {
            let error = InterfaceFilter::parse("V", text).unwrap_err();
            assert!(error.starts_with("V="), "{error}");
        }
    }
}
