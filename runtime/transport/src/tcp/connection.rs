//! Messages over one TCP stream.
//!
//! What is to be copied is received straight into its place; what is to be reduced goes through a
//! buffer that stays in the cache. Headers and small messages are read ahead into that buffer, one
//! system call for many.

use std::ffi::c_short;
use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use super::setup::tune;
use crate::{
    Capabilities, Connection, ConnectionError, HEADER_BYTES, Header, Incoming, OneSided, Outgoing,
    Progress, Sink,
};

/// One rank's end of the stream to a peer.
#[derive(Debug)]
pub struct TcpConnection {
    stream: TcpStream,
    /// Received and not yet taken: `start..end`.
    buffer: Box<[u64]>,
    start: usize,
    end: usize,
    current: Option<Header>,
    is_shut: bool,
}

/// Fits an L2 cache beside what it is reduced with.
const BUFFER_BYTES: usize = 128 * 1024;
/// A copy of at least this much is received straight into its place.
const DIRECT_BYTES_MIN: usize = 4096;
/// Stands for the rest of a payload that its sender has given up.
static FILLER: [u8; 16 * 1024] = [0; 16 * 1024];

impl TcpConnection {
    /// `silence_max`: sent bytes that stay unacknowledged for this long end the connection.
    pub fn new(stream: TcpStream, silence_max: Duration) -> io::Result<Self> {
        tune(&stream, silence_max)?;
        Ok(Self {
            stream,
            // Words, so that elements in it are aligned.
            buffer: vec![0; BUFFER_BYTES / 8].into_boxed_slice(),
            start: 0,
            end: 0,
            current: None,
            is_shut: false,
        })
    }

    fn bytes(&mut self) -> &mut [u8] {
        let words = &mut self.buffer;
        // SAFETY: the words are initialised, and bytes have no alignment or invalid values.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), BUFFER_BYTES) }
    }

    fn buffered_bytes(&self) -> usize {
        self.end - self.start
    }

    /// Moves what is left to the start, which is aligned for every element type.
    fn compact(&mut self) {
        let range = self.start..self.end;
        self.bytes().copy_within(range, 0);
        (self.start, self.end) = (0, self.buffered_bytes());
    }

