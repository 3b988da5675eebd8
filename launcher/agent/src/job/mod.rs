//! The job on this host, from its Launch to the last process's end.
//!
//! One task, [`run`], hears the launcher, the keeper and the ranks, and decides; each output
//! stream, stdin and rank connection has a task of its own, so that none waits for another.
//!
//! It ends the job by itself when the launcher's stream ends, when the launcher is silent for as
//! long as the Launch said, and when the keeper is gone.

mod credit;
mod environment;
mod events;
mod keeper_link;
mod lines;
mod outgoing;
mod output;
mod pipe;
mod rank_connection;
mod ranks;
mod record;
mod report;
mod silence;
mod spill;
mod spill_room;
mod start;
mod state;
mod stdin;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rlaunch_control::v1::to_agent::Message as ToAgentMessage;
use rlaunch_control::v1::{Launch, ToAgent};
use tonic::{Status, Streaming};

pub(crate) use environment::PATH_DEFAULT;
pub(crate) use keeper_link::KeeperLink;
pub(crate) use outgoing::{Outgoing, OutgoingStream, outgoing};
pub(crate) use report::JobReport;

use crate::cores::Claims;
use crate::keeper::messages::Order;

/// Between the opening of the stream and its Launch.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(30);
/// Between TERM and KILL once the launcher is gone, at most.
const ORPHAN_KILL_MAX: Duration = Duration::from_secs(2);
/// The keeper's answer after the launcher is gone: KILL, and giving up on what does not die.
const CLEANUP_MAX: Duration = Duration::from_secs(10);

/// What the job needs of its agent.
pub(crate) struct Context {
    pub(crate) keeper: KeeperLink,
    pub(crate) outgoing: Outgoing,
    pub(crate) bundle: Option<PathBuf>,
    pub(crate) report: Arc<Mutex<JobReport>>,
    /// The cores of its ranks; given back before the launcher hears that the job is over.
    pub(crate) claims: Claims,
}

/// Runs the job; returns once its processes are gone and the launcher's stream has ended.
pub(crate) async fn run(mut inbound: Streaming<ToAgent>, context: Context) {
    let Ok(Some(launch)) = tokio::time::timeout(LAUNCH_TIMEOUT, first(&mut inbound)).await else {
        return;
    };
    match state::Job::start(launch, context).await {
        Ok(mut job) => {
            job.run(&mut inbound).await;
            job.close(&mut inbound).await;
        }
        Err((error, outgoing)) => {
            let level = rlaunch_control::v1::Level::Error;
            outgoing.log(level, format!("the agent cannot start the job: {error}"));
            outgoing.finish().await;
        }
    }
}

async fn first(inbound: &mut Streaming<ToAgent>) -> Option<Launch> {
    match next(inbound).await? {
        ToAgentMessage::Launch(launch) => Some(launch),
        _ => None,
    }
}

/// The next message that says something; none at the stream's end, orderly or not.
async fn next(inbound: &mut Streaming<ToAgent>) -> Option<ToAgentMessage> {
    loop {
        let message: Result<Option<ToAgent>, Status> = inbound.message().await;
        if let Some(message) = message.ok()??.message {
            return Some(message);
        }
    }
}

/// The order that ends a job whose launcher is gone.
fn orphan_order(kill_after_ms: u32) -> Order {
    let most = u32::try_from(ORPHAN_KILL_MAX.as_millis()).unwrap_or(u32::MAX);
    Order::Terminate(kill_after_ms.min(most))
}
