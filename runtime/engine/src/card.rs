//! What one rank tells the others of itself when it joins. Opaque to agent and launcher.

use std::net::IpAddr;
use std::{fs, io};

use prost::Message;
use rlaunch_wire::{PROTOCOL, limits::CARD_MAX_BYTES};

use crate::{Config, Error};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Card {
    #[prost(uint32, tag = "1")]
    pub(crate) protocol: u32,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(uint32, tag = "3")]
    pub(crate) rank: u32,
    #[prost(uint32, tag = "4")]
    pub(crate) pid: u32,
    /// For messages only; identity is below.
    #[prost(string, tag = "5")]
    pub(crate) host: String,
    #[prost(string, tag = "6")]
    pub(crate) boot_id: String,
    /// Abstract sockets, by which memory is shared, reach within one network namespace.
    #[prost(uint64, tag = "7")]
    pub(crate) network_namespace: u64,
    /// A pid means something only to ranks of the same one.
    #[prost(uint64, tag = "8")]
    pub(crate) pid_namespace: u64,
    #[prost(uint32, tag = "9")]
    pub(crate) uid: u32,
    #[prost(uint32, tag = "10")]
    pub(crate) tcp_port: u32,
    #[prost(string, repeated, tag = "11")]
    pub(crate) addresses: Vec<String>,
    #[prost(bool, tag = "12")]
    pub(crate) allows_shm: bool,
    #[prost(bool, tag = "13")]
    pub(crate) allows_tcp: bool,
    /// One bit for each core that this process may run on.
    #[prost(bytes = "vec", tag = "14")]
    pub(crate) cores: Vec<u8>,
    /// What the user calls the part of the host that this rank belongs to.
    #[prost(string, tag = "15")]
    pub(crate) host_id: String,
    /// Equal where the ranks choose the same algorithms.
    #[prost(uint64, tag = "16")]
    pub(crate) selection: u64,
}

/// More addresses than any host needs to be reached; keeps the card under its limit.
const ADDRESSES_MAX: usize = 48;

impl Card {
    /// Describes this process.
    pub(crate) fn gather(
        config: &Config,
        host: &str,
        tcp_port: u16,
        addresses: &[IpAddr],
    ) -> io::Result<Self> {
        Ok(Self {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
            rank: config.rank,
            pid: std::process::id(),
            host: host.into(),
            boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")?
                .trim()
                .into(),
            network_namespace: namespace("net")?,
            pid_namespace: namespace("pid")?,
            uid: nix::unistd::geteuid().as_raw(),
            tcp_port: tcp_port.into(),
            addresses: addresses
                .iter()
                .take(ADDRESSES_MAX)
                .map(IpAddr::to_string)
                .collect(),
            allows_shm: config.transports.shm,
            allows_tcp: config.transports.tcp,
            cores: cores(),
            selection: 0,
            host_id: config.host_id.clone().unwrap_or_default(),
        })
    }

    /// All ranks' cards, in rank order.
    pub(crate) fn decode_all(cards: &[Vec<u8>]) -> Result<Vec<Self>, Error> {
        let decode = |(rank, bytes): (usize, &Vec<u8>)| match Self::decode(&bytes[..]) {
            Ok(card) if card.rank as usize == rank && bytes.len() <= CARD_MAX_BYTES => Ok(card),
            _ => Err(Error::Init(format!("rank {rank}'s card can't be read"))),
        };
        let cards: Vec<Self> = cards
            .iter()
            .enumerate()
            .map(decode)
            .collect::<Result<_, _>>()?;
        for card in &cards {
            let first = &cards[0];
            if (card.protocol, &card.version) != (first.protocol, &first.version) {
                return Err(Error::Init(format!(
                    "rank {} (host {}) runs version {} of rlaunch's runtime, but rank 0 (host {}) \
                     {}; install one version on all hosts",
                    card.rank, card.host, card.version, first.host, first.version
                )));
            }
            if card.selection != first.selection {
                return Err(Error::Init(format!(
                    "rank {} (host {}) and rank 0 (host {}) choose algorithms differently; set \
                     RLAUNCH_ALGO, RLAUNCH_PRECISE and RLAUNCH_DETERMINISTIC the same on all \
                     ranks, and let RLAUNCH_TUNE_FILE name files of one content",
                    card.rank, card.host, first.host
                )));
            }
        }
        Ok(cards)
    }

    /// Whether both run under one kernel, in one network.
    pub(crate) fn shares_host(&self, other: &Self) -> bool {
        self.boot_id == other.boot_id && self.network_namespace == other.network_namespace
    }

    pub(crate) fn shares_memory(&self, other: &Self) -> bool {
        self.shares_host(other)
            && self.host_id == other.host_id
            && self.uid == other.uid
            && self.allows_shm
            && other.allows_shm
    }
}

/// Whether every rank of this one's host can have a core of its own: they are bound to enough
/// different ones, and no quota of the container (which they share) is below their number.
pub(crate) fn has_core_each(me: &Card, cards: &[Card]) -> bool {
    let near = || cards.iter().filter(|card| card.boot_id == me.boot_id);
    let mut union = vec![0u8; near().map(|card| card.cores.len()).max().unwrap_or(0)];
    for card in near() {
        for (all, own) in union.iter_mut().zip(&card.cores) {
            *all |= own;
        }
    }
    let ranks = near().count();
    // Below the cores this process is bound to only where a quota says so.
    let parallel = std::thread::available_parallelism().map_or(1, usize::from);
    let has_quota = parallel < count_bits(&me.cores);
    count_bits(&union) >= ranks && (!has_quota || parallel >= ranks)
}

fn count_bits(mask: &[u8]) -> usize {
    mask.iter().map(|byte| byte.count_ones() as usize).sum()
}

fn cores() -> Vec<u8> {
    use nix::sched::{CpuSet, sched_getaffinity};
    let mut mask = vec![0u8; CpuSet::count().div_ceil(8)];
    if let Ok(set) = sched_getaffinity(nix::unistd::Pid::from_raw(0)) {
        for core in (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)) {
            mask[core / 8] |= 1 << (core % 8);
        }
    }
    let used = mask
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    mask.truncate(used);
    mask
}

fn namespace(kind: &str) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(fs::metadata(format!("/proc/self/ns/{kind}"))?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(boot_id: &str, cores: &[u8]) -> Card {
        Card {
            boot_id: boot_id.into(),
            cores: cores.into(),
            ..Card::default()
        }
    }

    #[test]
    fn bound_ranks_have_a_core_each_and_crowded_ones_do_not() {
        let bound = [card("a", &[0b01]), card("a", &[0b10]), card("b", &[0b01])];
        assert!(has_core_each(&bound[0], &bound));
        let crowded = [card("a", &[0b11]), card("a", &[0b11]), card("a", &[0b11])];
        assert!(!has_core_each(&crowded[0], &crowded));
    }

    #[test]
    fn another_version_is_named_with_its_host() {
        let one = Card {
            host: "h0".into(),
            version: "1".into(),
            ..Card::default()
        };
        let two = Card {
            host: "h1".into(),
            version: "2".into(),
            rank: 1,
            ..Card::default()
        };
        let cards = [one.encode_to_vec(), two.encode_to_vec()];
        let text = Card::decode_all(&cards).unwrap_err().to_string();
        assert!(text.contains("rank 1 (host h1) runs version 2"), "{text}");
    }
}
