//! The executable on its way to a host: a decimal length, a newline, and that many bytes.

use std::sync::Arc;

use super::greeting::Listener;
use crate::error::ReachCause;
use crate::executable::Agent;

/// Sends it as the host wants it; gives the bytes sent.
pub(super) async fn send(
    listener: &mut Listener,
    agent: &Arc<Agent>,
    encoding: &str,
) -> Result<usize, ReachCause> {
    let packed = match encoding {
        "gzip" => {
            let agent = Arc::clone(agent);
            // Packing takes a while of processor time; it is done once for all hosts.
            let packed = tokio::task::spawn_blocking(move || agent.packed()).await;
            packed.map_err(|error| ReachCause::Push(error.to_string()))?
        }
        "raw" => Arc::clone(&agent.bytes),
        other => {
            return Err(ReachCause::Push(format!(
                "the host asks for an unknown {other:?}"
            )));
        }
    };
    listener
        .say(format!("{}\n", packed.len()).as_bytes())
        .await?;
    listener.say(&packed).await?;
    Ok(packed.len())
}
