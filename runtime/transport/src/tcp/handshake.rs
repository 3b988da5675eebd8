//! The first bytes of a TCP connection: both sides prove the job's secret and who they are.
//!
//! ```text
//! connector → acceptor   magic (8), job (16), from (4), to (4), nonce (16)
//! acceptor → connector   magic (8), nonce (16), proof (32)
//! connector → acceptor   proof (32)
//! ```
//! The proofs cover job, from, to and both nonces. The acceptor closes on anything unexpected: a
//! stranger, another job, or a connection meant for another rank (docker0 has the same address on
//! every host). The connector then tries its next address. Both sides are non-blocking state
//! machines: poll until `Some`.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use crate::{NONCE_BYTES, PROOF_BYTES, Secret, nonce, verify};

const MAGIC: [u8; 8] = *b"rlaunch1";
const HELLO_BYTES: usize = 8 + 16 + 4 + 4 + NONCE_BYTES;
const REPLY_BYTES: usize = 8 + NONCE_BYTES + PROOF_BYTES;

/// What both sides of a connection must agree on.
#[derive(Debug, Clone)]
pub struct Identity {
    pub secret: Secret,
    pub job: [u8; 16],
    /// This side's rank.
    pub rank: u32,
}

/// The connecting side.
#[derive(Debug)]
pub struct Connector {
    stream: TcpStream,
    hello: [u8; HELLO_BYTES],
    sent: usize,
    reply: [u8; REPLY_BYTES],
    received: usize,
}

impl Connector {
    /// `stream` is connected and non-blocking.
    pub fn new(stream: TcpStream, identity: &Identity, to: u32) -> io::Result<Self> {
        let mut hello = [0; HELLO_BYTES];
        hello[..8].copy_from_slice(&MAGIC);
        hello[8..24].copy_from_slice(&identity.job);
        hello[24..28].copy_from_slice(&identity.rank.to_le_bytes());
        hello[28..32].copy_from_slice(&to.to_le_bytes());
        hello[32..].copy_from_slice(&nonce()?);
        Ok(Self {
            stream,
            hello,
            sent: 0,
            reply: [0; REPLY_BYTES],
            received: 0,
        })
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The proven stream, once it is.
    pub fn poll(&mut self, identity: &Identity) -> io::Result<Option<()>> {
        if !write_some(&mut self.stream, &self.hello, &mut self.sent)?
            || !read_some(&mut self.stream, &mut self.reply, &mut self.received)?
        {
            return Ok(None);
        }
        let (nonce, proof) = self.reply[8..].split_at(NONCE_BYTES);
        if self.reply[..8] != MAGIC
            || !verify(&identity.secret, "tcp-accept", &[&self.hello, nonce], proof)
        {
            return Err(refused(
                "the other side is not the expected rank of this job",
            ));
        }
        let proof = identity.secret.proof("tcp-connect", &[&self.hello, nonce]);
        // The first bytes after a round trip always fit the socket's buffer.
        self.stream.write_all(&proof)?;
        Ok(Some(()))
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
    proof: [u8; PROOF_BYTES],
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

    /// The peer's proven rank, once it is. An error concerns this connection only: drop it.
    pub fn poll(&mut self, identity: &Identity) -> io::Result<Option<u32>> {
        if !read_some(&mut self.stream, &mut self.hello, &mut self.hello_received)? {
            // Noise is dropped at its first wrong byte.
            let known = self.hello_received.min(8);
            if self.hello[..known] != MAGIC[..known] {
                return Err(refused("not a rank"));
            }
            return Ok(None);
        }
        if self.hello[..8] != MAGIC || self.hello[8..24] != identity.job {
            return Err(refused("another job"));
        }
        if self.hello[28..32] != identity.rank.to_le_bytes() {
            return Err(refused("meant for another rank"));
        }
        if !self.replied {
            let mut reply = [0; REPLY_BYTES];
            reply[..8].copy_from_slice(&MAGIC);
            reply[8..8 + NONCE_BYTES].copy_from_slice(&self.nonce);
            reply[8 + NONCE_BYTES..].copy_from_slice(
                &identity
                    .secret
                    .proof("tcp-accept", &[&self.hello, &self.nonce]),
            );
            // The first bytes always fit the socket's buffer.
            self.stream.write_all(&reply)?;
            self.replied = true;
        }
        if !read_some(&mut self.stream, &mut self.proof, &mut self.proof_received)? {
            return Ok(None);
        }
        if !verify(
            &identity.secret,
            "tcp-connect",
            &[&self.hello, &self.nonce],
            &self.proof,
        ) {
            return Err(refused("no proof of the job's secret"));
        }
        let rank = u32::from_le_bytes(self.hello[24..28].try_into().expect("4 bytes"));
        Ok(Some(rank))
    }

    pub fn into_stream(self) -> TcpStream {
        self.stream
    }
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// True when the whole buffer is out.
fn write_some(stream: &mut TcpStream, bytes: &[u8], sent: &mut usize) -> io::Result<bool> {
    while *sent < bytes.len() {
        match stream.write(&bytes[*sent..]) {
            Ok(count) => *sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// True when the whole buffer is filled; never reads past it.
fn read_some(stream: &mut TcpStream, bytes: &mut [u8], received: &mut usize) -> io::Result<bool> {
    while *received < bytes.len() {
        match stream.read(&mut bytes[*received..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => *received += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
