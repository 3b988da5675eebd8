//! How jobs end: codes, verdicts, and nothing left behind.

use std::time::Duration;

use super::{finish, is_gone, ranks, rlaunch, wait_until};

#[test]
fn success_is_silent() {
    let run = ranks(2, &[], "true");
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (Some(0), "", "")
    );
}

/// The code is that of the rank that failed, also when the other one would run on.
#[test]
fn a_failing_rank_ends_the_job_with_its_code() {
    let script = "if [ $RANK = 1 ]; then echo last words >&2; exit 3; fi; sleep 100";
    let run = ranks(2, &[], script);
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert!(run.stderr.contains("rank 1"), "{}", run.stderr);
    assert!(run.stderr.contains("last words"), "{}", run.stderr);
    assert!(run.took < Duration::from_secs(20));
}

/// The others end by themselves, and the job's code still tells of the first failure.
#[test]
fn others_may_go_on_after_a_failure() {
    let script = "if [ $RANK = 1 ]; then kill -9 $$; fi; sleep 1; echo went on";
    for options in [&["--on-failure", "continue"][..], &["--enable-recovery"]] {
        let run = ranks(3, options, script);
        assert_eq!(run.code, Some(137), "{}", run.stderr);
        assert_eq!(run.stdout, "went on\nwent on\n", "{}", run.stderr);
        assert!(run.stderr.contains("the others go on"), "{}", run.stderr);
        assert!(run.stderr.contains("rank 1 on"), "{}", run.stderr);
        assert!(!run.stderr.contains("ended by rlaunch"), "{}", run.stderr);
    }
}

#[test]
fn a_killed_rank_gives_137() {
    let run = ranks(2, &[], "if [ $RANK = 0 ]; then kill -9 $$; fi; sleep 100");
    assert_eq!(run.code, Some(137), "{}", run.stderr);
    assert!(
        run.stderr.contains("SIGKILL") && run.stderr.contains("rank 0"),
        "{}",
        run.stderr
    );
}

#[test]
fn the_timeout_gives_124() {
    // 0 is none, as for timeout(1).
    assert_eq!(ranks(1, &["--timeout", "0"], "sleep 0.2").code, Some(0));
    let run = ranks(2, &["--timeout", "0.3", "--kill-after", "1"], "sleep 100");
    assert_eq!(run.code, Some(124), "{}", run.stderr);
    assert!(run.took < Duration::from_secs(20));
}

/// TERM is ignored: KILL comes.
#[test]
fn ranks_that_ignore_term_are_killed() {
    let script = "trap '' TERM; if [ $RANK = 0 ]; then exit 9; fi; sleep 100; sleep 100";
    let run = ranks(2, &["--kill-after", "0.2"], script);
    assert_eq!(run.code, Some(9), "{}", run.stderr);
    assert!(run.took < Duration::from_secs(20));
}

/// Whoever forks when TERM comes leaves a child that did not get it.
#[test]
fn a_child_that_is_born_after_term_is_asked_to_end_too() {
    let script = "trap 'sleep 1000 & exit 0' TERM; while :; do sleep 0.02; done";
    let run = ranks(2, &["--timeout", "0.3"], script);
    assert_eq!(run.code, Some(124), "{}", run.stderr);
    let refused = run.stderr.contains("did not end by SIGTERM");
    assert!(!refused, "{}", run.stderr);
}

/// Nobody would wake it: the others have ended.
#[test]
fn a_stopped_rank_that_is_left_alone_is_ended() {
    for (code, options) in [(0, &[][..]), (5, &["--on-failure", "continue"])] {
        let script = format!("if [ $RANK = 1 ]; then kill -STOP $$; fi; sleep 1; exit {code}");
        let options = [options, &["--kill-after", "1"]].concat();
        let run = ranks(3, &options, &script);
        // KILL it was, never TERM, which it might have handled.
        assert_eq!(run.code, Some(137), "{}", run.stderr);
        assert!(run.took < Duration::from_secs(20));
        for words in [
            "rank 1 on",
            "is stopped, and the others have all ended",
            "KILL follows in 1 s",
        ] {
            assert!(run.stderr.contains(words), "{}", run.stderr);
        }
        let verdict = "was stopped, and still was when the others had ended";
        assert!(run.stderr.contains(verdict), "{}", run.stderr);
    }
}

/// A child in a session of its own does not keep the job from ending, and does not outlive it.
#[test]
fn background_children_are_gone() {
    let directory = tempfile::tempdir().unwrap();
    let pid_file = directory.path().join("pid");
    let script = format!(
        "setsid sh -c 'echo $$ > {0}; exec sleep 100' & \
                          while [ ! -s {0} ]; do sleep 0.01; done; exit 7",
        pid_file.display()
    );
    let run = ranks(1, &[], &script);
    assert_eq!(run.code, Some(7), "{}", run.stderr);
    assert!(run.took < Duration::from_secs(20));
    wait_until("the background child", || is_gone(&pid_file));
}

#[test]
fn a_missing_program_is_said_with_its_host() {
    let run = finish(rlaunch().args(["-np", "1", "no-such-program-here"]));
    assert_eq!(run.code, Some(127), "{}", run.stderr);
    assert!(
        run.stderr.contains("no-such-program-here"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("localhost"), "{}", run.stderr);
}

#[test]
fn a_missing_directory_is_said_with_its_remedy() {
    let run = finish(rlaunch().args(["-np", "1", "--wdir", "/dev/null/x", "true"]));
    assert_eq!(run.code, Some(126), "{}", run.stderr);
    for part in ["/dev/null/x", "localhost", "--wdir"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
}
