//! A port that is taken and yet free for the one program that is meant to have it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv6V6Only, ReuseAddr};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, SockaddrStorage, bind, getsockname,
    setsockopt, socket,
};

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
    _mark: Option<UnixListener>,
}

impl Held {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// Takes `port`, or any if it is 0, on every address.
pub(crate) fn hold(port: u32) -> Result<Held, HoldError> {
    let number = u16::try_from(port).map_err(|_| HoldError::NoPort(port))?;
    let (socket, mark) = match bind_alone(number) {
        Ok(socket) => (socket, None),
        Err(Errno::EADDRINUSE) => {
            let (socket, mark) = after_time_wait(number).ok_or(HoldError::InUse { port })?;
            (socket, Some(mark))
        }
        Err(error) => {
            return Err(HoldError::Bind {
                port,
                source: error.into(),
            });
        }
    };
    let bind_error = |error: Errno| HoldError::Bind {
        port,
        source: error.into(),
    };
    // Only now: a bind with the option could share the port with another holder.
    setsockopt(&socket, ReuseAddr, &true).map_err(bind_error)?;
    let port = bound_port(&socket).map_err(bind_error)?;
    Ok(Held {
        _socket: socket,
        port,
        _mark: mark.or_else(|| mark_held(port).ok()),
    })
}

fn bind_alone(port: u16) -> Result<OwnedFd, Errno> {
    bind_any(port, |_| Ok(()))
}

/// The port of a job that has just ended may be busy with closed connections for a minute. The
/// option gets past them, and past nobody who listens; but it would also get past another holder,
/// who is therefore known by a mark: an abstract socket, which has the port's network namespace.
fn after_time_wait(port: u16) -> Option<(OwnedFd, UnixListener)> {
    let mark = mark_held(port).ok()?;
    let socket = bind_any(port, |socket| setsockopt(socket, ReuseAddr, &true)).ok()?;
    Some((socket, mark))
}

fn mark_held(port: u16) -> io::Result<UnixListener> {
    let name = format!("rlaunch-master-port-{port}");
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Every address of both families, or of IPv4 on a machine without IPv6.
fn bind_any(port: u16, prepare: impl Fn(&OwnedFd) -> Result<(), Errno>) -> Result<OwnedFd, Errno> {
    match bind_family(AddressFamily::Inet6, port, &prepare) {
        Err(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL) => {
            bind_family(AddressFamily::Inet, port, &prepare)
        }
        bound => bound,
    }
}

fn bind_family(
    family: AddressFamily,
    port: u16,
    prepare: impl Fn(&OwnedFd) -> Result<(), Errno>,
) -> Result<OwnedFd, Errno> {
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    prepare(&socket)?;
    if family == AddressFamily::Inet6 {
        setsockopt(&socket, Ipv6V6Only, &false)?;
        let any = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0);
        bind(fd(&socket), &SockaddrIn6::from(any))?;
    } else {
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
        bind(fd(&socket), &SockaddrIn::from(any))?;
    }
    Ok(socket)
}

fn bound_port(socket: &OwnedFd) -> Result<u16, Errno> {
    let bound: SockaddrStorage = getsockname(fd(socket))?;
    match (bound.as_sockaddr_in6(), bound.as_sockaddr_in()) {
        (Some(v6), _) => Ok(v6.port()),
        (None, Some(v4)) => Ok(v4.port()),
        (None, None) => Err(Errno::EAFNOSUPPORT),
    }
}

fn fd(socket: &OwnedFd) -> i32 {
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
            let any = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0);
            bind(fd(&socket), &SockaddrIn6::from(any))?;
        } else {
            let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
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
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, held.port());
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
    fn a_port_with_closed_connections_alone_can_be_held_again() {
        let held = hold(0).unwrap();
        let port = held.port();
        let store = store(AddressFamily::Inet, port).unwrap();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let accepted = nix::sys::socket::accept(&store).unwrap();
        // The server's side closes first, and so stays in TIME_WAIT.
        drop(accepted);
        drop((client, store, held));
        let held = hold(port.into()).unwrap();
        assert!(
            matches!(hold(port.into()), Err(HoldError::InUse { .. })),
            "held by another"
        );
        drop(held);
        let listener = TcpListener::bind(("0.0.0.0", port)).unwrap();
        assert!(
            matches!(hold(port.into()), Err(HoldError::InUse { .. })),
            "listened on"
        );
        drop(listener);
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
