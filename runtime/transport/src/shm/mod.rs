//! Shared memory between the ranks of one host.
//!
//! One memfd per host and job, mapped by all its ranks ([`Arena`]); nothing has a name in a file
//! system, so nothing stays behind. Per ordered pair of ranks a ring of header slots and a ring of
//! bytes ([`ShmConnection`]); per rank a doorbell ([`Doorbell`]) and slots for tiny collectives
//! ([`Flat`]). [`setup`] hands the memfd out over an abstract socket, after proof of the secret.

mod arena;
mod connection;
mod doorbell;
mod flat;
mod setup;

pub use arena::{Arena, State};
pub use connection::ShmConnection;
pub use doorbell::{Doorbell, Ticket};
pub use flat::{FLAT_BYTES_MAX, Flat};
pub use setup::{ShmSetup, ShmSetupError, setup};
