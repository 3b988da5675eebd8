//! What strangers, damaged wires and other versions may send: everything that parses bytes of others
//! is fed with valid messages, changed at random. Nothing may panic, hang or believe what is not
//! proven; what is understood must be what would be sent.
//!
//! A run is repeated by its seed. `RLAUNCH_GARBAGE_SECONDS` says how long each test goes on
//! (`cargo x check --deep` does); else it is a moment.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use prost::Message;
use rlaunch_transport::tcp::frame::{Chunk, Frame};
use rlaunch_transport::tcp::handshake::{
    Acceptor, Connector, Hello, Identity, Purpose, REPLY_BYTES, reply_is_proven,
};
use rlaunch_transport::{HEADER_BYTES, Header, Kind, NONCE_BYTES, Secret};
use rlaunch_wire::notice::{Disagreement, Failed, Notice, NoticeKind, Waiting, descriptor};
use rlaunch_wire::rank::{Join, ToAgent, ToAgentMessage, ToRank, ToRankMessage, Welcome, World};
use rlaunch_wire::{Collective, DType, Descriptor, Op};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// One to four changes: bits, bytes that matter in many formats, pieces cut, doubled, moved.
    fn change(&mut self, bytes: &mut Vec<u8>) {
        const TELLING: [u8; 8] = [0, 1, 0x7F, 0x80, 0xFF, 0xFE, b'\n', 0x0A];
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(6) {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                1 if !bytes.is_empty() => bytes[at] = TELLING[self.below(TELLING.len())],
                2 => bytes.truncate(at),
                3 => {
                    let piece = bytes[at..].to_vec();
                    bytes.extend_from_slice(&piece);
                    bytes.truncate(4096);
                }
                4 => bytes.insert(at, self.next() as u8),
                _ if !bytes.is_empty() => bytes.rotate_left(at),
                _ => {}
            }
        }
    }
}

/// Feeds each seed as it is, then changed ones for a while.
fn feed(name: &str, seeds: &[Vec<u8>], mut take: impl FnMut(&[u8])) {
    let seconds = std::env::var("RLAUNCH_GARBAGE_SECONDS").ok();
    let seconds = seconds.map_or(0.2, |text| text.parse().expect("RLAUNCH_GARBAGE_SECONDS"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut random = Random(1);
    let mut count = 0_u64;
    seeds.iter().for_each(|seed| take(seed));
    while Instant::now() < end {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        random.change(&mut bytes);
        take(&bytes);
        count += 1;
    }
    println!("{name}: {count} inputs");
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

#[test]
fn descriptors_are_understood_exactly_or_not_at_all() {
    let seeds = [
        call(Collective::AllReduce, Some(Op::Sum)),
        call(Collective::Send, None),
    ]
    .map(|call| call.encode().to_vec());
    feed("descriptor", &seeds, |bytes| {
        if let Some(call) = descriptor(bytes) {
            assert_eq!(call.encode(), bytes);
            let _ = call.to_string();
        }
    });
}

#[test]
fn message_headers_are_understood_exactly_or_not_at_all() {
    let header = Header {
        descriptor: call(Collective::Recv, None),
        length_bytes: 77,
        tag: 5,
        kind: Kind::Leave,
    };
    feed("header", &[header.encode().to_vec()], |bytes| {
        let Ok(bytes) = <&[u8; HEADER_BYTES]>::try_from(bytes) else {
            return;
        };
        if let Some(header) = Header::decode(bytes) {
            assert_eq!(&header.encode(), bytes);
        }
    });
}

#[test]
fn frames_are_understood_exactly_or_not_at_all() {
    let header = Header {
        descriptor: call(Collective::Send, None),
        length_bytes: 1 << 30,
        tag: 5,
        kind: Kind::Collective,
    };
    let chunk = Chunk {
        message: 7,
        offset: 1 << 20,
        length: 1 << 18,
    };
    let seeds = [
        Frame::Whole(header),
        Frame::Striped(header),
        Frame::Chunk(chunk),
    ];
    feed(
        "frame",
        &seeds.map(|frame| frame.encode().to_vec()),
        |bytes| {
            let Ok(bytes) = <&[u8; HEADER_BYTES]>::try_from(bytes) else {
                return;
            };
            if let Some(frame) = Frame::decode(bytes) {
                assert_eq!(&frame.encode(), bytes);
            }
        },
    );
}

#[test]
fn messages_between_rank_and_agent_survive_any_bytes() {
    let seeds = [
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
    ];
    feed("protobuf", &seeds, |bytes| {
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
    });
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

/// A stranger who says all that can be said without the secret is never let in, whatever follows.
#[test]
fn an_acceptor_believes_nobody_without_the_secret() {
    let hello = Hello {
        job: [9; 16],
        from: 1,
        to: 0,
        purpose: Purpose::Data,
        nonce: [5; NONCE_BYTES],
    };
    let mut conversation = hello.encode().to_vec();
    conversation.extend([0x33; 40]);
    let seeds = [conversation, b"GET / HTTP/1.1\r\n\r\n".to_vec(), Vec::new()];
    feed("acceptor", &seeds, |bytes| {
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
    });
}

#[test]
fn a_connector_believes_no_reply_without_the_secret() {
    let mut reply = b"rlaunch1".to_vec();
    reply.resize(REPLY_BYTES + 1, 0x44);
    feed("connector", &[reply, Vec::new()], |bytes| {
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
        let hello = [0; rlaunch_transport::tcp::handshake::HELLO_BYTES];
        if let Ok(reply) = bytes.try_into() {
            assert!(!reply_is_proven(&identity(0).secret, &hello, reply));
        }
    });
}
