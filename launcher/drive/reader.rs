//! Whether somebody still reads our stdout: `rlaunch … | head -1` ends when head does, not when a
//! rank happens to print again.
//!
//! Only a pipe tells. What is written to it later fails all the same; this is but sooner.

use std::io::stdout;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};
use tokio::sync::oneshot;

pub(super) struct Reader(Option<oneshot::Receiver<()>>);

impl Reader {
    /// The thread that looks ends with the reader, or with the process.
    pub(super) fn of_stdout() -> std::io::Result<Self> {
        let kind = fstat(stdout()).map(|found| SFlag::from_bits_truncate(found.st_mode));
        if kind.is_ok_and(|kind| kind & SFlag::S_IFMT != SFlag::S_IFIFO) {
            return Ok(Self(None));
        }
        let (sender, gone) = oneshot::channel();
        let watch = move || {
            let stdout = stdout();
            // No event is asked for: what is told anyway is that the other end is closed.
            let mut pipe = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
            while poll(&mut pipe, PollTimeout::NONE) == Err(Errno::EINTR) {}
            sender.send(()).ok();
        };
        std::thread::Builder::new()
            .name("stdout-reader".into())
            .spawn(watch)?;
        Ok(Self(Some(gone)))
    }

    /// When nobody does any more; once. Cancel safe.
    pub(super) async fn gone(&mut self) {
        if let Some(gone) = &mut self.0 {
            // Without an answer the thread has panicked, and a write will tell.
            let told = gone.await;
            self.0 = None;
            if told.is_ok() {
                return;
            }
        }
        std::future::pending().await
    }
}
