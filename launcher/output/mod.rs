//! What ranks print, on this launcher's stdout and stderr.
//!
//! A [`Printer`] thread does the writing, so that a stalled terminal or pipe never stops the
//! heartbeats. Its queue is bounded by credit: an agent sends no more of a stream than was
//! granted, and credit comes back ([`Printed`]) only for what was written.
//!
//! * [`lines`] keeps lines whole across ranks and puts tags before them (pure);
//! * [`tail`] remembers each rank's last lines for the verdict (pure);
//! * [`printer`] is the thread.

mod lines;
mod printer;
mod stamp;
mod tail;

pub use lines::{Chunk, Style};
pub use printer::{Printed, Printer};
pub use tail::Tail;

/// Which of a rank's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}
