//! A descriptor that ranks' output is written to, and which may be slow, full or gone.
//!
//! * Slow: the write blocks, also where a program that shares the terminal has set it non-blocking.
//! * Nobody reads it any more (EPIPE): [`Printed::Closed`], once.
//! * A file whose disk or quota is full: told once, then waited for; credit stops meanwhile, so that
//!   nothing is lost and ranks that print much wait. Once the job is over, at most [`ROOM_WAIT_MAX`].
//! * Anything else, also a device that is full: [`Printed::Failed`], once.
//!
//! What is for a target that is closed or failed is dropped, and its credit still given back, so that
//! ranks can end; [`Target::conclude`] tells how much was dropped after a failure.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::write;
use rlaunch_agent::Standard;
use tokio::sync::mpsc::UnboundedSender;

use super::Stream;
use super::printer::Printed;

/// Between two looks for room.
const ROOM_POLL: Duration = Duration::from_millis(200);
/// For room on a full disk, after the job.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(5);

/// What the threads of one printer share.
#[derive(Debug, Clone)]
pub(super) struct Reports {
    pub(super) printed: UnboundedSender<Printed>,
    /// Nothing more comes.
    pub(super) closing: Arc<AtomicBool>,
}

impl Reports {
    pub(super) fn send(&self, printed: Printed) {
        // Nobody listens: the launcher is about to end.
        self.printed.send(printed).ok();
    }
}

#[derive(Debug)]
pub(super) struct Target {
    name: String,
    /// Which of the launcher's own streams it is, if one.
    stream: Option<Stream>,
    state: State,
    told_full: bool,
    lost_bytes: u64,
}

#[derive(Debug)]
enum State {
    Open,
    Closed,
    Failed,
}

impl Target {
    pub(super) fn new(name: impl Into<String>, stream: Option<Stream>) -> Self {
        Self {
            name: name.into(),
            stream,
            state: State::Open,
            told_full: false,
            lost_bytes: 0,
        }
    }

    /// Writes all, or drops the rest and has told why.
    pub(super) fn write(&mut self, to: BorrowedFd<'_>, data: &[u8], reports: &Reports) {
        match self.state {
            State::Open if self.was_closed() => return self.fail(Errno::EBADF, data, reports),
            State::Open => {}
            State::Closed => return,
            State::Failed => {
                self.lost_bytes += data.len() as u64;
                return;
            }
        }
        let mut rest = data;
        let mut give_up_at = None;
        while !rest.is_empty() {
            match write(to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    let mut waits = [PollFd::new(to, PollFlags::POLLOUT)];
                    poll(&mut waits, PollTimeout::NONE).ok();
                }
                Err(error @ (Errno::ENOSPC | Errno::EDQUOT)) if is_file(to) => {
                    self.tell_full(error, reports);
                    let is_over = reports.closing.load(Ordering::Relaxed);
                    let end = give_up_at.or(is_over.then(|| Instant::now() + ROOM_WAIT_MAX));
                    give_up_at = end;
                    if end.is_some_and(|end| end <= Instant::now()) {
                        return self.fail(error, rest, reports);
                    }
                    std::thread::sleep(ROOM_POLL);
                }
                Err(error) => return self.fail(error, rest, reports),
            }
        }
    }

    /// From the start (`>&-`), where what is written seems to arrive. `2>&-` is how people silence a
    /// program.
    fn was_closed(&self) -> bool {
        self.stream == Some(Stream::Stdout) && rlaunch_agent::was_closed(Standard::Stdout)
    }

    /// A failure that is not of a write: the file cannot be opened again.
    pub(super) fn fail(&mut self, error: Errno, rest: &[u8], reports: &Reports) {
        match self.stream {
            Some(stream) if error == Errno::EPIPE => {
                self.state = State::Closed;
                reports.send(Printed::Closed(stream));
            }
            _ => {
                self.state = State::Failed;
                self.lost_bytes += rest.len() as u64;
                let text = format!(
                    "{}: {}: what ranks print there is lost from here on; the job goes on",
                    self.name,
                    error.desc()
                );
                reports.send(Printed::Failed(text));
            }
        }
    }

    pub(super) fn conclude(self, reports: &Reports) {
        if self.lost_bytes > 0 {
            let text = format!(
                "{}: {} bytes could not be written",
                self.name, self.lost_bytes
            );
            reports.send(Printed::Lost(text));
        }
    }

    fn tell_full(&mut self, error: Errno, reports: &Reports) {
        if !std::mem::replace(&mut self.told_full, true) {
            let text = format!(
                "{}: {}: what ranks print waits for room, and so do they once it is much; nothing \
                 is lost yet",
                self.name,
                error.desc()
            );
            reports.send(Printed::Full(text));
        }
    }
}

/// Of a file room may be made; a device stays full.
fn is_file(fd: BorrowedFd<'_>) -> bool {
    fstat(fd).is_ok_and(|found| {
        SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
    })
}
