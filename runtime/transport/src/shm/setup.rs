//! How the ranks of one host come to share an arena.
//!
//! Local rank 0 makes it and listens on an abstract socket whose name follows from the secret; the
//! others connect, both sides prove the secret, and the memfd is passed by SCM_RIGHTS.
//!
//! ```text
//! peer → maker   local rank (4), nonce (16)
//! maker → peer   nonce (16), proof (32)
//! peer → maker   proof (32)
//! maker → peer   one byte and the memfd
//! ```
//! A stranger (another uid, no proof, silence) is dropped without effect on the others, except that
//! silence costs [`STRANGER_MAX`]; the name, which only holders of the secret know, keeps them away.

use std::io::{self, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, getsockopt, recvmsg, sendmsg, sockopt,
};

use super::{Arena, SingleCopy, State, Team};
use crate::{NONCE_BYTES, PROOF_BYTES, Secret, nonce, verify};

/// What a rank knows of its host's group.
#[derive(Debug, Clone)]
pub struct ShmSetup {
    pub secret: Secret,
    /// Same on all ranks of the group, different for any other group with this secret.
    pub group: Vec<u8>,
    pub local_rank: u32,
    pub local_size: u32,
    /// Length of the staging slots of the team of all; local rank 0's holds.
    pub slot_bytes: usize,
    pub single_copy: SingleCopy,
    pub deadline: Instant,
}

/// Why no memory could be shared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShmSetupError {
    #[error("local ranks {missing:?} did not come for the shared memory in time")]
    Missing { missing: Vec<u32> },
    #[error("local rank 0 did not offer its shared memory in time (last: {last})")]
    NoMaker { last: io::Error },
    #[error("no shared memory: {0}; hint: set RLAUNCH_TRANSPORT=tcp on all ranks to do without")]
    Io(#[from] io::Error),
}

const STRANGER_MAX: Duration = Duration::from_secs(1);
const RETRY_PERIOD: Duration = Duration::from_millis(2);
const HELLO_BYTES: usize = 4 + NONCE_BYTES;

/// Returns the team of all ranks of the host, once this rank has mapped the memory and, on local rank
/// 0, all others fetched it.
pub fn setup(setup: &ShmSetup) -> Result<Team, ShmSetupError> {
    let members = (0..setup.local_size).collect();
    let team = if setup.local_rank == 0 {
        let arena = Arena::create(setup.local_size)?;
        // The first area of the first zone: the others know its place.
        let team = Team::create(arena, members, 0, setup.slot_bytes)?;
        make(setup, team.arena())?;
        team
    } else {
        let arena = fetch(setup)?;
        let place = arena.first_place();
        Team::open(arena, place, members, setup.local_rank)?
    };
    if setup.single_copy != SingleCopy::Off {
        team.arena()
            .introduce(setup.local_rank, setup.single_copy)?;
    }
    team.arena().set_state(setup.local_rank, State::Present);
    Ok(team)
}

