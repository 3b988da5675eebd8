//! Which carrier, how often, and how many at a time.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};

use crate::bootstrap;
use crate::error::{ReachCause, ReachError};
use crate::executable::Agents;
use crate::passphrase::{Passphrases, askpass};
use crate::retry::{Limits, Retry};
use crate::settings::{self, Settings, Source};
use crate::target::{CarrierChoice, Connection, HostTarget, RemoteOptions};
use crate::{local, program, ssh};

/// Reaches one host and has an agent greet from it. Dropping the future gives it up.
pub async fn connect(
    target: &HostTarget,
    choice: CarrierChoice,
    options: &RemoteOptions,
) -> Result<Connection, ReachError> {
    if target.name.is_empty() || target.name.starts_with('-') {
        let reason = "that is not a host name".to_owned();
        return Err(ReachError::new(target, ReachCause::Unresolved(reason)));
    }
    let result = match (choice, &options.ssh_program) {
        (CarrierChoice::Local, _) => local::connect(target, options).await,
        (CarrierChoice::Auto, _) if options.is_local(target) => {
            local::connect(target, options).await
        }
        (CarrierChoice::Program(line), _) => by_program(target, &line, options, None).await,
        (CarrierChoice::Auto, Some(line)) => by_program(target, line, options, None).await,
        (CarrierChoice::Auto, None) => by_ssh(target, options, true).await,
        (CarrierChoice::Ssh2, _) => by_ssh(target, options, false).await,
    };
    result.map(|mut connection| {
        connection.details.push(how(&connection));
        connection
    })
}

fn how(connection: &Connection) -> String {
    let address = connection
        .peer_address
        .map(|address| format!(" at {address}"));
    let address = address.unwrap_or_default();
    format!(
        "reached by {}{address}, agent {}",
        connection.carrier, connection.build
    )
}

/// Reaches all of them, [`RemoteOptions::connects_max`] at a time; results come as they are there,
/// each with the index of its target. Dropping the stream gives up those under way.
pub fn connect_all(
    targets: Vec<HostTarget>,
    choice: CarrierChoice,
    options: RemoteOptions,
) -> impl Stream<Item = (usize, Result<Connection, ReachError>)> + Send {
    let options = Arc::new(options);
    let width = options.connects_max.max(1);
    stream::iter(targets.into_iter().enumerate())
        .map(move |(index, target)| {
            let (choice, options) = (choice.clone(), Arc::clone(&options));
            async move { (index, connect(&target, choice, &options).await) }
        })
        .buffer_unordered(width)
}

/// By libssh2; with `program_too` by the ssh program where that is better.
async fn by_ssh(
    target: &HostTarget,
    options: &RemoteOptions,
    program_too: bool,
) -> Result<Connection, ReachError> {
    // Reading and hashing the executable has a core of its own while ssh is asked.
    let queried = settings::query(target, options);
    let (queried, agents) = tokio::join!(queried, load_agents(target, options));
    let (settings, source) = queried?;
    let program_too = program_too && source == Source::Program;
    if let Some(reason) = &settings.needs_program {
        if program_too {
            return by_program(target, "ssh", options, Some(reason)).await;
        }
        let cause = ReachCause::NeedsProgram {
            reason: reason.clone(),
        };
        return Err(ReachError::new(target, cause));
    }
    let agents = agents?;
    let limits = Limits::new(options, &settings);
    let mut retry = Retry::new(target, limits);
    loop {
        let plan = plan(target, &settings, options, &agents);
        let mut failure = match ssh::open(plan).await {
            Ok(raw) => {
                return bootstrap::start(target, raw, &agents, options.greeting_timeout).await;
            }
            Err(failure) => failure,
        };
        match unlock(&options.passphrases, &failure.locked).await {
            Unlocked::One => {
                retry = Retry::new(target, limits);
                continue;
            }
            Unlocked::None(reason) => failure.error.advice = Some(reason),
            Unlocked::NotAsked => {}
        }
        match failure.program_may_help {
            Some(reason) if program_too => {
                let first = failure.error;
                // What libssh2 met says more than ssh's end, if ssh does not do better.
                return by_program(target, "ssh", options, Some(&reason))
                    .await
                    .map_err(|second| ReachError {
                        said: [first.said, second.said].concat(),
                        tried: format!("{}, then {}", first.tried, second.tried),
                        ..second
                    });
            }
            _ => retry.pause(failure.error).await?,
        }
    }
}

enum Unlocked {
    /// None of them was locked.
    NotAsked,
    /// One that was locked is open now: it is worth another attempt.
    One,
    None(String),
}

/// Asks for the passphrase of the first key for which there is one.
async fn unlock(passphrases: &Passphrases, locked: &[PathBuf]) -> Unlocked {
    let mut reasons = Vec::new();
    for path in locked {
        let key = path.clone();
        let opens = move |passphrase: &_| ssh::opens(&key, passphrase);
        match passphrases.unlock(path, opens).await {
            Ok(_) => return Unlocked::One,
            Err(reason) => reasons.push(reason),
        }
    }
    match reasons.is_empty() {
        true => Unlocked::NotAsked,
        false => Unlocked::None(reasons.join("; ")),
    }
}

fn plan(
    target: &HostTarget,
    settings: &Settings,
    options: &RemoteOptions,
    agents: &Agents,
) -> ssh::Plan {
    ssh::Plan {
        target: target.clone(),
        settings: settings.clone(),
        identity_files: options.identity_files.clone(),
        passphrases: options.passphrases.opened(),
        accept_new: options.accept_new,
        connect_timeout: Limits::new(options, settings).connect,
        step_timeout: options.connect_timeout,
        command: bootstrap::command(agents),
    }
}

/// By a program; `reason` says why, if it was not the user's choice.
async fn by_program(
    target: &HostTarget,
    line: &str,
    options: &RemoteOptions,
    reason: Option<&str>,
) -> Result<Connection, ReachError> {
    let agents = load_agents(target, options).await?;
    let command = bootstrap::command(&agents);
    let limits = Limits::of_program(options);
    let mut retry = Retry::new(target, limits);
    let tried = match reason {
        Some(reason) => format!("{line}, because {reason}"),
        None => line.to_owned(),
    };
    loop {
        let opened = options.passphrases.opened();
        let mut raw = program::open(target, line, &command, options, &opened)?;
        raw.details
            .extend(reason.map(|reason| format!("by the ssh program, because {reason}")));
        let mut error = match bootstrap::start(target, raw, &agents, options.greeting_timeout).await
        {
            Ok(connection) => return Ok(connection),
            Err(error) => error.tried(&tried),
        };
        let wanted = askpass::wanted(&error.said).filter(|path| !opened.contains_key(path));
        match unlock(&options.passphrases, &Vec::from_iter(wanted)).await {
            Unlocked::One => {
                retry = Retry::new(target, limits);
                continue;
            }
            Unlocked::None(reason) => error.advice = Some(reason),
            Unlocked::NotAsked if program::closed_early(&error) => {
                error.cause = Box::new(ReachCause::ClosedEarly { attempts: 1 });
            }
            Unlocked::NotAsked => {}
        }
        retry.pause(error).await?;
    }
}

async fn load_agents(
    target: &HostTarget,
    options: &RemoteOptions,
) -> Result<Arc<Agents>, ReachError> {
    let loaded = Agents::loaded(options.agent_path.as_deref()).await;
    loaded.map_err(|cause| ReachError::new(target, cause))
}
