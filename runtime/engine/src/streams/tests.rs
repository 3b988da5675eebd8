//! Messages of one peer that arrive in parts, taken by the calls of two communicators.

use std::collections::VecDeque;
use std::ffi::c_short;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use rlaunch_transport::{Capabilities, OneSided, Sink};
use rlaunch_wire::{Collective, DType};

use super::*;
use crate::core::Peer;
use crate::{Config, Rank};

/// The peer whose messages are scripted.
const PEER: u32 = 1;

/// A message of which some bytes have come, and some were taken.
#[derive(Debug)]
struct Scripted {
    header: Header,
    payload: Vec<u8>,
    come: usize,
    taken: usize,
}

/// A connection whose peer sends what the test says, as far as it says.
#[derive(Debug, Clone, Default)]
struct Script(Arc<Mutex<VecDeque<Scripted>>>);

impl Script {
    fn sends(&self, descriptor: Descriptor, payload: &[u8], come: usize) {
        let header = Header {
            descriptor,
            length_bytes: payload.len() as u64,
            tag: 0,
            kind: Kind::Collective,
        };
        self.0.lock().unwrap().push_back(Scripted {
            header,
            payload: payload.to_vec(),
            come,
            taken: 0,
        });
    }

    /// The rest of all that was sent arrives.
    fn catches_up(&self) {
        for message in self.0.lock().unwrap().iter_mut() {
            message.come = message.payload.len();
        }
    }
}

impl Connection for Script {
    fn capabilities(&self) -> Capabilities {
        unreachable!("streams don't ask for these")
    }

    unsafe fn poll_send(&mut self, _: &mut Outgoing) -> Result<Progress, ConnectionError> {
        Ok(Progress::Idle)
    }

    fn poll_header(&mut self) -> Result<Option<Header>, ConnectionError> {
        Ok(self.0.lock().unwrap().front().map(|message| message.header))
    }

    unsafe fn poll_payload(
        &mut self,
        incoming: &mut Incoming,
    ) -> Result<Progress, ConnectionError> {
        let mut script = self.0.lock().unwrap();
        let message = script.front_mut().expect("its header was seen");
        let part = &message.payload[message.taken..message.come];
        // SAFETY: the sink is for the message's length, as the caller vouches.
        unsafe { incoming.feed(part.as_ptr(), part.len()) };
        message.taken = message.come;
        if message.taken < message.payload.len() {
            return Ok(Progress::Moved);
        }
        script.pop_front();
        Ok(Progress::Done)
    }

    fn wait_on(&self, _: bool, _: &mut Vec<(RawFd, c_short)>) -> bool {
        false
    }

    fn is_connected(&self) -> bool {
        true
    }

    fn stream(&self) -> Option<RawFd> {
        None
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        None
    }

    fn poll_close(&mut self) -> Result<Progress, ConnectionError> {
        Ok(Progress::Done)
    }
}

fn call(communicator: u32, sequence: u64) -> Descriptor {
    Descriptor {
        communicator,
        sequence,
        collective: Collective::Broadcast,
        dtype: DType::U8,
        op: None,
        root: PEER,
        digest: 0,
        count: 8,
    }
}

/// A rank, and the script of its one peer.
fn scripted() -> (Core, Script) {
    let (_, mut core) = crate::connect::connect(&Config::alone()).unwrap();
    let script = Script::default();
    let mut peer = Peer::new(Rank {
        rank: PEER,
        host: "script".into(),
        pid: 1,
    });
    peer.connection = Some(Box::new(script.clone()));
    core.peers.push(peer);
    (core, script)
}

/// Another communicator's call looks until the message at the head is on its way aside.
fn sets_aside(core: &mut Core) {
    for _ in 0..1000 {
        assert_eq!(core.arrival(PEER, &call(9, 0)), Ok(None));
        if core.peers[PEER as usize].stream.intake.is_some() {
            return;
        }
    }
    panic!("nothing goes aside");
}

/// What arrives for the call, taken to its end.
fn takes(core: &mut Core, call: &Descriptor) -> [u8; 8] {
    let header = core.arrival(PEER, call).unwrap();
    assert_eq!(header.map(|header| header.descriptor), Some(*call));
    let mut payload = [0; 8];
    let mut incoming = Incoming::new(Sink::Copy {
        to: payload.as_mut_ptr(),
        streaming: false,
    });
    // SAFETY: the script's payloads have 8 bytes, as has the sink.
    let progress = unsafe { core.take_part(PEER, &mut incoming, call) };
    assert_eq!(progress, Ok(Progress::Done));
    payload
}

#[test]
fn a_call_takes_what_is_still_on_its_way_aside_before_what_follows() {
    let (mut core, script) = scripted();
    let (first, second) = (call(7, 0), call(7, 1));
    script.sends(first, b"of first", 3);
    script.sends(second, b"ofsecond", 8);
    sets_aside(&mut core);
    // It begins now, and its message has not wholly come.
    assert_eq!(core.arrival(PEER, &first), Ok(None));
    script.catches_up();
    assert_eq!(&takes(&mut core, &first), b"of first");
    assert_eq!(&takes(&mut core, &second), b"ofsecond");
}

/// That nothing was there for the call before does not hide what is of another call.
#[test]
fn another_call_behind_what_went_aside_is_a_mismatch() {
    let (mut core, script) = scripted();
    let first = call(7, 0);
    script.sends(first, b"of first", 3);
    script.sends(call(7, 1), b"ofsecond", 8);
    sets_aside(&mut core);
    script.catches_up();
    let found = core.arrival(PEER, &call(7, 2));
    assert!(matches!(found, Err(Error::Mismatch { .. })), "{found:?}");
    assert_eq!(&takes(&mut core, &first), b"of first");
}
