//! The drive: one job from settings to exit code.
//!
//! ```text
//! reach ─► survey ─► slots, placement ─► checks ─► cores ─► master ─► bundle ─► launch ─► supervise
//! ```
//! All on one thread of tokio, but for the printing thread and what carriers need. Until the
//! launch, a signal ends the launcher at once and the agents with it, since their streams end;
//! from then on signals go through the supervisor.

mod bind;
mod bundle;
mod check;
mod driver;
mod error;
mod identity;
mod launch;
mod links;
mod master;
mod print;
mod reach;
mod reader;
mod show;
mod signals;
mod start;
mod stdin;
mod supervise;
mod terminal;
mod translate;

use std::time::Instant;

use rlaunch_plan::Placement;
use rlaunch_plan::allocation::Allocation;
use rlaunch_plan::environment::Master;
use rlaunch_plan::placement::place;
use tracing::info;

use crate::settings::Settings;
use identity::JobIdentity;
use reach::Reached;

pub use error::DriveError;

/// All that is decided before the ranks start.
struct Plan {
    identity: JobIdentity,
    allocation: Allocation,
    placement: Placement,
    /// By rank; none: not bound.
    cores: bind::Cores,
    master: Option<Master>,
}

/// Runs the job. `Ok` is its exit code, the verdict having been printed.
pub fn run(settings: Settings, start: Instant) -> Result<u8, DriveError> {
    // Before the runtime, which may start threads.
    reach::prepare(&settings).map_err(DriveError::Runtime)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(DriveError::Runtime)?;
    let code = runtime.block_on(drive(settings, start));
    // Nothing that is left in the background may hold the exit up.
    runtime.shutdown_background();
    code
}

async fn drive(settings: Settings, start: Instant) -> Result<u8, DriveError> {
    let identity = JobIdentity::new().map_err(DriveError::Random)?;
    let mut allocation = settings.allocation.clone();
    let known = allocation
        .hosts
        .iter()
        .all(|host| host.slots.known().is_some());
    let early = if known {
        Some(placed(&settings, &allocation)?)
    } else {
        None
    };
    // Which cores are free the hosts alone know.
    let shows_early = settings.dry_run && settings.binding.wish.is_none();
    if let Some(placement) = early.as_ref().filter(|_| shows_early) {
        let plan = Plan {
            identity,
            allocation,
            cores: bind::unbound(placement),
            placement: placement.clone(),
            master: None,
        };
        return show::dry_run(&settings, &plan);
    }
    let wanted: Vec<usize> = match &early {
        Some(placement) => placement.nodes.iter().map(|node| node.host).collect(),
        None => (0..allocation.hosts.len()).collect(),
    };
    check::output_directory(&settings)?;
    let bundle = bundle::find();
    let reached = reach::reach(&settings, &allocation, &wanted, bundle.as_ref()).await?;
    for host in &reached {
        allocation.survey(host.host, host.survey.gpus, host.survey.usable_cores);
    }
    let placement = match early {
        Some(placement) => placement,
        None => placed(&settings, &allocation)?,
    };
    info!(
        ranks = placement.ranks.len(),
        hosts = placement.nodes.len(),
        "placed"
    );
    let mut nodes = nodes(reached, &placement);
    check::hosts(&settings, &allocation, &placement, &nodes)?;
    let mut plan = Plan {
        identity,
        cores: bind::choose(&settings, &allocation, &placement, &mut nodes).await?,
        allocation,
        placement,
        master: None,
    };
    if settings.dry_run {
        return show::dry_run(&settings, &plan);
    }
    let master = master::choose(&settings, &mut nodes).await?;
    info!(address = %master.address, port = master.port, "master");
    plan.master = Some(master);
    if settings.display_map {
        show::map(&settings, &plan);
    }
    if let Some(bundle) = &bundle {
        bundle::install(bundle, &mut nodes).await?;
    }
    supervise::supervise(&settings, &plan, nodes, bundle.as_ref(), start).await
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
