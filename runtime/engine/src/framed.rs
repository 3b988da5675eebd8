//! Length-prefixed messages over a stream, as `wire::rank` lays them out, without blocking.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rlaunch_wire::limits::RANK_MESSAGE_MAX_BYTES;

use crate::interrupt::is_interrupted;

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
    pub(crate) fn is_closable(&mut self) -> bool {
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
