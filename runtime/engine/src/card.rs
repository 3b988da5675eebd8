//! What one rank tells the others of itself when it joins. Opaque to agent and launcher.

use std::net::IpAddr;
use std::{fs, io};

use prost::Message;
use rlaunch_wire::{PROTOCOL, environment, limits::CARD_MAX_BYTES};

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
    /// What that comes from, to tell a difference: the settings as they were given, each cut.
    #[prost(string, repeated, tag = "17")]
    pub(crate) choices: Vec<String>,
}

/// The settings that all ranks must have alike, in the order of a card's choices.
const CHOICES: [&str; 4] = [
    environment::RLAUNCH_PRECISE,
    environment::RLAUNCH_DETERMINISTIC,
    environment::RLAUNCH_ALGO,
    environment::RLAUNCH_TUNE_FILE,
];

/// What is told of a setting's value; keeps the card under its limit.
const VALUE_SHOWN_MAX: usize = 100;

fn choices(config: &Config) -> Vec<String> {
    let flag = |is_set: bool| if is_set { "1" } else { "" }.to_owned();
    let file = config.tune_file.as_ref();
    let file = file.map(|path| path.display().to_string());
    let values = [
        flag(config.numbers.precise),
        flag(config.numbers.deterministic),
        config.algorithm.clone().unwrap_or_default(),
        file.unwrap_or_default(),
    ];
    let cut = |value: String| value.chars().take(VALUE_SHOWN_MAX).collect();
    values.into_iter().map(cut).collect()
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
            choices: choices(config),
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
                return Err(card.chooses_otherwise(first));
            }
        }
        Ok(cards)
    }

    /// Names the setting that differs, with both values.
    fn chooses_otherwise(&self, first: &Self) -> Error {
        let shown = |card: &Self, name: &str, value: &str| {
            let place = format!("on rank {} (host {})", card.rank, card.host);
            match value.is_empty() {
                true => format!("{name} is not set {place}"),
                false => format!("{name}={value} {place}"),
            }
        };
        let both = CHOICES.iter().zip(self.choices.iter().zip(&first.choices));
        let differing = both.filter(|(_, (own, other))| own != other);
        let told: Vec<String> = differing
            .map(|(name, (own, other))| {
                let (own, other) = (shown(self, name, own), shown(first, name, other));
                format!("{own}, but {other}")
            })
            .collect();
        Error::Init(if told.is_empty() {
            format!(
                "the files of {} differ in content between rank {} (host {}) and rank 0 (host {}); \
                 hint: copy one to all hosts",
                environment::RLAUNCH_TUNE_FILE,
                self.rank,
                self.host,
                first.host
            )
        } else {
            let told = told.join("; ");
            format!("{told}; hint: set it the same on all ranks, since algorithms depend on it")
        })
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
    fn a_setting_that_differs_is_named_with_both_values() {
        let card = |rank: u32, choices: [&str; 4]| Card {
            rank,
            host: format!("h{rank}"),
            selection: rank.into(),
            choices: choices.map(String::from).into(),
            ..Card::default()
        };
        let text = |other: [&str; 4]| {
            let cards = [card(0, ["", "", "ring", "/a"]), card(1, other)];
            let cards = cards.map(|card| card.encode_to_vec());
            Card::decode_all(&cards).unwrap_err().to_string()
        };
        let precise = text(["1", "", "ring", "/a"]);
        let expected = "RLAUNCH_PRECISE=1 on rank 1 (host h1), but RLAUNCH_PRECISE is not set on rank 0 (host h0); hint";
        assert!(precise.contains(expected), "{precise}");
        let algorithm = text(["", "", "tree", "/a"]);
        assert!(
            algorithm.contains("RLAUNCH_ALGO=tree on rank 1 (host h1), but RLAUNCH_ALGO=ring on"),
            "{algorithm}"
        );
        let file = text(["", "", "ring", "/a"]);
        assert!(
            file.contains("RLAUNCH_TUNE_FILE differ in content between rank 1 (host h1)"),
            "{file}"
        );
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
