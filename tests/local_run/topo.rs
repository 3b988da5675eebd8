//! `rlaunch topo` of machines on file, and what is said of files that are none.

use std::path::{Path, PathBuf};

use super::{Run, rlaunch, run};

fn machines() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/topologies");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut machines: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    machines.sort();
    assert!(machines.len() >= 9, "{machines:?}");
    machines
}

fn topo(words: &[&str]) -> Run {
    let words: Vec<&str> = ["topo"].iter().chain(words).copied().collect();
    run(&words)
}

fn shown(words: &[&str]) -> String {
    let run = topo(words);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{words:?}");
    run.stdout
}

fn refused(words: &[&str]) -> String {
    let run = topo(words);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{words:?}");
    run.stderr
}

/// Written anew with RLAUNCH_TEST_UPDATE=1; the diff is to be read.
fn golden(path: &Path, found: &str) {
    if std::env::var_os("RLAUNCH_TEST_UPDATE").is_some() {
        std::fs::write(path, found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines = (1..).zip(expected.lines().zip(found.lines()));
    if let Some((number, (expected, found))) = lines.find(|(_, (a, b))| a != b) {
        panic!(
            "{}:{number}: expected {expected:?}, found {found:?}; RLAUNCH_TEST_UPDATE=1 writes anew",
            path.display()
        );
    }
    assert_eq!(expected.len(), found.len(), "{}", path.display());
}

#[test]
fn machines_on_file_are_shown_as_they_stand_there() {
    let pictures = tempfile::tempdir().unwrap();
    let picture = pictures.path().join("picture.svg");
    let picture = picture.to_str().unwrap();
    let check = |machine: &Path, name: &str, more: &[&str]| {
        let file = |extension: &str| machine.join(name).with_extension(extension);
        let mut words = vec!["--root", machine.to_str().unwrap()];
        words.extend(more);
        golden(
            &file("txt"),
            &shown(&[&words[..], &["--svg", picture]].concat()),
        );
        golden(&file("svg"), &std::fs::read_to_string(picture).unwrap());
        golden(&file("json"), &shown(&[&words[..], &["--json"]].concat()));
    };
    for machine in machines() {
        check(&machine, "shown", &[]);
        let described = machine.join("topology.xml");
        if described.is_file() {
            let words = ["--topo-file", described.to_str().unwrap()];
            check(&machine, "shown-nccl", &words);
        }
    }
}

/// Whatever it is: it has cores, and nothing is asked of any host.
#[test]
fn this_machine_is_shown() {
    let text = shown(&[]);
    assert!(text.contains("What belongs together\n"), "{text}");
    assert!(!text.contains("\n\n\n"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&shown(&["--json"])).unwrap();
    let cores = json[0]["machine"]["usable"]["nodes"][0]["cores"].as_array();
    assert!(!cores.unwrap().is_empty());
}

#[test]
fn what_is_no_machine_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    assert!(
        refused(&["--root", "/nosuch"]).contains("--root /nosuch: cannot read it: No such file")
    );
    assert!(refused(&["--root", place]).contains("holds no machine"));
    let file = folder.path().join("machine.txt");
    for (text, why) in [
        ("", "it is not a recorded machine: its first line is not"),
        ("<system/>", "it is not a recorded machine"),
        ("rlaunch machine 1\n/ = x\n", "line 2: a name is missing"),
    ] {
        std::fs::write(&file, text).unwrap();
        let told = refused(&["--root", place]);
        assert!(told.contains(why) && told.contains("hint: "), "{told}");
    }
    let told = refused(&["--root", place, "-H", "a"]);
    assert!(told.contains("no host is asked"), "{told}");
    refused(&["node1"]);
    refused(&["--nosuch"]);
}

/// A file that was named has to be good; of one that a variable names only a word is said, as NCCL does.
#[test]
fn broken_files_of_nccl() {
    let machine = machines().into_iter().find(|it| it.ends_with("desktop"));
    let machine = machine.unwrap();
    let machine = machine.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("topology.xml");
    let path = file.to_str().unwrap();
    let other = "<system><cpu numaid='0'><pci busid='00ff:01:00.0'/></cpu></system>";
    for (text, why) in [
        (None, "No such file or directory"),
        (Some(""), "no XML"),
        (Some("<system><cpu></system>"), "no XML"),
        (Some("<cpu/>"), "the outermost element is <cpu>"),
        (
            Some(other),
            "none of the devices that it names is on this machine",
        ),
    ] {
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let told = refused(&["--root", machine, "--topo-file", path]);
        let begin = format!("rlaunch: --topo-file {path}: ");
        assert!(told.starts_with(&begin) && told.contains(why), "{told}");
        let run = super::finish(rlaunch().arg("topo").env("NCCL_TOPO_FILE", path));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stderr.contains("NCCL_TOPO_FILE"), "{}", run.stderr);
        assert!(run.stderr.contains("shown without it"), "{}", run.stderr);
    }
}

#[test]
fn files_that_cannot_be_written_are_told() {
    for option in ["--svg", "--snapshot"] {
        let run = topo(&[option, "/nosuch/x"]);
        assert_eq!(run.code, Some(125), "{}", run.stderr);
        let told = format!("{option} /nosuch/x: No such");
        assert!(run.stderr.contains(&told), "{}", run.stderr);
    }
    let told = refused(&["--snapshot", "x", "-H", "198.51.100.1,198.51.100.2"]);
    assert!(told.contains("it takes one machine"), "{told}");
}

/// For a bug report: the same machine, but whose it is.
#[test]
fn a_recorded_machine_is_the_same_without_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machine.txt");
    let file = file.to_str().unwrap();
    let machine = machines().into_iter().find(|it| it.ends_with("dgx-h100"));
    let machine = machine.unwrap();
    let before = shown(&["--root", machine.to_str().unwrap(), "--snapshot", file]);
    let after = shown(&["--root", file]);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(before.contains("10.20.0.7") && !text.contains("10.20.0.7"));
    let behind_the_tree = |text: &str| {
        let at = text.find("\n\n  ").unwrap();
        text[at..].to_owned()
    };
    assert_eq!(behind_the_tree(&before), behind_the_tree(&after));
    // This machine, too; and what was recorded of it is a machine.
    shown(&["--snapshot", file]);
    shown(&["--root", file]);
}

/// What stands in a file of settings for every job is not typed: no contradiction.
#[test]
fn hosts_of_settings_are_no_contradiction() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("rlaunch.toml"),
        "host = \"198.51.100.1\"\n",
    )
    .unwrap();
    let machine = machines().remove(0);
    let mut command = rlaunch();
    command.args(["topo", "--root"]).arg(machine);
    let run = super::finish(command.current_dir(folder.path()));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}
