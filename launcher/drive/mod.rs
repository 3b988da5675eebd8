//! The drive: one job from settings to exit code.
//!
//! ```text
//! reach ─► survey ─► slots, placement ─► checks ─► cores ─► master ─► bundle ─► launch ─► supervise
//!   └──────────────────── prepare, within --start-timeout ─────────────────┘         │
//!   ▲                                                                                ▼
//!   └──────────────────────── --max-restarts ◄──────────────────────────── verdict, report
//! ```
//! All on one thread of tokio, but for the printing thread and what carriers need. Until the
//! launch, a signal ends the job at once: hosts are let go, and their agents end. From then on
//! signals go through the supervisor.

mod absent;
mod bind;
mod bundle;
mod check;
mod directories;
mod driver;
mod error;
mod identity;
mod launch;
mod links;
mod master;
mod preload;
mod print;
mod progress;
mod reach;
mod reader;
mod restart;
mod show;
mod signals;
mod start;
mod stdin;
mod supervise;
mod suspend;
mod terminal;
mod translate;
mod window;
mod world;

use std::time::Instant;

use rlaunch_plan::Placement;
use rlaunch_plan::allocation::Allocation;
use rlaunch_plan::environment::{self, Master, Restarts};
use rlaunch_plan::placement::place;
use rlaunch_plan::slurm::Step;
use tracing::info;

use crate::report::Reporter;
use crate::settings::Settings;
use bundle::Bundle;
use identity::JobIdentity;
use progress::Progress;
use reach::Reached;
use signals::Signals;

pub use error::DriveError;

/// All that is decided before the ranks start.
struct Plan {
    identity: JobIdentity,
    allocation: Allocation,
    placement: Placement,
    /// By rank; none: not bound.
    cores: bind::Cores,
    master: Option<Master>,
    restarts: Restarts,
    /// What ranks read of their scheduler's job.
    step: Option<Step>,
}

impl Plan {
    fn new(
        settings: &Settings,
        identity: JobIdentity,
        allocation: Allocation,
        placement: Placement,
        cores: bind::Cores,
        restarts: Restarts,
    ) -> Self {
        let step = settings.slurm.as_ref();
        let step = step.map(|job| Step::new(job, &allocation, &placement));
        Self {
            identity,
            allocation,
            placement,
            cores,
            master: None,
            restarts,
            step,
        }
    }

    /// What rank `rank` is told about itself, over everything inherited. `open` stands for a master
    /// that is not chosen yet.
    fn rank_variables(&self, rank: u32, open: &Master) -> Vec<(String, String)> {
        let master = self.master.as_ref().unwrap_or(open);
        let id = &self.identity.id;
        let own = environment::rank_variables(&self.placement, rank, master, id, self.restarts);
        let step = self.step.iter();
        let step = step.flat_map(|step| step.variables(&self.placement, rank));
        own.into_iter().chain(step).collect()
    }
}

/// Runs the job. `Ok` is its exit code, the verdict having been printed.
pub fn run(settings: Settings, start: Instant, report: &mut Reporter) -> Result<u8, DriveError> {
    // Before the runtime, which may start threads.
    reach::prepare(&settings).map_err(DriveError::Runtime)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(DriveError::Runtime)?;
    let code = runtime.block_on(drive(settings, start, report));
    // Nothing that is left in the background may hold the exit up.
    runtime.shutdown_background();
    code
}

async fn drive(
    settings: Settings,
    start: Instant,
    report: &mut Reporter,
) -> Result<u8, DriveError> {
    let mut signals = Signals::catch().map_err(DriveError::Signals)?;
    restart::attempts(&settings, start, &mut signals, report).await
}

/// What is made before ranks start, for one attempt.
enum Prepared {
    /// Only to be shown.
    Plan(Box<Plan>),
    Ready(Box<Ready>),
}

struct Ready {
    plan: Plan,
    nodes: Vec<Reached>,
    bundle: Option<Bundle>,
}

