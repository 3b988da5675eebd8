//! Reach every host and ask what it is: connect, HTTP/2, survey; all hosts side by side.
//!
//! Every host is tried to its end, so that one run names all hosts that can't be reached.

use std::net::IpAddr;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rlaunch_control::{AgentClient, v1};
use rlaunch_plan::allocation::Allocation;
use rlaunch_plan::host::Host;
use rlaunch_plan::supervise::ClockOffset;
use rlaunch_remote::{
    CarrierChoice, Connection, HostTarget, LOCAL_BUILD, LocalAgent, ReachError, connect_all,
};
use tokio::sync::mpsc;
use tracing::{debug, info};

use super::DriveError;
use super::bundle::Bundle;
use super::progress::Progress;
use super::start::Start;
use crate::clock::wall_us;
use crate::settings::Settings;
use crate::talk;

/// A host with an agent that has answered.
pub(super) struct Reached {
    /// Index into the allocation's hosts.
    pub(super) host: usize,
    /// As messages call it.
    pub(super) name: String,
    pub(super) client: AgentClient,
    pub(super) survey: v1::SurveyReply,
    pub(super) clock: ClockOffset,
    /// As this machine sees it.
    pub(super) peer_address: Option<IpAddr>,
    pub(super) local: bool,
    /// Of an agent that is a child of this process.
    pub(super) agent_pid: Option<i32>,
    /// What the agent or ssh say on stderr.
    pub(super) diagnostics: mpsc::Receiver<String>,
}

impl Reached {
    /// What the host has of program `index`.
    pub(super) fn found(&self, index: usize) -> v1::ProgramFound {
        self.survey.programs.get(index).cloned().unwrap_or_default()
    }
}

/// Reaches the hosts `wanted` of the allocation; the answer is in their order.
pub(super) async fn reach(
    settings: &Settings,
    allocation: &Allocation,
    wanted: &[usize],
    bundle: Option<&Bundle>,
    progress: &Progress,
) -> Result<Vec<Reached>, DriveError> {
    let targets = wanted
        .iter()
        .map(|&host| target(&allocation.hosts[host].host));
    let survey = |host: usize| {
        let details = &allocation.hosts[host].details;
        let programs = settings.programs.iter();
        v1::SurveyRequest {
            bundle_id: bundle.map(|bundle| bundle.id.clone()).unwrap_or_default(),
            programs: programs
                .map(|program| Start::new(program, details).asked())
                .collect(),
        }
    };
    let names = wanted
        .iter()
        .map(|&host| allocation.hosts[host].host.to_string());
    progress.begin("reached", names);
    let start = Instant::now();
    let mut connections = Box::pin(connect_all(
        targets.collect(),
        CarrierChoice::Auto,
        settings.remote.clone(),
    ));
    let mut surveys = FuturesUnordered::new();
    let mut connecting = wanted.len();
    let (mut reached, mut failed) = (Vec::new(), Vec::<(usize, ReachError)>::new());
    while connecting > 0 || !surveys.is_empty() {
        tokio::select! {
            Some((index, result)) = connections.next(), if connecting > 0 => {
                connecting -= 1;
                let host = wanted[index];
                match result {
                    Ok(connection) => {
                        let name = allocation.hosts[host].host.to_string();
                        info!(host = name, carrier = connection.carrier,
                              after = ?start.elapsed(), "reached");
                        surveys.push(ask(host, name, connection, survey(host)));
                    }
                    Err(error) => failed.push((index, error)),
                }
            }
            Some(result) = surveys.next() => {
                let host: Reached = result?;
                progress.done(&host.name);
                reached.push(host);
            }
        }
    }
    if failed.is_empty() {
        reached
            .sort_by_key(|reached: &Reached| wanted.iter().position(|&host| host == reached.host));
        return Ok(reached);
    }
    failed.sort_by_key(|(index, _)| *index);
    Err(DriveError::Reach(
        failed.into_iter().map(|(_, error)| error).collect(),
    ))
}

/// Forks this machine's agent if the job may need one. Only while this process has one thread.
pub(super) fn prepare(settings: &Settings) -> std::io::Result<()> {
    let hosts = settings.allocation.hosts.iter();
    let mut targets = hosts.map(|it| target(&it.host));
    let agents = &settings.remote.local_agents;
    if !settings.dry_run && targets.any(|it| settings.remote.is_local(&it)) {
        let rlaunch_agent::Forked {
            stream,
            stderr,
            pid,
        } = rlaunch_agent::fork(LOCAL_BUILD)?;
        agents.add(LocalAgent {
            stream,
            stderr,
            pid,
        });
    }
    // That one has the limit as it was.
    if let Some(open_files) = rlaunch_agent::limits::raise_open_files() {
        agents.have_open_files(open_files);
    }
    Ok(())
}

fn target(host: &Host) -> HostTarget {
    HostTarget {
        name: host.name.clone(),
        user: host.user.clone(),
        port: host.port,
    }
}

async fn ask(
    host: usize,
    name: String,
    connection: Connection,
    request: v1::SurveyRequest,
) -> Result<Reached, DriveError> {
    for note in &connection.notes {
        talk::note(&format!("{name}: {note}"));
    }
    for detail in &connection.details {
        info!(host = name, "{detail}");
    }
    let Connection {
        io,
        peer_address,
        carrier,
        agent_pid,
        mut diagnostics,
        ..
    } = connection;
    let mut failed = |message: String| {
        let said = std::iter::from_fn(|| diagnostics.try_recv().ok());
        let message = std::iter::once(message)
            .chain(said)
            .collect::<Vec<_>>()
            .join("\n  ");
        DriveError::Agent {
            host: name.clone(),
            did: "does not answer",
            message,
        }
    };
    let mut client = match rlaunch_control::connect(io).await {
        Ok(client) => client,
        Err(error) => return Err(failed(error.to_string())),
    };
    let sent_us = wall_us();
    let survey = match client.survey(request).await {
        Ok(reply) => reply.into_inner(),
        Err(status) => return Err(failed(status.message().to_owned())),
    };
    debug!(host = name, ?survey, "survey");
    let mut clock = ClockOffset::default();
    clock.sample(sent_us, survey.host_time_us, wall_us());
    let local = carrier == "local";
    Ok(Reached {
        host,
        name,
        client,
        survey,
        clock,
        peer_address,
        local,
        agent_pid,
        diagnostics,
    })
}
