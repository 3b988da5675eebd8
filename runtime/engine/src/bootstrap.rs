//! How a rank finds the others: through its agent, or through rank 0.
//!
//! Either way it learns the job's id and secret first, then hands in its card and gets everybody's.

use std::io;
use std::net::{IpAddr, SocketAddr as TcpAddress, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::{Duration, Instant};

use prost::Message;
use rlaunch_transport::Secret;
use rlaunch_transport::tcp;
use rlaunch_transport::tcp::handshake::{Connector, Identity, Purpose};
use rlaunch_wire::PROTOCOL;
use rlaunch_wire::rank::{Hello, Join, Overdue, ToAgentMessage, ToRank, ToRankMessage, Welcome};

use crate::config::{Config, Rendezvous};
use crate::control::{ControlLink, to_agent};
use crate::framed::{Framed, Stream, poll_descriptors};
use crate::interrupt::is_interrupted;
use crate::leader::Leader;
use crate::resolve::resolve;
use crate::{Error, leader};

/// A rank that is known to the job but has not seen the others.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) job: [u8; 16],
    pub(crate) secret: Secret,
    /// As the launcher calls it; empty where nobody named it.
    pub(crate) host: String,
    link: Link,
}

#[derive(Debug)]
enum Link {
    Alone,
    Agent(Framed),
    Member(Framed),
    Leader(Box<Leader>),
}

/// Finds the agent or rank 0 and is let in.
pub(crate) fn admit(config: &Config, deadline: Instant) -> Result<Admitted, Error> {
    match &config.rendezvous {
        Rendezvous::Alone => {
            let secret = Secret::random().map_err(|error| Error::Init(error.to_string()))?;
            Ok(Admitted {
                job: [0; 16],
                secret,
                host: String::new(),
                link: Link::Alone,
            })
        }
        Rendezvous::Agent { socket } => {
            let framed = connect_agent(socket)?;
            let (framed, welcome) = greet(config, framed, deadline, "the agent")?;
            admitted(config, welcome, Link::Agent(framed))
        }
        Rendezvous::Star {
            address,
            ports,
            run_id,
            secret,
        } => {
            let secret = Secret::new(secret.as_deref().unwrap_or(run_id).as_bytes());
            let job = secret.proof("run", &[run_id.as_bytes()]);
            let job = job[..16].try_into().expect("16 bytes");
            let identity = Identity {
                secret,
                job,
                rank: config.rank,
            };
            if config.rank == 0 {
                let leader = match shared_range(config, ports) {
                    Some(range) => {
                        let listener = tcp::listen(config.tcp.family, Some(range));
                        let listener = listener.map_err(init_error)?;
                        Leader::new(listener, identity.clone(), config.world_size)?
                    }
                    None => leader::listen(
                        address,
                        ports,
                        identity.clone(),
                        config.world_size,
                        deadline,
                    )?,
                };
                let job = leader.job();
                let secret = derive(&identity.secret, &job);
                let link = Link::Leader(Box::new(leader));
                return Ok(Admitted {
                    job,
                    secret,
                    host: String::new(),
                    link,
                });
            }
            let stream = find_leader(address, ports, &identity, deadline)?;
            let framed = Framed::new(Stream::Tcp(stream)).map_err(init_error)?;
            let (framed, welcome) = greet(config, framed, deadline, "rank 0")?;
            let mut admitted = admitted(config, welcome, Link::Member(framed))?;
            admitted.secret = derive(&identity.secret, &admitted.job);
            Ok(admitted)
        }
    }
}

/// The range whose ports are both for the bootstrap and for data: rank 0 then has one port for
/// both, so that a range of as many ports as ranks is enough.
fn shared_range<'a>(config: &'a Config, ports: &[u16]) -> Option<&'a RangeInclusive<u16>> {
    let range = config.tcp.ports.as_ref()?;
    ports
        .iter()
        .all(|port| range.contains(port))
        .then_some(range)
}

impl Admitted {
    /// Where data is to come in too; `None`: at a port of its own.
    pub(crate) fn data_listener(&self, config: &Config) -> Option<TcpListener> {
        let (Link::Leader(leader), Rendezvous::Star { ports, .. }) =
            (&self.link, &config.rendezvous)
        else {
            return None;
        };
        shared_range(config, ports)?;
        leader.listener().ok()
    }

