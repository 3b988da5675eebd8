//! From a configuration to a connected world.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use prost::Message;
use rlaunch_schedule::Algorithm;
use rlaunch_transport::Secret;
use rlaunch_transport::shm::{self, Doorbell, ShmConnection, ShmSetup};
use rlaunch_transport::tcp::handshake::Identity;
use rlaunch_transport::tcp::{self, TcpPeer, TcpSetup};

use crate::bootstrap::admit;
use crate::card::{Card, has_core_each};
use crate::config::{Config, Rendezvous};
use crate::control::ControlLink;
use crate::core::{Core, Neighbours, Peer};
use crate::health::Watch;
use crate::local;
use crate::wait::Pace;
use crate::{Error, Rank};

/// What the handle keeps outside of the lock.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) local_rank: u32,
    pub(crate) local_size: u32,
    pub(crate) host: String,
    pub(crate) transports: Vec<&'static str>,
    pub(crate) is_authenticated: bool,
}

/// Joins; returns once this rank is connected with all others.
pub(crate) fn connect(config: &Config) -> Result<(Place, Core), Error> {
    let algorithm = forced_algorithm(config)?;
    let deadline = Instant::now() + config.init_timeout;
    let admitted = admit(config, deadline)?;
    let (job, secret) = (admitted.job, admitted.secret.clone());
    let host = if admitted.host.is_empty() {
        kernel_host_name()
    } else {
        admitted.host.clone()
    };
    let (listener, addresses) = listen(config)?;
    let port = match &listener {
        Some(listener) => listener.local_addr().map_err(init("listening"))?.port(),
        None => 0,
    };
    let card = Card::gather(config, &host, port, &addresses).map_err(init("reading /proc"))?;
    let (cards, control) = admitted.join(card.encode_to_vec(), deadline)?;
    let cards = Card::decode_all(&cards)?;
    if cards.len() != config.world_size as usize {
        return Err(Error::Init(format!(
            "{} cards for a world of {}",
            cards.len(),
            config.world_size
        )));
    }
    raise_descriptor_limit();

    let me = config.rank as usize;
    let mut peers: Vec<Peer> = cards.iter().map(|card| Peer::new(identity(card))).collect();
    let neighbours = share_memory(me, &cards, &secret, job, deadline, &mut peers)?;
    let identity = Identity {
        secret: secret.clone(),
        job,
        rank: config.rank,
    };
    let setup = tcp_setup(config, identity, deadline);
    connect_tcp(me, &cards, setup, listener.as_ref(), &mut peers)?;

    let processes = watch_processes(me, &cards);
    let is_leader_link = matches!(control, ControlLink::Member(_));
    let (local_rank, local_size) = local_place(config, me, &cards);
    let place = Place {
        rank: config.rank,
        size: config.world_size,
        local_rank,
        local_size,
        host,
        transports: transports(&peers),
        is_authenticated: !matches!(config.rendezvous, Rendezvous::Star { secret: None, .. }),
    };
    let all_near = neighbours.as_ref().is_some_and(|near| near.is_world);
    let core = Core {
        rank: config.rank,
        hosts: if all_near { 1 } else { hosts(&cards).max(2) },
        peers,
        neighbours,
        control,
        watch: Watch::new(processes, is_leader_link),
        pace: Pace::new(has_core_each(&cards[me], &cards)),
        timeout: config.timeout,
        algorithm,
        poison: None,
        calls: 0,
        history: VecDeque::new(),
        programs: HashMap::new(),
        scratch: Vec::new(),
        work: Vec::new(),
        done: Vec::new(),
    };
    Ok((place, core))
}

fn forced_algorithm(config: &Config) -> Result<Option<Algorithm>, Error> {
    let parse = |name: &String| {
        name.parse::<Algorithm>()
            .map_err(|error| Error::Init(format!("RLAUNCH_ALGO: {error}")))
    };
    config.algorithm.as_ref().map(parse).transpose()
}

