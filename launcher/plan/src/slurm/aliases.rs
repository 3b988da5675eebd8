//! SLURM_NODE_ALIASES: where nodes of a cloud are reached.
//!
//! ```text
//! ec0:10.0.0.7:foo,ec1:[fd00::8]:bar     name : address : the machine's own name
//! ```
//! An address may stand in brackets, an IPv6 one does. Nodes that are not of the job are passed over,
//! as is `(null)`, Slurm's word for nothing.

use super::{SlurmError, SlurmJob, Variables};

const NAME: &str = "SLURM_NODE_ALIASES";

pub(super) fn add(job: &mut SlurmJob, variables: Variables<'_>) -> Result<(), SlurmError> {
    let Some(text) = variables(NAME).filter(|text| text != "(null)") else {
        return Ok(());
    };
    for entry in text.split(',').filter(|entry| !entry.is_empty()) {
        let (name, address) = parse(entry).ok_or_else(|| SlurmError::Value {
            name: NAME.to_owned(),
            value: text.clone(),
            problem: format!(
                "`{}` is not name:address:hostname",
                crate::text::show(entry)
            ),
        })?;
        if let Some(node) = job.nodes.iter_mut().find(|node| node.name == name) {
            node.address = Some(address.to_owned()).filter(|address| address != name);
        }
    }
    Ok(())
}

/// Node and address of one entry.
fn parse(entry: &str) -> Option<(&str, &str)> {
    let (name, rest) = entry.split_once(':')?;
    let (address, hostname) = match rest.strip_prefix('[') {
        Some(inner) => inner.split_once("]:")?,
        None => rest.split_once(':')?,
    };
    let is_plain = |text: &str| !text.is_empty() && !text.contains(['[', ']', ' ']);
    // A second colon in an address without brackets would leave the rest to the hostname.
    let good = is_plain(name) && is_plain(address) && is_plain(hostname) && !hostname.contains(':');
    good.then_some((name, address))
}
