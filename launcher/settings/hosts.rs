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
    notes: &mut Vec<String>,
) -> Result<Allocation, SettingsError> {
    let (first, others) = programs.split_first().expect("a job has a program");
    let names_hosts = |options: &&&Options| !options.hosts.host.is_empty();
    let own_file = |options: &&&Options| options.hosts.hostfile.is_some();
    let mut allocation = if others.is_empty()
        || !(programs.iter().any(|it| names_hosts(&it)) || others.iter().any(|it| own_file(&it)))
    {
        let oversubscribe = placements.first().is_some_and(|it| it.oversubscribe);
        of_all(first, slurm, oversubscribe, notes)?
    } else {
        of_each(programs, slurm, placements, notes)?
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
    notes: &mut Vec<String>,
) -> Result<Allocation, SettingsError> {
    let file = programs[0].hosts.hostfile.as_deref();
    let file = file.map(|path| read_hostfile(path, notes)).transpose()?;
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
        let within = Within {
            file: file.as_ref(),
            slurm,
            oversubscribe: placement.oversubscribe,
        };
        let own = own_hosts(options, &within, number > 0, notes).map_err(named)?;
        placement.hosts = own.map(|own| job.join(fixed, own));
    }
    Ok(job)
}

/// What bounds the hosts that a program names.
struct Within<'a> {
    file: Option<&'a hostfile::Hostfile>,
    slurm: Option<&'a SlurmJob>,
    oversubscribe: bool,
}

/// What one of several programs names; none: it may use all hosts of the job.
fn own_hosts(
    options: &Options,
    within: &Within<'_>,
    may_have_file: bool,
    notes: &mut Vec<String>,
) -> Result<Option<Allocation>, SettingsError> {
    let own = options.hosts.hostfile.as_deref().filter(|_| may_have_file);
    let own = own.map(|path| read_hostfile(path, notes)).transpose()?;
    let Within {
        file,
        slurm,
        oversubscribe,
    } = *within;
    let mut hosts = if options.hosts.host.is_empty() {
        match &own {
            Some(own) => Allocation::from_hostfile(own),
            None => return Ok(None),
        }
    } else {
        let list = host_list(options, notes)?;
        match own.as_ref().or(file) {
            Some(file) => Allocation::select(file, &list, oversubscribe)?,
            None => by_list(&list, slurm, oversubscribe)?,
        }
    };
    fit(slurm, &mut hosts)?;
    Ok(Some(hosts))
}

/// `-H` without a hostfile.
fn by_list(
    list: &[HostListEntry],
    slurm: Option<&SlurmJob>,
    oversubscribe: bool,
) -> Result<Allocation, SettingsError> {
    Ok(match slurm {
        Some(slurm) => slurm.select(list, oversubscribe, is_this_machine)?,
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

fn of_all(
    options: &Options,
    slurm: Option<&SlurmJob>,
    oversubscribe: bool,
    notes: &mut Vec<String>,
) -> Result<Allocation, SettingsError> {
    let file = options.hosts.hostfile.as_deref();
    let file = file.map(|path| read_hostfile(path, notes)).transpose()?;
    let mut allocation = match (&file, options.hosts.host.is_empty()) {
        (Some(file), true) => Allocation::from_hostfile(file),
        (Some(file), false) => {
            Allocation::select(file, &host_list(options, notes)?, oversubscribe)?
        }
        (None, false) => by_list(&host_list(options, notes)?, slurm, oversubscribe)?,
        (None, true) => slurm.map_or_else(|| Allocation::local("localhost"), SlurmJob::allocation),
    };
    fit(slurm, &mut allocation)?;
    Ok(allocation)
}

/// What stands behind `-H`; deepspeed's `-H` is a file.
fn host_list(
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<Vec<HostListEntry>, SettingsError> {
    let list = options.hosts.host.join(",");
    notes
        .extend(port_like(&list).map(|note| format!("-H {note}; -H has no ports, but --ssh-port")));
    allocation::parse_host_list(&list).map_err(|error| match Path::new(&list).is_file() {
        true => SettingsError::ListIsFile { list },
        false => error.into(),
    })
}

/// `--nnodes`
fn limit(options: &Options, allocation: &mut Allocation) -> Result<(), SettingsError> {
    let wanted = options.hosts.nnodes.as_deref();
    // torchrun's MIN:MAX. The same twice is a number.
    let wanted = match wanted.and_then(|text| text.split_once(':')) {
        Some((least, most)) if least == most => Some(least),
        Some(_) => {
            return Err(SettingsError::Value {
                option: "--nnodes",
                value: wanted.unwrap_or_default().to_owned(),
                problem: "a job has the same hosts from its start to its end\nhint: --nnodes N",
            });
        }
        None => wanted,
    };
    if let Some(wanted) = whole("--nnodes", wanted)? {
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

/// A number of slots that could be meant as sshd's port. Others that could are refused; this many cores
/// there are.
fn port_like(text: &str) -> Option<String> {
    let mut words = text.split(|letter: char| letter.is_ascii_whitespace() || letter == ',');
    let (word, name) = words.find_map(|word| Some((word, word.strip_suffix(":22")?)))?;
    Some(format!(
        "{word}: these are 22 slots; a port is written in a hostfile: {name} port=22"
    ))
}

fn read_hostfile(
    path: &Path,
    notes: &mut Vec<String>,
) -> Result<hostfile::Hostfile, SettingsError> {
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
    let file = hostfile::parse(&path.to_string_lossy(), &bytes)?;
    let note = port_like(&String::from_utf8_lossy(&bytes));
    notes.extend(note.map(|note| format!("{}: {note}", path.display())));
    Ok(file)
}
