//! `--json`: the job's report for programs, and `--max-restarts`, which it tells of.

use super::lost::under_sh;
use super::{Run, finish, ranks, rlaunch};
use serde_json::Value;
use std::process::Command;

/// The last line of stderr.
fn report(run: &Run) -> Value {
    let line = run.stderr.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {}", run.stderr))
}

#[test]
fn the_report_has_every_rank_and_the_cause() {
    let script = "if [ $RANK = 1 ]; then echo why >&2; exit 3; fi; sleep 100";
    let run = ranks(2, &["--json"], script);
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    let report = report(&run);
    assert_eq!(report["exit_code"], 3);
    assert_eq!(report["error"], Value::Null);
    let verdict = &report["verdict"];
    let cause = &verdict["outcome"]["cause"];
    assert_eq!(
        (&cause["cause"], &cause["rank"]),
        (&"rank_ended".into(), &1.into())
    );
    assert_eq!(verdict["last_lines"][0]["text"], "why");
    for rank in 0..2 {
        let rank = &verdict["ranks"][rank];
        assert!(rank["pid"].as_u64().unwrap() > 1);
        assert_eq!(rank["host"], "localhost");
        let (started, ended) = (&rank["started_us"], &rank["ended_us"]);
        assert!(started.as_i64().unwrap() <= ended.as_i64().unwrap());
        assert!(started.as_i64() >= report["started_us"].as_i64());
        assert!(ended.as_i64() <= report["ended_us"].as_i64());
    }
    assert_eq!(verdict["ranks"][1]["fate"]["ended"]["code"], 3);
    assert_eq!(verdict["ranks"][0]["fate"]["stopped"]["signal"], 15);
    assert_eq!(report["map"]["world_size"], 2);
    // The paragraph for people is there, too.
    assert!(
        run.stderr.contains("\nrlaunch: rank 1 on localhost"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_report_can_go_to_a_file_and_tells_of_success_and_of_no_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let option = format!("--json={}", file.display());
    let read = || -> Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let run = ranks(1, &[&option], "true");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(read()["verdict"]["outcome"]["outcome"], "success");
    let mut command = rlaunch();
    command.args(["-H", "198.51.100.1:1", "--start-timeout", "0.3"]);
    let run = finish(command.args([&option, "true"]));
    assert_eq!(run.code, Some(125), "{}", run.stderr);
    let report = read();
    let (code, verdict) = (&report["exit_code"], &report["verdict"]);
    assert_eq!((code, verdict), (&125.into(), &Value::Null));
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("198.51.100.1: not reached"), "{report}");
    // A mistake in the name costs no job.
    let run = ranks(1, &["--json=/nonexistent/report"], "echo ran");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(
        run.stderr.contains("--json=/nonexistent/report: No such"),
        "{}",
        run.stderr
    );
}

/// Whatever is in the way, the report is the last line, behind the same error for people.
#[test]
fn a_job_that_cannot_begin_has_its_report() {
    for (words, code) in [
        (&["-np", "99", "-H", "localhost:2", "true"][..], 2),
        (&["-np", "1", "--only", "9", "true"], 2),
        (&["-np", "1", "--wdir", "/proc/x/y", "true"], 126),
        (&["-np", "1", "--output-dir", "/proc/x", "true"], 2),
        (&["-np", "1", "--hostfile", "/nonexistent", "true"], 2),
        (&["-np", "1", "--timeout", "x", "true"], 2),
        (&["-np", "x", "true"], 2),
        (&["-np", "1", "--no-such-option", "true"], 2),
        (&["-np", "1"], 2),
    ] {
        let run = finish(rlaunch().arg("--json").args(words));
        assert_eq!(run.code, Some(code), "{words:?}: {}", run.stderr);
        let report = report(&run);
        assert_eq!(report["exit_code"], code, "{words:?}");
        assert_eq!(report["verdict"], Value::Null, "{words:?}");
        let error = report["error"].as_str().unwrap();
        let said = format!("rlaunch: {error}\n");
        assert!(run.stderr.starts_with(&said), "{words:?}: {}", run.stderr);
    }
}

/// A report that is lost is no success; a job that failed keeps its code.
#[test]
fn a_report_that_cannot_be_written_is_told() {
    for (option, script, code) in [
        ("--json=/dev/full", "true", 125),
        ("--json=/dev/full", "exit 3", 3),
    ] {
        let run = ranks(1, &[option], script);
        assert_eq!(run.code, Some(code), "{script}: {}", run.stderr);
        let told = "rlaunch: --json=/dev/full: No space left on device: the report is lost\n";
        assert!(run.stderr.ends_with(told), "{}", run.stderr);
    }
    for (redirected, code) in [("2>/dev/full", 125), ("2>&-", 125), ("2>/dev/null", 0)] {
        let script = format!("exec \"$0\" \"$@\" {redirected}");
        let run = finish(&mut under_sh(&script, &["--json", "-np", "1", "true"]));
        assert_eq!(run.code, Some(code), "{redirected}: {}", run.stderr);
    }
}

/// The report of a command that began no job, which ends in it: behind the words for people.
fn unstarted(command: &mut Command, code: i32) -> Value {
    let run = finish(command);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(code), ""),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.starts_with("rlaunch: "),
        "{command:?}: {}",
        run.stderr
    );
    let report = report(&run);
    assert_eq!(report["exit_code"], code, "{command:?}: {report}");
    assert_eq!(report["verdict"], Value::Null, "{command:?}: {report}");
    let error = report["error"].as_str().unwrap();
    let told = format!("rlaunch: {error}\n");
    assert!(run.stderr.contains(&told), "{command:?}: {}", run.stderr);
    report
}

