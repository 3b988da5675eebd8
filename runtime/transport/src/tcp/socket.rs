//! Sockets as data connections need them.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use super::interfaces::Family;
use super::routes::Route;
use crate::ConnectionError;
use crate::shm::OwnBuffer;

/// As much as the kernel allows.
const BACKLOG: i32 = 4096;
/// A host that vanished is noticed this soon although nothing is being sent.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Listens for data on every interface (what it is reached by is the others' choice, and each
/// connection has to prove itself): on a free port of the range, or one of the system's choice.
pub fn listen(family: Family, ports: Option<&RangeInclusive<u16>>) -> io::Result<TcpListener> {
    let any_port = 0..=0;
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for port in ports.unwrap_or(&any_port).clone() {
        match listen_at(family, port) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    let Some(ports) = ports else {
        return Err(last);
    };
    let (low, high) = (ports.start(), ports.end());
    Err(io::Error::new(
        last.kind(),
        format!("no port of RLAUNCH_PORT_RANGE={low}-{high} is free on this host (last: {last})"),
    ))
}

fn listen_at(family: Family, port: u16) -> io::Result<TcpListener> {
    let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    match family {
        Family::V4 => bind(v4, false),
        Family::V6 => bind(v6, true),
        // A system without IPv6 has IPv4 alone.
        Family::Any => match bind(v6, false) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
            Err(_) => bind(v4, false),
            listener => listener,
        },
    }
}

fn bind(address: SocketAddr, only_v6: bool) -> io::Result<TcpListener> {
    let socket = new_socket(address.ip())?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    if address.port() != 0 {
        // Connections of an earlier job that linger must not keep a port of a small range.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Makes room for all who connect at once: whom a full queue drops tries again after a second.
pub fn lengthen_queue(listener: &TcpListener) -> io::Result<()> {
    socket2::SockRef::from(listener).listen(BACKLOG)
}

fn new_socket(address: IpAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(SocketAddr::from((address, 0)));
    Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
}

/// Starts to connect; [`is_connected`] tells how it went.
pub(super) fn begin_connect(route: &Route) -> io::Result<TcpStream> {
    let socket = new_socket(route.remote.ip())?;
    socket.set_nonblocking(true)?;
    // Given up, it is reset: the other side knows it from strangers by that. `tune` undoes it.
    socket.set_linger(Some(Duration::ZERO))?;
    if let Some((address, name)) = &route.local {
        // With two interfaces in one network the address alone doesn't choose the way out. Kernels
        // that want a privilege for it go by the address.
        let _ = socket.bind_device(Some(name.as_bytes()));
        socket.bind(&SockAddr::from(SocketAddr::from((*address, 0))))?;
    }
    match socket.connect(&SockAddr::from(route.remote)) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(socket.into())
}

pub(super) fn is_connected(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) if leads_to_itself(stream) => Err(io::ErrorKind::ConnectionRefused.into()),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether both ends of a connection are one socket. The system gives a socket that connects any free
/// port: where nobody listens on the port that it looks for, sooner or later that very one.
pub fn leads_to_itself(stream: &TcpStream) -> bool {
    match (stream.local_addr(), stream.peer_addr()) {
        (Ok(here), Ok(there)) => here == there,
        _ => false,
    }
}

/// What every established connection gets. Buffers stay the kernel's to size: set by hand they
/// stop following the link (4 MiB tripled the time of a 1 MiB all-reduce on loopback).
pub(super) fn tune(stream: &TcpStream, silence_max: Duration) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let socket = socket2::SockRef::from(stream);
    socket.set_linger(None)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE / 2)
        .with_retries(4);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(silence_max))
}

/// The socket takes no more bytes while as many wait to be sent. Without effect where the system
/// can't, as everything here works with deep queues too.
pub(super) fn limit_unsent_bytes(stream: &TcpStream, bytes: usize) {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(bytes);
}

