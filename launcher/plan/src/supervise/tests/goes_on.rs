//! `--on-failure continue`: the others are told and left alone.

use super::*;

const KILL: Ending = Ending::Signal(9);

fn running(hosts: &[u32]) -> Job {
    let mut job = Job::with(hosts, |settings| settings.on_failure = OnFailure::Continue);
    (0..hosts.iter().sum()).for_each(|rank| job.started(rank));
    job
}

#[test]
fn the_others_go_on_and_the_verdict_still_names_the_first() {
    let mut job = running(&[2, 2]);
    job.exit(2, KILL);
    assert_eq!(job.told(), [2]);
    job.wait(ms(60_000));
    assert!(job.terminates().is_empty());
    assert_eq!(job.warnings().len(), 1);
    assert!(job.warnings()[0].contains("rank 2 on n1 (pid 1002) failed (ended by SIGKILL)"));
    // A later failure is told as well; the first stays the cause.
    job.exit(0, Ending::Code(5));
    assert_eq!(job.told(), [2, 0]);
    for rank in [1, 3] {
        job.exit(rank, Ending::Code(0));
    }
    job.finish_all();
    assert_eq!(job.blamed(), (Some(2), 137));
    let fates: Vec<Fate> = job.verdict().ranks.iter().map(|fate| fate.fate).collect();
    let ended = |code| Fate::Ended(Ending::Code(code));
    assert_eq!(fates, [ended(5), ended(0), Fate::Ended(KILL), ended(0)]);
}

#[test]
fn a_lost_host_ends_only_its_own_ranks() {
    let mut job = running(&[2, 2]);
    job.event(Event::HostLost {
        host: 1,
        kind: LossKind::Closed,
        detail: String::new(),
    });
    assert_eq!(job.told(), [2, 3]);
    job.wait(ms(10_000));
    assert!(job.terminates().is_empty());
    assert!(
        job.warnings()[0].starts_with("host n1 failed"),
        "{:?}",
        job.warnings()
    );
    for rank in [0, 1] {
        job.exit(rank, Ending::Code(0));
    }
    job.finish(0);
    assert!(matches!(job.cause(), Cause::HostLost { .. }));
    assert_eq!(job.verdict().exit_code, 123);
}

/// A job that never was whole is not one that goes on.
#[test]
fn what_was_never_started_ends_the_job() {
    let mut job = running(&[2]);
    job.exit(0, Ending::Code(1));
    job.event(Event::LaunchFailed {
        rank: 1,
        what: "program".into(),
        path: "/x".into(),
        errno: 2,
    });
    job.wait(ms(1_000));
    assert_eq!(job.terminates().len(), 1);
}

#[test]
fn a_signal_of_the_user_ends_it_as_ever() {
    let mut job = running(&[2]);
    job.exit(0, Ending::Code(1));
    job.event(Event::UserSignal { signal: 2 });
    assert_eq!(job.terminates().len(), 1);
    job.exit(1, Ending::Signal(15));
    job.finish_all();
    assert_eq!(job.blamed(), (Some(0), 1));
}

/// A stopped rank that a shrink went on without: nobody wakes it.
#[test]
fn a_rank_that_was_shut_out_and_is_left_alone_is_ended() {
    let mut job = running(&[2, 1]);
    let lost = |peer, has_left| Event::PeerLost {
        rank: 0,
        peer,
        has_left,
    };
    job.event(lost(2, false));
    job.exit(0, Ending::Code(0));
    job.wait(ms(60_000));
    assert!(job.warnings().is_empty(), "rank 1 goes on");
    job.exit(1, Ending::Code(0));
    assert!(job.warnings()[0].starts_with("rank 2 on n1 (pid 1002) did not answer the others"));
    job.wait(ms(69_999));
    assert!(job.terminates().is_empty());
    job.wait(ms(70_000));
    assert_eq!(job.terminates(), [(vec![1], Duration::ZERO)]);
    job.wait(ms(90_000));
    assert_eq!((job.terminates().len(), job.warnings().len()), (1, 1));
    let by_us = Event::Exited {
        rank: 2,
        ending: KILL,
        core_dumped: false,
        by_us: true,
        keeper_killed: false,
        host_time_us: 80_000_000,
        findings: Findings::default(),
    };
    job.event(by_us);
    job.finish_all();
    assert_eq!(job.blamed(), (Some(2), 137));
    assert!(matches!(job.cause(), Cause::RankShutOut { .. }));
    let text = job.verdict().render();
    assert!(
        text.contains("rank 2 on n1 (pid 1002) did not answer the others"),
        "{text}"
    );
}