fn listen(config: &Config) -> Result<(Option<TcpListener>, Vec<IpAddr>), Error> {
    if !config.transports.tcp || config.rendezvous == Rendezvous::Alone || config.world_size == 1 {
        return Ok((None, Vec::new()));
    }
    let listener = tcp::listen().map_err(init("listening on TCP"))?;
    let addresses = tcp::local_addresses().map_err(init("reading this host's addresses"))?;
    Ok((Some(listener), addresses))
}

/// Sets up the arena with those ranks that can share it.
fn share_memory(
    me: usize,
    cards: &[Card],
    secret: &Secret,
    job: [u8; 16],
    deadline: Instant,
    peers: &mut [Peer],
) -> Result<Option<Neighbours>, Error> {
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
    let setup = ShmSetup {
        secret: secret.clone(),
        group,
        local_rank: local_rank as u32,
        local_size: near.len() as u32,
        slot_bytes: local::slot_bytes(has_core_each(&cards[me], cards)),
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
    Ok(Some(Neighbours {
        arena,
        doorbell,
        team,
        is_world: near.len() == cards.len(),
    }))
}

/// What holds for every connection.
///
/// The launcher watches over hosts and knows the user's --host-timeout (30 s by default), and what
/// it says names the host. So under an agent connections wait longer and end only what no launcher
/// sees: two hosts that reach it but not each other.
fn tcp_setup(config: &Config, identity: Identity, deadline: Instant) -> TcpSetup {
    let silence_max = match config.rendezvous {
        Rendezvous::Agent { .. } => Duration::from_secs(120),
        Rendezvous::Alone | Rendezvous::Star { .. } => Duration::from_secs(30),
    };
    TcpSetup {
        identity,
        peers: Vec::new(),
        deadline,
        silence_max,
    }
}

/// Connects with all that share no memory.
fn connect_tcp(
    me: usize,
    cards: &[Card],
    mut setup: TcpSetup,
    listener: Option<&TcpListener>,
    peers: &mut [Peer],
) -> Result<(), Error> {
    let far: Vec<usize> = (0..cards.len())
        .filter(|rank| *rank != me && peers[*rank].connection.is_none())
        .collect();
    if far.is_empty() {
        return Ok(());
    }
    if let Some(rank) = far
        .iter()
        .find(|rank| !cards[**rank].allows_tcp || !cards[me].allows_tcp)
    {
        return Err(Error::Init(format!(
            "ranks {me} (host {}) and {rank} (host {}) share no memory and RLAUNCH_TRANSPORT \
             forbids tcp",
            cards[me].host, cards[*rank].host
        )));
    }
    let listener = listener.expect("a rank that allows tcp listens");
    let targets = far.iter().map(|rank| TcpPeer {
        rank: *rank as u32,
        addresses: addresses(&cards[*rank], cards[me].shares_host(&cards[*rank])),
    });
    setup.peers = targets.collect();
    let connections =
        tcp::setup(&setup, listener).map_err(|error| Error::Init(error.to_string()))?;
    for (rank, connection) in far.iter().zip(connections) {
        peers[*rank].connection = Some(Box::new(connection));
    }
    Ok(())
}

/// Where a rank may be reached: loopback first inside a host, never to another.
fn addresses(card: &Card, same_host: bool) -> Vec<SocketAddr> {
    let mut addresses: Vec<IpAddr> = card
        .addresses
        .iter()
        .filter_map(|address| address.parse().ok())
        .collect();
    addresses.retain(|address| same_host || !address.is_loopback());
    addresses.sort_by_key(|address| !address.is_loopback());
    let port = card.tcp_port as u16;
    addresses
        .into_iter()
        .map(|address| SocketAddr::from((address, port)))
        .collect()
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

fn hosts(cards: &[Card]) -> u32 {
    let is_first = |index: &usize| {
        !cards[..*index]
            .iter()
            .any(|earlier| earlier.shares_host(&cards[*index]))
    };
    (0..cards.len()).filter(is_first).count() as u32
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
