//! Which carrier, how often, and how many at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt, stream};

use crate::bootstrap;
use crate::error::{ReachCause, ReachError};
use crate::executable::Agents;
use crate::settings::{self, Settings, Source};
use crate::target::{CarrierChoice, Connection, HostTarget, RemoteOptions};
use crate::{local, program, ssh};

/// The first pause before another attempt; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(150);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// An sshd at MaxStartups takes the next ones soon; a host that has none does not get one.
const ATTEMPTS_CLOSED_MAX: u32 = 10;
const ATTEMPTS_REFUSED_MAX: u32 = 3;
/// What the ssh program says when sshd hung up before it said who it is.
const CLOSED_EARLY: [&str; 4] = [
    "kex_exchange_identification",
    "Connection closed by",
    "Connection reset by",
    "banner exchange",
];

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
        (CarrierChoice::Auto, _) if target.is_local() => local::connect(target, options).await,
        (CarrierChoice::Program(line), _) => by_program(target, &line, options, None).await,
        (CarrierChoice::Auto, Some(line)) => by_program(target, line, options, None).await,
        (CarrierChoice::Auto, None) => by_ssh(target, options, true).await,
        (CarrierChoice::Ssh2, _) => by_ssh(target, options, false).await,
    };
    result.map(|mut connection| {
        if options.verbose {
            connection.notes.push(how(&connection));
        }
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
    let (settings, source) = settings::query(target, options).await?;
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
    let agents = load_agents(target, options).await?;
    let mut retry = Retry::new(target, options);
    loop {
        let failure = match ssh::open(plan(target, &settings, options, &agents)).await {
            Ok(raw) => {
                return bootstrap::start(target, raw, &agents, options.greeting_timeout).await;
            }
            Err(failure) => failure,
        };
        match failure.program_may_help {
            Some(reason) if program_too => {
                let first = failure.error;
                // What libssh2 met says more than ssh's end, if ssh does not do better.
                return by_program(target, "ssh", options, Some(&reason))
                    .await
                    .map_err(|second| {
                        let said = [first.said, second.said].concat();
                        ReachError {
                            said,
                            tried: first.tried,
                            ..second
                        }
                    });
            }
            _ => retry.pause(failure.error).await?,
        }
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
        accept_new: options.accept_new,
        connect_timeout: options.connect_timeout,
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
    let mut retry = Retry::new(target, options);
    loop {
        let mut raw = program::open(target, line, &command, options)?;
        raw.notes
            .extend(reason.map(|reason| format!("by the ssh program, because {reason}")));
        let mut error = match bootstrap::start(target, raw, &agents, options.greeting_timeout).await
        {
            Ok(connection) => return Ok(connection),
            Err(error) => error.tried(line),
        };
        let ended = matches!(*error.cause, ReachCause::ProgramEnded { .. });
        let early = |line: &String| CLOSED_EARLY.iter().any(|words| line.contains(words));
        if ended && error.said.iter().any(early) {
            error.cause = Box::new(ReachCause::ClosedEarly { attempts: 1 });
        }
        retry.pause(error).await?;
    }
}

/// Off the runtime's threads: reading, stripping and hashing takes tens of milliseconds, once.
async fn load_agents(
    target: &HostTarget,
    options: &RemoteOptions,
) -> Result<Arc<Agents>, ReachError> {
    let path = options.agent_path.clone();
    let loaded = tokio::task::spawn_blocking(move || Agents::load(path.as_deref())).await;
    let loaded = loaded.unwrap_or_else(|error| Err(ReachCause::Local(error.to_string())));
    loaded.map_err(|cause| ReachError::new(target, cause))
}

/// Counts attempts and pauses between them; pure but for the pause.
struct Retry {
    attempts: u32,
    pause: Duration,
    deadline: Instant,
    /// Hosts that were turned away together must not come back together.
    spread: u32,
}

impl Retry {
    fn new(target: &HostTarget, options: &RemoteOptions) -> Self {
        let name = target.to_string();
        let spread = name.bytes().fold(std::process::id(), |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        let deadline = Instant::now() + options.connect_timeout;
        Self {
            attempts: 0,
            pause: PAUSE_FIRST,
            deadline,
            spread,
        }
    }

    /// Waits before the next attempt, or gives the error back if there is to be none.
    async fn pause(&mut self, error: ReachError) -> Result<(), ReachError> {
        match self.next(&error.cause, Instant::now()) {
            Some(pause) => {
                tracing::debug!(host = error.host, ?pause, cause = %error.cause, "again");
                tokio::time::sleep(pause).await;
                Ok(())
            }
            None => Err(self.counted(error)),
        }
    }

    fn next(&mut self, cause: &ReachCause, now: Instant) -> Option<Duration> {
        self.attempts += 1;
        let attempts_max = match cause {
            ReachCause::ClosedEarly { .. } => ATTEMPTS_CLOSED_MAX,
            ReachCause::Refused => ATTEMPTS_REFUSED_MAX,
            _ => return None,
        };
        // Between three and five quarters of the nominal pause.
        self.spread = self
            .spread
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        let pause = self.pause * (768 + (self.spread >> 16) % 512) / 1024;
        if self.attempts >= attempts_max || now + pause >= self.deadline {
            return None;
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Some(pause)
    }

    fn counted(&self, mut error: ReachError) -> ReachError {
        if let ReachCause::ClosedEarly { attempts } = &mut *error.cause {
            *attempts = self.attempts;
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_tried_again_and_not_for_ever() {
        let target = HostTarget::new("h");
        let options = RemoteOptions::default();
        let attempts = |cause: &ReachCause, options: &RemoteOptions| {
            let mut retry = Retry::new(&target, options);
            let mut now = Instant::now();
            while let Some(pause) = retry.next(cause, now) {
                assert!(pause <= 2 * PAUSE_MAX, "{pause:?}");
                now += pause;
            }
            retry.attempts
        };
        let closed = ReachCause::ClosedEarly { attempts: 1 };
        assert_eq!(attempts(&closed, &options), ATTEMPTS_CLOSED_MAX);
        assert_eq!(
            attempts(&ReachCause::Refused, &options),
            ATTEMPTS_REFUSED_MAX
        );
        assert_eq!(attempts(&ReachCause::TimedOut(1), &options), 1);
        let short = RemoteOptions {
            connect_timeout: Duration::from_secs(1),
            ..options
        };
        assert!(attempts(&closed, &short) < 5);
    }
}