#[test]
fn a_rank_that_left_in_order_is_never_shut_out() {
    let mut job = running(&[2]);
    job.event(Event::PeerLost {
        rank: 0,
        peer: 1,
        has_left: true,
    });
    job.exit(0, Ending::Code(1));
    job.wait(ms(60_000));
    assert!(job.terminates().is_empty());
}

/// It came back by itself and ended.
#[test]
fn a_rank_that_ends_meanwhile_is_not_ended() {
    let mut job = running(&[2]);
    job.event(Event::PeerLost {
        rank: 0,
        peer: 1,
        has_left: false,
    });
    job.exit(0, Ending::Code(0));
    job.wait(ms(5_000));
    job.exit(1, Ending::Code(1));
    job.finish_all();
    assert_eq!(job.blamed(), (Some(1), 1));
    assert!(job.terminates().is_empty());
}

fn stop(rank: u32, continued: bool) -> Event {
    Event::Stopped {
        rank,
        signal: if continued { 18 } else { 19 },
        continued,
    }
}

/// The others gave up on it by a timeout of theirs, which tells the launcher nothing.
#[test]
fn a_rank_that_is_stopped_and_left_alone_is_ended() {
    for (on_failure, code) in [(OnFailure::Continue, 5), (OnFailure::Stop, 0)] {
        let mut job = Job::with(&[2, 1], |settings| settings.on_failure = on_failure);
        (0..3).for_each(|rank| job.started(rank));
        job.wait(ms(1_000));
        job.event(stop(2, false));
        job.exit(0, Ending::Code(0));
        job.wait(ms(60_000));
        assert!(job.terminates().is_empty(), "rank 1 goes on");
        job.exit(1, Ending::Code(code));
        let warning = job.warnings().last().copied();
        assert_eq!(
            warning,
            Some(
                "rank 2 on n1 (pid 1002) is stopped, and the others have all ended; \
                 KILL follows in 10 s"
            )
        );
        job.wait(ms(69_999));
        assert!(job.terminates().is_empty());
        job.wait(ms(70_000));
        assert_eq!(job.terminates(), [(vec![1], Duration::ZERO)]);
        let by_us = Event::Exited {
            rank: 2,
            ending: KILL,
            core_dumped: false,
            by_us: true,
            keeper_killed: false,
            host_time_us: WALL_START_US + 70_000_000,
            findings: Findings::default(),
        };
        job.event(by_us);
        job.finish_all();
        let text = job.verdict().render();
        let ended = "rank 2 on n1 (pid 1002) was stopped, and still was when the others had ended";
        assert!(text.contains(ended), "{text}");
        assert_eq!(job.blamed(), (Some(2), 137));
    }
}

#[test]
fn a_failure_before_the_stop_stays_the_cause() {
    let mut job = running(&[2, 1]);
    job.exit(0, Ending::Code(5));
    job.wait(ms(1_000));
    job.event(stop(2, false));
    job.exit(1, Ending::Code(6));
    job.wait(ms(20_000));
    assert_eq!(job.terminates().len(), 1);
    job.exit(2, KILL);
    job.finish_all();
    assert_eq!(job.blamed(), (Some(0), 5));
}

#[test]
fn a_rank_that_continues_meanwhile_is_not_ended() {
    let mut job = running(&[2]);
    job.exit(0, Ending::Code(0));
    for _ in 0..3 {
        job.event(stop(1, false));
        job.wait(job.now + ms(9_000));
        job.event(stop(1, true));
        job.wait(job.now + ms(60_000));
    }
    assert!(job.terminates().is_empty());
    job.exit(1, Ending::Code(0));
    job.finish_all();
    assert_eq!(job.verdict().exit_code, 0);
}

/// Stopped together, to be continued together.
#[test]
fn time_that_the_launcher_was_stopped_is_not_counted() {
    let mut job = running(&[2]);
    job.exit(0, Ending::Code(0));
    job.event(stop(1, false));
    job.now = ms(100_000);
    job.machine.handle_timeout(job.now);
    job.event(stop(1, true));
    job.wait(ms(200_000));
    assert!(job.terminates().is_empty());
}

#[test]
fn a_job_of_one_rank_may_be_stopped() {
    let mut job = running(&[1]);
    job.event(stop(0, false));
    job.wait(ms(100_000));
    assert!(job.terminates().is_empty());
}
