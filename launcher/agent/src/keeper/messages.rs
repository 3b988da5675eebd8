//! Between agent and keeper: one message a packet (SOCK_SEQPACKET), descriptors beside it.
//!
//! A [`Plan`] may be large (an environment has no bound), so it travels in a memfd. `Spawn` brings
//! four descriptors: the plan, then what becomes the rank's 0, 1 and 2.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use prost::{Message, Oneof};

use crate::sys;

/// A message without its descriptors and plan; a survivor's command is the longest part.
const PACKET_MAX_BYTES: usize = 16 * 1024;
/// The most descriptors beside one message.
const DESCRIPTORS_MAX: usize = 4;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ToKeeper {
    #[prost(oneof = "Order", tags = "1, 2, 3, 4, 5, 6")]
    pub(crate) order: Option<Order>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Order {
    /// The rank to start.
    #[prost(uint32, tag = "1")]
    Spawn(u32),
    /// No more ranks come: once all have ended, the job has. Bytes: how long what they leave
    /// behind may take to end by TERM, in ms.
    #[prost(uint32, tag = "2")]
    Sealed(u32),
    /// To every process of the ranks, but those that made a session of their own.
    #[prost(int32, tag = "3")]
    Signal(i32),
    /// TERM now, KILL after so many ms. A shorter time overrides a longer one.
    #[prost(uint32, tag = "4")]
    Terminate(u32),
    /// Stops every process of the ranks; false: continues those that it stopped.
    #[prost(bool, tag = "5")]
    Suspend(bool),
    /// Where the job's record stands; the descriptor beside it is open for writing at its end.
    #[prost(bytes = "vec", tag = "6")]
    Record(Vec<u8>),
}

/// All that an exec needs.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Plan {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) argv: Vec<Vec<u8>>,
    /// Each `NAME=VALUE`.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(crate) environment: Vec<Vec<u8>>,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) directory: Vec<u8>,
    /// What to execute, the first that works; relative ones from `directory`.
    #[prost(bytes = "vec", repeated, tag = "4")]
    pub(crate) candidates: Vec<Vec<u8>>,
    /// Descriptor 1 is a terminal and becomes the controlling one.
    #[prost(bool, tag = "5")]
    pub(crate) terminal: bool,
    /// It stays in the keeper's session, in a process group of its own.
    #[prost(bool, tag = "6")]
    pub(crate) shares_session: bool,
    /// What it is bound to; none: what the keeper may use.
    #[prost(uint32, repeated, tag = "7")]
    pub(crate) cpus: Vec<u32>,
    /// `Started` tells what it was found to be allowed.
    #[prost(bool, tag = "8")]
    pub(crate) reports_cpus: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FromKeeper {
    #[prost(oneof = "Event", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(crate) event: Option<Event>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Event {
    #[prost(message, tag = "1")]
    Started(Started),
    #[prost(message, tag = "2")]
    Failed(Failed),
    #[prost(message, tag = "3")]
    Exited(Exited),
    #[prost(message, tag = "4")]
    Stopped(Stopped),
    #[prost(message, tag = "5")]
    Leftover(Leftover),
    /// No process of the job is left, but those named as leftovers that could not be ended.
    #[prost(message, tag = "6")]
    Gone(Gone),
    /// By order; the ranks that were stopped by that are not told of.
    #[prost(message, tag = "7")]
    Suspended(Suspended),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Started {
    #[prost(uint32, tag = "1")]
    pub(crate) rank: u32,
    #[prost(int32, tag = "2")]
    pub(crate) pid: i32,
    #[prost(int64, tag = "3")]
    pub(crate) time_us: i64,
    /// `0-3,8`; empty: nobody asked, or the process was gone before it could be looked at.
    #[prost(string, tag = "4")]
    pub(crate) cpus: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Failed {
    #[prost(uint32, tag = "1")]
    pub(crate) rank: u32,
    /// "program", "directory", "cores", "fork", "script's interpreter", …
    #[prost(string, tag = "2")]
    pub(crate) what: String,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) path: Vec<u8>,
    #[prost(int32, tag = "4")]
    pub(crate) errno: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Exited {
    #[prost(uint32, tag = "1")]
    pub(crate) rank: u32,
    #[prost(int32, tag = "2")]
    pub(crate) pid: i32,
    /// As waitpid gives it.
    #[prost(int32, tag = "3")]
    pub(crate) status: i32,
    #[prost(int64, tag = "4")]
    pub(crate) time_us: i64,
    #[prost(bool, tag = "5")]
    pub(crate) by_us: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Stopped {
    #[prost(uint32, tag = "1")]
    pub(crate) rank: u32,
    #[prost(int32, tag = "2")]
    pub(crate) signal: i32,
    #[prost(bool, tag = "3")]
    pub(crate) continued: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Leftover {
    #[prost(int32, tag = "1")]
    pub(crate) pid: i32,
    #[prost(string, tag = "2")]
    pub(crate) command: String,
    #[prost(string, tag = "3")]
    pub(crate) state: String,
    #[prost(string, tag = "4")]
    pub(crate) why: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Suspended {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Gone {}

/// A plan as a descriptor.
pub(crate) fn pack(plan: &Plan) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("rlaunch-plan", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(&plan.encode_to_vec())?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

pub(crate) fn unpack(plan: OwnedFd) -> io::Result<Plan> {
    let mut bytes = Vec::new();
    File::from(plan).read_to_end(&mut bytes)?;
    Plan::decode(bytes.as_slice()).map_err(io::Error::other)
}

/// Sends one packet. WouldBlock on a non-blocking socket whose buffer is full.
pub(crate) fn send(
    socket: &OwnedFd,
    message: &impl Message,
    descriptors: &[&OwnedFd],
) -> io::Result<()> {
    assert!(
        descriptors.len() <= DESCRIPTORS_MAX,
        "the receiver has room for no more"
    );
    let bytes = message.encode_to_vec();
    assert!(
        bytes.len() <= PACKET_MAX_BYTES,
        "the receiver has room for no more"
    );
    let numbers: Vec<_> = descriptors
        .iter()
        .map(|descriptor| descriptor.as_raw_fd())
        .collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let control = if numbers.is_empty() { &[] } else { &rights[..] };
    let parts = [IoSlice::new(&bytes)];
    sendmsg::<()>(
        socket.as_raw_fd(),
        &parts,
        control,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    Ok(())
}

/// Receives one packet; none at the other side's end.
pub(crate) fn receive<M: Message + Default>(
    socket: &OwnedFd,
) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    let mut bytes = [0; PACKET_MAX_BYTES];
    let mut space = nix::cmsg_space!([std::os::fd::RawFd; DESCRIPTORS_MAX]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            descriptors.extend(numbers.into_iter().map(sys::own_received));
        }
    }
    let len = received.bytes;
    if len == 0 {
        return Ok(None);
    }
    let message = M::decode(&bytes[..len]).map_err(io::Error::other)?;
    Ok(Some((message, descriptors)))
}
