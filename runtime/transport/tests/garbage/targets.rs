//! Everything that parses bytes of others, with valid ones and what must hold of any: no panic, no
//! hang, no belief in what is not proven; what is understood is what would be sent.
//!
//! Used by the tests, which change bytes at random, and by the fuzzer (`runtime/transport/fuzz`), which
//! looks for inputs that take new ways.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use prost::Message;
use rlaunch_transport::tcp::frame::{Chunk, Frame};
use rlaunch_transport::tcp::handshake::{
    Acceptor, Connector, HELLO_BYTES, Hello, Identity, Purpose, REPLY_BYTES, reply_is_proven,
};
use rlaunch_transport::{HEADER_BYTES, Header, Kind, NONCE_BYTES, Secret};
use rlaunch_wire::notice::{
    Activity, Disagreement, Failed, Notice, NoticeKind, TimedOut, Waiting, descriptor,
};
use rlaunch_wire::rank::{Join, ToAgent, ToAgentMessage, ToRank, ToRankMessage, Welcome, World};
use rlaunch_wire::{Collective, DType, Descriptor, Op};

pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Valid ones.
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
    /// Found by the fuzzer; each line an input, in hexadecimal digits.
    pub(crate) found: &'static str,
    /// Panics where what must hold does not.
    pub(crate) take: fn(&[u8]),
}

macro_rules! target {
    ($constant:ident, $name:literal, $seeds:expr, $take:expr) => {
        pub(crate) const $constant: Target = Target {
            name: $name,
            seeds: $seeds,
            found: include_str!(concat!("../../fuzz/corpus/", $name, ".hex")),
            take: $take,
        };
    };
}
target!(DESCRIPTOR, "descriptor", descriptors, take_descriptor);
target!(HEADER, "header", headers, take_header);
target!(FRAME, "frame", frames, take_frame);
target!(MESSAGE, "message", messages, take_message);
target!(ACCEPTOR, "acceptor", hellos, take_hello);
target!(CONNECTOR, "connector", replies, take_reply);

#[allow(dead_code, reason = "the fuzzer's choice; tests name each")]
pub(crate) const ALL: [Target; 6] = [DESCRIPTOR, HEADER, FRAME, MESSAGE, ACCEPTOR, CONNECTOR];

impl Target {
    /// Valid ones and those that were found.
    pub(crate) fn known(&self) -> Vec<Vec<u8>> {
        let byte = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).expect("ASCII");
            u8::from_str_radix(digits, 16).expect("hexadecimal digits")
        };
        let input = |line: &str| line.as_bytes().chunks(2).map(byte).collect();
        let found = self.found.lines().map(input);
        (self.seeds)().into_iter().chain(found).collect()
    }
}

fn call(collective: Collective, op: Option<Op>) -> Descriptor {
    Descriptor {
        communicator: 3,
        sequence: 1 << 33,
        collective,
        dtype: DType::BF16,
        op,
        root: 2,
        digest: 0,
        count: 1 << 40,
    }
}

fn descriptors() -> Vec<Vec<u8>> {
    let calls = [
        call(Collective::AllReduce, Some(Op::Sum)),
        call(Collective::Send, None),
    ];
    calls.map(|call| call.encode().to_vec()).into()
}

fn take_descriptor(bytes: &[u8]) {
    if let Some(call) = descriptor(bytes) {
        assert_eq!(call.encode(), bytes);
        let _ = call.to_string();
    }
}

fn header(collective: Collective, kind: Kind) -> Header {
    Header {
        descriptor: call(collective, None),
        length_bytes: 1 << 30,
        tag: 5,
        kind,
    }
}

fn headers() -> Vec<Vec<u8>> {
    vec![header(Collective::Recv, Kind::Leave).encode().to_vec()]
}

fn take_header(bytes: &[u8]) {
    let Ok(bytes) = <&[u8; HEADER_BYTES]>::try_from(bytes) else {
        return;
    };
    if let Some(header) = Header::decode(bytes) {
        assert_eq!(&header.encode(), bytes);
    }
}

fn frames() -> Vec<Vec<u8>> {
    let header = header(Collective::Send, Kind::Collective);
    let chunk = Chunk {
        message: 7,
        offset: 1 << 20,
        length: 1 << 18,
    };
    let frames = [
        Frame::Whole(header),
        Frame::Striped(header),
        Frame::Chunk(chunk),
    ];
    frames.map(|frame| frame.encode().to_vec()).into()
}

fn take_frame(bytes: &[u8]) {
    let Ok(bytes) = <&[u8; HEADER_BYTES]>::try_from(bytes) else {
        return;
    };
    if let Some(frame) = Frame::decode(bytes) {
        assert_eq!(&frame.encode(), bytes);
    }
}

