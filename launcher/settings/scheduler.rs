//! The scheduler's job that the launcher runs inside of, if any.

use rlaunch_plan::slurm::SlurmJob;

use super::SettingsError;
use crate::cli::{Options, Scheduler};

pub(super) fn slurm_job(which: Option<Scheduler>) -> Result<Option<SlurmJob>, SettingsError> {
    // An empty value is how a shell leaves out a variable.
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let job = match which.unwrap_or(Scheduler::Auto) {
        Scheduler::None => return Ok(None),
        Scheduler::Auto | Scheduler::Slurm => SlurmJob::read(&variable)?,
    };
    match (job, which) {
        (None, Some(Scheduler::Slurm)) => Err(SettingsError::NoSlurmJob),
        (job, _) => Ok(job),
    }
}

/// Hosts that a file of settings names for every job are not those that this one was given.
pub(super) fn leave_out_default_hosts(
    slurm: Option<&SlurmJob>,
    options: &mut Options,
    notes: &mut Vec<String>,
) {
    let Some(slurm) = slurm else { return };
    for name in ["hostfile", "host"] {
        let Some(origin) = options.origins.of(name).filter(|origin| origin.is_file()) else {
            continue;
        };
        notes.push(format!(
            "{origin}: `{name}` is not followed inside Slurm job {}",
            slurm.id
        ));
        match name {
            "hostfile" => options.hosts.hostfile = None,
            _ => options.hosts.host.clear(),
        }
    }
}
