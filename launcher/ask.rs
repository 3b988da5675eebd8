//! Asking the agent of each host one thing, without a job.
//!
//! Hosts are asked side by side; one that can't be reached is named and the others are served.

use std::future::Future;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rlaunch_control::AgentClient;
use rlaunch_plan::Host;
use rlaunch_remote::{CarrierChoice, Connection, HostTarget, RemoteOptions, connect_all};
use tonic::{Response, Status};

use crate::talk::say;

pub(crate) struct Answers<A> {
    /// With the host's name as messages have it, in the hosts' order.
    pub(crate) given: Vec<(String, A)>,
    /// What went wrong, in the hosts' order, each with its host.
    pub(crate) failed: Vec<String>,
}

/// `ask` is called once for each host that is reached.
pub(crate) fn ask_all<A, F>(
    hosts: &[Host],
    remote: &RemoteOptions,
    ask: impl Fn(AgentClient) -> F,
) -> std::io::Result<Answers<A>>
where
    F: Future<Output = Result<Response<A>, Status>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let answers = runtime.block_on(side_by_side(hosts, remote, ask));
    runtime.shutdown_background();
    Ok(answers)
}

async fn side_by_side<A, F>(
    hosts: &[Host],
    remote: &RemoteOptions,
    ask: impl Fn(AgentClient) -> F,
) -> Answers<A>
where
    F: Future<Output = Result<Response<A>, Status>>,
{
    let targets = hosts.iter().map(target).collect();
    let mut connections = Box::pin(connect_all(targets, CarrierChoice::Auto, remote.clone()));
    let mut asking = FuturesUnordered::new();
    let mut connecting = hosts.len();
    let (mut given, mut failed) = (Vec::new(), Vec::new());
    while connecting > 0 || !asking.is_empty() {
        tokio::select! {
            Some((index, result)) = connections.next(), if connecting > 0 => {
                connecting -= 1;
                match result {
                    Ok(connection) => {
                        for note in &connection.notes {
                            say(&format!("{}: {note}", hosts[index]));
                        }
                        let answer = ask_one(connection, &ask);
                        asking.push(async move { (index, answer.await) });
                    }
                    Err(error) => failed.push((index, error.to_string())),
                }
            }
            Some((index, answer)) = asking.next() => {
                let name = hosts[index].to_string();
                match answer {
                    Ok(answer) => given.push((index, (name, answer))),
                    Err(error) => failed.push((index, format!("{name}: the agent {error}"))),
                }
            }
        }
    }
    Answers {
        given: in_order(given),
        failed: in_order(failed),
    }
}

async fn ask_one<A, F>(connection: Connection, ask: &impl Fn(AgentClient) -> F) -> Result<A, String>
where
    F: Future<Output = Result<Response<A>, Status>>,
{
    let Connection {
        io, diagnostics, ..
    } = connection;
    let client = rlaunch_control::connect(io)
        .await
        .map_err(|error| format!("does not answer: {error}"))?;
    let reply = ask(client).await;
    drop(diagnostics);
    reply
        .map(Response::into_inner)
        .map_err(|status| format!("cannot look: {}", status.message()))
}

fn target(host: &Host) -> HostTarget {
    HostTarget {
        name: host.name.clone(),
        user: host.user.clone(),
        port: host.port,
    }
}

fn in_order<T>(mut by_index: Vec<(usize, T)>) -> Vec<T> {
    by_index.sort_by_key(|(index, _)| *index);
    by_index.into_iter().map(|(_, value)| value).collect()
}
