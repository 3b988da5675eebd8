//! Which hosts, and how many ranks on each: hostfile, `-H`, `--nnodes`, `-np`.

use std::path::Path;

use rlaunch_plan::allocation::{self, Allocation, HostListEntry};
use rlaunch_plan::hostfile;
use rlaunch_plan::placement::PlacementRequest;
use rlaunch_plan::slurm::SlurmJob;
use rlaunch_remote::is_this_machine;
use rlaunch_wire::limits::HOSTFILE_MAX_BYTES;

use super::SettingsError;
use super::programs::label;
use super::value::whole;
use crate::cli::Options;
use crate::files;

/// The hosts of the job; and those of each program that has its own, in `placements`.
pub(super) fn allocate(
    programs: &[&Options],
    slurm: Option<&SlurmJob>,
    placements: &mut [PlacementRequest],
) -> Result<Allocation, SettingsError> {
    let (first, others) = programs.split_first().expect("a job has a program");
    let names_hosts = |options: &&&Options| !options.hosts.host.is_empty();
    let own_file = |options: &&&Options| options.hosts.hostfile.is_some();
    let mut allocation = if others.is_empty()
        || !(programs.iter().any(|it| names_hosts(&it)) || others.iter().any(|it| own_file(&it)))
    {
        of_all(first, slurm)?
    } else {
        of_each(programs, slurm, placements)?
    };
    limit(first, &mut allocation)?;
    for choices in placements.iter_mut().filter_map(|it| it.hosts.as_mut()) {
        choices.retain(|choice| choice.host < allocation.hosts.len());
    }
    Ok(allocation)
}

/// Programs that share the hostfile of the first, if there is one, and take of it or beside it what
/// they name.
fn of_each(
    programs: &[&Options],
    slurm: Option<&SlurmJob>,
    placements: &mut [PlacementRequest],
) -> Result<Allocation, SettingsError> {
    let file = programs[0].hosts.hostfile.as_deref();
    let file = file.map(read_hostfile).transpose()?;
    let mut job = match (&file, slurm) {
        (Some(file), _) => Allocation::from_hostfile(file),
        (None, Some(slurm)) => slurm.allocation(),
        (None, None) => Allocation { hosts: Vec::new() },
    };
    fit(slurm, &mut job)?;
    let fixed = job.hosts.len();
    for (number, (options, placement)) in programs.iter().zip(placements).enumerate() {
        let named = |error| SettingsError::InProgram {
            program: label(number, options),
            error: Box::new(error),
        };
        let own = own_hosts(options, file.as_ref(), slurm, number > 0).map_err(named)?;
        placement.hosts = own.map(|own| job.join(fixed, own));
    }
    Ok(job)
}

/// What one of several programs names; none: it may use all hosts of the job.
fn own_hosts(
    options: &Options,
    of_the_job: Option<&hostfile::Hostfile>,
    slurm: Option<&SlurmJob>,
    may_have_file: bool,
) -> Result<Option<Allocation>, SettingsError> {
    let own = options.hosts.hostfile.as_deref().filter(|_| may_have_file);
    let own = own.map(read_hostfile).transpose()?;
    let mut hosts = if options.hosts.host.is_empty() {
        match &own {
            Some(own) => Allocation::from_hostfile(own),
            None => return Ok(None),
        }
    } else {
        let list = host_list(options)?;
        match own.as_ref().or(of_the_job) {
            Some(file) => Allocation::select(file, &list)?,
            None => by_list(&list, slurm)?,
        }
    };
    fit(slurm, &mut hosts)?;
    Ok(Some(hosts))
}

/// `-H` without a hostfile.
fn by_list(list: &[HostListEntry], slurm: Option<&SlurmJob>) -> Result<Allocation, SettingsError> {
    Ok(match slurm {
        Some(slurm) => slurm.select(list, is_this_machine)?,
        None => Allocation::from_list(list),
    })
}

/// Inside a scheduler's job, what the user names has to be of it.
fn fit(slurm: Option<&SlurmJob>, allocation: &mut Allocation) -> Result<(), SettingsError> {
    match slurm {
        Some(slurm) => Ok(slurm.fit(allocation, is_this_machine)?),
        None => Ok(()),
    }
}

fn of_all(options: &Options, slurm: Option<&SlurmJob>) -> Result<Allocation, SettingsError> {
    let file = options.hosts.hostfile.as_deref();
    let mut allocation = match (file, options.hosts.host.is_empty()) {
        (Some(path), true) => Allocation::from_hostfile(&read_hostfile(path)?),
        (Some(path), false) => Allocation::select(&read_hostfile(path)?, &host_list(options)?)?,
        (None, false) => by_list(&host_list(options)?, slurm)?,
        (None, true) => slurm.map_or_else(|| Allocation::local("localhost"), SlurmJob::allocation),
    };
    fit(slurm, &mut allocation)?;
    Ok(allocation)
}

/// What stands behind `-H`; deepspeed's `-H` is a file.
fn host_list(options: &Options) -> Result<Vec<HostListEntry>, SettingsError> {
    let list = options.hosts.host.join(",");
    allocation::parse_host_list(&list).map_err(|error| match Path::new(&list).is_file() {
        true => SettingsError::ListIsFile { list },
        false => error.into(),
    })
}

/// `--nnodes`
fn limit(options: &Options, allocation: &mut Allocation) -> Result<(), SettingsError> {
    if let Some(wanted) = whole("--nnodes", options.hosts.nnodes.as_deref())? {
        let (wanted, available) = (wanted as usize, allocation.hosts.len());
        if wanted == 0 {
            let value = wanted.to_string();
            return Err(SettingsError::Value {
                option: "--nnodes",
                value,
                problem: "asks for no hosts",
            });
        }
        if wanted > available {
            return Err(SettingsError::TooFewHosts { wanted, available });
        }
        allocation.hosts.truncate(wanted);
    }
    Ok(())
}

fn read_hostfile(path: &Path) -> Result<hostfile::Hostfile, SettingsError> {
    use std::io::Read;
    let unreadable = |error| SettingsError::HostfileUnreadable {
        path: path.to_owned(),
        error: files::why(path, error),
    };
    let mut bytes = Vec::new();
    // One byte more than allowed tells the parser that it is too long.
    std::fs::File::open(path)
        .and_then(|file| file.take(HOSTFILE_MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    Ok(hostfile::parse(&path.to_string_lossy(), &bytes)?)
}
