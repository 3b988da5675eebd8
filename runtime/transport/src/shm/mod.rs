//! Shared memory between the ranks of one host.
//!
//! One memfd per host and job, mapped by all its ranks ([`Arena`]); nothing has a name in a file
//! system, so nothing stays behind. Per ordered pair of ranks a ring of header slots and a ring of
//! bytes ([`ShmConnection`]); per rank a doorbell ([`Doorbell`]) and a zone to take memory from;
//! per communicator an area for its collectives ([`Team`]). [`setup`] hands the memfd out over an abstract socket, after proof of the secret.

mod arena;
mod available;
mod claims;
mod connection;
mod doorbell;
mod lines;
mod reach;
mod reference;
mod setup;
mod team;
mod zone;

pub use arena::{Arena, State};
pub use available::{Available, human};
pub use claims::{Claims, End, Pieces};
pub use connection::ShmConnection;
pub use doorbell::{Doorbell, Ticket};
pub(crate) use reach::OwnBuffer;
pub use reach::{Reach, SingleCopy};
pub use setup::{ShmSetup, ShmSetupError, setup};
pub use team::{DONE, Difference, FLAT_BYTES_MAX, SLOTS, Stage, Team};
pub use zone::Area;