#[test]
fn other_reasons_not_to_begin_are_reported() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output_dir = format!("--output-dir={}/x", file.path().display());
    let no_json = format!("--json={}/x", file.path().display());
    for (words, code) in [
        (&["-np", "1", "--stdin", "9"] as &[&str], 2),
        (&["-np", "1", &output_dir], 2),
        (&["-np", "x", "--dry-run"], 2),
        (&["-H", "localhost:1", "-np", "9", "--dry-run"], 2),
        (&["--env", "some"], 2),
        (&["--mem", "4"], 2),
        // The last one counts.
        (&[&no_json, "--json", "-np", "x"], 2),
    ] {
        let mut command = rlaunch();
        unstarted(command.arg("--json").args(words).arg("true"), code);
    }
    unstarted(rlaunch().arg("--json"), 2);
    unstarted(rlaunch().args(["--json", "-np"]), 2);
    // As far as it is understood.
    for words in [
        &["--no-such-option", "--json", "true"] as &[&str],
        &["-np", "x", "true", "--json"],
    ] {
        let run = finish(rlaunch().args(words));
        assert_eq!(
            (run.code, run.stderr.lines().count()),
            (Some(2), 1),
            "{}",
            run.stderr
        );
    }
}

/// A report that files and variables ask for, also where they have mistakes.
#[test]
fn mistakes_of_settings_are_reported() {
    unstarted(
        rlaunch()
            .env("RLAUNCH_JSON", "1")
            .args(["-np", "x", "true"]),
        2,
    );
    unstarted(
        rlaunch()
            .env("RLAUNCH_JSON", "1")
            .args(["--nosuch", "true"]),
        2,
    );
    let variables = [("RLAUNCH_JSON", "1"), ("RLAUNCH_TAG_OUTPUT", "maybe")];
    unstarted(rlaunch().envs(variables).arg("true"), 2);
    let none = [("RLAUNCH_JSON", "1"), ("RLAUNCH_CONFIG", "/nonexistent")];
    unstarted(rlaunch().envs(none).arg("true"), 2);
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let toml = format!("json = \"{}\"\nnp = true\n", report.display());
    std::fs::write(folder.path().join("rlaunch.toml"), toml).unwrap();
    let run = finish(rlaunch().current_dir(folder.path()).arg("true"));
    assert_eq!(
        (run.code, run.stderr.lines().count()),
        (Some(2), 1),
        "{}",
        run.stderr
    );
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let error = report["error"].as_str().unwrap();
    assert!(
        error.ends_with("rlaunch.toml:2:1: `np`: expected text, found true or false"),
        "{error}"
    );
}

