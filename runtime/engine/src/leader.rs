//! Rank 0's part where no agent is: it lets the others in and gathers their cards.

use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use prost::Message;
use rlaunch_transport::tcp;
use rlaunch_transport::tcp::handshake::{Acceptor, Identity, Purpose};
use rlaunch_wire::limits::CARD_MAX_BYTES;
use rlaunch_wire::rank::{Refused, ToAgent, ToAgentMessage, ToRank, ToRankMessage, Welcome, World};

use crate::Error;
use crate::card::Card;
use crate::control::ControlLink;
use crate::framed::{Framed, Stream, poll_descriptors};
use crate::interrupt::is_interrupted;
use crate::resolve::resolve;

/// Rank 0 while the others come.
#[derive(Debug)]
pub(crate) struct Leader {
    listener: TcpListener,
    identity: Identity,
    job: [u8; 16],
    proving: Vec<(Acceptor, Instant)>,
    members: Vec<Option<Framed>>,
    cards: Vec<Option<Vec<u8>>>,
}

/// An unproven connection may take this long.
const PROOF_MAX: Duration = Duration::from_secs(5);
/// A port may be taken for a moment by somebody who goes out from it: by a member that looks for rank 0,
/// even.
const BUSY_MAX: Duration = Duration::from_secs(1);
const POLL_MAX: Duration = Duration::from_millis(50);

/// Takes the first free one of the ports.
pub(crate) fn listen(
    address: &str,
    ports: &[u16],
    identity: Identity,
    world_size: u32,
    deadline: Instant,
) -> Result<Leader, Error> {
    // A name that is not found here may be known to the others: they have to be waited for, too.
    let limit = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
    let addresses = match resolve(address, limit) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            return Err(Error::Interrupted {
                during: "init".into(),
            });
        }
        found => found.unwrap_or_default(),
    };
    let is_literal = address.parse::<IpAddr>().is_ok();
    let begin = Instant::now();
    loop {
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for port in ports {
            match bind(&addresses, is_literal, *port) {
                Ok(listener) => return Leader::new(listener, identity, world_size),
                Err(error) => last = error,
            }
        }
        if begin.elapsed() > BUSY_MAX {
            return Err(Error::Init(format!(
                "rank 0 can listen on none of the ports {ports:?} (last: {last}); set RLAUNCH_PORT \
                 to a free one on all ranks"
            )));
        }
        std::thread::sleep(POLL_MAX);
    }
}

/// On MASTER_ADDR if it is an address of this host, so that only that network sees the port.
fn bind(wanted: &[IpAddr], is_literal: bool, port: u16) -> io::Result<TcpListener> {
    let unspecified = IpAddr::from([0, 0, 0, 0]);
    let leads_home = wanted.iter().any(IpAddr::is_loopback);
    let mut result = match wanted.first().map(|address| (*address, port)) {
        // A name that leads to loopback here may be this host's own name in /etc/hosts, by which
        // others reach it from outside; only a literal says that nobody does.
        Some(first) if is_literal && leads_home => TcpListener::bind(first),
        Some(first) if !leads_home => {
            TcpListener::bind(first).or_else(|_| TcpListener::bind((unspecified, port)))
        }
        _ => TcpListener::bind((unspecified, port)),
    };
    if let Ok(listener) = &mut result {
        tcp::lengthen_queue(listener)?;
        listener.set_nonblocking(true)?;
    }
    result
}

impl Leader {
    pub(crate) fn new(
        listener: TcpListener,
        identity: Identity,
        world_size: u32,
    ) -> Result<Self, Error> {
        let job = rlaunch_transport::nonce();
        Ok(Self {
            listener,
            identity,
            job: job.map_err(|error| Error::Init(error.to_string()))?,
            proving: Vec::new(),
            members: (0..world_size).map(|_| None).collect(),
            cards: vec![None; world_size as usize],
        })
    }

    /// The socket it listens on, where data may come in at the same port.
    pub(crate) fn listener(&self) -> io::Result<TcpListener> {
        self.listener.try_clone()
    }

    pub(crate) fn job(&self) -> [u8; 16] {
        self.job
    }

