//! What happens when something goes wrong, and what is remembered for that moment.
//!
//! | file | what |
//! |---|---|
//! | `shared` | what of a communicator can be reached while a call holds the engine: abort, recorder |
//! | `recorder`, `clock` | the last operations, with times |
//! | `note` | its entries, as operations begin and end |
//! | `dump` | printing them: by a signal, or on an error |
//! | `others`, `ask` | what the others were doing, for errors, and how they tell it |
//! | `agreement` | survivors agree on who has failed (pure) |
//! | `shrink` | running that agreement, and the communicator that comes of it |
//! | `fork` | handles in a forked child are inert |

mod agreement;
mod ask;
pub(crate) mod clock;
mod dump;
pub(crate) mod fork;
mod note;
mod others;
mod recorder;
mod shared;
mod shrink;

pub(crate) use ask::Departure;
pub(crate) use dump::Logbook;
pub use dump::{CommunicatorRecord, FlightRecorder, RecorderSettings};
pub use others::{Doing, LastSeen, Others};
pub(crate) use recorder::{About, Slot};
pub use recorder::{OperationRecord, OperationState};
pub(crate) use shared::Shared;
pub(crate) use shrink::{BALLOT_BYTES_MAX, Ballots, NOT_ANSWERED};
