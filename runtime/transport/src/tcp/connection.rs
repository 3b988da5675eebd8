//! Messages to one peer over one or several sockets, made when first needed.
//!
//! The first message connects; before that a connection is an entry in a table. Large messages are
//! spread in chunks over more sockets where the options or several networks say so: each chunk
//! goes to the next socket that has room, so a slow one takes less. For that a socket holds no more
//! unsent bytes than it sends in some milliseconds ([`Lane::keep_short`]): with the megabytes that
//! kernels allow, a whole message would be dealt out evenly at once, and wait for the slowest.
//! What is to be copied is received straight into its place, wherever the chunk lies in it; what
//! is to be reduced is reduced while the rest is still coming.

use std::ffi::c_short;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::endpoint::TcpEndpoint;
use super::frame::{Chunk, Frame};
use super::lane::{Lane, part};
use super::link::{Link, TcpPeer};
use super::read_ahead::BUFFER_BYTES;
use super::socket::{send, tune, unacknowledged_bytes};
use crate::{
    Capabilities, Connection, ConnectionError, Header, Incoming, OneSided, Outgoing, Progress,
};

/// One rank's end of the channel to a peer.
#[derive(Debug)]
pub struct TcpConnection {
    link: Link,
    /// The first one carries headers and whole messages. None while not connected.
    lanes: Vec<Lane>,
    next_lane: usize,
    current: Option<Current>,
    striped_sent: u64,
    striped_received: u64,
    /// When the sockets' queues are measured next.
    next_measure: Option<Instant>,
    /// How the message under way is sent.
    is_striping: bool,
    /// Something of it waits for whichever socket gets room.
    wants_room: bool,
    is_shut: bool,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    header: Header,
    /// Its number, where it comes in chunks.
    striped: Option<u64>,
}

/// Large enough that its header costs nothing, small enough to balance sockets; a multiple of
/// every element's size.
const CHUNK_BYTES: usize = 64 * 1024;
/// Smaller messages gain nothing from a second socket.
const STRIPED_BYTES_MIN: usize = 2 * CHUNK_BYTES;
/// Between two measurements of how fast sockets send.
const MEASURE_PERIOD: Duration = Duration::from_millis(10);

impl TcpConnection {
    /// Not connected yet.
    pub fn new(endpoint: Arc<TcpEndpoint>, peer: TcpPeer) -> Self {
        Self {
            link: Link::new(endpoint, peer),
            lanes: Vec::new(),
            next_lane: 0,
            current: None,
            striped_sent: 0,
            striped_received: 0,
            next_measure: None,
            is_striping: false,
            wants_room: true,
            is_shut: false,
        }
    }

    /// Connects now rather than with the first message. The peer has to poll as well.
    pub fn poll_connect(&mut self) -> Result<Progress, ConnectionError> {
        Ok(if self.is_up(true)? {
            Progress::Done
        } else {
            Progress::Idle
        })
    }

    /// Sockets to the peer now.
    pub fn sockets(&self) -> usize {
        self.lanes.len()
    }

    fn is_up(&mut self, wanted: bool) -> Result<bool, ConnectionError> {
        if self.lanes.is_empty() {
            let streams = self.link.poll_first(wanted)?;
            self.add(streams)?;
        } else {
            self.look_around()?;
        }
        Ok(!self.lanes.is_empty())
    }

    /// Lets in others, who wait for this rank while it is busy with one peer, and takes further
    /// sockets to this one.
    fn look_around(&mut self) -> Result<(), ConnectionError> {
        self.link.endpoint().poll_rarely();
        let streams = self.link.poll_more();
        Ok(self.add(streams)?)
    }

    fn add(&mut self, streams: Vec<TcpStream>) -> io::Result<()> {
        for stream in streams {
            tune(&stream, self.link.endpoint().silence_max)?;
            self.lanes.push(Lane::new(stream));
            self.next_measure = None;
        }
        Ok(())
    }

    /// Decides how a message goes before its first byte.
    fn plan(&mut self, message: &Outgoing) {
        self.is_striping = false;
        if message.header.length_bytes < STRIPED_BYTES_MIN as u64 {
            return;
        }
        self.link.want_more(&self.lanes[0].stream, self.lanes.len());
        self.is_striping = self.lanes.len() > 1;
        if self.is_striping {
            self.keep_lanes_short();
        }
    }

