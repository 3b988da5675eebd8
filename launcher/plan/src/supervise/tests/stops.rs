//! Signals of the user, and `--timeout`.

use super::*;

/// Ranks that never run are named, with their hosts, and the job ends.
#[test]
fn a_start_that_takes_too_long_ends_the_job() {
    let mut job = Job::with(&[2, 2, 1], |settings| {
        settings.start_timeout = Some(Limit::fresh(ms(5_000)));
    });
    [0, 1, 2].into_iter().for_each(|rank| job.started(rank));
    job.wait(ms(4_999));
    assert!(job.terminates().is_empty());
    job.wait(ms(5_400));
    assert_eq!(job.terminates().len(), 1);
    job.exit(0, Ending::Signal(15));
    job.finish_all();
    assert_eq!(job.blamed(), (None, 125));
    let text = job.verdict().render();
    let expected = "rlaunch: ranks 3, 4 were not started within 5 s (--start-timeout): n1, n2\n";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_start_in_time_is_no_matter_any_more() {
    let mut job = Job::with(&[1], |settings| {
        settings.start_timeout = Some(Limit::fresh(ms(5_000)))
    });
    job.started(0);
    job.wait(ms(20_000));
    assert!(job.terminates().is_empty());
}

/// Neither limit runs while the job is suspended, and no host is blamed for its silence.
#[test]
fn a_suspension_does_not_count() {
    let mut job = Job::with(&[1, 1], |settings| {
        settings.job_timeout = Some(Limit::fresh(ms(10_000)))
    });
    [0, 1].into_iter().for_each(|rank| job.started(rank));
    job.wait(ms(9_000));
    job.now = ms(69_000);
    job.event(Event::Resumed { paused: ms(60_000) });
    job.wait(ms(69_900));
    assert!(job.terminates().is_empty() && job.warnings().is_empty());
    job.wait(ms(70_100));
    assert_eq!(job.terminates().len(), 1);
}

const INT: Event = Event::UserSignal { signal: 2 };

#[test]
fn the_first_signal_ends_the_second_kills_the_third_stops_waiting() {
    let mut job = Job::running();
    job.now = ms(1_000);
    job.event(INT);
    assert_eq!(job.terminates(), [(vec![0, 1], ms(10_000))]);
    assert_eq!(
        job.warnings(),
        ["ending the job (TERM); KILL follows in 10 s, ^C again kills now"]
    );
    job.now = ms(1_500);
    job.event(INT);
    assert_eq!(job.terminates()[1], (vec![0, 1], Duration::ZERO));
    assert!(!job.machine.is_done());
    job.event(INT);
    assert_eq!(job.verdict().exit_code, 130);
    assert_eq!(job.disconnected(), [0, 1]);
    assert_eq!(job.verdict().unconfirmed.len(), 2);
}

/// Hydra gave 0 after SIGTERM, and so did mpirun when a rank ignored it.
#[test]
fn a_signal_is_never_0() {
    for (signal, code) in [(2, 130), (15, 143), (1, 129)] {
        let mut job = Job::running();
        job.event(Event::UserSignal { signal });
        (0..4).for_each(|rank| job.exit(rank, Ending::Code(0)));
        job.finish_all();
        assert_eq!(job.verdict().exit_code, code);
        assert_eq!(job.verdict().outcome, Outcome::Interrupted { signal });
    }
}

#[test]
fn a_signal_before_anything_has_started() {
    let mut job = Job::new();
    job.event(INT);
    job.finish_all();
    assert_eq!(job.verdict().exit_code, 130);
    assert!(
        job.verdict()
            .ranks
            .iter()
            .all(|rank| rank.fate != Fate::Ended(Ending::Code(0)))
    );
}

#[test]
fn after_a_second_signal_the_patience_is_short() {
    let mut job = Job::with(&[1], |settings| settings.kill_after = ms(600_000));
    job.event(INT);
    job.wait(ms(5_000));
    job.event(INT);
    job.wait(ms(5_000) + GRACE - ms(1));
    assert!(!job.machine.is_done());
    job.wait(ms(5_000) + GRACE);
    assert_eq!(job.verdict().exit_code, 130);
}

/// What failed first stays the cause; the signal only hurries.
#[test]
fn a_signal_while_reports_are_collected() {
    let mut job = Job::running();
    job.exit(3, Ending::Code(4));
    job.now = ms(100);
    job.event(INT);
    assert_eq!(job.terminates().len(), 1);
    job.event(INT);
    assert_eq!(job.terminates()[1].1, Duration::ZERO);
    job.event(INT);
    assert_eq!(job.blamed(), (Some(3), 4));
}

#[test]
fn a_signal_while_a_failed_job_is_ended_kills() {
    let mut job = Job::running();
    job.exit(3, Ending::Code(4));
    job.wait(ms(300));
    job.event(INT);
    assert_eq!(job.terminates()[1], (vec![0, 1], Duration::ZERO));
}

/// `rlaunch … | head -1`
#[test]
fn a_closed_pipe_ends_but_does_not_hurry() {
    const PIPE: Event = Event::UserSignal { signal: 13 };
    let mut job = Job::running();
    job.event(PIPE);
    job.event(PIPE);
    assert_eq!(job.terminates(), [(vec![0, 1], ms(10_000))]);
    // ^C ends the reader and comes here: however they are seen, the ranks have their time.
    job.event(INT);
    assert_eq!(job.terminates().len(), 1);
    job.event(INT);
    assert_eq!(job.terminates()[1].1, Duration::ZERO);
    job.event(PIPE);
    assert!(!job.machine.is_done());
    (0..4).for_each(|rank| job.exit(rank, Ending::Signal(15)));
    job.finish_all();
    assert_eq!(job.verdict().exit_code, 130);
}

#[test]
fn only_connected_hosts_are_told() {
    let mut job = Job::running();
    (0..2).for_each(|rank| job.exit(rank, Ending::Code(0)));
    job.finish(0);
    job.event(INT);
    assert_eq!(job.terminates(), [(vec![1], ms(10_000))]);
}

#[test]
fn the_timeout_ends_the_job_with_124() {
    let mut job = Job::with(&[2, 2], |settings| {
        settings.job_timeout = Some(Limit::fresh(ms(5_000)))
    });
    (0..4).for_each(|rank| job.started(rank));
    job.wait(ms(4_999));
    assert!(job.actions.is_empty());
    job.wait(ms(5_000));
    assert_eq!(job.terminates(), [(vec![0, 1], ms(10_000))]);
    (0..4).for_each(|rank| job.exit(rank, Ending::Code(0)));
    job.finish_all();
    assert_eq!(job.verdict().exit_code, 124);
    assert_eq!(
        job.verdict().outcome,
        Outcome::TimedOut { timeout_ms: 5_000 }
    );
}

/// At the very edge what has happened counts before the timer.
#[test]
fn ranks_that_end_at_the_edge_are_in_time() {
    let mut job = Job::with(&[2], |settings| {
        settings.job_timeout = Some(Limit::fresh(ms(5_000)))
    });
    job.wait(ms(4_999));
    job.now = ms(5_000);
    job.exit(0, Ending::Code(0));
    job.exit(1, Ending::Code(0));
    job.machine.handle_timeout(job.now);
    job.wait(ms(7_000));
    job.finish(0);
    assert_eq!(job.verdict().exit_code, 0);
}

#[test]
fn a_failure_before_the_timeout_stays_the_cause() {
    let mut job = Job::with(&[2], |settings| {
        settings.job_timeout = Some(Limit::fresh(ms(5_000)))
    });
    job.wait(ms(4_900));
    job.exit(0, Ending::Code(3));
    job.wait(ms(5_000));
    assert_eq!(
        job.terminates().len(),
        1,
        "the timeout also ends the collection"
    );
    job.exit(1, Ending::Signal(15));
    job.finish(0);
    assert_eq!(job.blamed(), (Some(0), 3));
}

#[test]
fn endless_times_are_no_trouble() {
    let mut job = Job::with(&[1], |settings| {
        settings.job_timeout = Some(Limit::fresh(Duration::MAX));
        settings.kill_after = Duration::MAX;
        settings.host_timeout = Duration::MAX;
    });
    job.wait(ms(10_000));
    job.event(INT);
    job.wait(ms(60_000));
    job.exit(0, Ending::Signal(15));
    job.finish(0);
    assert_eq!(job.verdict().exit_code, 130);
}
