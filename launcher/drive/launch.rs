//! The `Launch` message of each host.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rlaunch_control::v1;
use rlaunch_plan::environment::Variable;
use rlaunch_wire::limits::OUTPUT_CREDIT_BYTES;

use super::Plan;
use super::bundle::Bundle;
use super::reach::Reached;
use super::start::Start;
use crate::settings::{ProgramSettings, Settings};

/// What may be under way of all ranks together; each stream gets its part, within bounds.
const CREDIT_TOTAL_BYTES: u64 = 64 << 20;
/// Below it, long lines would arrive in pieces.
const CREDIT_MIN_BYTES: u64 = 64 << 10;

/// Of the launcher's own, what the ranks' terminals are made by.
#[derive(Clone, Copy)]
pub(super) struct Terminal {
    /// It passes letters on without showing them.
    pub(super) is_silent: bool,
    pub(super) size: Option<v1::WindowSize>,
}

/// First credit of each stream.
pub(super) fn credit(world: usize) -> u64 {
    (CREDIT_TOTAL_BYTES / (2 * world as u64)).clamp(CREDIT_MIN_BYTES, OUTPUT_CREDIT_BYTES)
}

pub(super) fn message(
    settings: &Settings,
    plan: &Plan,
    node_rank: usize,
    node: &Reached,
    bundle: Option<&Bundle>,
    terminal: Terminal,
) -> v1::Launch {
    let places = &plan.placement.nodes[node_rank];
    let world = plan.placement.ranks.len();
    let details = &plan.allocation.hosts[places.host].details;
    let programs = settings
        .programs
        .iter()
        .enumerate()
        .map(|(index, program)| {
            let start = Start::new(program, details);
            program_spec(
                program,
                &start,
                &node.found(index).python,
                bundle.filter(|_| node.local),
            )
        });
    v1::Launch {
        job_id: plan.identity.id.to_vec().into(),
        secret: plan.identity.secret.to_vec().into(),
        world_size: u32::try_from(world).expect("placement bounds the ranks"),
        programs: programs.collect(),
        report_bindings: settings.binding.report,
        ranks: places
            .ranks
            .iter()
            .map(|&rank| rank_spec(settings, plan, rank))
            .collect(),
        kill_after_ms: milliseconds(settings.limits.kill_after),
        launcher_silence_ms: milliseconds(settings.limits.host_timeout),
        pty: settings.streams.pty,
        pty_echo: terminal.is_silent,
        window_size: terminal.size,
        merge_stderr: settings.streams.merge_stderr,
        output_credit: credit(world),
        bundle: !node.local && !node.survey.bundle_path.is_empty(),
        host: node.name.clone(),
    }
}

fn program_spec(
    program: &ProgramSettings,
    start: &Start<'_>,
    python: &str,
    bundle: Option<&Bundle>,
) -> v1::Program {
    let mut environment = start.environment();
    if let Some(bundle) = bundle {
        offer_module(&mut environment, bundle);
    }
    let argv = program.program.argv().iter();
    v1::Program {
        argv: argv.map(|word| word.as_bytes().to_vec().into()).collect(),
        directory: start
            .directory()
            .into_os_string()
            .into_encoded_bytes()
            .into(),
        clear_environment: program.overlay.clear,
        environment: environment.into_iter().map(variable).collect(),
        python: start.python(python),
    }
}

pub(super) fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

fn rank_spec(settings: &Settings, plan: &Plan, rank: u32) -> v1::RankSpec {
    let master = plan.master.as_ref().expect("chosen before the launch");
    let variables = plan.rank_variables(rank, master);
    let place = plan.placement.ranks[rank as usize];
    v1::RankSpec {
        rank,
        local_rank: place.local_rank,
        cpus: plan.cores[rank as usize].clone().unwrap_or_default(),
        program: place.program,
        environment: variables
            .into_iter()
            .map(|(name, value)| variable((name.into_bytes(), value.into_bytes())))
            .collect(),
        stdin: settings.streams.stdin.is_some_and(|to| to.gives(rank)),
    }
}

fn variable((name, value): Variable) -> v1::EnvVar {
    v1::EnvVar {
        name: name.into(),
        value: value.into(),
    }
}

/// On this machine the module is used where it lies; what the user put on the path comes first.
fn offer_module(environment: &mut Vec<Variable>, bundle: &Bundle) {
    const NAME: &[u8] = b"PYTHONPATH";
    let path = bundle.path.as_os_str().as_bytes();
    match environment.iter_mut().find(|(name, _)| name == NAME) {
        Some((_, value)) if !value.is_empty() => {
            value.push(b':');
            value.extend(path);
        }
        Some((_, value)) => *value = path.to_vec(),
        None => environment.push((NAME.to_vec(), path.to_vec())),
    }
}

/// The host's own words for a path in messages.
pub(super) fn lossy(bytes: &[u8]) -> String {
    OsStr::from_bytes(bytes).to_string_lossy().into_owned()
}
