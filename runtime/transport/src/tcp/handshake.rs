//! The first bytes of a TCP connection: both sides prove the job's secret and who they are.
//!
//! ```text
//! connector → acceptor   magic (8), job (16), from (4), to (4), purpose (1), zero (3), nonce (16)
//! acceptor → connector   magic (8), nonce (16), proof (32)
//! connector → acceptor   proof (32)
//! acceptor → connector   verdict (1), for data only
//! ```
//! The proofs cover all of the hello and both nonces. The acceptor closes on anything unexpected:
//! a stranger, another job, or a connection meant for another rank (docker0 has the same address
//! on every host). The connector then tries another address. What the bytes mean is decided by
//! pure functions on them; both sides are non-blocking state machines: poll until `Some`.

use std::io;
use std::net::TcpStream;

use super::socket::{read_some, write_some};
use crate::{NONCE_BYTES, PROOF_BYTES, Proof, Secret, nonce, verify};

const MAGIC: [u8; 8] = *b"rlaunch1";
pub const HELLO_BYTES: usize = 36 + NONCE_BYTES;
pub const REPLY_BYTES: usize = 8 + NONCE_BYTES + PROOF_BYTES;

/// What both sides of a connection must agree on.
#[derive(Debug, Clone)]
pub struct Identity {
    pub secret: Secret,
    pub job: [u8; 16],
    /// This side's rank.
    pub rank: u32,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Bootstrap and notices, to rank 0.
    Control = 0,
    /// The first socket to a peer.
    Data = 1,
    /// One more.
    DataMore = 2,
}

/// How the acceptor of a data connection decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Verdict {
    Accepted = 1,
    /// The acceptor is connecting too, or is connected; its own socket stands.
    Mine = 2,
}

/// The connector's first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    pub job: [u8; 16],
    pub from: u32,
    pub to: u32,
    pub purpose: Purpose,
    pub nonce: [u8; NONCE_BYTES],
}

impl Hello {
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(&self.job);
        bytes[24..28].copy_from_slice(&self.from.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.to.to_le_bytes());
        bytes[32] = self.purpose as u8;
        bytes[36..].copy_from_slice(&self.nonce);
        bytes
    }

    /// `None` for what no rank of this version says.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Self> {
        let purposes = [Purpose::Control, Purpose::Data, Purpose::DataMore];
        let purpose = purposes.into_iter().find(|code| *code as u8 == bytes[32])?;
        if bytes[..8] != MAGIC || bytes[33..36] != [0; 3] {
            return None;
        }
        Some(Self {
            job: bytes[8..24].try_into().expect("16 bytes"),
            from: u32::from_le_bytes(bytes[24..28].try_into().expect("4 bytes")),
            to: u32::from_le_bytes(bytes[28..32].try_into().expect("4 bytes")),
            purpose,
            nonce: bytes[36..].try_into().expect("a nonce"),
        })
    }

    /// Whether these can be the first bytes of a hello; noise is dropped at its first wrong byte.
    pub fn may_begin_with(bytes: &[u8]) -> bool {
        let known = bytes.len().min(MAGIC.len());
        bytes[..known] == MAGIC[..known]
    }

    /// Why an acceptor refuses it.
    fn refusal(&self, identity: &Identity) -> Option<io::Error> {
        let astray = |why| Some(io::Error::new(io::ErrorKind::AddrNotAvailable, why));
        match () {
            () if self.job != identity.job => Some(refused("of another job")),
            () if self.to != identity.rank => astray("meant for another rank"),
            () if self.from == identity.rank => astray("from this very rank"),
            () => None,
        }
    }
}

/// The acceptor's answer, as the connector checks it.
pub fn reply_is_proven(
    secret: &Secret,
    hello: &[u8; HELLO_BYTES],
    reply: &[u8; REPLY_BYTES],
) -> bool {
    let (nonce, proof) = reply[8..].split_at(NONCE_BYTES);
    reply[..8] == MAGIC && verify(secret, "tcp-accept", &[hello, nonce], proof)
}

fn make_reply(
    secret: &Secret,
    hello: &[u8; HELLO_BYTES],
    nonce: &[u8; NONCE_BYTES],
) -> [u8; REPLY_BYTES] {
    let mut reply = [0; REPLY_BYTES];
    reply[..8].copy_from_slice(&MAGIC);
    reply[8..8 + NONCE_BYTES].copy_from_slice(nonce);
    reply[8 + NONCE_BYTES..].copy_from_slice(&secret.proof("tcp-accept", &[hello, nonce]));
    reply
}

/// The connecting side.
#[derive(Debug)]
pub struct Connector {
    stream: TcpStream,
    hello: [u8; HELLO_BYTES],
    sent: usize,
    reply: [u8; REPLY_BYTES],
    received: usize,
    verdict: [u8; 1],
    verdict_received: usize,
}

