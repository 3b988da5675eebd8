//! From a configuration to a connected world.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use prost::Message;
use rlaunch_transport::Secret;
use rlaunch_transport::shm::{self, Doorbell, ShmConnection, ShmSetup, SingleCopy, Team};
use rlaunch_transport::tcp::TcpEndpoint;
use rlaunch_transport::tcp::handshake::Identity;

use crate::bootstrap::admit;
use crate::card::{Card, has_core_each};
use crate::config::{Config, Rendezvous};
use crate::control::ControlLink;
use crate::core::{Core, Ending, Neighbours, Peer, Spare};
use crate::failure::{Ballots, Logbook, Shared};
use crate::group::{Group, Groups, Members};
use crate::health::Watch;
use crate::known::Known;
use crate::local;
use crate::network::{Network, check_allowed};
use crate::point::Points;
use crate::selection;
use crate::wait::Pace;
use crate::{Error, Rank};

/// What the handle keeps outside of the lock.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) local_rank: u32,
    pub(crate) local_size: u32,
    pub(crate) host: String,
    pub(crate) transports: Vec<&'static str>,
    pub(crate) is_authenticated: bool,
    /// Each rank of this host can have a core of its own.
    pub(crate) has_core: bool,
}

/// Joins; returns once this rank is connected with all others.
pub(crate) fn connect(config: &Config) -> Result<(Place, Core), Error> {
    let selector = selection::selector(config)?;
    let deadline = Instant::now() + config.init_timeout;
    let admitted = admit(config, deadline)?;
    let (job, secret) = (admitted.job, admitted.secret.clone());
    let host = if admitted.host.is_empty() {
        kernel_host_name()
    } else {
        admitted.host.clone()
    };
    let network = Network::open(config, admitted.data_listener(config))?;
    let port = network.as_ref().map_or(0, Network::port);
    let addresses = network.as_ref().map_or_else(Vec::new, Network::addresses);
    let mut card = Card::gather(config, &host, port, &addresses).map_err(init("reading /proc"))?;
    card.selection = selector.fingerprint();
    let (cards, control) = admitted.join(card.encode_to_vec(), deadline)?;
    let cards = all_cards(&cards, config)?;
    raise_descriptor_limit();

    let me = config.rank as usize;
    let mut peers: Vec<Peer> = cards.iter().map(|card| Peer::new(identity(card))).collect();
    let shared = share_memory(config, &cards, &secret, job, deadline, &mut peers)?;
    let proof = Identity {
        secret: secret.clone(),
        job,
        rank: config.rank,
    };
    let network = open_connections(network, config, &cards, proof, &mut peers)?;

    let processes = watch_processes(me, &cards);
    let has_core = has_core_each(&cards[me], &cards);
    let is_leader_link = matches!(control, ControlLink::Member(_));
    let (local_rank, local_size) = local_place(config, me, &cards);
    let place = Place {
        local_rank,
        local_size,
        host,
        transports: transports(&peers),
        has_core,
        is_authenticated: !matches!(config.rendezvous, Rendezvous::Star { secret: None, .. }),
    };
    let host_of = host_of(&cards);
    let logbook_epoch = Instant::now();
    let (neighbours, team) = shared.unzip();
    let mut groups = Groups::default();
    let me = identity(&cards[me]);
    let logbook = Logbook::open(me, config.world_size, logbook_epoch, &config.recorder);
    let shared = Arc::new(Shared::new(0, "init", logbook_epoch));
    logbook.add(&shared);
    groups.insert(Group::new(everyone(config, &host_of, team), shared));
    let core = Core {
        rank: config.rank,
        peers,
        host_of,
        neighbours,
        network,
        control,
        watch: Watch::new(processes, is_leader_link),
        pace: Pace::new(has_core),
        timeout: config.timeout,
        selector: Arc::new(selector),
        known: Known::default(),
        groups,
        active: Vec::new(),
        epoch: logbook_epoch,
        spare: Spare::default(),
        points: Points::default(),
        failed_now: Vec::new(),
        ending: Ending::default(),
        ballots: Ballots::default(),
        logbook,
    };
    Ok((place, core))
}

/// Where ranks share no memory, the way to reach each other when needed.
fn open_connections(
    network: Option<Network>,
    config: &Config,
    cards: &[Card],
    proof: Identity,
    peers: &mut [Peer],
) -> Result<Option<Arc<TcpEndpoint>>, Error> {
    let is_needed = check_allowed(config.rank as usize, cards, peers)?;
    match network {
        Some(network) if is_needed => network.connect(config, cards, proof, peers).map(Some),
        _ => Ok(None),
    }
}

/// One card of each rank.
fn all_cards(encoded: &[Vec<u8>], config: &Config) -> Result<Vec<Card>, Error> {
    let cards = Card::decode_all(encoded)?;
    if cards.len() == config.world_size as usize {
        return Ok(cards);
    }
    Err(Error::Init(format!(
        "{} cards for a world of {}",
        cards.len(),
        config.world_size
    )))
}

