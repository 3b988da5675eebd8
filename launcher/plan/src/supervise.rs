//! Supervision: the pure state machine that decides how a running job ends.
//!
//! ```text
//!            first failure           300 ms, or a signal, or --timeout
//! Running ───────────────► Collecting ───────────────────► Ending ──► Done
//!    │  signal, --timeout                                   ▲   │
//!    └──────────────────────────────────────────────────────┘   └ every host Finished, lost or
//!                                                                 given up
//! ```
//! - A *failure* is a rank that ends with anything but 0, that was never started, whose host was
//!   lost, or whose agent broke. Peers are told at once; the others are ended 300 ms later, after
//!   the reports that were under way have come, and the earliest on one common clock is the cause.
//!   A rank that returns 0 while others run is no failure.
//! - With `--on-failure continue` the others are told and go on; the first failure is still the
//!   cause that the verdict names once they have ended.
//! - Ranks that the others have shut out, or that are stopped, and that alone are left are ended
//!   after `kill_after`.
//! - *Ending* sends TERM; agents send KILL after `kill_after`. A host that has not said how its
//!   ranks ended [`GRACE`](limits::GRACE) after that is given up. A signal of the user sends KILL
//!   at once, one more stops the waiting.
//! - Ranks that do not run by `start_timeout` end the job, and are named.
//! - Whoever is *silent* is warned of after 5 s and lost after `host_timeout`, at any stage.
//!
//! See [`Supervisor`] for the order of calls and the time rule, [`Event`] for what goes in,
//! [`Action`] for what comes out.

mod choose;
mod clock;
mod ending;
mod event;
mod limits;
mod machine;
mod printed;
mod reports;
mod shut_out;
mod silence;
mod starting;
mod state;

pub use clock::ClockOffset;
pub use event::{Action, Ending, Event, HostSetup, Limit, LossKind, OnFailure, Settings, Words};
pub use limits::{COLLECT, GRACE, SILENCE_WARNING};
pub use machine::Supervisor;

#[cfg(test)]
mod tests;
