//! A port that is taken and yet free for the one program that is meant to have it.

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv6V6Only, ReuseAddr};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, SockaddrStorage, bind, getsockname,
    setsockopt, socket,
};
use std::net::{SocketAddrV4, SocketAddrV6};

#[derive(Debug, thiserror::Error)]
pub(crate) enum HoldError {
    #[error(
        "port {port} is in use on this host, so it can't be MASTER_PORT: another job or a \
         leftover of one; `ss -ltnp 'sport = :{port}'` names it"
    )]
    InUse { port: u32 },
    #[error("{0} is no port")]
    NoPort(u32),
    #[error("holding port {port} for MASTER_PORT: {source}")]
    Bind { port: u32, source: io::Error },
    #[error("listening for the other hosts' probe: {0}")]
    Probe(io::Error),
}

/// The held port; free again when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    _socket: OwnedFd,
    port: u16,
}

impl Held {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// Takes `port`, or any if it is 0, on every address.
pub(crate) fn hold(port: u32) -> Result<Held, HoldError> {
    let number = u16::try_from(port).map_err(|_| HoldError::NoPort(port))?;
    match hold_family(AddressFamily::Inet6, number) {
        // A machine without IPv6.
        Err(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL) => hold_family(AddressFamily::Inet, number),
        held => held,
    }
    .map_err(|error| match error {
        Errno::EADDRINUSE => HoldError::InUse { port },
        error => HoldError::Bind {
            port,
            source: error.into(),
        },
    })
}

fn hold_family(family: AddressFamily, port: u16) -> Result<Held, Errno> {
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    if family == AddressFamily::Inet6 {
        // Both families.
        setsockopt(&socket, Ipv6V6Only, &false)?;
        let any = SocketAddrV6::new(std::net::Ipv6Addr::UNSPECIFIED, port, 0, 0);
        bind(fd(&socket), &SockaddrIn6::from(any))?;
    } else {
        let any = SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, port);
        bind(fd(&socket), &SockaddrIn::from(any))?;
    }
    // Only now: a bind with the option could share the port with another holder.
    setsockopt(&socket, ReuseAddr, &true)?;
    let bound: SockaddrStorage = getsockname(fd(&socket))?;
    let port = match (bound.as_sockaddr_in6(), bound.as_sockaddr_in()) {
        (Some(v6), _) => v6.port(),
        (None, Some(v4)) => v4.port(),
        (None, None) => return Err(Errno::EAFNOSUPPORT),
    };
    Ok(Held {
        _socket: socket,
        port,
    })
}

fn fd(socket: &OwnedFd) -> i32 {
    use std::os::fd::AsRawFd;
    socket.as_raw_fd()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use nix::sys::socket::{Backlog, listen};

    use super::*;

    /// As torch's store: SO_REUSEADDR, bind, listen.
    fn store(family: AddressFamily, port: u16) -> Result<OwnedFd, Errno> {
        let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        setsockopt(&socket, ReuseAddr, &true)?;
        if family == AddressFamily::Inet6 {
            let any = SocketAddrV6::new(std::net::Ipv6Addr::UNSPECIFIED, port, 0, 0);
            bind(fd(&socket), &SockaddrIn6::from(any))?;
        } else {
            let any = SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, port);
            bind(fd(&socket), &SockaddrIn::from(any))?;
        }
        listen(&socket, Backlog::new(8).unwrap())?;
        Ok(socket)
    }

    #[test]
    fn torchs_store_can_bind_a_held_port_of_either_family() {
        for family in [AddressFamily::Inet6, AddressFamily::Inet] {
            let held = hold(0).unwrap();
            let refused = TcpStream::connect(("127.0.0.1", held.port())).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            let store = store(family, held.port()).unwrap();
            TcpStream::connect(("127.0.0.1", held.port())).unwrap();
            drop(store);
            // And once more: a store that is restarted, with a connection in TIME_WAIT.
            TcpStream::connect(("127.0.0.1", held.port())).unwrap_err();
        }
    }

    #[test]
    fn a_program_without_the_option_cannot_take_a_held_port() {
        let held = hold(0).unwrap();
        let socket = socket(
            AddressFamily::Inet,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC,
            None,
        );
        let socket = socket.unwrap();
        let any = SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, held.port());
        assert_eq!(
            bind(fd(&socket), &SockaddrIn::from(any)),
            Err(Errno::EADDRINUSE)
        );
    }

    #[test]
    fn a_port_in_use_is_named_with_what_to_do() {
        for address in ["0.0.0.0", "127.0.0.1"] {
            let other = TcpListener::bind((address, 0)).unwrap();
            let port = u32::from(other.local_addr().unwrap().port());
            let error = hold(port).unwrap_err().to_string();
            assert!(error.contains(&format!("port {port} is in use")), "{error}");
        }
        assert!(matches!(hold(70_000), Err(HoldError::NoPort(70_000))));
    }

    #[test]
    fn a_named_port_is_held_and_free_again_after() {
        let port = hold(0).unwrap().port();
        let held = hold(port.into()).unwrap();
        assert_eq!(held.port(), port);
        assert!(matches!(hold(port.into()), Err(HoldError::InUse { .. })));
        drop(held);
        hold(port.into()).unwrap();
    }
}
