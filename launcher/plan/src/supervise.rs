//! Supervision: the pure state machine that decides how a running job ends.
//!
//! ```text
//!            first failure           300 ms, or all is over
//! Running ───────────────► Collecting ───────────────────► Ending ──► Done
//!    │  SIGINT, --timeout                                   ▲   │
//!    └──────────────────────────────────────────────────────┘   └ every host Finished, lost or
//!                                                                 given up (kill_after + grace)
//! ```
//! See [`Supervisor`] for the order of calls and the time rule, [`Event`] for what goes in,
//! [`Action`] for what comes out.

mod cause;
mod clock;
mod event;
mod machine;

pub use clock::ClockOffset;
pub use event::{Action, Ending, Event, HostSetup, LossKind, Settings};
pub use machine::Supervisor;
