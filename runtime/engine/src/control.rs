//! The control link: cards, notices and deaths, never tensors.
//!
//! Behind one face stand the agent's socket, a member's stream to rank 0, and rank 0's streams to
//! all members, where it relays. Joining blocks (see `bootstrap`); afterwards nothing does: the
//! link is polled from within waits. Losing it is an event, not an error, since what it means
//! depends: rank 0 may have finalized.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use prost::Message;
use rlaunch_wire::limits::RANK_MESSAGE_MAX_BYTES;
use rlaunch_wire::rank::{
    Broadcast, Leave, PeerFailed, ToAgent, ToAgentMessage, ToRank, ToRankMessage,
};

use crate::interrupt::is_interrupted;

/// What the link tells.
#[derive(Debug)]
pub(crate) enum Event {
    Notice {
        from: u32,
        payload: Vec<u8>,
    },
    PeerFailed(PeerFailed),
    /// The other end is gone.
    Lost,
}

#[derive(Debug)]
pub(crate) enum ControlLink {
    /// A world of one, or a link that ended.
    None,
    Agent(Framed),
    Member(Framed),
    /// Rank 0's side, by rank; its own place and those that left are `None`.
    Leader {
        members: Vec<Option<Framed>>,
        hosts: Vec<(String, u32)>,
    },
}

impl ControlLink {
    /// Takes what has arrived and sends what is due. Never blocks.
    pub(crate) fn poll(&mut self, events: &mut Vec<Event>) {
        match self {
            Self::None => {}
            Self::Agent(framed) | Self::Member(framed) => {
                let result = poll_upstream(framed, events);
                if result.is_err() {
                    events.push(Event::Lost);
                    *self = Self::None;
                }
            }
            Self::Leader { members, hosts } => poll_members(members, hosts, events),
        }
    }

    /// To all other ranks. Best effort: a link that is lost shows at the next poll.
    pub(crate) fn broadcast(&mut self, rank: u32, payload: Vec<u8>) {
        let broadcast = Broadcast {
            from: rank,
            payload,
        };
        match self {
            Self::None => {}
            Self::Agent(framed) | Self::Member(framed) => {
                framed.queue(&to_agent(ToAgentMessage::Broadcast(broadcast)));
                let _ = framed.flush();
            }
            Self::Leader { members, .. } => {
                relay(members, None, &ToRankMessage::Broadcast(broadcast));
            }
        }
    }

    /// Says goodbye and gives it `longest` to leave this process.
    pub(crate) fn leave(&mut self, longest: Duration) {
        if let Self::Agent(framed) | Self::Member(framed) = self {
            framed.queue(&to_agent(ToAgentMessage::Leave(Leave {})));
        }
        let deadline = Instant::now() + longest;
        while self.has_unsent() && Instant::now() < deadline {
            std::thread::sleep(GOODBYE_PERIOD);
        }
        *self = Self::None;
    }

    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        match self {
            Self::None => Vec::new(),
            Self::Agent(framed) | Self::Member(framed) => vec![framed.descriptor()],
            Self::Leader { members, .. } => {
                members.iter().flatten().map(Framed::descriptor).collect()
            }
        }
    }

    fn has_unsent(&mut self) -> bool {
        match self {
            Self::None => false,
            Self::Agent(framed) | Self::Member(framed) => !framed.is_closable(),
            Self::Leader { members, .. } => {
                // All are flushed, whatever the first says.
                let open = members.iter_mut().flatten();
                open.map(|framed| u32::from(!framed.is_closable()))
                    .sum::<u32>()
                    > 0
            }
        }
    }
}

fn poll_upstream(framed: &mut Framed, events: &mut Vec<Event>) -> io::Result<()> {
    while let Some(bytes) = framed.receive()? {
        let message = ToRank::decode(&bytes[..])
            .map_err(io::Error::other)?
            .message;
        match message {
            Some(ToRankMessage::Broadcast(Broadcast { from, payload })) => {
                events.push(Event::Notice { from, payload });
            }
            Some(ToRankMessage::PeerFailed(failed)) => events.push(Event::PeerFailed(failed)),
            // Of a later version, or a late word of the bootstrap: nothing we act on.
            _ => {}
        }
    }
    // After reading: what the other end said before it closed still counts.
    framed.flush()?;
    Ok(())
}

fn poll_members(members: &mut [Option<Framed>], hosts: &[(String, u32)], events: &mut Vec<Event>) {
    for rank in 0..members.len() {
        let Some(framed) = &mut members[rank] else {
            continue;
        };
        let mut messages = Vec::new();
        let ended = read_member(framed, &mut messages).is_err();
        let mut has_left = false;
        for message in messages {
            match message {
                ToAgentMessage::Broadcast(Broadcast { payload, .. }) => {
                    // The stream was proven to be this rank's; what it claims does not count.
                    let broadcast = Broadcast {
                        from: rank as u32,
                        payload: payload.clone(),
                    };
                    relay(members, Some(rank), &ToRankMessage::Broadcast(broadcast));
                    events.push(Event::Notice {
                        from: rank as u32,
                        payload,
                    });
                }
                ToAgentMessage::Leave(_) => has_left = true,
                ToAgentMessage::Hello(_) | ToAgentMessage::Join(_) => {}
            }
        }
        if has_left || ended {
            members[rank] = None;
        }
        if ended && !has_left {
            let (host, pid) = hosts[rank].clone();
            let failed = PeerFailed {
                rank: rank as u32,
                host,
                pid,
                cause: "its process ended".into(),
            };
            relay(
                members,
                Some(rank),
                &ToRankMessage::PeerFailed(failed.clone()),
            );
            events.push(Event::PeerFailed(failed));
        }
    }
}