/// The plan stands in the file in its place.
#[test]
fn a_plan_that_can_not_be_written_or_made_is_told() {
    let dry = ["--dry-run", "--json=/dev/full", "-np", "1", "true"];
    let run = finish(rlaunch().args(dry));
    assert_eq!(run.code, Some(125), "{}", run.stderr);
    let told = "rlaunch: --json=/dev/full: No space left on device";
    assert!(run.stderr.starts_with(told), "{}", run.stderr);
    let file = tempfile::NamedTempFile::new().unwrap();
    let option = format!("--json={}", file.path().display());
    let run = finish(rlaunch().args(["--dry-run", &option, "-np", "1", "true"]));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let plan: Value = serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap();
    assert_eq!(plan["world_size"], 1);
}

#[test]
fn reap_reports_what_it_could_not_do() {
    unstarted(rlaunch().args(["reap", "--json", "--job", "x"]), 2);
    unstarted(
        rlaunch().args(["reap", "--json", "--hostfile", "nofile"]),
        2,
    );
    unstarted(rlaunch().args(["reap", "--json", "--nosuch"]), 2);
    let ssh = ["--ssh-program", "false"];
    let run = finish(
        rlaunch()
            .args(["reap", "--json", "-H", "198.51.100.1"])
            .args(ssh),
    );
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(125), "[]\n"),
        "{}",
        run.stderr
    );
    let report = report(&run);
    let error = report["error"].as_str().unwrap();
    assert!(error.starts_with("cannot reach 198.51.100.1 "), "{report}");
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = rlaunch()
        .args(["reap", "--json"])
        .stdout(full)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert_eq!(report["error"], "stdout: No space left on device");
}

/// Twice a failure, then success: each time all ranks, with a port of its own.
#[test]
fn a_failed_job_is_started_again() {
    let script = "echo $RANK $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS \
                  $TORCHELASTIC_RUN_ID $MASTER_PORT; \
                  if [ $RANK = 1 ]; then [ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 7; \
                  elif [ $TORCHELASTIC_RESTART_COUNT != 2 ]; then sleep 100; fi";
    let run = ranks(2, &["--max-restarts", "3", "--json"], script);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report = report(&run);
    assert_eq!(report["restarts"].as_array().unwrap().len(), 2);
    assert_eq!(report["restarts"][1]["exit_code"], 7);
    assert_eq!(report["verdict"]["outcome"]["outcome"], "success");
    for number in ["1 of 3", "2 of 3"] {
        let words = format!("rlaunch: starting the whole job again (restart {number})\n");
        assert!(run.stderr.contains(&words), "{}", run.stderr);
    }
    let lines: Vec<Vec<&str>> = run
        .stdout
        .lines()
        .map(|line| line.split(' ').collect())
        .collect();
    assert_eq!(lines.len(), 6, "{}", run.stdout);
    let of = |field: usize| {
        let mut values: Vec<&str> = lines.iter().map(|line| line[field]).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    assert_eq!((of(0), of(1), of(2), of(3)), (2, 3, 1, 1), "{}", run.stdout);
    assert!(of(4) > 1, "fresh ports: {}", run.stdout);
}

#[test]
fn restarts_come_to_an_end_and_are_not_for_everything() {
    let run = ranks(1, &["--max-restarts", "2"], "echo ran; exit 5");
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(5), "ran\nran\nran\n"),
        "{}",
        run.stderr
    );
    let run = ranks(
        1,
        // Long enough for a busy machine to print before it.
        &["--max-restarts", "2", "--timeout", "3"],
        "echo ran; sleep 100",
    );
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(124), "ran\n"),
        "{}",
        run.stderr
    );
    let run = finish(rlaunch().args(["-np", "1", "--max-restarts", "2", "no-such-program-here"]));
    assert_eq!(run.code, Some(127));
    assert!(!run.stderr.contains("again"), "{}", run.stderr);
    let run = ranks(1, &["--max-restarts", "2", "--stdin", "0"], "true");
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("--stdin and --max-restarts"),
        "{}",
        run.stderr
    );
}