    fn keep_lanes_short(&mut self) {
        let now = Instant::now();
        if self.next_measure.is_none_or(|next| now >= next) {
            self.next_measure = Some(now + MEASURE_PERIOD);
            self.lanes.iter_mut().for_each(Lane::keep_short);
        }
    }

    /// A message on the first socket: header and payload in as few calls as there is room for.
    ///
    /// # Safety
    /// As [`Connection::poll_send`].
    unsafe fn send_whole(&mut self, message: &mut Outgoing) -> Result<Progress, ConnectionError> {
        let header = Frame::Whole(message.header).encode();
        let mut moved = false;
        loop {
            let head = &header[message.header_sent_bytes..];
            let (at, remaining) = (message.payload_sent_bytes, message.remaining_bytes());
            if head.is_empty() && remaining == 0 {
                return Ok(Progress::Done);
            }
            // SAFETY: the caller vouches for the payload.
            let payload = unsafe { part(message, at, remaining) };
            let Some(sent) = send(&self.lanes[0].stream, head, payload)? else {
                return Ok(progress(moved));
            };
            let is_full = sent < head.len() + payload.len();
            let of_header = sent.min(head.len());
            message.header_sent_bytes += of_header;
            message.payload_sent_bytes += sent - of_header;
            if is_full {
                return Ok(Progress::Moved);
            }
            moved = true;
        }
    }

    /// A message in chunks over all sockets.
    ///
    /// # Safety
    /// As [`Connection::poll_send`].
    unsafe fn send_striped(&mut self, message: &mut Outgoing) -> Result<Progress, ConnectionError> {
        let header = Frame::Striped(message.header).encode();
        let mut moved = false;
        while message.header_sent_bytes < header.len() {
            let head = &header[message.header_sent_bytes..];
            let Some(sent) = send(&self.lanes[0].stream, head, &[])? else {
                return Ok(progress(moved));
            };
            message.header_sent_bytes += sent;
            moved = true;
        }
        let mut blocked = 0;
        while blocked < self.lanes.len() {
            let at = self.next_lane % self.lanes.len();
            self.next_lane = at + 1;
            let lane = &mut self.lanes[at];
            let mut fresh = 0;
            if !lane.is_sending() && message.remaining_bytes() > 0 {
                fresh = message.remaining_bytes().min(CHUNK_BYTES);
                lane.begin(Chunk {
                    message: self.striped_sent + 1,
                    offset: message.payload_sent_bytes as u64,
                    length: fresh as u64,
                });
            }
            // SAFETY: the caller vouches for the payload.
            let has_moved = unsafe { lane.poll_chunk(message)? };
            moved |= has_moved;
            if has_moved {
                message.payload_sent_bytes += fresh;
            } else if fresh > 0 {
                // Another one may have room for it.
                lane.withdraw();
            }
            if has_moved && !lane.is_sending() {
                blocked = 0;
            } else {
                blocked += 1;
            }
        }
        self.wants_room = message.remaining_bytes() > 0;
        if self.wants_room || self.lanes.iter().any(Lane::is_sending) {
            return Ok(progress(moved));
        }
        self.wants_room = true;
        self.striped_sent += 1;
        Ok(Progress::Done)
    }

    /// What has come of a message in chunks, from whichever socket.
    ///
    /// # Safety
    /// As [`Connection::poll_payload`].
    unsafe fn take_striped(
        &mut self,
        incoming: &mut Incoming,
        number: u64,
        length: usize,
    ) -> Result<bool, ConnectionError> {
        self.look_around()?;
        let mut moved = false;
        for lane in &mut self.lanes {
            while incoming.taken_bytes < length {
                // SAFETY: the caller vouches for the sink.
                if !unsafe { lane.take_chunks(incoming, number, length)? } {
                    break;
                }
                moved = true;
                if lane.ahead.is_drained() {
                    break;
                }
            }
        }
        if incoming.taken_bytes > length {
            return Err(ConnectionError::Malformed("chunks that overlap"));
        }
        Ok(moved)
    }
}