    /// Hands in this rank's card; all cards and the link, once every rank has done so.
    pub(crate) fn join(
        self,
        card: Vec<u8>,
        deadline: Instant,
    ) -> Result<(Vec<Vec<u8>>, ControlLink), Error> {
        match self.link {
            Link::Alone => Ok((vec![card], ControlLink::None)),
            Link::Agent(mut framed) => {
                framed.queue(&to_agent(ToAgentMessage::Join(Join { card })));
                let mut message = next_message(&mut framed, deadline, "the agent")?;
                if message.is_none() {
                    // The launcher knows who is missing.
                    framed.queue(&to_agent(ToAgentMessage::Overdue(Overdue {})));
                    let deadline = Instant::now() + LAST_WORD_MAX;
                    message = next_message(&mut framed, deadline, "the agent")?;
                }
                let cards = cards(message, "the agent")?;
                Ok((cards, ControlLink::Agent(framed)))
            }
            Link::Member(mut framed) => {
                framed.queue(&to_agent(ToAgentMessage::Join(Join { card })));
                // Rank 0 gives up at its own deadline and says who is missing; that is worth
                // waiting for.
                let message = next_message(&mut framed, deadline + LAST_WORD_MAX, "rank 0")?;
                let cards = cards(message, "rank 0")?;
                Ok((cards, ControlLink::Member(framed)))
            }
            Link::Leader(leader) => leader.gather(card, deadline),
        }
    }
}

fn admitted(config: &Config, welcome: Welcome, link: Link) -> Result<Admitted, Error> {
    if welcome.world_size != config.world_size {
        return Err(Error::Init(format!(
            "WORLD_SIZE is {} on rank {} but {} for the job",
            config.world_size, config.rank, welcome.world_size
        )));
    }
    let job = welcome.job_id[..].try_into().map_err(|_| {
        Error::Init(format!(
            "a job id of {} bytes; it must have 16",
            welcome.job_id.len()
        ))
    })?;
    Ok(Admitted {
        job,
        secret: Secret::new(&welcome.secret),
        host: welcome.host,
        link,
    })
}

/// The secret of this very run, without sending it.
fn derive(secret: &Secret, job: &[u8; 16]) -> Secret {
    Secret::new(&secret.proof("job", &[job]))
}

fn connect_agent(socket: &str) -> Result<Framed, Error> {
    let connect = || -> io::Result<Framed> {
        let name = SocketAddr::from_abstract_name(socket.as_bytes())?;
        Framed::new(Stream::Unix(UnixStream::connect_addr(&name)?))
    };
    connect().map_err(|error| {
        Error::Init(format!(
            "the agent of this host does not answer at RLAUNCH_AGENT={socket} ({error}); it may \
             have ended, or this process runs in another network namespace (a container with its \
             own network: start it with the host's)"
        ))
    })
}

fn greet(
    config: &Config,
    mut framed: Framed,
    deadline: Instant,
    whom: &str,
) -> Result<(Framed, Welcome), Error> {
    let hello = Hello {
        protocol: PROTOCOL,
        rank: config.rank,
        pid: std::process::id(),
    };
    framed.queue(&to_agent(ToAgentMessage::Hello(hello)));
    match next_message(&mut framed, deadline, whom)? {
        Some(ToRankMessage::Welcome(welcome)) => Ok((framed, welcome)),
        Some(other) => Err(unexpected(whom, &other)),
        None => Err(Error::Init(format!(
            "{whom} has not answered in time; see whether it is stopped, or raise \
             RLAUNCH_INIT_TIMEOUT (seconds)"
        ))),
    }
}

/// What `whom` says once all have joined.
fn cards(message: Option<ToRankMessage>, whom: &str) -> Result<Vec<Vec<u8>>, Error> {
    match message {
        Some(ToRankMessage::World(world)) => Ok(world.cards),
        Some(ToRankMessage::PeerFailed(failed)) => Err(Error::Init(format!(
            "rank {} (host {}, pid {}) failed before all ranks had joined: {}",
            failed.rank, failed.host, failed.pid, failed.cause
        ))),
        Some(other) => Err(unexpected(whom, &other)),
        None => Err(Error::Init(format!(
            "other ranks did not come in time, and {whom} has not said which; look at their output, \
             or raise RLAUNCH_INIT_TIMEOUT (seconds)"
        ))),
    }
}

