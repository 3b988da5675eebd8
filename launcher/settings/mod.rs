//! From options as typed to a job as meant: done once, here, before any host is contacted.
//!
//! Reads what decides the job on this machine (hostfile, environment, directory) and nothing
//! else. What comes out needs no further check but those that only the hosts can answer. A file
//! for each kind of setting; [`resolve`] puts them together.

mod directory;
mod environment;
mod error;
mod hosts;
mod limits;
mod remote;
mod rendezvous;
mod streams;
#[cfg(test)]
mod tests;
mod value;

use std::path::PathBuf;

use rlaunch_plan::allocation::Allocation;
use rlaunch_plan::environment::Overlay;
use rlaunch_plan::placement::{PlacementRequest, check_before_survey};
use rlaunch_remote::RemoteOptions;

use crate::cli::Options;
use crate::config::Config;

pub use crate::program::Program;
pub(crate) use environment::dropped_names;
pub use error::SettingsError;
pub use limits::Limits;
pub use rendezvous::Rendezvous;
pub use streams::Streams;

/// A job, as meant.
#[derive(Debug)]
pub struct Settings {
    pub allocation: Allocation,
    pub placement: PlacementRequest,
    pub program: Program,
    /// The launcher's environment as the hosts get it.
    pub overlay: Overlay,
    /// Absolute.
    pub directory: PathBuf,
    pub streams: Streams,
    pub limits: Limits,
    pub remote: RemoteOptions,
    pub rendezvous: Rendezvous,
    pub display_map: bool,
    pub dry_run: bool,
    pub json: bool,
}

/// Notes are for the user, on stderr, whatever else happens.
pub fn resolve(
    options: Options,
    config: Config,
    notes: &mut Vec<String>,
) -> Result<Settings, SettingsError> {
    let name = options
        .program
        .module
        .as_ref()
        .or(options.program.command.first());
    if name.is_some_and(|name| name.is_empty()) {
        return Err(SettingsError::NoProgram);
    }
    let placement = hosts::placement(&options)?;
    let mut allocation = hosts::allocate(&options, &config)?;
    remote::add_port(&options, &config, &mut allocation)?;
    check_before_survey(&allocation, std::slice::from_ref(&placement))?;
    Ok(Settings {
        streams: streams::streams(&options, &config, placement.ranks)?,
        limits: limits::limits(&options, &config)?,
        rendezvous: rendezvous::rendezvous(&options)?,
        remote: remote::remote(&options, &config),
        overlay: environment::overlay(&options, notes)?,
        directory: directory::directory(options.program.wdir.as_deref())?,
        display_map: options.look.display_map,
        dry_run: options.look.dry_run,
        json: options.look.json,
        program: Program::new(
            options.program.module,
            options.program.command,
            options.program.python.or(config.python),
        ),
        allocation,
        placement,
    })
}
