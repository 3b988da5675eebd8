//! From options as typed to a job as meant: done once, here, before any host is contacted.
//!
//! Reads what decides the job on this machine (hostfile, environment, directory) and nothing
//! else. What comes out needs no further check but those that only the hosts can answer.

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rlaunch_plan::allocation::{self, Allocation, AllocationError};
use rlaunch_plan::environment::{
    self, DropReason, EnvironmentPolicy, Export, ExportError, Overlay,
};
use rlaunch_plan::hostfile::{self, HostfileError};
use rlaunch_plan::placement::{PlacementError, PlacementRequest, check_before_survey};
use rlaunch_plan::supervise::OnFailure;
use rlaunch_remote::{RemoteOptions, is_this_machine};
use rlaunch_wire::limits::HOSTFILE_MAX_BYTES;
use rlaunch_wire::setting::misspelt;

use crate::cli::{AfterFailure, Inherit, Options};
use crate::config::Config;
use crate::number;
use crate::output::Style;

pub use crate::program::Program;

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
    pub stdin_rank: Option<u32>,
    pub pty: bool,
    pub style: Style,
    pub verbose: u8,
    pub timeout: Option<Duration>,
    pub kill_after: Duration,
    pub host_timeout: Duration,
    pub on_failure: OnFailure,
    pub display_map: bool,
    pub dry_run: bool,
    pub json: bool,
    pub remote: RemoteOptions,
    pub master_address: Option<IpAddr>,
    pub master_port: Option<u16>,
    pub hold_port: bool,
}

/// What makes the command line no job. Exit code 2.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    #[error("hostfile {}: {error}", path.display())]
    HostfileUnreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(transparent)]
    Hostfile(#[from] HostfileError),
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error("{option} {value}: {problem}")]
    Value {
        option: &'static str,
        value: String,
        problem: &'static str,
    },
    #[error("the program's name is empty\nhint: is a variable of the shell not set?")]
    NoProgram,
    #[error("--nnodes {wanted} asks for more hosts than there are ({available})")]
    TooFewHosts { wanted: usize, available: usize },
    #[error(
        "this directory is gone or not readable: {0}\nhint: cd to one that exists, or --wdir DIR"
    )]
    NoDirectory(std::io::Error),
}

/// Notes are for the user, on stderr, whatever else happens.
pub fn resolve(
    options: Options,
    config: Config,
    notes: &mut Vec<String>,
) -> Result<Settings, SettingsError> {
    let name = options.module.as_ref().or(options.command.first());
    if name.is_some_and(|name| name.is_empty()) {
        return Err(SettingsError::NoProgram);
    }
    let placement = PlacementRequest {
        ranks: whole("-np", options.np.as_deref())?,
        per_host: whole(
            "--nproc-per-node",
            per_node(options.nproc_per_node.as_deref()),
        )?,
        oversubscribe: options.oversubscribe,
    };
    let mut allocation = allocate(&options, &config)?;
    add_port(&options, &config, &mut allocation)?;
    check_before_survey(&allocation, &placement)?;
    let overlay = overlay(&options, notes)?;
    let directory = directory(options.wdir.as_deref())?;
    let remote = remote(&options, &config);
    Ok(Settings {
        remote,
        stdin_rank: stdin_rank(options.stdin.as_deref(), placement.ranks)?,
        timeout: duration("--timeout", options.timeout.as_deref())?,
        kill_after: duration(
            "--kill-after",
            options.kill_after.or(config.kill_after).as_deref(),
        )?
        .unwrap_or(KILL_AFTER),
        host_timeout: duration(
            "--host-timeout",
            options.host_timeout.or(config.host_timeout).as_deref(),
        )?
        .unwrap_or(HOST_TIMEOUT)
        .max(HOST_TIMEOUT_MIN),
        on_failure: match options.on_failure {
            Some(AfterFailure::Continue) => OnFailure::Continue,
            Some(AfterFailure::Stop) | None => OnFailure::Stop,
        },
        master_address: address(options.master_addr.as_deref())?,
        master_port: port("--master-port", options.master_port.as_deref())?,
        program: Program::new(
            options.module,
            options.command,
            options.python.or(config.python),
        ),
        style: Style {
            tag: options.tag_output || config.tag_output == Some(true),
            timestamp: options.timestamp_output || config.timestamp_output == Some(true),
        },
        allocation,
        placement,
        overlay,
        directory,
        pty: options.pty,
        verbose: options.verbose,
        display_map: options.display_map,
        dry_run: options.dry_run,
        json: options.json,
        hold_port: !options.no_port_hold,
    })
}