fn messages() -> Vec<Vec<u8>> {
    vec![
        ToAgent {
            message: Some(ToAgentMessage::Join(Join { card: vec![7; 90] })),
        }
        .encode_to_vec(),
        ToRank {
            message: Some(ToRankMessage::World(World {
                cards: vec![vec![1; 9], Vec::new()],
            })),
        }
        .encode_to_vec(),
        ToRank {
            message: Some(ToRankMessage::Welcome(Welcome {
                job_id: vec![1; 16],
                secret: vec![2; 32],
                world_size: 4,
                host: "node1".to_owned(),
            })),
        }
        .encode_to_vec(),
        Notice::encoded(NoticeKind::Waiting(Waiting {
            calls: vec![call(Collective::Barrier, None).encode().to_vec()],
            doing: vec![Activity {
                rank: 2,
                communicator: 65_537,
                how: 1,
                call: call(Collective::Recv, None).encode().to_vec(),
            }],
        })),
        Notice::encoded(NoticeKind::TimedOut(TimedOut {
            waited_ns: 5,
            missing: vec![1],
            others: vec![Activity::default(), Activity::default()],
            left_out: 3,
            ..TimedOut::default()
        })),
        Notice::encoded(NoticeKind::Disagreement(Disagreement {
            left_rank: 1,
            left: call(Collective::Scan, Some(Op::Max)).encode().to_vec(),
            right_rank: 2,
            right: vec![0; 32],
            detail: "more".into(),
        })),
        Notice::encoded(NoticeKind::Failed(Failed {
            rank: 1,
            cause: "killed".to_owned(),
            ..Failed::default()
        })),
    ]
}

fn take_message(bytes: &[u8]) {
    if let Ok(message) = ToAgent::decode(bytes) {
        assert_eq!(
            ToAgent::decode(&*message.encode_to_vec()).as_ref(),
            Ok(&message)
        );
    }
    if let Ok(message) = ToRank::decode(bytes) {
        assert_eq!(
            ToRank::decode(&*message.encode_to_vec()).as_ref(),
            Ok(&message)
        );
    }
    if let Ok(notice) = Notice::decode(bytes) {
        assert_eq!(
            Notice::decode(&*notice.encode_to_vec()).as_ref(),
            Ok(&notice)
        );
    }
}

fn identity(rank: u32) -> Identity {
    Identity {
        secret: Secret::new(b"of this job"),
        job: [9; 16],
        rank,
    }
}

fn connected() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    far.set_nonblocking(true)?;
    Ok((near, far))
}

fn hellos() -> Vec<Vec<u8>> {
    let hello = Hello {
        job: [9; 16],
        from: 1,
        to: 0,
        purpose: Purpose::Data,
        nonce: [5; NONCE_BYTES],
    };
    let mut conversation = hello.encode().to_vec();
    conversation.extend([0x33; 40]);
    vec![conversation, b"GET / HTTP/1.1\r\n\r\n".to_vec(), Vec::new()]
}

fn take_hello(bytes: &[u8]) {
    let (mut near, far) = connected().unwrap();
    near.write_all(bytes).unwrap();
    drop(near);
    let mut acceptor = Acceptor::new(far).unwrap();
    // Everything has arrived, and the end: few polls decide.
    let outcome = (0..1000).find_map(|_| match acceptor.poll(&identity(0)) {
        Ok(Some(hello)) => Some(Err(hello)),
        Ok(None) => {
            std::thread::yield_now();
            None
        }
        Err(error) => Some(Ok(error)),
    });
    assert!(matches!(outcome, Some(Ok(_))), "{bytes:?}: {outcome:?}");
}

fn replies() -> Vec<Vec<u8>> {
    let mut reply = b"rlaunch1".to_vec();
    reply.resize(REPLY_BYTES + 1, 0x44);
    vec![reply, Vec::new()]
}

fn take_reply(bytes: &[u8]) {
    let (near, mut far) = connected().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(false).unwrap();
    far.write_all(bytes).unwrap();
    far.shutdown(std::net::Shutdown::Write).unwrap();
    let mut connector = Connector::new(near, &identity(1), 0, Purpose::Data).unwrap();
    let outcome = (0..1000).find_map(|_| match connector.poll_reply(&identity(1)) {
        Ok(None) => {
            std::thread::yield_now();
            None
        }
        decided => Some(decided),
    });
    assert!(matches!(outcome, Some(Err(_))), "{bytes:?}: {outcome:?}");
    let hello = [0; HELLO_BYTES];
    if let Ok(reply) = bytes.try_into() {
        assert!(!reply_is_proven(&identity(0).secret, &hello, reply));
    }
}