fn read_member(framed: &mut Framed, messages: &mut Vec<ToAgentMessage>) -> io::Result<()> {
    while let Some(bytes) = framed.receive()? {
        let message = ToAgent::decode(&bytes[..])
            .map_err(io::Error::other)?
            .message;
        messages.extend(message);
    }
    // After reading: what the other end said before it closed still counts.
    framed.flush()?;
    Ok(())
}

fn relay(members: &mut [Option<Framed>], except: Option<usize>, message: &ToRankMessage) {
    let bytes = ToRank {
        message: Some(message.clone()),
    }
    .encode_to_vec();
    for (rank, framed) in members.iter_mut().enumerate() {
        if let Some(framed) = framed
            && Some(rank) != except
        {
            framed.queue(&bytes);
            let _ = framed.flush();
        }
    }
}

pub(crate) fn to_agent(message: ToAgentMessage) -> Vec<u8> {
    ToAgent {
        message: Some(message),
    }
    .encode_to_vec()
}

/// A stream of length-prefixed messages; non-blocking once made so by its owner.
#[derive(Debug)]
pub(crate) struct Framed {
    stream: Stream,
    inbound: Vec<u8>,
    outbound: VecDeque<u8>,
    ended: bool,
}

#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Unsent bytes past which the other end counts as gone: it has not read for long.
const OUTBOUND_MAX_BYTES: usize = 8 << 20;

impl Framed {
    pub(crate) fn new(stream: Stream) -> io::Result<Self> {
        match &stream {
            Stream::Unix(stream) => stream.set_nonblocking(true)?,
            Stream::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                let keepalive = socket2::TcpKeepalive::new()
                    .with_time(Duration::from_secs(10))
                    .with_interval(Duration::from_secs(5));
                let socket = socket2::SockRef::from(stream);
                socket.set_tcp_keepalive(&keepalive)?;
                socket.set_tcp_user_timeout(Some(Duration::from_secs(30)))?;
            }
        }
        Ok(Self {
            stream,
            inbound: Vec::new(),
            outbound: VecDeque::new(),
            ended: false,
        })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        match &self.stream {
            Stream::Unix(stream) => stream.as_raw_fd(),
            Stream::Tcp(stream) => stream.as_raw_fd(),
        }
    }

    pub(crate) fn queue(&mut self, message: &[u8]) {
        self.outbound.extend((message.len() as u32).to_le_bytes());
        self.outbound.extend(message);
    }

    /// True when everything is out.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        while !self.outbound.is_empty() {
            let (front, _) = self.outbound.as_slices();
            let result = match &mut self.stream {
                Stream::Unix(stream) => stream.write(front),
                Stream::Tcp(stream) => stream.write(front),
            };
            match result {
                Ok(count) => drop(self.outbound.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.outbound.len() > OUTBOUND_MAX_BYTES {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether all was said and has arrived. Closing earlier, or with unread bytes, would reset a
    /// TCP stream and lose the last words.
    fn is_closable(&mut self) -> bool {
        if let Ok(false) = self.flush() {
            return false;
        }
        while let Ok(Some(_)) = self.receive() {}
        let Stream::Tcp(stream) = &self.stream else {
            return true;
        };
        let mut unsent: libc::c_int = 0;
        // SAFETY: the descriptor is ours and the kernel writes one int.
        let result = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut unsent) };
        result != 0 || unsent == 0
    }

    /// The next whole message, if it is here. The end of the stream comes after all messages.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(message) = self.take()? {
            return Ok(Some(message));
        }
        let mut chunk = [0; 16 * 1024];
        while !self.ended {
            let result = match &mut self.stream {
                Stream::Unix(stream) => stream.read(&mut chunk),
                Stream::Tcp(stream) => stream.read(&mut chunk),
            };
            match result {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.inbound.extend_from_slice(&chunk[..count]);
                    if let Some(message) = self.take()? {
                        return Ok(Some(message));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    fn take(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some((prefix, rest)) = self.inbound.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length > RANK_MESSAGE_MAX_BYTES {
            return Err(io::Error::other("a message over the limit"));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let message = rest[..length].to_vec();
        self.inbound.drain(..4 + length);
        Ok(Some(message))
    }

    /// Waits for the next message.
    pub(crate) fn receive_until(&mut self, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
        loop {
            self.flush()?;
            if let Some(message) = self.receive()? {
                return Ok(Some(message));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if is_interrupted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            poll_descriptors(&[(self.descriptor(), libc::POLLIN)], left.min(POLL_MAX));
        }
    }
}

/// Between two looks whether the last words have arrived.
const GOODBYE_PERIOD: Duration = Duration::from_micros(200);
/// Unsent bytes are tried again after this at the latest.
const POLL_MAX: Duration = Duration::from_millis(50);

/// Sleeps until one of the descriptors is ready; says which. Interruption counts as nothing.
pub(crate) fn poll_descriptors(
    descriptors: &[(RawFd, libc::c_short)],
    longest: Duration,
) -> Vec<bool> {
    let mut entries: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|(fd, events)| libc::pollfd {
            fd: *fd,
            events: *events,
            revents: 0,
        })
        .collect();
    let timeout = libc::timespec {
        tv_sec: longest.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(longest.subsec_nanos()),
    };
    // SAFETY: the array is valid for its length; the kernel writes only its revents.
    let ready = unsafe {
        libc::ppoll(
            entries.as_mut_ptr(),
            entries.len() as libc::nfds_t,
            &raw const timeout,
            std::ptr::null(),
        )
    };
    entries
        .iter()
        .map(|entry| ready > 0 && entry.revents != 0)
        .collect()
}
