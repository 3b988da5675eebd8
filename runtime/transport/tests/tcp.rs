//! How TCP connections come about: when first needed, with the right peer only, and untouched by
//! whoever else knocks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{
    LOOPBACK_V4, at, bytes, connected, deadline, endpoint, header, next_header, peer, receive,
    send, unconnected,
};
use rlaunch_transport::tcp::handshake::{Hello, Purpose};
use rlaunch_transport::tcp::{Family, TcpConnection, listen};
use rlaunch_transport::{Connection, ConnectionError, Incoming, Outgoing, Progress, Sink};

#[test]
fn nothing_is_connected_before_it_is_needed() {
    let (mut one, mut other) = unconnected(LOOPBACK_V4, 1);
    for _ in 0..10 {
        assert!(one.poll_header().unwrap().is_none());
        assert!(other.poll_header().unwrap().is_none());
    }
    assert!(!one.is_connected() && !other.is_connected());
    assert_eq!(one.poll_close().unwrap(), Progress::Done);
}

/// Who looks for a message, then sends, then sleeps, must have begun to connect: nothing else will
/// wake it.
#[test]
fn a_sender_that_has_just_looked_connects_before_it_sleeps() {
    let (mut one, _other) = unconnected(LOOPBACK_V4, 1);
    let mut idle = Vec::new();
    one.wait_on(true, &mut idle);
    for _ in 0..1000 {
        assert!(one.poll_header().unwrap().is_none());
        let payload = [7u8];
        let mut message = Outgoing::new(header(0, 1), payload.as_ptr());
        // SAFETY: the payload outlives the message.
        let sent = unsafe { one.poll_send(&mut message) }.unwrap();
        assert_eq!(sent, Progress::Idle);
        let mut on = Vec::new();
        one.wait_on(true, &mut on);
        assert!(on.len() > idle.len(), "sleeps on {on:?} only");
    }
}

/// Both send first, over and over: one socket must come of it, and no byte be lost.
#[test]
fn two_ranks_that_connect_at_once_share_one_socket() {
    for round in 0..40 {
        let (one, other) = unconnected(LOOPBACK_V4, 1);
        std::thread::scope(|scope| {
            for (mut connection, me) in [(one, 0u8), (other, 1u8)] {
                scope.spawn(move || {
                    send(&mut connection, header(0, 1), &[me]);
                    next_header(&mut connection);
                    let mut place = [9u8];
                    let (to, streaming) = (place.as_mut_ptr(), false);
                    receive(&mut connection, Sink::Copy { to, streaming });
                    assert_eq!(place, [1 - me], "round {round}");
                    assert_eq!(connection.sockets(), 1, "round {round}");
                    let deadline = deadline();
                    while connection.poll_close().unwrap() != Progress::Done {
                        assert!(Instant::now() < deadline);
                    }
                });
            }
        });
    }
}

#[test]
fn further_sockets_are_made_for_large_messages_only() {
    let (mut one, mut other) = connected(LOOPBACK_V4, 4);
    let mut exchange = |length: usize, enough: usize| {
        let payload = bytes(length, 3);
        let deadline = deadline();
        for _ in 0..1000 {
            let mut message = Outgoing::new(header(0, length), payload.as_ptr());
            let mut place = vec![0u8; length];
            let (to, streaming) = (place.as_mut_ptr(), false);
            let mut incoming = Incoming::new(Sink::Copy { to, streaming });
            let (mut sent, mut received) = (false, false);
            while !(sent && received) {
                assert!(Instant::now() < deadline);
                // SAFETY: the payload outlives the loop and has the header's length.
                sent = sent || unsafe { one.poll_send(&mut message) }.unwrap() == Progress::Done;
                if !received && other.poll_header().unwrap().is_some() {
                    // SAFETY: the place has room for the message.
                    let progress = unsafe { other.poll_payload(&mut incoming) }.unwrap();
                    received = progress == Progress::Done;
                }
            }
            assert!(place == payload);
            if one.sockets() >= enough && other.sockets() >= enough {
                break;
            }
        }
        (one.sockets(), other.sockets())
    };
    assert_eq!(exchange(1000, 2), (1, 1));
    assert_eq!(exchange(1_000_000, 4), (4, 4));
}

/// Rank 2 tries an address of rank 1 first when it wants rank 0, as on two hosts with one docker0.
#[test]
fn a_wrong_rank_at_an_address_is_found_out_and_the_next_one_tried() {
    let (zero, one, two) = (endpoint(0, b"s"), endpoint(1, b"s"), endpoint(2, b"s"));
    let addresses = [
        at(&one, LOOPBACK_V4),
        at(&two, LOOPBACK_V4),
        at(&zero, LOOPBACK_V4),
    ];
    let to_two = peer(2, &[at(&two, LOOPBACK_V4)], 1);
    let mut here = TcpConnection::new(two.clone(), peer(0, &addresses, 1));
    let mut there = TcpConnection::new(zero.clone(), to_two);
    let deadline = deadline();
    while here.poll_connect().unwrap() != Progress::Done {
        assert!(Instant::now() < deadline);
        one.poll();
        zero.poll();
    }
    while !there.is_connected() {
        assert!(Instant::now() < deadline);
        assert!(there.poll_header().unwrap().is_none());
    }
}

