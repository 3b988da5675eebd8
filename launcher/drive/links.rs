//! The job streams: one to each host's agent, their messages merged into one queue.
//!
//! What is queued towards an agent is bounded by what causes it: credit by output, relays by what
//! other agents sent, heartbeats by `--host-timeout`.

use std::time::Duration;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use rlaunch_control::v1::{self, from_agent, to_agent};
use rlaunch_plan::supervise::LossKind;
use rlaunch_plan::verdict::signal_name;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tracing::info;

use super::reach::Reached;

/// From one host, by node rank.
pub(super) enum FromHost {
    Message(from_agent::Message),
    /// A line of the agent's or ssh's stderr.
    Said(String),
    Ended {
        kind: LossKind,
        detail: String,
    },
}

/// Messages waiting for the supervisor; it never waits itself, so a full queue empties at once.
const QUEUE_MAX: usize = 256;

pub(super) struct Links {
    hosts: Vec<Option<Link>>,
    queue: mpsc::Receiver<(usize, FromHost)>,
}

struct Link {
    to_agent: mpsc::UnboundedSender<v1::ToAgent>,
    reader: AbortHandle,
}

impl Links {
    /// Opens the stream to each node with its launch.
    pub(super) fn open(nodes: Vec<Reached>, launches: Vec<v1::Launch>) -> Self {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let mut hosts = Vec::with_capacity(nodes.len());
        for (index, (node, launch)) in nodes.into_iter().zip(launches).enumerate() {
            let (to_agent, outgoing) = mpsc::unbounded_channel();
            to_agent
                .send(message(to_agent::Message::Launch(launch)))
                .ok();
            tokio::spawn(relay_words(index, node.diagnostics, sender.clone()));
            let agent = (node.client, node.agent_pid);
            let reader = tokio::spawn(read(index, agent, outgoing, sender.clone()));
            hosts.push(Some(Link {
                to_agent,
                reader: reader.abort_handle(),
            }));
        }
        Self { hosts, queue }
    }

    /// The next message of any host. Cancel safe.
    pub(super) async fn next(&mut self) -> (usize, FromHost) {
        match self.queue.recv().await {
            Some(message) => message,
            // Every task has ended and said so.
            None => std::future::pending().await,
        }
    }

    /// What is there already, without waiting.
    pub(super) fn try_next(&mut self) -> Option<(usize, FromHost)> {
        self.queue.try_recv().ok()
    }

    pub(super) fn send(&self, host: usize, body: to_agent::Message) {
        if let Some(link) = &self.hosts[host] {
            link.to_agent.send(message(body)).ok();
        }
    }

    pub(super) fn send_all(&self, body: &to_agent::Message) {
        self.send_others(None, body);
    }

    pub(super) fn send_others(&self, except: Option<usize>, body: &to_agent::Message) {
        for host in (0..self.hosts.len()).filter(|host| Some(*host) != except) {
            self.send(host, body.clone());
        }
    }

    /// Ends the stream, and the connection with it.
    pub(super) fn disconnect(&mut self, host: usize) {
        if let Some(link) = self.hosts[host].take() {
            link.reader.abort();
        }
    }
}

fn message(body: to_agent::Message) -> v1::ToAgent {
    v1::ToAgent {
        message: Some(body),
    }
}

async fn read(
    host: usize,
    (mut client, pid): (rlaunch_control::AgentClient, Option<i32>),
    outgoing: mpsc::UnboundedReceiver<v1::ToAgent>,
    queue: mpsc::Sender<(usize, FromHost)>,
) {
    let ended = match client.run(UnboundedReceiverStream::new(outgoing)).await {
        Err(status) => lost(host, &status),
        Ok(reply) => {
            let mut stream = reply.into_inner();
            loop {
                match stream.next().await {
                    Some(Ok(v1::FromAgent {
                        message: Some(body),
                    })) => {
                        if queue.send((host, FromHost::Message(body))).await.is_err() {
                            return;
                        }
                    }
                    // A message of a later version.
                    Some(Ok(v1::FromAgent { message: None })) => {}
                    Some(Err(status)) => break lost(host, &status),
                    None => {
                        break FromHost::Ended {
                            kind: LossKind::Closed,
                            detail: String::new(),
                        };
                    }
                }
            }
        }
    };
    let ended = match (ended, pid) {
        (FromHost::Ended { kind, detail }, Some(pid)) if detail.is_empty() => FromHost::Ended {
            kind,
            detail: end_of_agent(pid).await.unwrap_or_default(),
        },
        (ended, _) => ended,
    };
    queue.send((host, ended)).await.ok();
}

/// Between a process's last byte and its end, which is told only then.
const END_WAIT: Duration = Duration::from_millis(500);
const END_POLL: Duration = Duration::from_millis(5);

/// The signal that ended an agent of this machine. It stays a child to be waited for, by who started it.
async fn end_of_agent(pid: i32) -> Option<String> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let ended = async {
        loop {
            match waitid(Id::Pid(Pid::from_raw(pid)), flags) {
                Ok(WaitStatus::StillAlive) => tokio::time::sleep(END_POLL).await,
                Ok(WaitStatus::Signaled(_, signal, _)) => return Some(signal),
                _ => return None,
            }
        }
    };
    let signal = tokio::time::timeout(END_WAIT, ended).await.ok()??;
    let text = format!("its agent was ended by {}", signal_name(signal as i32));
    let of_cpu_time = matches!(signal, Signal::SIGXCPU | Signal::SIGKILL);
    Some(match getrlimit(Resource::RLIMIT_CPU) {
        Ok((_, hard)) if of_cpu_time && hard != RLIM_INFINITY => {
            format!("{text} (`ulimit -t` is {hard})")
        }
        _ => text,
    })
}

/// A stream that broke with its connection needs no more words than that; what gRPC and HTTP/2 say
/// of it is for `--verbose`. An agent's own answer is told.
fn lost(host: usize, status: &tonic::Status) -> FromHost {
    let mut detail = status.message().to_owned();
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let text = error.to_string();
        if !detail.contains(&text) {
            detail = format!("{detail}: {text}");
        }
        cause = error.source();
    }
    info!(node = host, detail, "the stream to the agent ended");
    if std::error::Error::source(status).is_some() || detail.contains("h2 protocol error") {
        detail.clear();
    }
    FromHost::Ended {
        kind: LossKind::Reset,
        detail,
    }
}

async fn relay_words(
    host: usize,
    mut diagnostics: mpsc::Receiver<String>,
    queue: mpsc::Sender<(usize, FromHost)>,
) {
    while let Some(line) = diagnostics.recv().await {
        if queue.send((host, FromHost::Said(line))).await.is_err() {
            return;
        }
    }
}
