//! A pipe's or terminal's end, non-blocking, in the runtime.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tokio::io::unix::AsyncFd;

use crate::sys;

pub(crate) struct AsyncPipe(AsyncFd<OwnedFd>);

impl AsyncPipe {
    /// Only for descriptors whose description this process has alone: it becomes non-blocking.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        set_nonblocking(&fd)?;
        Ok(Self(sys::async_fd(fd)?))
    }

    /// Waits for bytes; 0 at the end. Nothing is lost if the future is dropped.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            if let Ok(read) = ready.try_io(|fd| read_once(fd.get_ref(), buffer)) {
                return read;
            }
        }
    }

    /// What is there now; none if nothing is.
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match read_once(self.0.get_ref(), buffer) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.writable().await?;
            let write = ready.try_io(|fd| Ok(nix::unistd::write(fd.get_ref(), bytes)?));
            if let Ok(written) = write {
                return written;
            }
        }
    }
}

/// A terminal whose last process is gone gives EIO for its end.
fn read_once(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    match nix::unistd::read(fd, buffer) {
        Ok(count) => Ok(count),
        Err(Errno::EIO) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    debug_assert!(fd.as_raw_fd() >= 0);
    Ok(())
}
