//! Environment: what a rank inherits from the launcher, and what it is told about itself.
//!
//! A host's login environment comes first (the agent has it), then the [`overlay`] of the
//! launcher's environment, sent once a host, then each rank's [`rank_variables`], which always
//! win. Everything travels as bytes, never through a shell.

mod export;
mod file;
mod host;
mod mask;
mod names;
mod overlay;
mod pattern;
mod rank;

pub use export::{Export, ExportError};
pub use file::{EnvFileError, parse_file};
pub use host::{host_variables, is_rdma_device};
pub use mask::{MASK, display_value, is_secret};
pub use overlay::{DropReason, Dropped, EnvironmentPolicy, Overlay, overlay};
pub use rank::{Master, Restarts, rank_variables};

/// A variable as it travels.
pub type Variable = (Vec<u8>, Vec<u8>);

#[cfg(test)]
mod tests;
