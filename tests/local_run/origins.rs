//! Where a value stands that nobody typed: told behind each mistake about it, for every option.

use std::path::{Path, PathBuf};

use super::{Run, finish, rlaunch};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("rlaunch/rlaunch.toml")
    }

    fn users(&self, text: &str) {
        std::fs::create_dir_all(self.file().parent().unwrap()).unwrap();
        std::fs::write(self.file(), text).unwrap();
    }

    fn run(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
        let mut command = rlaunch();
        command
            .env("XDG_CONFIG_HOME", self.folder.path())
            .current_dir(self.folder.path());
        for (name, value) in variables {
            command.env(name, value);
        }
        finish(command.args(arguments))
    }
}

/// What is no value of the option, as it stands in a file, and what else has to be typed for it to
/// show. A switch has no wrong value but one of a wrong kind.
const BAD: &[(&str, &str, &str)] = &[
    ("np", "\"0\"", ""),
    ("hostfile", "\"/nonexistent/hosts\"", ""),
    ("host", "\"a b\"", ""),
    ("nproc-per-node", "\"x\"", ""),
    ("nnodes", "\"7\"", ""),
    ("scheduler", "\"pbs\"", ""),
    ("map-by", "\"ppr:0:node\"", ""),
    ("rank-by", "\"cpu\"", ""),
    ("bind-to", "\"toe\"", ""),
    ("cores-per-rank", "\"0\"", ""),
    ("python", "\"/nonexistent/python\"", "-m json.tool"),
    ("wdir", "\"/proc/none\"", ""),
    ("preload", "[\"/nonexistent/file\"]", ""),
    ("export", "[\"A,B\"]", "-x C"),
    ("env-file", "[\"/nonexistent/env\"]", ""),
    ("env", "\"some\"", ""),
    ("stdin", "\"9\"", ""),
    ("output-dir", "\"/proc/none\"", ""),
    ("only", "\"9\"", ""),
    ("timeout", "\"soon\"", ""),
    ("kill-after", "\"soon\"", ""),
    ("on-failure", "\"x\"", ""),
    ("max-restarts", "\"1\"", "--stdin 0"),
    ("start-timeout", "\"soon\"", ""),
    ("host-timeout", "\"soon\"", ""),
    ("json", "\"/nonexistent/report\"", ""),
    ("identity", "[\"/nonexistent/key\"]", ""),
    ("ssh-program", "\"/nonexistent/ssh\"", ""),
    ("ssh-port", "\"0\"", ""),
    ("agent", "\"/nonexistent/agent\"", ""),
    ("master-addr", "\"node1\"", ""),
    ("master-port", "\"0\"", ""),
];

/// A new option has to be put into the table above, unless it is a switch.
#[test]
fn every_option_tells_where_it_was_set() {
    let place = Place::new();
    let listed = place.run(&[], &["settings"]).stdout;
    let names = listed.lines().filter_map(|line| line.strip_prefix("# "));
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 40, "{listed}");
    for name in names {
        let bad = BAD.iter().find(|(known, ..)| *known == name);
        let (_, value, typed) = bad.copied().unwrap_or((name, "\"x\"", ""));
        place.users(&format!("\n{name} = {value}\n"));
        let mut words: Vec<&str> = typed.split_whitespace().collect();
        if !words.contains(&"-m") {
            words.push("true");
        }
        let told = |run: Run, place: &str| {
            assert!(run.code.is_some_and(|code| code != 0), "{name} {value}");
            let (first, rest) = run.stderr.split_once('\n').unwrap();
            let told = first.contains(place) || rest.contains(&format!("set by {place}"));
            assert!(told, "{name} {value}: {}", run.stderr);
        };
        let at = format!("{}:2", place.file().display());
        told(place.run(&[], &words), &at);
        place.users("");
        let variable = match name {
            "timeout" => "RLAUNCH_JOB_TIMEOUT".to_owned(),
            "agent" => "RLAUNCH_AGENT_PATH".to_owned(),
            _ => format!("RLAUNCH_{}", name.to_uppercase().replace('-', "_")),
        };
        // What stands in brackets in a file is parted by commas or colons in a variable.
        let value = match name {
            "export" => "1A",
            _ => value.trim_matches(['[', ']', '"']),
        };
        let told_variable = format!("the environment variable {variable}");
        told(place.run(&[(&variable, value)], &words), &told_variable);
    }
}

/// What was typed is not said to stand in a file, though the file has the option too.
#[test]
fn what_is_typed_is_not_blamed_on_a_file() {
    let place = Place::new();
    place.users("export = [\"GOOD=1\"]\nnp = 1\npython = \"/nonexistent/python\"\n");
    for typed in [
        &["-x", "A,B", "true"] as &[&str],
        &["-np", "x", "true"],
        &["true", ":", "-np", "x", "true"],
    ] {
        let run = place.run(&[], typed);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(!run.stderr.contains("set by"), "{typed:?}: {}", run.stderr);
    }
    // The second program has its interpreter from the file, as the first has.
    let run = place.run(&[], &["true", ":", "-np", "1", "-m", "json.tool"]);
    let at = format!("set by {}:3", place.file().display());
    assert!(run.stderr.contains(&at), "{}", run.stderr);
}

