//! MASTER_ADDR and MASTER_PORT: an address of rank 0's host that every host has proven.
//!
//! One host: 127.0.0.1, nothing to prove. Several: the addresses of rank 0's host are candidates,
//! that by which the launcher reached it first; each host connects to each and reads back the
//! nonce of rank 0's agent (on docker0's shared address one reaches oneself). The first candidate
//! that all have proven is taken. Never a loopback, never a name.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::join_all;
use rlaunch_control::v1;
use rlaunch_plan::environment::Master;
use tracing::debug;

use super::DriveError;
use super::reach::Reached;
use crate::settings::Settings;

/// A host that drops packets is given up after this; all addresses are tried at once.
const PROOF_MAX: Duration = Duration::from_secs(3);

pub(super) async fn choose(
    settings: &Settings,
    nodes: &mut [Reached],
) -> Result<Master, DriveError> {
    let candidates = match (settings.rendezvous.master_address, nodes.len()) {
        (Some(address), _) => vec![address],
        (None, 1) => vec![IpAddr::from([127, 0, 0, 1])],
        (None, _) => candidates(&nodes[0]),
    };
    if candidates.is_empty() {
        return Err(DriveError::NoMaster(no_candidate(&nodes[0])));
    }
    let addresses: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    let request = v1::OpenMasterRequest {
        port: settings.rendezvous.master_port.map_or(0, u32::from),
        hold: settings.rendezvous.hold_port,
        addresses: addresses.clone(),
    };
    let first = &mut nodes[0];
    let opened = match first.client.open_master(request).await {
        Ok(reply) => reply.into_inner(),
        Err(status) => {
            let message = status.message().to_owned();
            let did = "cannot hold MASTER_PORT";
            return Err(DriveError::Agent {
                host: first.name.clone(),
                did,
                message,
            });
        }
    };
    let Some(port) = u16::try_from(opened.master_port)
        .ok()
        .filter(|port| *port > 0)
    else {
        let message = format!("it gave port {}", opened.master_port);
        return Err(DriveError::Agent {
            host: first.name.clone(),
            did: "answers nonsense",
            message,
        });
    };
    // The user's own address is theirs to know: it may be one that only ranks can use.
    if nodes.len() == 1 || settings.rendezvous.master_address.is_some() {
        return Ok(Master {
            address: addresses[0].clone(),
            port,
        });
    }
    let proofs = prove(&addresses, &opened, nodes).await?;
    let proven = |address: &&String| {
        proofs.iter().all(|host| {
            host.iter()
                .any(|proof| proof.address == **address && proof.proven)
        })
    };
    match addresses.iter().find(proven) {
        Some(address) => Ok(Master {
            address: address.clone(),
            port,
        }),
        None => Err(DriveError::NoMaster(nothing_proven(
            nodes, &addresses, &proofs,
        ))),
    }
}

/// In order of preference: the address by which it was reached, IPv4, IPv6.
fn candidates(node: &Reached) -> Vec<IpAddr> {
    let interfaces = node
        .survey
        .interfaces
        .iter()
        .filter(|it| it.up && !it.loopback);
    let own = interfaces.flat_map(|interface| &interface.addresses);
    let mut addresses: Vec<IpAddr> = own
        .filter_map(|text| text.parse().ok())
        .filter(is_candidate)
        .collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    if let Some(peer) = node.peer_address.filter(is_candidate) {
        addresses.insert(0, peer);
    }
    let mut seen = std::collections::BTreeSet::new();
    addresses.retain(|address| seen.insert(*address));
    addresses
}

/// Loopback and link-local addresses mean another machine on each host.
fn is_candidate(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_unspecified() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unspecified() && !v6.is_unicast_link_local(),
    }
}

async fn prove(
    addresses: &[String],
    opened: &v1::OpenMasterReply,
    nodes: &mut [Reached],
) -> Result<Vec<Vec<v1::Proof>>, DriveError> {
    let request = v1::ProveMasterRequest {
        addresses: addresses.to_vec(),
        probe_port: opened.probe_port,
        nonce: opened.nonce.clone(),
        timeout_ms: u32::try_from(PROOF_MAX.as_millis()).expect("a few seconds"),
    };
    let calls = nodes.iter_mut().map(|node| {
        let request = request.clone();
        async move {
            let reply = node.client.prove_master(request).await;
            reply
                .map(|reply| reply.into_inner().proofs)
                .map_err(|status| DriveError::Agent {
                    host: node.name.clone(),
                    did: "cannot prove an address",
                    message: status.message().to_owned(),
                })
        }
    });
    let proofs: Vec<_> = join_all(calls)
        .await
        .into_iter()
        .collect::<Result<_, _>>()?;
    for (node, proofs) in nodes.iter().zip(&proofs) {
        debug!(host = node.name, ?proofs, "proofs");
    }
    Ok(proofs)
}

fn no_candidate(node: &Reached) -> String {
    format!(
        "{}: rank 0's host has no address but loopback, so no other host can reach it\n\
         hint: is its network up? --master-addr ADDRESS names an address yourself",
        node.name
    )
}

fn nothing_proven(nodes: &[Reached], addresses: &[String], proofs: &[Vec<v1::Proof>]) -> String {
    let mut text = format!(
        "no address of {} (rank 0's host) can be reached from every host:",
        nodes[0].name
    );
    for address in addresses {
        for (node, proofs) in nodes.iter().zip(proofs) {
            let why = match proofs.iter().find(|proof| proof.address == *address) {
                Some(proof) if proof.proven => continue,
                Some(proof) => proof.why_not.as_str(),
                None => "not tried",
            };
            text.push_str(&format!("\n  {address} from {}: {why}", node.name));
        }
    }
    text.push_str(
        "\nhint: is a firewall between the hosts? --master-addr ADDRESS names an address yourself",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_link_local_are_no_candidates() {
        for (address, expected) in [
            ("127.0.0.1", false),
            ("::1", false),
            ("fe80::1", false),
            ("169.254.1.1", false),
            ("0.0.0.0", false),
            ("10.0.0.1", true),
            ("2001:db8::1", true),
        ] {
            assert_eq!(
                is_candidate(&address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }
}
