//! From options as typed to a job as meant: done once, here, before any host is contacted.
//!
//! Reads what decides the job on this machine (hostfile, environment, directory) and nothing
//! else. What comes out needs no further check but those that only the hosts can answer. A file
//! for each kind of setting; [`resolve`] puts them together.

mod binding;
mod directory;
mod environment;
mod error;
mod hosts;
mod hosts_asked;
mod limits;
mod preload;
mod programs;
mod reap;
mod remote;
mod rendezvous;
mod scheduler;
mod streams;
#[cfg(test)]
mod tests;
mod topo;
mod value;

use std::path::PathBuf;

use rlaunch_plan::allocation::Allocation;
use rlaunch_plan::placement::{PlacementRequest, check_before_survey};
use rlaunch_plan::slurm::SlurmJob;
use rlaunch_remote::RemoteOptions;

use crate::cli::Options;

pub use crate::program::Program;
pub use binding::{BindTo, BindWish, Binding};
pub(crate) use environment::dropped_names;
pub use error::SettingsError;
pub use limits::Limits;
pub use preload::{Preload, PreloadPath};
pub use programs::ProgramSettings;
pub(crate) use programs::label as program_label;
pub use reap::{ReapSettings, resolve_reap};
pub use rendezvous::Rendezvous;
pub use streams::{StdinTo, Streams};
pub use topo::{LookedAt, TopoSettings, resolve_topo};

/// A job, as meant.
#[derive(Debug)]
pub struct Settings {
    pub allocation: Allocation,
    /// The job of a scheduler that this one runs inside of.
    pub slurm: Option<SlurmJob>,
    /// Of each program.
    pub placements: Vec<PlacementRequest>,
    /// At least one.
    pub programs: Vec<ProgramSettings>,
    pub binding: Binding,
    pub preload: Preload,
    pub streams: Streams,
    pub limits: Limits,
    pub remote: RemoteOptions,
    pub rendezvous: Rendezvous,
    pub display_map: bool,
    pub dry_run: bool,
    pub json: Option<Json>,
}

/// Where `--json` goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// The plan to stdout, a report to stderr.
    Standard,
    File(PathBuf),
}

impl Json {
    pub(crate) fn new(path: PathBuf) -> Self {
        match path.as_os_str().as_encoded_bytes() {
            b"-" => Self::Standard,
            _ => Self::File(path),
        }
    }
}

/// Notes are for the user, on stderr, whatever else happens.
pub fn resolve(mut options: Options, notes: &mut Vec<String>) -> Result<Settings, SettingsError> {
    let slurm = scheduler::slurm_job(options.hosts.scheduler)?;
    scheduler::leave_out_default_hosts(slurm.as_ref(), &mut options, notes);
    let typed: Vec<&Options> = std::iter::once(&options).chain(&options.others).collect();
    let mut programs = Vec::with_capacity(typed.len());
    let mut placements = Vec::with_capacity(typed.len());
    for (number, own) in typed.iter().enumerate() {
        let both = programs::program(own, slurm.is_some(), notes).and_then(|program| {
            let placement = programs::placement(own, options.hosts.oversubscribe)?;
            Ok((program, placement))
        });
        let label = (typed.len() > 1).then(|| programs::label(number, own));
        let (program, placement) = both.map_err(|error| match &label {
            Some(program) => SettingsError::InProgram {
                program: program.clone(),
                error: Box::new(error),
            },
            None => error,
        })?;
        programs.push(program);
        placements.push(PlacementRequest { label, ..placement });
    }
    let mut allocation = hosts::allocate(&typed, slurm.as_ref(), &mut placements, notes)?;
    remote::add_port(&options, &mut allocation)?;
    check_before_survey(&allocation, &placements)?;
    let streams = streams::streams(&options)?;
    let limits = limits::limits(&options)?;
    let remote = remote::remote(&options)?;
    if streams.stdin.is_some() && limits.max_restarts > 0 && !streams::input_is_a_file() {
        return Err(SettingsError::InputTwice);
    }
    Ok(Settings {
        binding: binding::binding(&options)?,
        preload: preload::preload(&typed, &programs)?,
        streams,
        limits,
        rendezvous: rendezvous::rendezvous(&options)?,
        remote,
        display_map: options.look.display_map,
        dry_run: options.look.dry_run,
        json: options.look.json.map(Json::new),
        allocation,
        placements,
        programs,
        slurm,
    })
}
