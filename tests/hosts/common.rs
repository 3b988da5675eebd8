//! A cluster as these tests want it, and ways to look at a job.

use rlaunch_harness::{Cluster, Finished, Options, Process, Running};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A job without a fault in it may take this long on a machine that is busy.
pub(crate) const JOB_LIMIT: Duration = Duration::from_secs(60);
/// What rlaunch promises: nothing is left by then.
pub(crate) const CLEAN_LIMIT: Duration = Duration::from_secs(5);
/// The folder that jobs start in: it is on every host, of its own on each.
pub(crate) const JOB: &str = "/job";

/// `nodes` hosts that have no rlaunch and don't see this checkout, and a head that has it. The
/// examples stand in `/job/examples` everywhere.
pub(crate) fn cluster(nodes: u32) -> Option<Cluster> {
    cluster_with(nodes, |options| options)
}

pub(crate) fn cluster_with(nodes: u32, more: impl Fn(Options) -> Options) -> Option<Cluster> {
    if let Some(reason) = rlaunch_harness::unavailable() {
        eprintln!("SKIPPED: {reason}");
        return None;
    }
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_BIN_EXE_rlaunch"));
    let build = program.parent().expect("a program lies in a folder");
    let options = Options::new(nodes)
        .hide(checkout)
        .hide(build)
        .share(checkout.join("examples"), Path::new(JOB).join("examples"))
        .rlaunch_on_head(build);
    let cluster = Cluster::up(&more(options)).expect("hosts can be made here");
    let all: String = (1..=nodes)
        .map(|node| format!("node{node} slots=2\n"))
        .collect();
    write(&cluster, "head", "/job/hosts", &all);
    Some(cluster)
}

/// A python with numpy and the folder it needs, or a visible word that there is none.
pub(crate) fn python() -> Option<PathBuf> {
    let python = std::env::var_os("RLAUNCH_TEST_PYTHON").map(PathBuf::from);
    if python.is_none() {
        eprintln!("SKIPPED: RLAUNCH_TEST_PYTHON names no python; `cargo x test` sets one up");
    }
    python
}

/// The Python module beside rlaunch, or a visible word that it is not there.
pub(crate) fn module() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_rlaunch"));
    let module = program.with_file_name("python").join("rlaunch");
    if module.exists() {
        return Some(module);
    }
    eprintln!(
        "SKIPPED: no {}; `cargo x test` puts it there",
        module.display()
    );
    None
}

/// A virtual environment, seen at the same place on every host.
pub(crate) fn share_python(options: Options, python: &Path) -> Options {
    match python.ancestors().nth(2) {
        Some(environment) => options.share(environment, environment),
        None => options,
    }
}

pub(crate) fn write(cluster: &Cluster, host: &str, path: &str, text: &str) {
    let path = cluster.path_on(host, path).expect("the host is up");
    fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// `rlaunch WORDS` on head, in the folder for jobs.
pub(crate) fn rlaunch(cluster: &Cluster, words: &[&str]) -> Command {
    let mut command = cluster
        .command("head", JOB, "/usr/local/bin/rlaunch")
        .expect("head is up");
    command.args(words);
    command
}

pub(crate) fn start(cluster: &Cluster, words: &[&str]) -> Running {
    Running::start(rlaunch(cluster, words)).expect("rlaunch starts")
}

pub(crate) fn run(cluster: &Cluster, words: &[&str]) -> Finished {
    start(cluster, words)
        .wait(JOB_LIMIT)
        .unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

pub(crate) fn run_well(cluster: &Cluster, words: &[&str]) -> Finished {
    let finished = run(cluster, words);
    assert!(finished.success(), "{words:?} {}", finished.report());
    finished
}

/// The agents and their keepers; one that is ending has no arguments any more.
pub(crate) fn is_rlaunch(process: &Process) -> bool {
    process.name.starts_with("rlaunch")
}

/// Of ranks and what they started, nothing may be left once the launcher has ended; agents and
/// connections end with it and may take a moment.
pub(crate) fn assert_no_ranks(cluster: &Cluster, what: &str) {
    let left = cluster.leftovers().expect("hosts can be looked at");
    let ours = left.iter().filter(|(_, process)| {
        !(is_rlaunch(process) || process.name.starts_with("sshd") || process.state == 'Z')
    });
    let shown: Vec<String> = ours
        .map(|(host, process)| format!("{host}: {process}"))
        .collect();
    assert!(
        shown.is_empty(),
        "{what}: left after the launcher ended: {shown:#?}"
    );
}

/// `words` have to stand in `text`, each of them.
pub(crate) fn assert_says(finished: &Finished, words: &[&str]) {
    let text = finished.stderr.replace('\n', " ");
    for word in words {
        assert!(
            text.contains(word),
            "nothing about `{word}`: {}",
            finished.report()
        );
    }
}
