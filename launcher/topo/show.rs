//! Pictures of machines, for people and programs: pure.

use rlaunch_topo::show::{self, View, common};
use serde::Serialize;

use super::understand::{Seen, listed};

/// Each picture once, with the hosts that it is of.
pub(super) fn text(seen: &[Seen]) -> String {
    if let [Seen { host: None, view }] = seen {
        return show::text(view);
    }
    let mut text = String::new();
    for (hosts, view) in alike(seen) {
        if !text.is_empty() {
            text.push('\n');
        }
        let same = if hosts.len() > 1 { ": the same" } else { ":" };
        text.push_str(&format!("{}{same}\n{}", listed(&hosts), show::text(&view)));
    }
    text
}

/// One machine an entry, each with what is its own.
pub(super) fn json(seen: &[Seen]) -> String {
    #[derive(Serialize)]
    struct Entry<'a> {
        host: Option<&'a str>,
        #[serde(flatten)]
        view: &'a View,
    }
    let entries = seen.iter().map(|seen| Entry {
        host: seen.host.as_deref(),
        view: &seen.view,
    });
    let entries: Vec<Entry<'_>> = entries.collect();
    let text = serde_json::to_string_pretty(&entries).expect("plain data has a JSON form");
    text + "\n"
}

/// The pictures one below the other.
pub(super) fn svg(seen: &[Seen]) -> String {
    let pictures = alike(seen).into_iter().map(|(hosts, view)| {
        let title = listed(&hosts);
        (title, view)
    });
    show::svg_of(&pictures.collect::<Vec<_>>())
}

/// Hosts whose picture is the same, in the order of the first of each kind. What they have in common
/// is shown of several.
fn alike(seen: &[Seen]) -> Vec<(Vec<String>, View)> {
    let mut kinds: Vec<(String, Vec<&Seen>)> = Vec::new();
    for one in seen {
        let picture = show::text(&common(&one.view));
        match kinds.iter_mut().find(|(known, _)| *known == picture) {
            Some((_, members)) => members.push(one),
            None => kinds.push((picture, vec![one])),
        }
    }
    let kinds = kinds.into_iter().map(|(_, members)| {
        let hosts = members.iter().filter_map(|one| one.host.clone()).collect();
        let view = match members.as_slice() {
            [only] => only.view.clone(),
            several => common(&several[0].view),
        };
        (hosts, view)
    });
    kinds.collect()
}
