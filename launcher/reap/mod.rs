//! `rlaunch reap`: asks the agent of each host what jobs have left there, shows it, has it ended.
//!
//! Hosts are asked side by side; one that can't be reached is named and the others are served.

mod show;

use rlaunch_control::v1;
use rlaunch_plan::{Host, exit_code};
use rlaunch_remote::{CarrierChoice, Connection, HostTarget, connect_all};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::drive::DriveError;
use crate::settings::ReapSettings;
use crate::talk::{self, say};

/// Something is left.
const LEFT: u8 = 1;

/// `Ok` is the exit code; what was found is on stdout.
pub fn run(settings: &ReapSettings) -> Result<u8, DriveError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(DriveError::Runtime)?;
    let (answers, failed) = runtime.block_on(ask_all(settings));
    runtime.shutdown_background();
    for message in &failed {
        say(message);
    }
    let (text, left) = if settings.json {
        show::json(&answers)
    } else {
        show::table(&answers, settings)
    };
    if talk::print(&text) != exit_code::SUCCESS {
        return Ok(exit_code::LAUNCHER);
    }
    Ok(match (failed.is_empty(), left) {
        (false, _) => exit_code::LAUNCHER,
        (true, true) => LEFT,
        (true, false) => exit_code::SUCCESS,
    })
}

/// What each host says, in the hosts' order, and what went wrong.
async fn ask_all(settings: &ReapSettings) -> (Vec<(String, v1::ReapReply)>, Vec<String>) {
    let targets = settings.hosts.iter().map(target).collect();
    let mut connections = Box::pin(connect_all(
        targets,
        CarrierChoice::Auto,
        settings.remote.clone(),
    ));
    let mut asking = FuturesUnordered::new();
    let mut connecting = settings.hosts.len();
    let (mut answers, mut failed) = (Vec::new(), Vec::new());
    while connecting > 0 || !asking.is_empty() {
        tokio::select! {
            Some((index, result)) = connections.next(), if connecting > 0 => {
                connecting -= 1;
                match result {
                    Ok(connection) => asking.push(ask(settings, index, connection)),
                    Err(error) => failed.push((index, error.to_string())),
                }
            }
            Some((index, answer)) = asking.next() => {
                let name = settings.hosts[index].to_string();
                match answer {
                    Ok(answer) => answers.push((index, (name, answer))),
                    Err(error) => failed.push((index, format!("{name}: the agent {error}"))),
                }
            }
        }
    }
    (in_order(answers), in_order(failed))
}

async fn ask(
    settings: &ReapSettings,
    index: usize,
    connection: Connection,
) -> (usize, Result<v1::ReapReply, String>) {
    for note in &connection.notes {
        say(&format!("{}: {note}", settings.hosts[index]));
    }
    let request = v1::ReapRequest {
        job: settings.job.clone(),
        end: settings.end,
        hinted: settings.hinted,
        kill_after_ms: u32::try_from(settings.kill_after.as_millis()).unwrap_or(u32::MAX),
    };
    let Connection {
        io, diagnostics, ..
    } = connection;
    let answer = async {
        let mut client = rlaunch_control::connect(io)
            .await
            .map_err(|error| format!("does not answer: {error}"))?;
        let reply = client.reap(request).await;
        reply
            .map(tonic::Response::into_inner)
            .map_err(|status| format!("cannot look: {}", status.message()))
    };
    let answer = answer.await;
    drop(diagnostics);
    (index, answer)
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