/// A limit that nobody typed looks like a fault of rlaunch's own.
#[test]
fn a_limit_that_ends_a_job_is_told_with_where_it_was_set() {
    let place = Place::new();
    place.users("kill-after = 1\ntimeout = 0.3\n");
    let words = ["-np", "1", "sleep", "100"];
    let told = |run: Run, place: &str| {
        assert_eq!(run.code, Some(124), "{}", run.stderr);
        let text = format!("within 300 ms (--timeout{place})\n");
        assert!(run.stderr.contains(&text), "{}", run.stderr);
    };
    let at = format!(", set by {}:2", place.file().display());
    told(place.run(&[], &words), &at);
    let variable = [("RLAUNCH_JOB_TIMEOUT", "0.3")];
    let at = ", set by the environment variable RLAUNCH_JOB_TIMEOUT";
    told(place.run(&variable, &words), at);
    told(
        place.run(&[], &[&["--timeout", "0.3"] as &[&str], &words].concat()),
        "",
    );
}

/// Also those that a run would not come to.
#[test]
fn all_mistakes_are_told_together() {
    let place = Place::new();
    place.users("np = \"x\"\ntimeout = \"soon\"\nmap-by = \"cpu\"\nonly = \"all\"\n");
    let run = place.run(&[("RLAUNCH_STDIN", "you")], &["true"]);
    assert_eq!(run.code, Some(2));
    let file = place.file();
    for (number, text) in [
        (1, "-np x: "),
        (2, "--timeout soon: "),
        (3, "--map-by cpu: "),
    ] {
        let line = format!("{}:{number}: {text}", file.display());
        assert!(run.stderr.contains(&line), "{}", run.stderr);
    }
    assert!(
        run.stderr.contains("RLAUNCH_STDIN: --stdin you: "),
        "{}",
        run.stderr
    );
    // With what is wrong in form, and in both files.
    place.users("np = \"x\"\ntag-output = 3\n");
    std::fs::write(place.folder.path().join("rlaunch.toml"), "nonsense = 1\n").unwrap();
    let run = place.run(&[], &["true"]);
    let lines: Vec<&str> = run.stderr.lines().collect();
    let [one, two, three] = lines.as_slice() else {
        panic!("{}", run.stderr)
    };
    assert!(one.contains("rlaunch.toml:1:1: unknown setting"), "{one}");
    assert!(two.contains("rlaunch.toml:1: -np x: "), "{two}");
    assert!(three.contains("rlaunch.toml:2:1: `tag-output`"), "{three}");
}

/// A file that was meant to count is never left out in silence.
#[test]
fn a_file_that_cannot_be_read_is_told() {
    let place = Place::new();
    let here = place.folder.path();
    let refused = |text: &str, arguments: &[&str]| {
        let run = place.run(&[], arguments);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(text), "{}", run.stderr);
    };
    let link = |path: &Path| std::os::unix::fs::symlink("gone/away", path).unwrap();
    link(&here.join("rlaunch.toml"));
    refused("rlaunch.toml: No such file or directory", &["true"]);
    refused("it is a link to gone/away", &["true"]);
    std::fs::remove_file(here.join("rlaunch.toml")).unwrap();
    std::fs::create_dir(here.join("rlaunch")).unwrap();
    link(&place.file());
    refused("it is a link to gone/away", &["true"]);
    std::fs::remove_file(place.file()).unwrap();
    link(&here.join("hosts.toml"));
    refused("link to gone/away", &["-hostfile", "hosts.toml", "true"]);
    refused("link to gone/away", &["--env-file", "hosts.toml", "true"]);
    std::fs::write(here.join("rlaunch.toml"), b"np = \"\xff\"\n").unwrap();
    refused("rlaunch.toml: not UTF-8 text", &["true"]);
}

/// What stands on this machine is looked at before any host is contacted.
#[test]
fn absent_keys_and_programs_are_told_before_hosts_are_contacted() {
    let place = Place::new();
    let here = place.folder.path().to_str().unwrap();
    for (option, value, text) in [
        (
            "-i",
            "/nosuch",
            "--identity /nosuch: No such file or directory",
        ),
        ("-i", here, ": is a directory"),
        (
            "--identity=~/nosuch",
            "",
            "/nosuch: No such file or directory",
        ),
        (
            "--agent",
            "/nosuch",
            "--agent /nosuch: No such file or directory",
        ),
        (
            "--ssh-program",
            "nosuch -x",
            "--ssh-program nosuch -x: there is no such program",
        ),
        ("--ssh-program", "ssh 'x", "it is empty, or a quote is open"),
    ] {
        let mut words = vec![option];
        words.extend(Some(value).filter(|value| !value.is_empty()));
        // An address that nobody has: contacting it would take long.
        words.extend(["-H", "198.51.100.1", "true"]);
        let run = place.run(&[], &words);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(text), "{}", run.stderr);
        words.pop();
        for part in ["reap", "topo"] {
            let words = [&[part], words.as_slice()].concat();
            let run = place.run(&[], &words);
            assert_eq!(run.code, Some(2), "{part}: {}", run.stderr);
        }
    }
}