    /// Receives into the buffer's free end; false if nothing is there.
    fn read_ahead(&mut self) -> Result<bool, ConnectionError> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        let end = self.end;
        let words = &mut self.buffer;
        // SAFETY: as in `bytes`; spelled out so that the stream can be borrowed beside it.
        let bytes: &mut [u8] =
            unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), BUFFER_BYTES) };
        match receive(&mut self.stream, &mut bytes[end..])? {
            Some(count) => {
                self.end += count;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Feeds from the buffer what belongs to the current message; false if that is nothing.
    ///
    /// # Safety
    /// The sink is valid for the message.
    unsafe fn feed_buffered(&mut self, incoming: &mut Incoming, length: usize) -> bool {
        let mut bytes = self.buffered_bytes().min(length - incoming.taken_bytes);
        if let Sink::Reduce { dtype, .. } = incoming.sink {
            bytes -= bytes % dtype.size_bytes();
            if bytes > 0 && !self.start.is_multiple_of(dtype.size_bytes()) {
                self.compact();
            }
        }
        if bytes == 0 {
            return false;
        }
        let start = self.start;
        let from = self.bytes()[start..start + bytes].as_ptr();
        // SAFETY: the buffer holds these bytes; the caller vouches for the sink.
        unsafe { incoming.feed(from, bytes) };
        self.start += bytes;
        true
    }

    /// Receives straight into a copy's place; `None` if nothing is there.
    ///
    /// # Safety
    /// `to` is valid for writes up to `length`.
    unsafe fn receive_direct(
        &mut self,
        incoming: &mut Incoming,
        to: *mut u8,
        length: usize,
    ) -> Result<Option<usize>, ConnectionError> {
        let remaining = length - incoming.taken_bytes;
        // SAFETY: valid for the rest of the message as the caller vouches; the bytes are only
        // written, by the kernel.
        let place =
            unsafe { std::slice::from_raw_parts_mut(to.add(incoming.taken_bytes), remaining) };
        let count = receive(&mut self.stream, place)?;
        incoming.taken_bytes += count.unwrap_or(0);
        Ok(count)
    }
}

impl Connection for TcpConnection {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "tcp",
            one_sided: false,
            registers_host: false,
            registers_device: false,
            completion: None,
            consumes_in_place: false,
            buffered_bytes: 0,
        }
    }

    unsafe fn poll_send(&mut self, message: &mut Outgoing) -> Result<Progress, ConnectionError> {
        let header = message.header.encode();
        let mut moved = false;
        loop {
            let head = &header[message.header_sent_bytes..];
            let remaining = message.remaining_bytes();
            if head.is_empty() && remaining == 0 {
                return Ok(Progress::Done);
            }
            let payload = if remaining == 0 {
                &[]
            } else if message.is_abandoned() {
                &FILLER[..remaining.min(FILLER.len())]
            } else {
                // SAFETY: the caller vouches for the payload's length.
                unsafe {
                    std::slice::from_raw_parts(
                        message.payload.add(message.payload_sent_bytes),
                        remaining,
                    )
                }
            };
            let sent = match send(&self.stream, head, payload) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(if moved {
                        Progress::Moved
                    } else {
                        Progress::Idle
                    });
                }
                Err(error) => return Err(classify(error)),
            };
            moved = true;
            let of_header = sent.min(head.len());
            message.header_sent_bytes += of_header;
            message.payload_sent_bytes += sent - of_header;
        }
    }

    fn poll_header(&mut self) -> Result<Option<Header>, ConnectionError> {
        if self.current.is_none() {
            if self.buffered_bytes() < HEADER_BYTES {
                if BUFFER_BYTES - self.start < HEADER_BYTES {
                    self.compact();
                }
                if !self.read_ahead()? || self.buffered_bytes() < HEADER_BYTES {
                    return Ok(None);
                }
            }
            let start = self.start;
            let bytes = &self.bytes()[start..start + HEADER_BYTES];
            let header = Header::decode(bytes.try_into().expect("a header's length"))
                .ok_or(ConnectionError::Malformed("header"))?;
            self.start += HEADER_BYTES;
            self.current = Some(header);
        }
        Ok(self.current)
    }

    unsafe fn poll_payload(
        &mut self,
        incoming: &mut Incoming,
    ) -> Result<Progress, ConnectionError> {
        let Some(header) = self.current else {
            return Ok(Progress::Idle);
        };
        let length = header.length_bytes as usize;
        let mut moved = false;
        while incoming.taken_bytes < length {
            // SAFETY: the caller vouches for the sink.
            if unsafe { self.feed_buffered(incoming, length) } {
                moved = true;
                continue;
            }
            let remaining = length - incoming.taken_bytes;
            let more = match incoming.sink {
                Sink::Copy { to, .. } if remaining >= DIRECT_BYTES_MIN => {
                    // SAFETY: the caller vouches for the sink.
                    unsafe { self.receive_direct(incoming, to, length)? }.is_some()
                }
                _ => {
                    // A reduction can leave a part of an element behind.
                    self.compact();
                    self.read_ahead()?
                }
            };
            if !more {
                return Ok(if moved {
                    Progress::Moved
                } else {
                    Progress::Idle
                });
            }
            moved = true;
        }
        self.current = None;
        Ok(Progress::Done)
    }

    fn wait_on(&self, to_send: bool, on: &mut Vec<(RawFd, c_short)>) -> bool {
        let events = if to_send {
            libc::POLLIN | libc::POLLOUT
        } else {
            libc::POLLIN
        };
        on.push((self.stream.as_raw_fd(), events));
        true
    }

    fn is_connected(&self) -> bool {
        true
    }

    fn stream(&self) -> Option<RawFd> {
        Some(self.stream.as_raw_fd())
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        None
    }

    /// Ends our direction, then reads on until the peer has all we sent: closing a socket with
    /// unread bytes would reset it and lose what is under way.
    fn poll_close(&mut self) -> Result<Progress, ConnectionError> {
        if !self.is_shut {
            self.is_shut = true;
            match self.stream.shutdown(Shutdown::Write) {
                Err(error) if error.kind() != io::ErrorKind::NotConnected => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        (self.start, self.end) = (0, 0);
        loop {
            match self.read_ahead() {
                Ok(true) => (self.start, self.end) = (0, 0),
                Ok(false) => break,
                Err(_) => return Ok(Progress::Done),
            }
        }
        let mut unsent: libc::c_int = 0;
        // SAFETY: the descriptor is ours and the kernel writes one int.
        let result =
            unsafe { libc::ioctl(self.stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut unsent) };
        Ok(if result != 0 || unsent == 0 {
            Progress::Done
        } else {
            Progress::Idle
        })
    }
}

/// One vectored write that never raises SIGPIPE.
fn send(stream: &TcpStream, head: &[u8], payload: &[u8]) -> io::Result<usize> {
    loop {
        let slices = [IoSlice::new(head), IoSlice::new(payload)];
        let result =
            socket2::SockRef::from(stream).send_vectored_with_flags(&slices, libc::MSG_NOSIGNAL);
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// `None` if nothing is there; an end of the stream is an error.
fn receive(stream: &mut TcpStream, bytes: &mut [u8]) -> Result<Option<usize>, ConnectionError> {
    loop {
        match stream.read(bytes) {
            Ok(0) => return Err(ConnectionError::Closed),
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(classify(error)),
        }
    }
}

/// A reset is how the kernel reports a process that died with bytes unread.
fn classify(error: io::Error) -> ConnectionError {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ConnectionError::Closed,
        _ => ConnectionError::Io(error),
    }
}