/// `None` when time is up.
fn next_message(
    framed: &mut Framed,
    deadline: Instant,
    whom: &str,
) -> Result<Option<ToRankMessage>, Error> {
    let bytes = match framed.receive_until(deadline) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            return Err(Error::Interrupted {
                during: "init".into(),
            });
        }
        Err(error) => {
            return Err(Error::Init(format!(
                "{whom} ended the connection ({error})"
            )));
        }
    };
    let message = ToRank::decode(&bytes[..]).map_err(|error| Error::Init(error.to_string()))?;
    match message.message {
        Some(ToRankMessage::Refused(refused)) => Err(Error::Init(refused.reason)),
        Some(message) => Ok(Some(message)),
        None => Err(Error::Init(format!("{whom} is of another version"))),
    }
}

/// Tries rank 0's possible ports over and over: it may start later than this rank.
fn find_leader(
    address: &str,
    ports: &[u16],
    identity: &Identity,
    deadline: Instant,
) -> Result<TcpStream, Error> {
    let mut last = String::from("nothing tried");
    loop {
        // Anew each time: the name may become known later than this rank starts.
        let addresses = match resolve(address, deadline) {
            Ok(addresses) => addresses,
            Err(error) if Instant::now() >= deadline => {
                return Err(Error::Init(format!(
                    "time is up (RLAUNCH_INIT_TIMEOUT): no address is known for rank 0's host, \
                     MASTER_ADDR={address} ({error}); hint: check its spelling, /etc/hosts and DNS"
                )));
            }
            Err(_) => Vec::new(),
        };
        for (address_of, port) in ports.iter().flat_map(|port| pairs(&addresses, *port)) {
            if Instant::now() >= deadline {
                return Err(Error::Init(format!(
                    "rank 0 does not answer at {address}, ports {ports:?} (last: {last}); is it \
                     running, with the same MASTER_ADDR, MASTER_PORT and RLAUNCH_SECRET?"
                )));
            }
            match try_leader(TcpAddress::new(address_of, port), identity, deadline) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = format!("port {port}: {error}"),
            }
        }
        if is_interrupted() {
            return Err(Error::Interrupted {
                during: "init".into(),
            });
        }
        std::thread::sleep(RETRY_PERIOD);
    }
}

/// Who knows which ranks are missing may need this long to say so.
const LAST_WORD_MAX: Duration = Duration::from_secs(2);
const RETRY_PERIOD: Duration = Duration::from_millis(10);
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// A stranger's service on a candidate port may never answer.
const PROOF_MAX: Duration = Duration::from_millis(1000);

fn pairs(addresses: &[IpAddr], port: u16) -> impl Iterator<Item = (IpAddr, u16)> {
    addresses.iter().map(move |address| (*address, port))
}

fn try_leader(at: TcpAddress, identity: &Identity, deadline: Instant) -> io::Result<TcpStream> {
    let left = deadline.saturating_duration_since(Instant::now());
    // Zero would be refused.
    let longest = left.min(CONNECT_MAX).max(RETRY_PERIOD);
    prove(
        TcpStream::connect_timeout(&at, longest)?,
        identity,
        deadline,
    )
}

fn prove(stream: TcpStream, identity: &Identity, deadline: Instant) -> io::Result<TcpStream> {
    if tcp::leads_to_itself(&stream) {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    stream.set_nonblocking(true)?;
    let deadline = deadline.min(Instant::now() + PROOF_MAX);
    let mut connector = Connector::new(stream, identity, 0, Purpose::Control)?;
    loop {
        if connector.poll_reply(identity)?.is_some() {
            connector.confirm(identity)?;
            return Ok(connector.into_stream());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(connector.stream());
        poll_descriptors(&[(descriptor, libc::POLLIN)], left);
    }
}

fn unexpected(whom: &str, message: &ToRankMessage) -> Error {
    Error::Init(format!("{whom} sent {message:?} out of turn"))
}

fn init_error(error: io::Error) -> Error {
    Error::Init(error.to_string())
}
