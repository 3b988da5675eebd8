//! Everything that parses text of others, and what must hold of any: no panic, no hang, a bounded
//! answer, and what is understood means the same when it is written plainly.
//!
//! Used by the tests, which change bytes at random, and by the fuzzer (`launcher/plan/fuzz`), which
//! looks for inputs that take new ways.

use std::fmt::Write;
use std::path::Path;

use rlaunch_plan::environment::{self, EnvironmentPolicy, Export};
use rlaunch_plan::hostfile::{self, HostEntry};
use rlaunch_plan::slurm::{expand_counts, expand_nodes};
use rlaunch_plan::{Allocation, Host, allocation};
use rlaunch_wire::limits::WORLD_MAX;

pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Folders of the repository with inputs beside the corpus, from this crate's own.
    pub(crate) folders: &'static [&'static str],
    /// Panics where what must hold does not.
    pub(crate) take: fn(&[u8]),
}

const fn target(name: &'static str, folders: &'static [&'static str], take: fn(&[u8])) -> Target {
    Target {
        name,
        folders,
        take,
    }
}

const HOSTFILES: &[&str] = &["../../hostfiles", "../../hostfiles/bad"];

pub(crate) const ALL: [Target; 5] = [
    target("hostfile", HOSTFILES, take_lines),
    target("hosts_toml", HOSTFILES, take_toml),
    target("host_list", &[], take_list),
    target("nodelist", &[], take_nodes),
    target("environment", &[], take_variables),
];

impl Target {
    /// The files of the corpus and of the other folders, in order of their names.
    pub(crate) fn known(&self, plan: &Path) -> Vec<Vec<u8>> {
        let corpus = format!("fuzz/corpus/{}", self.name);
        let folders = self.folders.iter().copied().chain([corpus.as_str()]);
        let mut known = Vec::new();
        for folder in folders {
            let entries = std::fs::read_dir(plan.join(folder)).expect("a folder of the repository");
            let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            let files = paths.into_iter().filter(|path| path.is_file());
            known.extend(files.map(|path| std::fs::read(path).expect("a file of the repository")));
        }
        known
    }
}

fn take_lines(bytes: &[u8]) {
    take_hostfile("hosts", bytes);
}

fn take_toml(bytes: &[u8]) {
    take_hostfile("hosts.toml", bytes);
}

fn take_hostfile(name: &str, bytes: &[u8]) {
    let hosts = match hostfile::parse(name, bytes) {
        Ok(hostfile) => hostfile.hosts,
        Err(error) => return check_message(&error.to_string(), name),
    };
    assert!(!hosts.is_empty());
    let mut plain = String::new();
    for entry in &hosts {
        check_host(&entry.host);
        assert!(entry.slots.is_none_or(|slots| slots <= WORLD_MAX));
        line(entry, &mut plain);
    }
    // Values of the TOML form may hold what no line can.
    let fits = hosts.iter().all(|entry| {
        let details = &entry.details;
        let texts = details.python.iter().chain(&details.directory);
        let mut texts = texts.chain(entry.host.user.iter());
        details.variables.is_empty() && !texts.any(|text| text.contains(['"', '\n', '\r']))
    });
    if !fits {
        return;
    }
    let again = hostfile::parse("plain", plain.as_bytes());
    let again = again.unwrap_or_else(|error| panic!("{plain:?}: {error}"));
    assert_eq!(again.hosts.len(), hosts.len(), "{plain}");
    for (one, other) in hosts.iter().zip(&again.hosts) {
        assert_eq!(one.host, other.host, "{plain}");
        assert_eq!(
            (one.slots, one.max_slots),
            (other.slots, other.max_slots),
            "{plain}"
        );
        assert_eq!(one.details, other.details, "{plain}");
    }
}

/// The entry in the plainest words.
fn line(entry: &HostEntry, text: &mut String) {
    let Host { name, user, port } = &entry.host;
    let details = &entry.details;
    let gpus = details.gpus.as_ref().map(|gpus| match gpus.as_slice() {
        [] => "none".to_owned(),
        [one] if one.parse::<u32>().is_ok() => format!("{one}-{one}"),
        many => many.join(","),
    });
    let nics = (!details.nics.is_empty()).then(|| details.nics.join(","));
    let name = match name.contains(':') {
        true => format!("[{name}]"),
        false => name.clone(),
    };
    let options = [
        ("slots", entry.slots.map(|slots| slots.to_string())),
        ("max_slots", entry.max_slots.map(|max| max.to_string())),
        ("port", port.map(|port| port.to_string())),
        ("user", user.clone()),
        ("gpus", gpus),
        ("nics", nics),
        ("python", details.python.clone()),
        ("workdir", details.directory.clone()),
    ];
    text.push_str(&name);
    for (key, value) in options {
        if let Some(value) = value {
            write!(text, " {key}=\"{value}\"").expect("memory takes it");
        }
    }
    text.push('\n');
}

/// Few lines, each of this file.
fn check_message(message: &str, file: &str) {
    assert!(message.lines().count() <= 6, "{message}");
    let of_file = |line: &str| line.starts_with(&format!("{file}:"));
    assert!(message.lines().all(of_file), "{message}");
    assert!(!message.contains('\0'), "{message:?}");
}

/// Nothing that ssh would take for an option.
fn check_host(host: &Host) {
    assert!(
        !host.name.is_empty() && !host.name.starts_with('-'),
        "{host:?}"
    );
    let user = host.user.as_deref();
    assert!(
        user.is_none_or(|user| !user.is_empty() && !user.starts_with('-')),
        "{host:?}"
    );
    assert!(!host.name.contains(char::is_whitespace), "{host:?}");
}

fn take_list(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match allocation::parse_host_list(&text) {
        Ok(list) => {
            assert!(!list.is_empty());
            list.iter().for_each(|entry| check_host(&entry.host));
            let allocation = Allocation::from_list(&list);
            assert_eq!(allocation.hosts.len(), list.len(), "each host once");
        }
        Err(error) => {
            let message = error.to_string();
            assert!(
                message.starts_with("-H ") && message.lines().count() <= 2,
                "{message}"
            );
        }
    }
}

fn take_nodes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(nodes) = expand_nodes(&text) {
        assert!(nodes.len() <= WORLD_MAX as usize);
        assert!(
            nodes
                .iter()
                .all(|node| !node.is_empty() && !node.contains(['[', ']']))
        );
    }
    if let Ok(counts) = expand_counts(&text) {
        assert!(counts.len() <= WORLD_MAX as usize);
    }
}

fn take_variables(bytes: &[u8]) {
    let exports = match environment::parse_file("f", bytes) {
        Ok(exports) => exports,
        Err(error) => return check_message(&error.to_string(), "f"),
    };
    let launcher: Vec<_> = exports
        .iter()
        .filter_map(|export| Some((export.name.clone(), export.value.clone()?)))
        .collect();
    let typed = bytes.split(|&byte| byte == b'\n').map(Export::parse);
    let all: Vec<Export> = exports.into_iter().chain(typed.flatten()).collect();
    for policy in [EnvironmentPolicy::Portable, EnvironmentPolicy::None] {
        let overlay = environment::overlay(&launcher, policy, &all);
        for (index, (name, value)) in overlay.variables.iter().enumerate() {
            let odd = name.is_empty() || name.iter().any(|byte| b"=\0*?".contains(byte));
            assert!(!odd, "{name:?}");
            assert!(!value.contains(&0), "{name:?}={value:?}");
            let others = &overlay.variables[index + 1..];
            assert!(
                others.iter().all(|(other, _)| other != name),
                "{name:?} twice"
            );
        }
    }
}