#[test]
fn strangers_at_the_data_port_change_nothing() {
    let (zero, one) = (endpoint(0, b"right"), endpoint(1, b"right"));
    let at_zero = at(&zero, LOOPBACK_V4);
    // More silent ones than there are places, garbage, and a rank of another job.
    let silent: Vec<_> = (0..300)
        .map(|_| TcpStream::connect(at_zero).unwrap())
        .collect();
    let mut garbage = TcpStream::connect(at_zero).unwrap();
    garbage.write_all(&[7; 500]).unwrap();
    let wrong = endpoint(1, b"wrong");
    let mut wrong = TcpConnection::new(wrong, peer(0, &[at_zero], 1));
    let mut right = TcpConnection::new(one, peer(0, &[at_zero], 1));
    let mut there = TcpConnection::new(zero, peer(1, &[], 1));
    let deadline = deadline();
    while right.poll_connect().unwrap() != Progress::Done || !there.is_connected() {
        assert!(Instant::now() < deadline);
        assert_eq!(wrong.poll_connect().unwrap(), Progress::Idle);
        assert!(there.poll_header().unwrap().is_none());
    }
    assert!(!wrong.is_connected());
    drop(silent);
}

/// A peer tries several addresses, and gives attempts up at any stage: when another has answered, when
/// its program ends. None of that is worth a line; whoever else knocks is.
#[test]
fn strangers_are_told_of_and_attempts_given_up_are_not() {
    let zero = endpoint(0, b"s");
    let at_zero = at(&zero, LOOPBACK_V4);
    let settle = || {
        for _ in 0..50 {
            zero.poll();
            std::thread::sleep(Duration::from_millis(1));
        }
        zero.strangers()
    };
    for polls in [1, 2, 3, 10] {
        let mut given_up = TcpConnection::new(endpoint(1, b"s"), peer(0, &[at_zero], 1));
        for _ in 0..polls {
            assert_eq!(given_up.poll_connect().unwrap(), Progress::Idle);
            std::thread::sleep(Duration::from_millis(1));
        }
        if polls == 10 {
            zero.poll();
        }
        drop(given_up);
        assert_eq!(settle(), 0, "after {polls} polls");
    }
    // Of this job, but it looks for rank 2: as where two hosts have the same address.
    let mut astray = TcpConnection::new(endpoint(1, b"s"), peer(2, &[at_zero], 1));
    for _ in 0..10 {
        assert_eq!(astray.poll_connect().unwrap(), Progress::Idle);
        assert_eq!(settle(), 0);
    }
    drop(TcpStream::connect(at_zero).unwrap());
    assert_eq!(settle(), 1);
    let mut garbage = TcpStream::connect(at_zero).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    assert_eq!(settle(), 2);
    let hello = Hello {
        job: [77; 16],
        from: 1,
        to: 0,
        purpose: Purpose::Data,
        nonce: [5; 16],
    };
    let mut of_another_job = TcpStream::connect(at_zero).unwrap();
    of_another_job.write_all(&hello.encode()).unwrap();
    assert_eq!(settle(), 3);
}

#[test]
fn who_can_not_be_reached_is_an_error_with_the_addresses() {
    let closed = at(&endpoint(1, b"s"), LOOPBACK_V4);
    let mut connection = TcpConnection::new(endpoint(0, b"s"), peer(1, &[closed], 1));
    let deadline = deadline();
    let error = loop {
        assert!(Instant::now() < deadline);
        match connection.poll_connect() {
            Ok(progress) => assert_eq!(progress, Progress::Idle),
            Err(error) => break error,
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let text = error.to_string();
    assert!(
        matches!(error, ConnectionError::Unreachable { .. }),
        "{text}"
    );
    assert!(
        text.contains(&closed.to_string()) && text.contains("refused"),
        "{text}"
    );
}

#[test]
fn a_peer_that_ends_is_an_error() {
    let (one, mut other) = connected(LOOPBACK_V4, 1);
    drop(one);
    let deadline = deadline();
    let error = loop {
        assert!(Instant::now() < deadline);
        if let Err(error) = other.poll_header() {
            break error;
        }
    };
    assert!(matches!(error, ConnectionError::Closed), "{error}");
}

/// Three ranks may listen on three ports, and a fourth is told which are taken.
#[test]
fn only_ports_of_the_range_are_listened_on() {
    let free = listen(Family::Any, None)
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let range = free..=free.saturating_add(2);
    let mut listeners = Vec::new();
    let error = loop {
        match listen(Family::Any, Some(&range)) {
            Ok(listener) => listeners.push(listener),
            Err(error) => break error.to_string(),
        }
        assert!(listeners.len() <= 3);
    };
    for listener in &listeners {
        assert!(range.contains(&listener.local_addr().unwrap().port()));
    }
    let text = format!("RLAUNCH_PORT_RANGE={}-{}", range.start(), range.end());
    assert!(!listeners.is_empty() && error.contains(&text), "{error}");
}
