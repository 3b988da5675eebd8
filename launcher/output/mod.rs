//! What ranks print: on this launcher's stdout and stderr, and in files of their own.
//!
//! ```text
//! Printer ──► files thread ──► stdout thread     credit ([`Printed::Bytes`]) comes back
//!   (chunks)  (--output-dir) └► stderr thread     from the last of them
//! ```
//! The threads do the writing, so that a stalled terminal or pipe never stops the heartbeats, and a
//! stalled stdout not what is said on stderr. Where both streams are one place (`2>&1`, a terminal),
//! one thread serves both. Queues are bounded by credit: an agent sends no more of a stream than was
//! granted, and credit comes back only for what was written.
//!
//! * [`lines`] keeps lines whole across ranks (pure), [`tags`] puts tags before them (pure);
//! * [`tail`] remembers each rank's last lines for the verdict (pure);
//! * [`only`] says which ranks are shown (pure);
//! * [`printer`] has the threads, [`target`] a descriptor that may be slow, full or gone, [`files`]
//!   the files, [`listing`] their names.

mod files;
mod lines;
mod listing;
mod only;
mod printer;
mod stamp;
mod tags;
mod tail;
mod target;

pub use files::{Files, FilesError};
pub use lines::Chunk;
pub use only::Only;
pub use printer::{Printed, Printer, Printing};
pub(crate) use stamp::stamp;
pub use tags::Style;
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

/// One stream of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source {
    pub rank: u32,
    pub stream: Stream,
}
