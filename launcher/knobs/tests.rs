use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use rlaunch_wire::setting::{is_runtime_setting, misspelt};

use super::error::KnobError;
use super::find::{Found, doubtful, project};
use super::merge::{Layer, Layers, Origins};
use super::table::{Knob, table};
use super::{environment, file};
use crate::cli::Options;

fn knobs() -> Vec<Knob> {
    table(&Options::command())
}

fn found(path: &str, own: bool) -> Found {
    Found {
        path: PathBuf::from(path),
        own,
    }
}

fn of_file(text: &str) -> Layer {
    let mut wrong = Vec::new();
    let found = found("/etc/my/rlaunch.toml", true);
    let layer = file::parse(&found, text, &knobs(), &mut wrong);
    assert_eq!(wrong, []);
    layer
}

fn problem(text: &str) -> String {
    let mut wrong = Vec::new();
    let layer = file::parse(&found("rlaunch.toml", false), text, &knobs(), &mut wrong);
    let layers = Layers::new(knobs(), vec![layer]);
    let error = KnobError::mistakes(wrong, layers.given().iter(), &crate::about::wrong);
    error.unwrap().to_string()
}

fn of_variables(pairs: &[(&str, &str)]) -> Result<Layer, String> {
    let pairs: Vec<(OsString, OsString)> = pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let mut wrong = Vec::new();
    let layer = environment::read(&pairs, &knobs(), &mut wrong);
    match KnobError::mistakes(wrong, [], &|_| None) {
        None => Ok(layer),
        Some(error) => Err(error.to_string()),
    }
}

fn words(layers: Vec<Layer>, typed: &str) -> String {
    let typed: Vec<OsString> = typed.split_whitespace().map(OsString::from).collect();
    let layers = Layers::new(knobs(), layers);
    let words = layers.words(&typed, |_| true, &mut Origins::default());
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    words.join(" ")
}

#[test]
fn a_file_gives_the_words_that_would_be_typed() {
    let layer = of_file(
        "tag-output = true\nnp = 4\ntimeout = 1.5\nverbose = 2\nhost_timeout = \"9\"\n\
         hostfile = \"hosts\"\nidentity = [\"a\", \"/b\"]\nexport = [\"NCCL_*\", \"A=1,2\"]\n\
         oversubscribe = false\n",
    );
    assert_eq!(
        words(vec![layer], ""),
        "--np=4 --hostfile=/etc/my/hosts --export=NCCL_* --export=A=1,2 --tag-output --verbose \
         --verbose --timeout=1.5 --host-timeout=9 --identity=/etc/my/a --identity=/b"
    );
}

#[test]
fn variables_give_them_too() {
    let layer = of_variables(&[
        ("RLAUNCH_NP", "4"),
        ("RLAUNCH_TAG_OUTPUT", "yes"),
        ("RLAUNCH_HOST", "n[1,2]:2,b"),
        ("RLAUNCH_EXPORT", "A,NCCL_*"),
        ("RLAUNCH_IDENTITY", "/a:/b"),
        ("RLAUNCH_JOB_TIMEOUT", "2h"),
        ("RLAUNCH_TIMEOUT", "30"),
        ("RLAUNCH_PYTHON", ""),
        ("NP", "9"),
    ]);
    assert_eq!(
        words(vec![layer.unwrap()], ""),
        "--np=4 --host=n[1,2]:2,b --export=A --export=NCCL_* --tag-output --timeout=2h \
         --identity=/a --identity=/b"
    );
    assert_eq!(
        of_variables(&[("RLAUNCH_TAG_OUTPUT", "maybe")]).unwrap_err(),
        "the environment variable RLAUNCH_TAG_OUTPUT=maybe: expected 1 or 0"
    );
    assert_eq!(
        of_variables(&[("RLAUNCH_ENV", "some")]).unwrap_err(),
        "the environment variable RLAUNCH_ENV=some: `some` is none of all, none"
    );
}