/// To the point at which ranks can start. Dropping the future lets all hosts go.
async fn prepare(
    settings: &Settings,
    identity: JobIdentity,
    restarts: Restarts,
    progress: &Progress,
) -> Result<Prepared, DriveError> {
    let mut allocation = settings.allocation.clone();
    let known = allocation
        .hosts
        .iter()
        .all(|host| host.slots.known().is_some());
    let early = if known {
        Some(placed(settings, &allocation)?)
    } else {
        None
    };
    // Which cores are free the hosts alone know.
    let shows_early = settings.dry_run && settings.binding.wish.is_none();
    if let Some(placement) = early.as_ref().filter(|_| shows_early) {
        let cores = bind::unbound(placement);
        let placement = placement.clone();
        let plan = Plan::new(settings, identity, allocation, placement, cores, restarts);
        return Ok(Prepared::Plan(Box::new(plan)));
    }
    let wanted: Vec<usize> = match &early {
        Some(placement) => placement.nodes.iter().map(|node| node.host).collect(),
        None => (0..allocation.hosts.len()).collect(),
    };
    check::output_directory(settings)?;
    let bundle = bundle::find();
    let reached = reach::reach(settings, &allocation, &wanted, bundle.as_ref(), progress).await?;
    for host in &reached {
        allocation.survey(host.host, host.survey.gpus, host.survey.usable_cores);
    }
    let placement = match early {
        Some(placement) => placement,
        None => placed(settings, &allocation)?,
    };
    info!(
        ranks = placement.ranks.len(),
        hosts = placement.nodes.len(),
        "placed"
    );
    let mut nodes = nodes(reached, &placement);
    // Not again at a restart: what the ranks changed meanwhile is theirs.
    if !settings.dry_run && restarts.count == 0 && !settings.preload.paths.is_empty() {
        let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
        progress.begin("ready with the files of --preload", names);
        let preload = preload::preload(settings, &allocation, &mut nodes);
        progress.uncounted(preload).await?;
    }
    check::hosts(settings, &allocation, &placement, &nodes)?;
    directories::make(settings, &allocation, &placement, &mut nodes).await?;
    let cores = bind::choose(settings, &allocation, &placement, &mut nodes).await?;
    let mut plan = Plan::new(settings, identity, allocation, placement, cores, restarts);
    if settings.dry_run {
        return Ok(Prepared::Plan(Box::new(plan)));
    }
    settle(settings, &mut plan, &mut nodes, bundle.as_ref(), progress).await?;
    Ok(Prepared::Ready(Box::new(Ready {
        plan,
        nodes,
        bundle,
    })))
}

/// The address and port of the ranks' meeting, and the module on hosts that lack it.
async fn settle(
    settings: &Settings,
    plan: &mut Plan,
    nodes: &mut [Reached],
    bundle: Option<&Bundle>,
    progress: &Progress,
) -> Result<(), DriveError> {
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    progress.begin("ready with the check of addresses", names.clone());
    let master = master::choose(settings, nodes).await?;
    info!(address = %master.address, port = master.port, "master");
    plan.master = Some(master);
    if settings.display_map && plan.restarts.count == 0 {
        show::map(settings, plan);
    }
    if let Some(bundle) = bundle {
        progress.begin("ready with the Python module", names);
        bundle::install(bundle, nodes).await?;
    }
    Ok(())
}

fn placed(settings: &Settings, allocation: &Allocation) -> Result<Placement, DriveError> {
    let placement = place(allocation, &settings.placements)?;
    check::ranks(settings, &placement)?;
    Ok(placement)
}

/// By node rank; hosts that got no rank are let go.
fn nodes(reached: Vec<Reached>, placement: &Placement) -> Vec<Reached> {
    let mut reached: Vec<Option<Reached>> = reached.into_iter().map(Some).collect();
    let mut take = |host: usize| {
        let found = reached
            .iter_mut()
            .find(|slot| slot.as_ref().is_some_and(|it| it.host == host));
        found
            .and_then(Option::take)
            .expect("every host with ranks was reached")
    };
    placement.nodes.iter().map(|node| take(node.host)).collect()
}