/// The members of the first communicator.
fn everyone(config: &Config, host_of: &[u32], team: Option<Team>) -> Members {
    let here = host_of[config.rank as usize];
    Members {
        ranks: (0..config.world_size).collect(),
        me: config.rank,
        near: (0..config.world_size)
            .filter(|rank| host_of[*rank as usize] == here)
            .collect(),
        team,
        hosts: host_of.to_vec(),
    }
}

/// Sets up the arena with those ranks that can share it.
fn share_memory(
    config: &Config,
    cards: &[Card],
    secret: &Secret,
    job: [u8; 16],
    deadline: Instant,
    peers: &mut [Peer],
) -> Result<Option<(Neighbours, Team)>, Error> {
    let me = config.rank as usize;
    let near: Vec<usize> = (0..cards.len())
        .filter(|rank| cards[*rank].shares_memory(&cards[me]))
        .collect();
    if near.len() < 2 {
        return Ok(None);
    }
    let local_rank = near
        .iter()
        .position(|rank| *rank == me)
        .expect("one shares with oneself");
    let mut group = job.to_vec();
    group.extend((near[0] as u32).to_le_bytes());
    group.extend(cards[near[0]].pid.to_le_bytes());
    let has_core = has_core_each(&cards[me], cards);
    let setup = ShmSetup {
        secret: secret.clone(),
        group,
        local_rank: local_rank as u32,
        local_size: near.len() as u32,
        slot_bytes: local::slot_bytes(has_core),
        single_copy: match config.single_copy {
            Some(false) => SingleCopy::Off,
            Some(true) => SingleCopy::Always,
            None if has_core => SingleCopy::Pairs,
            None => SingleCopy::Off,
        },
        deadline,
    };
    let team = shm::setup(&setup).map_err(|error| {
        Error::Init(format!(
            "ranks {near:?} on host {}: {error}",
            cards[me].host
        ))
    })?;
    let arena = team.arena().clone();
    for (local, rank) in near.iter().enumerate() {
        peers[*rank].local = Some(local as u32);
        if *rank != me {
            let connection = ShmConnection::new(arena.clone(), local_rank as u32, local as u32);
            peers[*rank].connection = Some(Box::new(connection));
        }
    }
    let doorbell = Doorbell::new(arena.clone(), local_rank as u32);
    Ok(Some((Neighbours { arena, doorbell }, team)))
}

/// Handles on the processes that share memory with this one; a stream tells of its peer's end
/// itself, after what the peer sent. A failure to get one (another pid namespace, no
/// kernel support) leaves the death to be told by the control link.
fn watch_processes(me: usize, cards: &[Card]) -> Vec<(u32, OwnedFd)> {
    let mut processes = Vec::new();
    for card in cards {
        let is_visible = card.shares_memory(&cards[me])
            && card.pid_namespace == cards[me].pid_namespace
            && card.pid != cards[me].pid;
        if !is_visible {
            continue;
        }
        // SAFETY: no memory is passed. The kernel makes the descriptor close-on-exec.
        let result = unsafe { libc::syscall(libc::SYS_pidfd_open, card.pid, 0) };
        if let Ok(descriptor) = i32::try_from(result)
            && descriptor >= 0
        {
            // SAFETY: the kernel has just made this descriptor for us.
            processes.push((card.rank, unsafe { OwnedFd::from_raw_fd(descriptor) }));
        }
    }
    processes
}

fn identity(card: &Card) -> Rank {
    Rank {
        rank: card.rank,
        host: card.host.clone(),
        pid: card.pid,
    }
}

fn local_place(config: &Config, me: usize, cards: &[Card]) -> (u32, u32) {
    let local_size = cards
        .iter()
        .filter(|card| card.shares_host(&cards[me]))
        .count();
    let local_rank = cards[..me]
        .iter()
        .filter(|card| card.shares_host(&cards[me]))
        .count();
    (
        config.local_rank.unwrap_or(local_rank as u32),
        config.local_size.unwrap_or(local_size as u32),
    )
}

/// For each rank the number of its host, counted from 0 in the order of their lowest ranks. Ranks
/// that may not share memory are as far as other hosts' and count as such.
fn host_of(cards: &[Card]) -> Vec<u32> {
    let mut firsts: Vec<usize> = Vec::new();
    let mut host_of = Vec::new();
    for (rank, card) in cards.iter().enumerate() {
        let known = firsts
            .iter()
            .position(|first| cards[*first].shares_memory(card));
        let host = known.unwrap_or_else(|| {
            firsts.push(rank);
            firsts.len() - 1
        });
        host_of.push(host as u32);
    }
    host_of
}

fn transports(peers: &[Peer]) -> Vec<&'static str> {
    let names = peers.iter().filter_map(|peer| peer.connection.as_ref());
    let mut names: Vec<_> = names
        .map(|connection| connection.capabilities().name)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn kernel_host_name() -> String {
    let name = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok());
    name.unwrap_or_else(|| "localhost".into())
}

/// One descriptor a peer can pass the usual soft limit of 1024. Best effort: running out later is
/// an error of its own.
fn raise_descriptor_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

fn init(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::Init(format!("{what}: {error}"))
}