/// typed > variable > project > user; a switch can be taken back; -H and -hostfile are one thing.
#[test]
fn the_nearest_source_wins() {
    let layers = || {
        vec![
            of_file(
                "np = 1\ntag-output = true\nkill-after = \"1\"\nhostfile = \"/u\"\nexport = \"U\"\n",
            ),
            of_file("np = 2\ntag-output = false\nexport = [\"P\"]\n"),
            of_variables(&[("RLAUNCH_NP", "3"), ("RLAUNCH_EXPORT", "E")]).unwrap(),
        ]
    };
    assert_eq!(
        words(layers(), ""),
        "--np=3 --hostfile=/u --export=U --export=P --export=E --kill-after=1"
    );
    assert_eq!(
        words(layers(), "--np=4 --host=a --export=T -- --kill-after=7"),
        "--export=U --export=P --export=E --kill-after=1"
    );
    let mut near = layers();
    near.push(of_variables(&[("RLAUNCH_HOST", "b")]).unwrap());
    assert!(words(near, "").starts_with("--np=3 --host=b --export="));
}

#[test]
fn mistakes_of_a_file_are_told_together() {
    assert_eq!(
        problem(
            "tag-ouput = true\n\nnp = true\n  tag-output = 1\nssh-program = \"x\"\nmodule = \"a\"\n"
        ),
        "rlaunch.toml:1:1: unknown setting `tag-ouput`, did you mean `tag-output`?\n\
         rlaunch.toml:3:1: `np`: expected text, found true or false\n\
         rlaunch.toml:4:3: `tag-output`: expected true or false, found a number\n\
         rlaunch.toml:5:1: `ssh-program` can't be chosen by a project's file; it stands in your \
         own, in RLAUNCH_SSH_PROGRAM, or is typed\n\
         rlaunch.toml:6:1: `module` is of one command line, no setting"
    );
    assert_eq!(
        problem("zzzzzz = 1\n"),
        "rlaunch.toml:1:1: unknown setting `zzzzzz`; `rlaunch settings` lists all"
    );
    assert!(problem("np = = 4\n").starts_with("rlaunch.toml:1:6: "));
    let many: String = (0..9).map(|n| format!("zzzzz{n} = 1\n")).collect();
    assert!(problem(&many).ends_with("\nand 4 more mistakes"));
    // Values too, whichever of them a run would meet first.
    assert_eq!(
        problem("np = \"x\"\ntimeout = \"soon\"\nonly = \"y\"\nmap-by = \"cpu\"\n")
            .lines()
            .map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": "))
            .collect::<Vec<_>>(),
        [
            "rlaunch.toml:1: -np x",
            "rlaunch.toml:2: --timeout soon",
            "rlaunch.toml:3: --only y",
            "rlaunch.toml:4: --map-by cpu",
            "hint: slot, node, numa or ppr:N:node, with :PE=N for N cores a rank",
        ]
    );
}

/// Found from below, unless somebody else could have put it there.
#[test]
fn a_projects_file_is_found_upwards() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    let path = folder.path().join("rlaunch.toml");
    std::fs::write(&path, "np = 2\n").unwrap();
    let mut notes = Vec::new();
    let project = |notes: &mut Vec<String>| project(&below, notes).map(|found| found.path);
    assert_eq!(project(&mut notes), Some(path.clone()));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(project(&mut notes), None);
    assert!(notes[0].contains("is not read: everybody may change it\nhint: RLAUNCH_CONFIG="));
    let metadata = path.metadata().unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(doubtful(&metadata, 0).is_some());
    let metadata = Path::new(&path).metadata().unwrap();
    let owner = std::os::unix::fs::MetadataExt::uid(&metadata);
    assert_eq!(doubtful(&metadata, owner), None);
}

/// Each variable means one thing, and what reads RLAUNCH_* elsewhere knows it.
#[test]
fn variables_are_known_and_of_one_meaning() {
    let knobs = knobs();
    for knob in &knobs {
        let name = &knob.variable;
        assert!(
            !is_runtime_setting(name),
            "{name} is the runtime's: see table::VARIABLES"
        );
        let told = misspelt(name.as_bytes());
        assert_eq!(told, None, "`cargo x gen` makes the table of names");
        let uses = knobs.iter().filter(|other| other.variable == *name).count();
        assert_eq!(uses, 1, "{name}");
    }
}
