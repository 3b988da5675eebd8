//! `rlaunch topo`: what this machine is, a machine on file, or each host.
//!
//! Facts are read where the machine is (`rlaunch_topo::snapshot`, by the agent on a host) and
//! understood here, so that all hosts are judged by one version of the rules.

mod error;
mod show;
#[cfg(test)]
mod tests;
mod understand;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rlaunch_control::v1;
use rlaunch_plan::{Host, exit_code};
use rlaunch_remote::RemoteOptions;
use rlaunch_topo::{Tree, anonymous, snapshot};

use crate::ask::ask_all;
use crate::settings::{LookedAt, TopoSettings};
use crate::talk::{self, note, say};
pub use error::TopoError;
use understand::{Facts, understand};

/// `Ok` is the exit code; the pictures are on stdout.
pub fn run(settings: &TopoSettings) -> Result<u8, TopoError> {
    let topo_file = settings.topo_file.as_deref();
    let (facts, mut failed) = match &settings.looked_at {
        LookedAt::This => (vec![here(topo_file)], Vec::new()),
        LookedAt::File(path) => (vec![on_file(path, topo_file)?], Vec::new()),
        LookedAt::Hosts { hosts, remote } => of_hosts(hosts, remote, topo_file)?,
    };
    if let (Some(path), [only]) = (&settings.snapshot, facts.as_slice()) {
        write("--snapshot", path, &anonymous(&only.tree).write())?;
    }
    let understood = understand(facts, topo_file);
    understood.notes.iter().for_each(|text| note(text));
    failed.extend(understood.failed);
    failed.iter().for_each(|text| say(text));
    let seen = understood.seen;
    if seen.is_empty() && !matches!(settings.looked_at, LookedAt::Hosts { .. }) {
        return Ok(exit_code::USAGE);
    }
    if let Some(path) = settings.svg.as_ref().filter(|_| !seen.is_empty()) {
        write("--svg", path, &show::svg(&seen))?;
    }
    let printed = talk::print(&match settings.json {
        true => show::json(&seen),
        false => show::text(&seen),
    });
    Ok(match failed.is_empty() {
        true => printed,
        false => exit_code::LAUNCHER,
    })
}

fn write(option: &'static str, path: &Path, text: &str) -> Result<(), TopoError> {
    std::fs::write(path, text).map_err(|error| TopoError::Write {
        option,
        path: path.to_owned(),
        error,
    })
}

fn here(topo_file: Option<&Path>) -> Facts {
    let mut tree = snapshot::this_machine(true);
    let of_environment = snapshot::nccl_file_of_environment();
    let not_read = add(&mut tree, topo_file.or(of_environment.as_deref()));
    Facts {
        host: None,
        tree,
        not_read,
    }
}

/// NCCL_TOPO_FILE is about this machine, not about that one.
fn on_file(path: &Path, topo_file: Option<&Path>) -> Result<Facts, TopoError> {
    let mut tree = snapshot::open(path).map_err(|error| TopoError::Root {
        path: path.to_owned(),
        error,
    })?;
    let not_read = add(&mut tree, topo_file);
    Ok(Facts {
        host: None,
        tree,
        not_read,
    })
}

/// Why the file was not read, if it was not.
fn add(tree: &mut Tree, topo_file: Option<&Path>) -> Option<String> {
    let path = topo_file?;
    let read = snapshot::add_nccl_file(tree, path);
    read.err()
        .map(|error| format!("{}: {error}", path.display()))
}

/// And what went wrong.
fn of_hosts(
    hosts: &[Host],
    remote: &RemoteOptions,
    topo_file: Option<&Path>,
) -> Result<(Vec<Facts>, Vec<String>), TopoError> {
    // Ranks would find the launcher's variable in their environment too.
    let of_environment = snapshot::nccl_file_of_environment();
    let path = topo_file.or(of_environment.as_deref());
    let bytes = path.map(|path| path.as_os_str().as_bytes().to_vec());
    let request = v1::SnapshotRequest {
        topo_file: bytes.unwrap_or_default().into(),
    };
    let answers = ask_all(hosts, remote, |mut client| {
        let request = request.clone();
        async move { client.snapshot(request).await }
    })
    .map_err(TopoError::Runtime)?;
    let mut failed = answers.failed;
    let mut facts = Vec::new();
    for (host, reply) in answers.given {
        match Tree::parse(&reply.machine) {
            Ok(tree) => facts.push(Facts {
                host: Some(host),
                tree,
                not_read: Some(reply.not_read).filter(|why| !why.is_empty()),
            }),
            Err(error) => failed.push(format!("{host}: the agent's answer: {error}")),
        }
    }
    Ok((facts, failed))
}
