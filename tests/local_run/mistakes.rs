//! Bad input: one line that says what and where, exit code 2, no host contacted.

use std::path::Path;

use super::run;

/// The message, after its checks: `rlaunch:`, one line but for hints, code 2.
fn refused(arguments: &[&str]) -> String {
    let run = run(arguments);
    assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
    assert_eq!(run.stdout, "");
    let mut lines = run.stderr.lines();
    let message = lines.next().unwrap();
    assert!(message.starts_with("rlaunch: "), "{}", run.stderr);
    assert!(
        lines.all(|line| line.starts_with("hint: ")),
        "{}",
        run.stderr
    );
    message.to_owned()
}

fn hostfile(directory: &Path, text: &str) -> String {
    let path = directory.join("hosts");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// 198.51.100.1 is an address that nobody has: contacting it would take long and fail otherwise.
#[test]
fn bad_hostfiles() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let message = refused(&["-np", "1", "-hostfile", missing.to_str().unwrap(), "true"]);
    assert!(message.contains("missing: No such file"), "{message}");
    for (text, parts) in [
        ("", &["no host"] as &[&str]),
        ("# only a comment\n\n", &["no host"]),
        (
            "198.51.100.1 slots=2\n198.51.100.2 slot=2\n",
            &["hosts:2:14", "slot=2"],
        ),
        ("198.51.100.1 slots=x\n", &["hosts:1:20", "slots=x"]),
        (
            "198.51.100.1 198.51.100.2\n",
            &["hosts:1:14", "198.51.100.2"],
        ),
    ] {
        let path = hostfile(directory.path(), text);
        let message = refused(&["-np", "1", "-hostfile", &path, "true"]);
        for part in parts {
            assert!(message.contains(part), "{text:?}: {message}");
        }
    }
}

#[test]
fn bad_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let path = hostfile(
        directory.path(),
        "198.51.100.1 slots=4\n198.51.100.2 slots=4\n",
    );
    let message = refused(&["-np", "0", "-hostfile", &path, "true"]);
    assert!(message.contains("-np 0"), "{message}");
    let message = refused(&["-np", "9", "-hostfile", &path, "true"]);
    assert!(message.contains('9') && message.contains('8'), "{message}");
    refused(&["-np", "x", "true"]);
    refused(&["-np", "1", "--timeout", "soon", "true"]);
}

#[test]
fn bad_words() {
    let message = refused(&["--tagoutput", "true"]);
    assert!(message.contains("--tag-output"), "{message}");
    refused(&[]);
    refused(&["-np", "2"]);
    refused(&["doctor"]);
    let message = refused(&["-np", "1", ""]);
    assert!(message.contains("name is empty"), "{message}");
}

/// Whoever types a switch to be off is not asked again.
#[test]
fn a_switch_is_taken_back_by_typing() {
    for (off, stdout) in [
        (&[][..], "[0]<stdout>: here\n"),
        (&["--tag-output", "--tag-output=false"], "here\n"),
        (&["-tag-output=0"], "here\n"),
        (
            &["--tag-output=no", "--tag-output=yes"],
            "[0]<stdout>: here\n",
        ),
    ] {
        let mut command = super::rlaunch();
        command.env("RLAUNCH_TAG_OUTPUT", "1").args(off);
        let run = super::finish(command.args(["-np", "1", "echo", "here"]));
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), (stdout, ""));
    }
}

/// Values, too, as a job would tell them; what is set is listed all the same.
#[test]
fn settings_tell_what_is_wrong() {
    for (variable, value, told) in [
        ("RLAUNCH_NP", "many", "expected a whole number"),
        ("RLAUNCH_KILL_AFTER", "zz", "expected a time"),
        ("RLAUNCH_TAG_OUTPUT", "banana", "expected 1 or 0"),
    ] {
        let mut command = super::rlaunch();
        command.env(variable, value).env("RLAUNCH_QUIET", "1");
        let run = super::finish(command.arg("settings"));
        assert_eq!(run.code, Some(2), "{variable}: {}", run.stderr);
        assert!(run.stderr.contains(told), "{variable}: {}", run.stderr);
        assert!(run.stdout.contains("RLAUNCH_QUIET"), "{}", run.stdout);
    }
}

