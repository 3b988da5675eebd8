//! What stands in files and variables, put in front of what is typed.

use std::ffi::OsString;

use crate::knobs::{Layers, Origins};

/// What each of several programs takes of the defaults; the first one takes all.
const OF_EACH: [&str; 5] = ["env", "env-file", "export", "python", "wdir"];

/// Options of any program that speak for the whole job.
const OF_ALL: [&str; 2] = ["--host", "--hostfile"];

/// What `rlaunch reap` and `topo` take: which hosts, and how they are reached.
const OF_HOSTS_ASKED: [&str; 9] = [
    "agent",
    "host",
    "hostfile",
    "identity",
    "scheduler",
    "ssh-accept-new",
    "ssh-always",
    "ssh-port",
    "ssh-program",
];

/// Whether the words ask for help or the version, which needs no settings, and must not fail for them.
pub(super) fn only_shows(programs: &[Vec<OsString>]) -> bool {
    let mut options = programs.iter().flat_map(|words| options(words));
    options.any(|word| word == "--help" || word == "--version")
}

/// Of each program, where what was put in front of its words comes from.
pub(super) fn put_in_front(layers: &Layers, programs: &mut [Vec<OsString>]) -> Vec<Origins> {
    let mut all = Vec::with_capacity(programs.len());
    let hosts: Vec<OsString> = programs
        .iter()
        .flat_map(|words| options(words))
        .filter(|word| {
            let text = word.to_string_lossy();
            OF_ALL.contains(&text.split('=').next().unwrap_or_default())
        })
        .cloned()
        .collect();
    for (number, words) in programs.iter_mut().enumerate() {
        let mut typed = hosts.clone();
        typed.extend(options(words).cloned());
        let wanted = |name: &str| number == 0 || OF_EACH.contains(&name);
        let mut origins = Origins::default();
        let defaults = layers.words(&typed, wanted, &mut origins);
        words.splice(0..0, defaults);
        all.push(origins);
    }
    all
}

/// As [`put_in_front`], for the words of a command that asks hosts.
pub(super) fn put_in_front_of_hosts_asked(
    layers: &Layers,
    words: &mut Vec<OsString>,
    origins: &mut Origins,
) {
    let typed: Vec<OsString> = options(words).cloned().collect();
    let defaults = layers.words(&typed, |name| OF_HOSTS_ASKED.contains(&name), origins);
    words.splice(0..0, defaults);
}

/// Stands among normalised words for a switch that is typed to be off, so that files and variables
/// are not asked; clap has no such word.
pub(super) fn off(long: &str) -> OsString {
    format!("--{long}{OFF}").into()
}

/// No value that a user types: it would end a C string.
const OFF: &str = "=\0";

/// They have spoken.
pub(super) fn leave_out_off(words: &mut Vec<OsString>) {
    words.retain(|word| !word.as_encoded_bytes().ends_with(OFF.as_bytes()));
}

/// Those in front of the program.
fn options(words: &[OsString]) -> impl Iterator<Item = &OsString> {
    words.iter().take_while(|word| *word != "--")
}