    /// Waits for all cards and hands them to all.
    pub(crate) fn gather(
        mut self,
        card: Vec<u8>,
        deadline: Instant,
    ) -> Result<(Vec<Vec<u8>>, ControlLink), Error> {
        self.cards[0] = Some(card);
        while self.cards.iter().any(Option::is_none) {
            if Instant::now() >= deadline {
                return Err(self.give_up());
            }
            if is_interrupted() {
                return Err(Error::Interrupted {
                    during: "init".into(),
                });
            }
            self.accept()
                .map_err(|error| Error::Init(format!("rank 0 can't accept: {error}")))?;
            self.poll_proving();
            self.poll_members()?;
            if self.cards.iter().any(Option::is_none) {
                poll_descriptors(&self.descriptors(), POLL_MAX);
            }
        }
        let cards: Vec<Vec<u8>> = self.cards.into_iter().flatten().collect();
        let world = ToRankMessage::World(World {
            cards: cards.clone(),
        });
        let world = ToRank {
            message: Some(world),
        }
        .encode_to_vec();
        for member in self.members.iter_mut().flatten() {
            member.queue(&world);
            while let Ok(false) = member.flush() {
                if Instant::now() >= deadline {
                    break;
                }
                poll_descriptors(&[(member.descriptor(), libc::POLLOUT)], POLL_MAX);
            }
        }
        let hosts = Card::decode_all(&cards)?
            .into_iter()
            .map(|card| (card.host, card.pid));
        Ok((
            cards,
            ControlLink::Leader {
                members: self.members,
                hosts: hosts.collect(),
            },
        ))
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    self.proving.push((Acceptor::new(stream)?, Instant::now()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn poll_proving(&mut self) {
        let mut still = Vec::new();
        for (mut acceptor, begun) in std::mem::take(&mut self.proving) {
            match acceptor.poll(&self.identity) {
                Ok(Some(hello)) if hello.purpose == Purpose::Control => {
                    self.admit(hello.from, acceptor);
                }
                Ok(None) if begun.elapsed() < PROOF_MAX => still.push((acceptor, begun)),
                // A stranger, another job, or a peer that gave up.
                Ok(_) | Err(_) => {}
            }
        }
        self.proving = still;
    }

    fn admit(&mut self, rank: u32, acceptor: Acceptor) {
        let Ok(mut framed) = Framed::new(Stream::Tcp(acceptor.into_stream())) else {
            return;
        };
        let world_size = self.members.len();
        let reason = match self.members.get(rank as usize) {
            None => format!("rank {rank} is outside the world of {world_size}"),
            Some(_) if rank == 0 => "rank 0 is taken; two processes have RANK=0".into(),
            Some(Some(_)) => format!("rank {rank} is taken; two processes have RANK={rank}"),
            Some(None) => {
                let welcome = Welcome {
                    job_id: self.job.to_vec(),
                    // Never said: each side derives it (see `bootstrap`).
                    secret: Vec::new(),
                    world_size: world_size as u32,
                    host: String::new(),
                };
                let message = Some(ToRankMessage::Welcome(welcome));
                framed.queue(&ToRank { message }.encode_to_vec());
                let _ = framed.flush();
                self.members[rank as usize] = Some(framed);
                return;
            }
        };
        refuse(&mut framed, reason);
    }

    fn poll_members(&mut self) -> Result<(), Error> {
        for rank in 0..self.members.len() {
            let Some(framed) = &mut self.members[rank] else {
                continue;
            };
            let _ = framed.flush();
            loop {
                match framed.receive() {
                    Ok(Some(bytes)) => match ToAgent::decode(&bytes[..]).map(|to| to.message) {
                        Ok(Some(ToAgentMessage::Join(join)))
                            if join.card.len() <= CARD_MAX_BYTES =>
                        {
                            self.cards[rank] = Some(join.card);
                        }
                        Ok(Some(ToAgentMessage::Hello(_))) => {}
                        _ => return Err(Error::Init(format!("rank {rank} sent nonsense"))),
                    },
                    Ok(None) => break,
                    Err(_) => {
                        // It died or gave up before all were here; a new one may take its place.
                        self.members[rank] = None;
                        self.cards[rank] = None;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn give_up(&mut self) -> Error {
        let missing: Vec<usize> = (0..self.cards.len())
            .filter(|rank| self.cards[*rank].is_none())
            .collect();
        let reason = format!(
            "ranks {missing:?} of {} did not come in time; look at their output, or raise \
             RLAUNCH_INIT_TIMEOUT (seconds)",
            self.cards.len()
        );
        for member in self.members.iter_mut().flatten() {
            refuse(member, reason.clone());
        }
        Error::Init(reason)
    }

    fn descriptors(&self) -> Vec<(std::os::fd::RawFd, libc::c_short)> {
        let proving = self
            .proving
            .iter()
            .map(|(acceptor, _)| acceptor.stream().as_raw_fd());
        let members = self.members.iter().flatten().map(Framed::descriptor);
        std::iter::once(self.listener.as_raw_fd())
            .chain(proving)
            .chain(members)
            .map(|descriptor| (descriptor, libc::POLLIN))
            .collect()
    }
}

fn refuse(framed: &mut Framed, reason: String) {
    let message = Some(ToRankMessage::Refused(Refused { reason }));
    framed.queue(&ToRank { message }.encode_to_vec());
    let _ = framed.flush();
}
