//! From facts to pictures: pure.

use std::path::Path;

use rlaunch_plan::names;
use rlaunch_topo::nccl::{self, Followed, NcclError};
use rlaunch_topo::show::{self, View};
use rlaunch_topo::{Tree, snapshot};

pub(super) struct Facts {
    /// Not told where there is only one machine.
    pub(super) host: Option<String>,
    pub(super) tree: Tree,
    /// Why NCCL's topology file was not: `/a.xml: No such file`.
    pub(super) not_read: Option<String>,
}

pub(super) struct Seen {
    pub(super) host: Option<String>,
    pub(super) view: View,
}

#[derive(Default)]
pub(super) struct Understood {
    pub(super) seen: Vec<Seen>,
    pub(super) notes: Vec<String>,
    pub(super) failed: Vec<String>,
}

/// Whoever names `topo_file` wants no picture without it; one that lies there, or that a variable
/// names, is left out with a word, as NCCL does.
pub(super) fn understand(facts: Vec<Facts>, topo_file: Option<&Path>) -> Understood {
    let mut understood = Understood::default();
    let mut troubles: Vec<(String, Vec<String>)> = Vec::new();
    for Facts {
        host,
        tree,
        not_read,
    } in facts
    {
        let (machine, followed) = nccl::machine(&tree);
        let trouble = trouble(not_read, followed, topo_file);
        let is_seen = trouble.is_none() || topo_file.is_none();
        if let Some(trouble) = trouble {
            let names = host.iter().cloned();
            match troubles.iter_mut().find(|(known, _)| *known == trouble) {
                Some((_, hosts)) => hosts.extend(names),
                None => troubles.push((trouble, names.collect())),
            }
        }
        if is_seen {
            let view = show::view(machine);
            understood.seen.push(Seen { host, view });
        }
    }
    let told = troubles
        .into_iter()
        .map(|(trouble, hosts)| match hosts.is_empty() {
            true => trouble,
            false => format!("{}: {trouble}", listed(&hosts)),
        });
    match topo_file {
        Some(_) => understood.failed = told.collect(),
        None => understood.notes = told.collect(),
    }
    understood
}

fn trouble(
    not_read: Option<String>,
    followed: Followed,
    topo_file: Option<&Path>,
) -> Option<String> {
    let variable = "NCCL_TOPO_FILE";
    match (not_read, followed, topo_file) {
        (Some(why), _, Some(_)) => Some(format!("--topo-file {why}")),
        (Some(why), _, None) => Some(format!("{variable} {why}; shown without it")),
        (None, Followed::No { error, .. }, Some(path)) => Some(format!(
            "--topo-file {}: {}",
            path.display(),
            hinted(&error)
        )),
        (None, Followed::No { path, error }, None) => {
            let name = match path {
                snapshot::NCCL_FILE => variable.to_owned(),
                path => format!("/{path}"),
            };
            Some(format!("{name}: {error}; shown without it"))
        }
        (None, Followed::None | Followed::Yes, _) => None,
    }
}

fn hinted(error: &NcclError) -> String {
    let hint = match error {
        NcclError::Xml(_) | NcclError::NotSystem(_) => "a file as NCCL_TOPO_DUMP_FILE writes it",
        NcclError::NothingHere => "is it another machine's?",
    };
    format!("{error}\nhint: {hint}")
}

/// `node[1-8],gpu07`; `alice@10.0.0.7, bob@10.0.0.7 port 2222`
pub(super) fn listed(hosts: &[String]) -> String {
    let is_name = |host: &String| {
        let mut letters = host.bytes();
        let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-._".contains(&letter);
        letters.all(is_plain) && host.bytes().any(|letter| letter.is_ascii_alphabetic())
    };
    match hosts.iter().all(is_name) {
        true => names::compressed(hosts.iter().map(String::as_str)),
        false => hosts.join(", "),
    }
}