const KILL_AFTER: Duration = Duration::from_secs(10);
const HOST_TIMEOUT: Duration = Duration::from_secs(30);
/// Below three heartbeats a busy host would look lost.
const HOST_TIMEOUT_MIN: Duration = Duration::from_secs(3);

fn allocate(options: &Options, config: &Config) -> Result<Allocation, SettingsError> {
    let list = options.host.join(",");
    let typed = options.hostfile.as_deref();
    // A default hostfile must not limit what -H may name.
    let from_config = config
        .hostfile
        .as_deref()
        .filter(|_| options.host.is_empty());
    let mut allocation = match (
        typed.or(from_config),
        list.is_empty() && options.host.is_empty(),
    ) {
        (Some(path), true) => Allocation::from_hostfile(&read_hostfile(path)?),
        (Some(path), false) => {
            Allocation::select(&read_hostfile(path)?, &allocation::parse_host_list(&list)?)?
        }
        (None, false) => Allocation::from_list(&allocation::parse_host_list(&list)?),
        (None, true) => Allocation::local("localhost"),
    };
    if let Some(wanted) = whole("--nnodes", options.nnodes.as_deref())? {
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
    Ok(allocation)
}

/// `--ssh-port`, where the hostfile names none. This machine needs no ssh.
fn add_port(
    options: &Options,
    config: &Config,
    allocation: &mut Allocation,
) -> Result<(), SettingsError> {
    let ssh_port = match options.ssh_port.as_deref() {
        None => config.ssh_port,
        text => port("--ssh-port", text)?,
    };
    let hosts = allocation
        .hosts
        .iter_mut()
        .map(|allocated| &mut allocated.host);
    for host in hosts.filter(|host| host.port.is_none() && !is_this_machine(&host.name)) {
        host.port = ssh_port;
    }
    Ok(())
}

fn remote(options: &Options, config: &Config) -> RemoteOptions {
    let identity = if options.identity.is_empty() {
        &config.identity
    } else {
        &options.identity
    };
    RemoteOptions {
        identity_files: identity.clone(),
        accept_new: options.ssh_accept_new || config.ssh_accept_new == Some(true),
        ssh_program: options
            .ssh_program
            .clone()
            .or_else(|| config.ssh_program.clone()),
        agent_path: options.agent.clone().or_else(|| config.agent.clone()),
        verbose: options.verbose > 0,
        ..RemoteOptions::default()
    }
}

fn read_hostfile(path: &Path) -> Result<hostfile::Hostfile, SettingsError> {
    use std::io::Read;
    let unreadable = |error| SettingsError::HostfileUnreadable {
        path: path.to_owned(),
        error,
    };
    let mut bytes = Vec::new();
    // One byte more than allowed tells the parser that it is too long.
    std::fs::File::open(path)
        .and_then(|file| file.take(HOSTFILE_MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    Ok(hostfile::parse(&path.to_string_lossy(), &bytes)?)
}

/// torchrun's words for "as many as the host has".
fn per_node(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !["auto", "gpu", "cpu"].contains(text))
}

fn overlay(options: &Options, notes: &mut Vec<String>) -> Result<Overlay, SettingsError> {
    let exports = options
        .export
        .iter()
        .map(|word| Export::parse(word.as_bytes()));
    let exports = exports.collect::<Result<Vec<_>, _>>()?;
    let policy = match options.env {
        None => EnvironmentPolicy::Portable,
        Some(Inherit::All) => EnvironmentPolicy::All,
        Some(Inherit::None) => EnvironmentPolicy::None,
    };
    let bytes = |text: OsString| text.into_vec();
    let own: Vec<_> = std::env::vars_os()
        .map(|(name, value)| (bytes(name), bytes(value)))
        .collect();
    let overlay = environment::overlay(&own, policy, &exports);
    for name in &overlay.missing {
        notes.push(format!(
            "-x {name}: there is no such variable here; nothing is passed"
        ));
    }
    for (name, _) in &own {
        let is_dropped = overlay
            .dropped
            .iter()
            .any(|one| one.name.as_bytes() == name);
        if let Some(text) = misspelt(name).filter(|_| is_dropped) {
            notes.push(format!("not passed to the ranks: {text}"));
        }
    }
    let by_others = |reason| matches!(reason, DropReason::Rank | DropReason::Task);
    if let Some(names) = dropped_names(&overlay, by_others) {
        notes.push(format!(
            "not passed to the ranks, for they tell of another job: {names}"
        ));
    }
    Ok(overlay)
}

/// Names shown; inside a scheduler's job there are dozens.
const DROPPED_SHOWN_MAX: usize = 6;

/// What was left out of the environment for such a reason, as text.
pub(crate) fn dropped_names(
    overlay: &Overlay,
    concerned: impl Fn(DropReason) -> bool,
) -> Option<String> {
    let names: Vec<&str> = overlay
        .dropped
        .iter()
        .filter(|dropped| concerned(dropped.reason))
        .map(|dropped| dropped.name.as_str())
        .collect();
    let shown = names[..names.len().min(DROPPED_SHOWN_MAX)].join(" ");
    match names.len().saturating_sub(DROPPED_SHOWN_MAX) {
        0 if names.is_empty() => None,
        0 => Some(shown),
        more => Some(format!("{shown} and {more} more")),
    }
}

fn directory(wdir: Option<&Path>) -> Result<PathBuf, SettingsError> {
    match wdir {
        Some(path) if path.is_absolute() => Ok(path.to_owned()),
        _ => {
            let here = working_directory().map_err(SettingsError::NoDirectory)?;
            Ok(wdir.map_or_else(|| here.clone(), |path| here.join(path)))
        }
    }
}

/// $PWD where it is this directory: on a cluster the path through a link is the one that the
/// hosts share, the resolved one may be this machine's own.
fn working_directory() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let real = std::env::current_dir()?;
    let logical = std::env::var_os("PWD")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let identity = |path: &Path| path.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    match logical {
        Some(path) if identity(&path).is_some() && identity(&path) == identity(&real) => Ok(path),
        _ => Ok(real),
    }
}

fn stdin_rank(text: Option<&str>, ranks: Option<u32>) -> Result<Option<u32>, SettingsError> {
    let Some(text) = text.filter(|text| *text != "none") else {
        return Ok(None);
    };
    let problem = match (text.parse::<u32>(), ranks) {
        (Err(_), _) => "expected a rank, or `none`",
        (Ok(rank), Some(ranks)) if rank >= ranks => "there is no such rank",
        (Ok(rank), _) => return Ok(Some(rank)),
    };
    Err(SettingsError::Value {
        option: "--stdin",
        value: text.to_owned(),
        problem,
    })
}

fn whole(option: &'static str, text: Option<&str>) -> Result<Option<u32>, SettingsError> {
    let Some(text) = text else { return Ok(None) };
    let problem = "expected a whole number";
    let value = || text.to_owned();
    text.parse().map(Some).map_err(|_| SettingsError::Value {
        option,
        value: value(),
        problem,
    })
}

fn port(option: &'static str, text: Option<&str>) -> Result<Option<u16>, SettingsError> {
    let Some(text) = text else { return Ok(None) };
    match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => {
            let problem = "expected a port, 1 to 65535";
            Err(SettingsError::Value {
                option,
                value: text.to_owned(),
                problem,
            })
        }
    }
}

fn address(text: Option<&str>) -> Result<Option<IpAddr>, SettingsError> {
    let Some(text) = text else { return Ok(None) };
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let problem = "expected a numeric address: names may not resolve on every host";
    let wrong = |_| SettingsError::Value {
        option: "--master-addr",
        value: text.into(),
        problem,
    };
    bare.parse().map(Some).map_err(wrong)
}

fn duration(option: &'static str, text: Option<&str>) -> Result<Option<Duration>, SettingsError> {
    let Some(text) = text else { return Ok(None) };
    let problem = "expected a time, such as 90, 1.5, 500ms, 10m, 2h";
    let wrong = || SettingsError::Value {
        option,
        value: text.to_owned(),
        problem,
    };
    number::duration(text).map(Some).ok_or_else(wrong)
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