fn make(setup: &ShmSetup, arena: &Arena) -> Result<(), ShmSetupError> {
    let listener = UnixListener::bind_addr(&address(setup)?)?;
    listener.set_nonblocking(true)?;
    let mut missing: Vec<u32> = (1..setup.local_size).collect();
    while !missing.is_empty() {
        if Instant::now() >= setup.deadline {
            return Err(ShmSetupError::Missing { missing });
        }
        match listener.accept() {
            Ok((stream, _)) => {
                // A stranger's failure is its own; a true peer tries again.
                if let Ok(rank) = serve(setup, arena, stream) {
                    missing.retain(|other| *other != rank);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_readable(&listener, RETRY_PERIOD * 25)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn serve(setup: &ShmSetup, arena: &Arena, mut stream: UnixStream) -> io::Result<u32> {
    let credentials = getsockopt(&stream, sockopt::PeerCredentials)?;
    if credentials.uid() != nix::unistd::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(STRANGER_MAX))?;
    stream.set_write_timeout(Some(STRANGER_MAX))?;
    let mut hello = [0; HELLO_BYTES];
    stream.read_exact(&mut hello)?;
    let mine = nonce()?;
    stream.write_all(&mine)?;
    stream.write_all(
        &setup
            .secret
            .proof("shm-maker", &[&setup.group, &hello, &mine]),
    )?;
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof)?;
    let rank = u32::from_le_bytes(hello[..4].try_into().expect("4 bytes"));
    let proven = verify(
        &setup.secret,
        "shm-peer",
        &[&setup.group, &hello, &mine],
        &proof,
    );
    if !proven || rank == 0 || rank >= setup.local_size {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let descriptors = [arena.memory().as_raw_fd()];
    sendmsg::<()>(
        stream.as_raw_fd(),
        &[io::IoSlice::new(b"m")],
        &[ControlMessage::ScmRights(&descriptors)],
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    Ok(rank)
}

fn fetch(setup: &ShmSetup) -> Result<Arc<Arena>, ShmSetupError> {
    let address = address(setup)?;
    loop {
        match UnixStream::connect_addr(&address).and_then(|stream| ask(setup, stream)) {
            Ok(memory) => return Ok(Arena::map(memory, setup.local_size)?),
            Err(last) if Instant::now() >= setup.deadline => {
                return Err(ShmSetupError::NoMaker { last });
            }
            // Not there yet; it binds once it has the world.
            Err(_) => std::thread::sleep(RETRY_PERIOD),
        }
    }
}

fn ask(setup: &ShmSetup, mut stream: UnixStream) -> io::Result<OwnedFd> {
    let left = setup.deadline.saturating_duration_since(Instant::now());
    stream.set_read_timeout(Some(left.max(RETRY_PERIOD)))?;
    stream.set_write_timeout(Some(left.max(RETRY_PERIOD)))?;
    let mut hello = [0; HELLO_BYTES];
    hello[..4].copy_from_slice(&setup.local_rank.to_le_bytes());
    hello[4..].copy_from_slice(&nonce()?);
    stream.write_all(&hello)?;
    let mut theirs = [0; NONCE_BYTES];
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut theirs)?;
    stream.read_exact(&mut proof)?;
    if !verify(
        &setup.secret,
        "shm-maker",
        &[&setup.group, &hello, &theirs],
        &proof,
    ) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.write_all(
        &setup
            .secret
            .proof("shm-peer", &[&setup.group, &hello, &theirs]),
    )?;
    receive_descriptor(&stream)
}

fn receive_descriptor(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = cmsg_space!([std::os::fd::RawFd; 1]);
    let mut buffers = [IoSliceMut::new(&mut byte)];
    let message = recvmsg::<()>(
        stream.as_raw_fd(),
        &mut buffers,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(descriptors) = control
            && let Some(descriptor) = descriptors.first()
        {
            // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
            return Ok(unsafe { OwnedFd::from_raw_fd(*descriptor) });
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

fn address(setup: &ShmSetup) -> io::Result<SocketAddr> {
    let name = setup.secret.proof("shm-name", &[&setup.group]);
    let hex: String = name[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    SocketAddr::from_abstract_name(format!("rlaunch-shm-{hex}"))
}

fn wait_readable(listener: &UnixListener, longest: Duration) -> io::Result<()> {
    use std::os::fd::AsFd;
    let mut entries = [nix::poll::PollFd::new(
        listener.as_fd(),
        nix::poll::PollFlags::POLLIN,
    )];
    let longest = nix::poll::PollTimeout::try_from(longest).unwrap_or(nix::poll::PollTimeout::MAX);
    match nix::poll::poll(&mut entries, longest) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(local_rank: u32, secret: &str, seconds: f64) -> ShmSetup {
        ShmSetup {
            secret: Secret::new(secret.as_bytes()),
            group: format!("test {}", std::process::id()).into_bytes(),
            local_rank,
            local_size: 2,
            slot_bytes: 4096,
            single_copy: SingleCopy::Pairs,
            deadline: Instant::now() + Duration::from_secs_f64(seconds),
        }
    }

    #[test]
    fn only_a_holder_of_the_secret_gets_the_memory() {
        std::thread::scope(|scope| {
            let maker = scope.spawn(|| setup(&group(0, "right", 10.0)));
            // Knows the name, not the secret.
            let right = group(1, "right", 10.0);
            let address = address(&right).unwrap();
            let stream = loop {
                if let Ok(stream) = UnixStream::connect_addr(&address) {
                    break stream;
                }
            };
            let wrong = ShmSetup {
                secret: Secret::new(b"wrong"),
                ..right.clone()
            };
            assert!(ask(&wrong, stream).is_err());
            setup(&right).unwrap();
            maker.join().unwrap().unwrap();
        });
    }

    #[test]
    fn an_absent_neighbour_is_named() {
        let error = setup(&ShmSetup {
            group: b"absent".to_vec(),
            ..group(0, "alone", 0.05)
        });
        assert!(matches!(error, Err(ShmSetupError::Missing { missing }) if missing == [1]));
    }
}