/// Files and variables: who wins, what is said of mistakes, and what no project may choose.
#[test]
fn settings_come_from_files_and_variables() {
    let directory = tempfile::tempdir().unwrap();
    let (users, project) = (directory.path().join("rlaunch"), directory.path().join("p"));
    std::fs::create_dir(&users).unwrap();
    std::fs::create_dir_all(project.join("below")).unwrap();
    let users = users.join("rlaunch.toml");
    let run = |variable: (&str, &str), arguments: &[&str]| {
        let mut command = super::rlaunch();
        command
            .env("XDG_CONFIG_HOME", directory.path())
            .env(variable.0, variable.1)
            .current_dir(project.join("below"));
        super::finish(command.args(arguments))
    };
    std::fs::write(
        &users,
        "oversubscribe = true\nnp = 2\nexport = \"A=user\"\n",
    )
    .unwrap();
    let echo = ["sh", "-c", "echo $WORLD_SIZE$A"];
    assert_eq!(run(("X", ""), &echo).stdout, "2user\n".repeat(2));
    std::fs::write(project.join("rlaunch.toml"), "np = 3\n").unwrap();
    assert_eq!(run(("X", ""), &echo).stdout, "3user\n".repeat(3));
    assert_eq!(run(("RLAUNCH_NP", "1"), &echo).stdout, "1user\n");
    let typed = [
        "-np",
        "2",
        "-x",
        "A=typed",
        "sh",
        "-c",
        "echo $A$RLAUNCH_NP",
    ];
    let typed = run(("RLAUNCH_NP", "1"), &typed);
    assert_eq!(
        (typed.stdout, typed.stderr),
        ("typed\n".repeat(2), String::new())
    );
    let refused = |variable, text: &str| {
        let run = run(variable, &["true"]);
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains(text), "{}", run.stderr);
    };
    refused(
        ("RLAUNCH_NP", "x"),
        "-np x: expected a whole number\nset by the environment variable RLAUNCH_NP\n",
    );
    refused(("RLAUNCH_CONFIG", "/nonexistent"), "hint: a file, or none");
    std::fs::write(project.join("rlaunch.toml"), "\nhostfile = \"h\"\n").unwrap();
    refused(
        ("X", ""),
        "p/h: No such file or directory (os error 2)\nset by ",
    );
    refused(("X", ""), "p/rlaunch.toml:2\n");
    std::fs::write(
        project.join("rlaunch.toml"),
        "\nkill-aftr = \"1\"\nagent = \"x\"\n",
    )
    .unwrap();
    refused(
        ("X", ""),
        "rlaunch.toml:2:1: unknown setting `kill-aftr`, did you mean `kill-after`?",
    );
    refused(
        ("X", ""),
        "rlaunch.toml:3:1: `agent` can't be chosen by a project's file",
    );
    let listed = run(("RLAUNCH_CONFIG", users.to_str().unwrap()), &["settings"]);
    let line = format!("np = \"2\"    # {}:2\n", users.display());
    assert!(listed.stdout.contains(&line), "{}", listed.stdout);
}

/// A plan is shown all the same.
#[test]
fn a_dry_run_tells_of_a_program_that_is_not_here() {
    let told = "rlaunch: localhost has no program nosuch: a run would end with 127\n";
    for (words, stderr) in [
        (&["nosuch"] as &[&str], told),
        (&["--quiet", "nosuch"], ""),
        (
            &["-x", "PATH=/nonexistent", "true"],
            &told.replace("nosuch", "true"),
        ),
        (&["./nosuch"], &told.replace("nosuch", "./nosuch")),
        (&["--wdir", "/bin", "./sh"], ""),
        (&["true"], ""),
        // What another host has is not known.
        (&["-H", "198.51.100.1:1", "nosuch"], ""),
    ] {
        let run = run(&[&["--dry-run", "-np", "1"], words].concat());
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (Some(0), stderr),
            "{words:?}"
        );
        assert!(run.stdout.contains("rank"), "{}", run.stdout);
    }
}

/// What is right is shown and followed where no job depends on the rest.
#[test]
fn mistakes_in_settings_hold_up_jobs_alone() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = super::rlaunch();
        super::finish(command.current_dir(folder.path()).args(words))
    };
    let told = "rlaunch.toml:2:1: unknown setting `npp`, did you mean `np`?\n";
    let text = "tag-output = true\nnpp = 3\n";
    std::fs::write(folder.path().join("rlaunch.toml"), text).unwrap();
    assert_eq!(run(&["true"]).code, Some(2));
    let settings = run(&["settings"]);
    assert_eq!(settings.code, Some(2));
    assert!(settings.stderr.ends_with(told), "{}", settings.stderr);
    let tag = "tag-output = true    # ";
    assert!(settings.stdout.contains(tag), "{}", settings.stdout);
    let id = "0123456789abcdef0123456789abcdef";
    let reap = run(&["reap", "--job", id]);
    assert_eq!(reap.code, Some(0), "{}", reap.stderr);
    let told = format!("{told}hint: rlaunch reap takes what is right\n");
    assert!(reap.stderr.ends_with(&told), "{}", reap.stderr);
    // No document at all.
    std::fs::write(folder.path().join("rlaunch.toml"), "= =\n").unwrap();
    assert_eq!(run(&["reap", "--job", id]).code, Some(0));
    let mut command = super::rlaunch();
    let command = command
        .env("RLAUNCH_CONFIG", "/nonexistent")
        .args(["reap", "--job", id]);
    assert_eq!(super::finish(command).code, Some(0));
}

#[test]
fn help_version_and_dry_run_print_on_stdout() {
    let help = run(&["--help"]);
    assert_eq!(help.code, Some(0));
    assert!(help.stdout.contains("Ranks and hosts") && help.stderr.is_empty());
    assert!(run(&["--version"]).stdout.starts_with("rlaunch "));
    // No host is contacted, since all slots are known.
    let dry = run(&[
        "--dry-run",
        "-np",
        "3",
        "-H",
        "198.51.100.1:2,198.51.100.2:2",
        "-x",
        "MY_KEY=s3cret-4711",
        "true",
    ]);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    assert!(
        dry.stdout.contains("198.51.100.2") && !dry.stdout.contains("s3cret-4711"),
        "{}",
        dry.stdout
    );
    let json = run(&[
        "--dry-run",
        "--json",
        "-np",
        "3",
        "-H",
        "198.51.100.1:2,198.51.100.2:2",
        "true",
    ]);
    assert!(json.stdout.trim_start().starts_with('{'), "{}", json.stdout);
}