/// How fast the peer's kernel has been acknowledging of late; 0 where the system can't tell.
pub(super) fn delivered_bytes_per_s(stream: &TcpStream) -> usize {
    // tcpi_delivery_rate in Linux's tcp_info, of which libc knows the beginning only.
    const RATE_AT: usize = 160;
    let mut info = [0u8; RATE_AT + 8];
    let mut length = info.len() as libc::socklen_t;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(stream);
    // SAFETY: the descriptor is open; the kernel writes at most `length` bytes and says how many.
    let result = unsafe {
        libc::getsockopt(
            descriptor,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 || (length as usize) < info.len() {
        return 0;
    }
    let rate = info[RATE_AT..].try_into().expect("eight bytes");
    usize::try_from(u64::from_ne_bytes(rate)).unwrap_or(usize::MAX)
}

/// Bytes that the peer's kernel has not yet acknowledged.
pub(super) fn unacknowledged_bytes(stream: &TcpStream) -> usize {
    let mut unsent: libc::c_int = 0;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(stream);
    // SAFETY: the descriptor is open and the kernel writes one int.
    let result = unsafe { libc::ioctl(descriptor, libc::TIOCOUTQ, &raw mut unsent) };
    if result == 0 { unsent as usize } else { 0 }
}

/// One vectored write that never raises SIGPIPE; `None` without room.
pub(super) fn send(
    stream: &TcpStream,
    head: &[u8],
    payload: &[u8],
) -> Result<Option<usize>, ConnectionError> {
    loop {
        let slices = [IoSlice::new(head), IoSlice::new(payload)];
        let socket = socket2::SockRef::from(stream);
        let slices = if payload.is_empty() {
            &slices[..1]
        } else {
            &slices
        };
        match socket.send_vectored_with_flags(slices, libc::MSG_NOSIGNAL) {
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(classify(error)),
        }
    }
}

/// `None` if nothing is there; an end of the stream is an error.
pub(super) fn receive(
    mut stream: &TcpStream,
    bytes: &mut [u8],
    then: &mut [u8],
) -> Result<Option<usize>, ConnectionError> {
    loop {
        let result = if then.is_empty() {
            stream.read(bytes)
        } else {
            stream.read_vectored(&mut [IoSliceMut::new(bytes), IoSliceMut::new(then)])
        };
        match result {
            Ok(0) => return Err(ConnectionError::Closed),
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(classify(error)),
        }
    }
}

/// A reset is how the kernel reports a process that died with bytes unread.
fn classify(error: io::Error) -> ConnectionError {
    if error.raw_os_error() == Some(libc::EFAULT) {
        return ConnectionError::Io(OwnBuffer.into());
    }
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ConnectionError::Closed,
        _ => ConnectionError::Io(error),
    }
}

/// True when the whole buffer is out.
pub(super) fn write_some(
    mut stream: &TcpStream,
    bytes: &[u8],
    sent: &mut usize,
) -> io::Result<bool> {
    while *sent < bytes.len() {
        match stream.write(&bytes[*sent..]) {
            Ok(count) => *sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// True when the whole buffer is filled; never reads past it.
pub(super) fn read_some(
    mut stream: &TcpStream,
    bytes: &mut [u8],
    received: &mut usize,
) -> io::Result<bool> {
    while *received < bytes.len() {
        match stream.read(&mut bytes[*received..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => *received += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it comes about by chance: the socket's own port is the one that it connects to.
    #[test]
    fn a_socket_connected_to_itself_is_nobody() {
        let socket = new_socket(Ipv4Addr::LOCALHOST.into()).unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any.into()).unwrap();
        socket.connect(&socket.local_addr().unwrap()).unwrap();
        let stream = TcpStream::from(socket);
        assert!(leads_to_itself(&stream));
        let error = is_connected(&stream).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let listener = TcpListener::bind(any).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!leads_to_itself(&stream) && is_connected(&stream).unwrap());
    }
}
