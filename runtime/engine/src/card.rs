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
        }
        Ok(cards)
    }

    /// Whether both run under one kernel, in one network.
    pub(crate) fn shares_host(&self, other: &Self) -> bool {
        self.boot_id == other.boot_id && self.network_namespace == other.network_namespace
    }

    pub(crate) fn shares_memory(&self, other: &Self) -> bool {
        self.shares_host(other) && self.uid == other.uid && self.allows_shm && other.allows_shm
    }
}

fn namespace(kind: &str) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(fs::metadata(format!("/proc/self/ns/{kind}"))?.ino())
}
