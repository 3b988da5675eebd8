//! Every option of the heading Output, and that it does what it says.

use super::{finish, ranks, rlaunch, run};

/// An option that is listed is tried here.
#[test]
fn every_output_option_is_tried() {
    let help = run(&["--help"]).stdout;
    let section = help.split("\nOutput:\n").nth(1).expect("a heading Output");
    let section = section.split("\n\n").next().unwrap();
    let options: Vec<&str> = section
        .split_whitespace()
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .map(|word| word.trim_end_matches("..."))
        .collect();
    assert!(options.len() >= 6, "{options:?}");
    let tried = include_str!("output_options.rs");
    for option in options {
        let word = format!("\"{option}\"");
        assert!(tried.contains(&word), "{option} is not tried here");
    }
}

#[test]
fn lines_are_tagged() {
    let script = "echo a; echo b; echo c >&2; printf d";
    let run = ranks(2, &["--tag-output"], script);
    let mut lines: Vec<&str> = run.stdout.lines().collect();
    lines.sort_unstable();
    let expected =
        ["0", "1"].map(|rank| ["a", "b", "d"].map(|text| format!("[{rank}]<stdout>: {text}")));
    assert_eq!(lines, expected.concat());
    let mut lines: Vec<&str> = run.stderr.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0]<stderr>: c", "[1]<stderr>: c"]);
}

/// `2026-11-30T19:20:13.123Z `, before the tag.
#[test]
fn lines_have_their_time() {
    let run = ranks(
        1,
        &["--timestamp", "--tag-output"],
        "echo a; sleep 0.4; echo b",
    );
    let lines: Vec<(&str, &str)> = run
        .stdout
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .collect();
    assert_eq!(lines[0].1, "[0]<stdout>: a");
    assert_eq!(lines[1].1, "[0]<stdout>: b");
    let shape = |stamp: &str| stamp.replace(|letter: char| letter.is_ascii_digit(), "9");
    assert_eq!(shape(lines[0].0), "9999-99-99T99:99:99.999Z");
    assert!(lines[0].0 < lines[1].0, "{lines:?}");
}

/// What is not shown is in the files, and in the verdict.
#[test]
fn only_some_ranks_are_shown_and_all_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/logs");
    let options = ["--only", "1-2", "--output-dir", path.to_str().unwrap()];
    let script = "echo out $RANK; echo err $RANK >&2; [ $RANK != 3 ] || { sleep 0.5; exit 3; }";
    let run = ranks(4, &options, script);
    let mut lines: Vec<&str> = run.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["out 1", "out 2"]);
    let (talk, verdict) = run.stderr.split_once("rlaunch: ").expect("a verdict");
    assert!(!talk.contains("err 3") && talk.contains("err 2"), "{talk}");
    assert!(verdict.contains("err 3"), "{verdict}");
    for rank in 0..4 {
        for (stream, word) in [("stdout", "out"), ("stderr", "err")] {
            let file = path.join(format!("rank{rank}.{stream}"));
            let text = std::fs::read_to_string(file).unwrap();
            assert_eq!(text, format!("{word} {rank}\n"));
        }
    }
    assert_eq!(
        std::fs::read_dir(path).unwrap().count(),
        9,
        "and their list"
    );
}

#[test]
fn nothing_is_shown_if_asked_for() {
    let run = ranks(2, &["--only", "none"], "seq 1 100000; echo word >&2");
    assert_eq!(
        (run.code, run.stdout, run.stderr),
        (Some(0), String::new(), String::new())
    );
}

#[test]
fn ranks_that_are_not_there_are_refused() {
    for options in [["--only", "0,2"], ["--stdin", "2"]] {
        let run = ranks(2, &options, "true");
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        let expected = format!("rlaunch: {}: there is no rank 2; the job has 2", options[0]);
        assert!(run.stderr.starts_with(&expected), "{}", run.stderr);
    }
}

/// Before any rank runs.
#[test]
fn a_directory_that_cannot_be_made_is_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().join("below");
    let run = ranks(1, &["--output-dir", path.to_str().unwrap()], "echo ran");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    for words in ["--output-dir", "below", "Not a directory", "hint"] {
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
}

/// In the order of its writes, in one file too.
#[test]
fn stderr_goes_where_stdout_goes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let script = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done";
    let run = ranks(1, &["--merge-stderr", "--output-dir", path], script);
    let expected: String = (1..=5).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str()),
        (&expected[..], "")
    );
    let file = directory.path().join("rank0.stdout");
    assert_eq!(std::fs::read_to_string(file).unwrap(), expected);
    assert!(!directory.path().join("rank0.stderr").exists());
}

/// Notes are left out; why the job failed is not.
#[test]
fn quiet_leaves_out_notes() {
    for (option, says) in [(None, true), (Some("--quiet"), false), (Some("-q"), false)] {
        let mut command = rlaunch();
        command.args(option).args(["--mca", "btl", "self"]);
        let run = finish(command.args(["-np", "1", "--", "sh", "-c", "exit 3"]));
        assert_eq!(run.code, Some(3));
        assert_eq!(run.stderr.contains("--mca"), says, "{}", run.stderr);
        assert!(run.stderr.contains("code 3"), "{}", run.stderr);
    }
}

#[test]
fn verbose_tells_the_steps() {
    let run = ranks(1, &["--verbose"], "true");
    assert!(run.stderr.contains("all ranks run"), "{}", run.stderr);
}

/// Words that other launchers have for it.
#[test]
fn other_launchers_words_are_understood() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let options = ["-output-filename", path, "-merge-stderr-to-stdout", "-l"];
    let run = ranks(1, &options, "echo a >&2");
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str()),
        ("[0]<stdout>: a\n", "")
    );
    let text = std::fs::read_to_string(directory.path().join("rank0.stdout"));
    assert_eq!(text.unwrap(), "a\n");
}