impl Connector {
    /// `stream` is connected and non-blocking.
    pub fn new(
        stream: TcpStream,
        identity: &Identity,
        to: u32,
        purpose: Purpose,
    ) -> io::Result<Self> {
        let hello = Hello {
            job: identity.job,
            from: identity.rank,
            to,
            purpose,
            nonce: nonce()?,
        };
        Ok(Self {
            stream,
            hello: hello.encode(),
            sent: 0,
            reply: [0; REPLY_BYTES],
            received: 0,
            verdict: [0],
            verdict_received: 0,
        })
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// `Some` once the other side has proven to be the expected rank of this job.
    pub fn poll_reply(&mut self, identity: &Identity) -> io::Result<Option<()>> {
        if !write_some(&self.stream, &self.hello, &mut self.sent)?
            || !read_some(&self.stream, &mut self.reply, &mut self.received)?
        {
            return Ok(None);
        }
        if !reply_is_proven(&identity.secret, &self.hello, &self.reply) {
            return Err(refused(
                "the other side is not the expected rank of this job",
            ));
        }
        Ok(Some(()))
    }

    /// Proves this side, after [`Connector::poll_reply`].
    pub fn confirm(&mut self, identity: &Identity) -> io::Result<()> {
        let nonce = &self.reply[8..8 + NONCE_BYTES];
        let proof = identity.secret.proof("tcp-connect", &[&self.hello, nonce]);
        // The first bytes after a round trip always fit the socket's buffer.
        if write_some(&self.stream, &proof, &mut 0)? {
            Ok(())
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    /// The acceptor's decision on a data connection, after [`Connector::confirm`].
    pub fn poll_verdict(&mut self) -> io::Result<Option<Verdict>> {
        if !read_some(&self.stream, &mut self.verdict, &mut self.verdict_received)? {
            return Ok(None);
        }
        let verdicts = [Verdict::Accepted, Verdict::Mine];
        let verdict = verdicts
            .into_iter()
            .find(|code| *code as u8 == self.verdict[0]);
        verdict
            .map(Some)
            .ok_or_else(|| refused("no verdict of this version"))
    }

    pub fn into_stream(self) -> TcpStream {
        self.stream
    }
}

/// The accepting side.
#[derive(Debug)]
pub struct Acceptor {
    stream: TcpStream,
    hello: [u8; HELLO_BYTES],
    hello_received: usize,
    nonce: [u8; NONCE_BYTES],
    replied: bool,
    proof: Proof,
    proof_received: usize,
}

impl Acceptor {
    /// `stream` is non-blocking.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        Ok(Self {
            stream,
            hello: [0; HELLO_BYTES],
            hello_received: 0,
            nonce: nonce()?,
            replied: false,
            proof: [0; PROOF_BYTES],
            proof_received: 0,
        })
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether it has said what only ranks of this job say (which proves nothing yet).
    pub fn has_greeted(&self) -> bool {
        self.replied
    }

    /// Whether a failure of [`Acceptor::poll`] is nothing to tell anybody: a rank of this job has
    /// given this attempt up, or came to an address that leads to several hosts.
    pub fn is_members_affair(&self, identity: &Identity, error: &io::Error) -> bool {
        // A rank resets the attempts that it gives up; whoever else does has said nothing either.
        if error.kind() == io::ErrorKind::ConnectionReset {
            return true;
        }
        let is_whole = self.hello_received == HELLO_BYTES;
        let hello = Hello::decode(&self.hello).filter(|_| is_whole);
        let is_of_job = hello.is_some_and(|hello| hello.job == identity.job);
        is_of_job && error.kind() != io::ErrorKind::PermissionDenied
    }

    /// The peer's hello, once it is proven. An error concerns this connection only: drop it.
    pub fn poll(&mut self, identity: &Identity) -> io::Result<Option<Hello>> {
        if !read_some(&self.stream, &mut self.hello, &mut self.hello_received)? {
            if !Hello::may_begin_with(&self.hello[..self.hello_received]) {
                return Err(refused("not a rank"));
            }
            return Ok(None);
        }
        let hello = Hello::decode(&self.hello).ok_or_else(|| refused("not a rank"))?;
        if let Some(error) = hello.refusal(identity) {
            return Err(error);
        }
        if !self.replied {
            let reply = make_reply(&identity.secret, &self.hello, &self.nonce);
            // The first bytes always fit the socket's buffer.
            if !write_some(&self.stream, &reply, &mut 0)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.replied = true;
        }
        if !read_some(&self.stream, &mut self.proof, &mut self.proof_received)? {
            return Ok(None);
        }
        let parts: [&[u8]; 2] = [&self.hello, &self.nonce];
        if !verify(&identity.secret, "tcp-connect", &parts, &self.proof) {
            return Err(refused("no proof of the job's secret"));
        }
        Ok(Some(hello))
    }

    /// Decides on a data connection that has proven itself.
    pub fn answer(&mut self, verdict: Verdict) -> io::Result<()> {
        if write_some(&self.stream, &[verdict as u8], &mut 0)? {
            Ok(())
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    pub fn into_stream(self) -> TcpStream {
        self.stream
    }
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            job: [3; 16],
            from: 1,
            to: 2,
            purpose: Purpose::DataMore,
            nonce: [7; NONCE_BYTES],
        }
    }

    #[test]
    fn hellos_survive_encoding_and_others_are_none() {
        let bytes = hello().encode();
        assert_eq!(Hello::decode(&bytes), Some(hello()));
        for wrong in (0..8).chain(32..36) {
            let mut bytes = bytes;
            bytes[wrong] ^= 0x80;
            assert_eq!(Hello::decode(&bytes), None, "byte {wrong}");
        }
        assert!(Hello::may_begin_with(b"rlau") && !Hello::may_begin_with(b"GET /"));
    }

    #[test]
    fn a_reply_proves_only_the_hello_it_answers() {
        let secret = Secret::new(b"s");
        let bytes = hello().encode();
        let reply = make_reply(&secret, &bytes, &[1; NONCE_BYTES]);
        assert!(reply_is_proven(&secret, &bytes, &reply));
        let other = Hello { to: 5, ..hello() }.encode();
        assert!(!reply_is_proven(&secret, &other, &reply));
        assert!(!reply_is_proven(&Secret::new(b"t"), &bytes, &reply));
    }
}
