//! The control link: cards, notices and deaths, never tensors.
//!
//! Behind one face stand the agent's socket, a member's stream to rank 0, and rank 0's streams to
//! all members, where it relays. Joining blocks (see `bootstrap`); afterwards nothing does: the
//! link is polled from within waits. Losing it is an event, not an error, since what it means
//! depends: rank 0 may have finalized.

use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use prost::Message;
use rlaunch_wire::notice::{Notice, NoticeKind};
use rlaunch_wire::rank::{
    Broadcast, Leave, PeerFailed, ToAgent, ToAgentMessage, ToRank, ToRankMessage,
};

use crate::framed::Framed;

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

/// Between two looks whether the last words have arrived.
const GOODBYE_PERIOD: Duration = Duration::from_micros(200);

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

    /// What only a launcher has use for.
    pub(crate) fn tell_launcher(&mut self, rank: u32, notice: NoticeKind) {
        if matches!(self, Self::Agent(_)) {
            self.broadcast(rank, Notice::encoded(notice));
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
                ToAgentMessage::Hello(_) | ToAgentMessage::Join(_) | ToAgentMessage::Overdue(_) => {
                }
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
