//! Several programs in one job, directories, and what `--dry-run` says of them.

use super::{finish, ranks, rlaunch, run};

/// Every rank's line, sorted.
fn lines(stdout: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn programs_share_a_world_and_have_options_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let own = path.to_str().unwrap();
    let script = "echo $RANK $WORLD_SIZE $LOCAL_RANK $RLAUNCH_APPNUM $ROLE_RANK/$ROLE_WORLD_SIZE \
                  ${A-none} $0";
    let mut command = rlaunch();
    command
        .args(["--oversubscribe", "-np", "1", "-x", "A=first", "sh", "-c"])
        .args([script, "one", ":", "-np", "2", "-wdir", own, "-x", "A=2"])
        .args(["sh", "-c", &format!("{script} $(pwd)"), "two", ":"])
        .args([
            "-np", "1", "--env", "none", "/bin/sh", "-c", script, "a : b",
        ]);
    let run = finish(&mut command);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let expected = [
        "0 4 0 0 0/1 first one".to_owned(),
        format!("1 4 1 1 0/2 2 two {own}"),
        format!("2 4 2 1 1/2 2 two {own}"),
        "3 4 3 2 0/1 none a : b".to_owned(),
    ];
    assert_eq!(lines(&run.stdout), expected, "{}", run.stderr);
}

/// A mistake names the program; the code is that of the rank, whatever program it runs.
#[test]
fn what_is_wrong_names_the_program() {
    let refused = |words: &[&str]| {
        let run = run(words);
        assert_eq!(run.code, Some(2), "{words:?}: {}", run.stderr);
        run.stderr
    };
    let text = refused(&["-np", "1", "a", ":", "-np", "x", "/bin/b"]);
    assert_eq!(
        text,
        "rlaunch: program 1 (b): -np x: expected a whole number\n"
    );
    let hosts = "198.51.100.1:1,198.51.100.2:1";
    let text = refused(&["-np", "1", "-H", hosts, "a", ":", "-np", "2", "-m", "b"]);
    let expected = "rlaunch: program 1 (b): -np 2 asks for more ranks than there are slots (1): \
                    198.51.100.1 0, 198.51.100.2 1\n";
    assert!(text.starts_with(expected), "{text}");
    let text = refused(&["-np", "1", "a", ":", "-H", "x:y", "b"]);
    assert!(text.starts_with("rlaunch: program 1 (b): "), "{text}");
    let text = refused(&["-np", "1", "a", ":", "--timeout", "1", "b"]);
    assert!(
        text.contains("program 1: --timeout is an option of the whole job"),
        "{text}"
    );
    let run = run(&[
        "--oversubscribe",
        "-np",
        "1",
        "sleep",
        "60",
        ":",
        "-np",
        "1",
        "sh",
        "-c",
        "exit 7",
    ]);
    assert_eq!(run.code, Some(7), "{}", run.stderr);
}

#[test]
fn hosts_are_dealt_and_numbered_as_asked() {
    let dry = |words: &[&str]| {
        let mut all = vec!["--dry-run", "--json"];
        all.extend(words);
        let run = run(&all);
        assert_eq!(run.code, Some(0), "{words:?}: {}", run.stderr);
        let map: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let ranks = map["ranks"].as_array().unwrap().iter();
        let hosts = ranks.map(|rank| rank["host"].as_str().unwrap().to_owned());
        (hosts.collect::<Vec<_>>().join(""), map)
    };
    let hosts = |words: &[&str]| dry(words).0;
    assert_eq!(hosts(&["-np", "3", "-H", "a:2,b:2", "x"]), "aab");
    assert_eq!(hosts(&["-np", "3", "-H", "a:2,b:2", "-bynode", "x"]), "aba");
    assert_eq!(
        hosts(&["-H", "a:2,b:2", "--map-by", "ppr:1:node", "x"]),
        "ab"
    );
    assert_eq!(
        hosts(&["-np", "3", "-H", "a:2,b:2", "--rank-by", "node", "x"]),
        "aba"
    );
    assert_eq!(
        hosts(&[
            "-np",
            "4",
            "-H",
            "a,b",
            "--map-by",
            "node:OVERSUBSCRIBE",
            "x"
        ]),
        "abab"
    );
    assert_eq!(hosts(&["-H", "b", "x", ":", "-H", "a:2", "y"]), "baa");
    assert_eq!(hosts(&["-H", "a:2,b", "-np", "1", "x", ":", "y"]), "aab");
    let (_, map) = dry(&[
        "-np",
        "1",
        "-H",
        "a",
        "-x",
        "A_TOKEN=hidden",
        "x",
        ":",
        "-H",
        "a",
        "y",
    ]);
    assert_eq!(map["programs"][0]["environment"]["A_TOKEN"], "***");
    assert_eq!(
        map["programs"][1]["environment"]["A_TOKEN"],
        serde_json::Value::Null
    );
    assert_eq!(map["programs"][1]["command"], serde_json::json!(["y"]));
    let rank = &map["ranks"][1];
    assert_eq!((&rank["slot"], &rank["program"]), (&1.into(), &1.into()));
    assert_eq!(rank["environment"]["RLAUNCH_APPNUM"], "1");
    let run = run(&["--map-by", "core", "x"]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr
            .contains("--map-by core: there is no mapping by `core`\nhint: ")
    );
}

/// A directory asked for by name is made, and that is said; where it can't be, that is said.
#[test]
fn wdir_is_made_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("new/one");
    let shown = path.to_str().unwrap();
    let dry = run(&["--dry-run", "-np", "1", "--wdir", shown, "pwd"]);
    assert!(
        dry.stderr
            .contains(&format!("localhost: directory {shown} would be created"))
    );
    assert!(!path.exists());
    let made = ranks(2, &["--wdir", shown], "pwd");
    assert_eq!(
        made.stdout,
        format!("{shown}\n{shown}\n"),
        "{}",
        made.stderr
    );
    let told = format!("rlaunch: localhost: directory {shown} is created\n");
    assert_eq!(made.stderr, told);
    let again = ranks(1, &["--wdir", shown], "pwd");
    assert_eq!(
        (again.stdout, again.stderr),
        (format!("{shown}\n"), String::new())
    );
    // JSON has the words as they are, for programs.
    let json = ranks(1, &["--dry-run", "--json"], "echo 'a b'");
    assert!(json.stdout.contains("\"echo 'a b'\""), "{}", json.stdout);
    std::fs::write(path.join("file"), "").unwrap();
    let file = format!("{shown}/file/sub");
    let refused = ranks(1, &["--wdir", &file], "pwd");
    assert_eq!(refused.code, Some(126), "{}", refused.stderr);
    let why = format!("localhost: directory {file} can't be made: not a directory");
    assert!(refused.stderr.contains(&why), "{}", refused.stderr);
}