fn progress(moved: bool) -> Progress {
    if moved {
        Progress::Moved
    } else {
        Progress::Idle
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
        if !self.is_up(true)? {
            return Ok(Progress::Idle);
        }
        if !message.is_begun() {
            self.plan(message);
        }
        // SAFETY: as the caller vouches.
        unsafe {
            if self.is_striping {
                self.send_striped(message)
            } else {
                self.send_whole(message)
            }
        }
    }

    fn poll_header(&mut self) -> Result<Option<Header>, ConnectionError> {
        if let Some(current) = self.current {
            return Ok(Some(current.header));
        }
        if !self.is_up(false)? {
            return Ok(None);
        }
        let lane = &mut self.lanes[0];
        let Some(frame) = lane.ahead.frame(&lane.stream)? else {
            return Ok(None);
        };
        let (header, striped) = match frame {
            Frame::Whole(header) => (header, None),
            Frame::Striped(header) => {
                self.striped_received += 1;
                (header, Some(self.striped_received))
            }
            Frame::Chunk(_) => return Err(ConnectionError::Malformed("a chunk out of turn")),
        };
        lane.ahead.skip_header();
        self.current = Some(Current { header, striped });
        Ok(Some(header))
    }

    unsafe fn poll_payload(
        &mut self,
        incoming: &mut Incoming,
    ) -> Result<Progress, ConnectionError> {
        let Some(current) = self.current else {
            return Ok(Progress::Idle);
        };
        let length = current.header.length_bytes as usize;
        let mut moved = false;
        if let Some(number) = current.striped {
            // SAFETY: as the caller vouches.
            moved = unsafe { self.take_striped(incoming, number, length)? };
        } else {
            let Lane { stream, ahead, .. } = &mut self.lanes[0];
            while incoming.taken_bytes < length {
                let (at, remaining) = (incoming.taken_bytes, length - incoming.taken_bytes);
                // SAFETY: as the caller vouches.
                if unsafe { ahead.take(stream, incoming, at, remaining)? } == 0 {
                    break;
                }
                moved = true;
                if ahead.is_drained() {
                    break;
                }
            }
        }
        if incoming.taken_bytes < length {
            return Ok(progress(moved));
        }
        self.current = None;
        Ok(Progress::Done)
    }

    fn wait_on(&self, to_send: bool, on: &mut Vec<(RawFd, c_short)>) -> bool {
        if self.lanes.is_empty() {
            self.link.wait_on(on);
            return true;
        }
        let is_striped = self
            .current
            .is_some_and(|current| current.striped.is_some());
        for (index, lane) in self.lanes.iter().enumerate() {
            let mut events = 0;
            if (index == 0 || is_striped) && !(is_striped && lane.is_parked()) {
                events |= libc::POLLIN;
            }
            let has_more = self.wants_room && (index == 0 || self.is_striping);
            if to_send && (has_more || lane.is_sending()) {
                events |= libc::POLLOUT;
            }
            if events != 0 {
                on.push((lane.stream.as_raw_fd(), events));
            }
        }
        true
    }

    fn is_connected(&self) -> bool {
        !self.lanes.is_empty() || self.link.has_arrived()
    }

    fn stream(&self) -> Option<RawFd> {
        self.lanes.first().map(|lane| lane.stream.as_raw_fd())
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        None
    }

    /// Ends our direction, then reads on until the peer has all we sent: closing a socket with
    /// unread bytes would reset it and lose what is under way.
    fn poll_close(&mut self) -> Result<Progress, ConnectionError> {
        let streams = self.link.poll_more();
        self.add(streams)?;
        let mut is_done = true;
        for lane in &mut self.lanes {
            if !self.is_shut {
                match lane.stream.shutdown(Shutdown::Write) {
                    Err(error) if error.kind() != io::ErrorKind::NotConnected => {
                        return Err(error.into());
                    }
                    _ => {}
                }
            }
            let mut has_ended = false;
            while !has_ended {
                lane.ahead.clear();
                match lane.ahead.fill(&lane.stream, BUFFER_BYTES) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => has_ended = true,
                }
            }
            is_done &= has_ended || unacknowledged_bytes(&lane.stream) == 0;
        }
        self.is_shut = true;
        Ok(if is_done {
            Progress::Done
        } else {
            Progress::Idle
        })
    }
}
