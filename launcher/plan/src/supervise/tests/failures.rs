//! What fails, in which order, and what comes of it.

use super::*;

const KILL: Ending = Ending::Signal(9);

#[test]
fn every_rank_returns_0() {
    let mut job = Job::running();
    (0..4).for_each(|rank| job.exit(rank, Ending::Code(0)));
    assert!(!job.machine.is_done(), "the agents have not finished");
    job.finish_all();
    assert_eq!(job.verdict().exit_code, 0);
    assert_eq!(job.verdict().outcome, Outcome::Success);
    assert_eq!(job.actions.len(), 1, "{:?}", job.actions);
    assert_eq!(job.machine.poll_timeout(), None);
}

/// A rank that is through early is no failure, however long the others run.
#[test]
fn a_rank_may_return_0_early() {
    let mut job = Job::running();
    job.exit(0, Ending::Code(0));
    job.wait(ms(60_000));
    assert!(job.actions.is_empty(), "{:?}", job.actions);
    (1..4).for_each(|rank| job.exit(rank, Ending::Code(0)));
    job.finish_all();
    assert_eq!(job.verdict().exit_code, 0);
}

#[test]
fn the_first_failure_ends_the_job() {
    let mut job = Job::running();
    job.exit(2, Ending::Code(3));
    assert_eq!(job.told(), [2]);
    job.wait(ms(299));
    assert!(job.terminates().is_empty());
    job.wait(ms(300));
    assert_eq!(job.terminates(), [(vec![0, 1], ms(10_000))]);
    job.now = ms(400);
    for rank in [0, 1, 3] {
        job.exit(rank, Ending::Signal(15));
    }
    job.finish_all();
    assert_eq!(job.blamed(), (Some(2), 3));
    let fates: Vec<Fate> = job.verdict().ranks.iter().map(|fate| fate.fate).collect();
    let term = Fate::Stopped(Ending::Signal(15));
    assert_eq!(fates, [term, term, Fate::Ended(Ending::Code(3)), term]);
}

#[test]
fn a_signal_counts_from_128() {
    let mut job = Job::running();
    job.exit(1, KILL);
    job.finish_all();
    assert_eq!(job.blamed(), (Some(1), 137));
}

/// mpich: exit codes 1, 2, 4 are not OR-ed to 7; the first is the job's.
#[test]
fn all_fail_together_and_the_earliest_counts() {
    let mut job = Job::running();
    job.now = ms(100);
    for host in 0..2 {
        job.event(Event::Clock {
            host,
            offset_us: 0,
            error_us: 100,
        });
    }
    for (rank, ms) in [(0, 40), (3, 30), (1, 20), (2, 25)] {
        job.exit_at(
            rank,
            Ending::Code(i32::try_from(rank).unwrap() + 1),
            WALL_START_US + ms * 1000,
        );
    }
    job.finish_all();
    assert_eq!(job.blamed(), (Some(1), 2));
    let told = job.told();
    assert_eq!(told, [0, 3, 1, 2], "each is told once, as it comes");
}

/// Reports of two hosts whose clocks are hours apart are ordered on one clock.
#[test]
fn clocks_may_differ() {
    let hour_us = 3_600_000_000;
    let mut job = Job::running();
    job.event(Event::Clock {
        host: 0,
        offset_us: hour_us,
        error_us: 500,
    });
    job.event(Event::Clock {
        host: 1,
        offset_us: -hour_us,
        error_us: 500,
    });
    job.now = ms(1000);
    job.exit_at(0, Ending::Code(1), WALL_START_US + hour_us + 900_000);
    job.exit_at(2, Ending::Code(2), WALL_START_US - hour_us + 800_000);
    job.finish_all();
    assert_eq!(job.blamed(), (Some(2), 2));
}

/// A clock that was set back or forth in between can't put an end after its report.
#[test]
fn impossible_times_are_bounded() {
    for at_us in [i64::MIN, i64::MAX, 0, WALL_START_US * 2] {
        let mut job = Job::running();
        job.event(Event::Clock {
            host: 0,
            offset_us: i64::MIN,
            error_us: u64::MAX,
        });
        job.event(Event::Clock {
            host: 1,
            offset_us: 5,
            error_us: u64::MAX,
        });
        job.now = ms(1000);
        job.exit_at(0, Ending::Code(1), at_us);
        job.exit_at(2, Ending::Code(2), at_us);
        job.finish_all();
        assert_ne!(job.verdict().exit_code, 0);
    }
}

/// Within what the clocks allow to tell, a killed rank is the cause and an exit code is not.
#[test]
fn a_killed_rank_comes_before_its_victims() {
    let job_with_error = |error_us: u64| {
        let mut job = Job::running();
        (0..2).for_each(|host| {
            job.event(Event::Clock {
                host,
                offset_us: 0,
                error_us,
            })
        });
        job.now = ms(50);
        job.exit_at(0, Ending::Code(1), WALL_START_US + 10_000);
        job.exit_at(2, KILL, WALL_START_US + 11_000);
        job.finish_all();
        job.blamed()
    };
    assert_eq!(job_with_error(600), (Some(2), 137));
    assert_eq!(job_with_error(400), (Some(0), 1));
    // On one host there is one clock.
    let mut job = Job::running();
    job.event(Event::Clock {
        host: 0,
        offset_us: 0,
        error_us: 5000,
    });
    job.now = ms(50);
    job.exit_at(0, Ending::Code(1), WALL_START_US + 10_000);
    job.exit_at(1, KILL, WALL_START_US + 10_001);
    job.finish_all();
    assert_eq!(job.blamed(), (Some(0), 1));
}

/// "Peer 3 died", said by the runtime of a rank that then fails, is secondary.
#[test]
fn who_lost_a_peer_is_no_cause() {
    let mut job = Job::running();
    job.event(Event::PeerLost {
        rank: 0,
        peer: 1,
        has_left: false,
    });
    job.exit(0, Ending::Code(1));
    job.event(Event::PeerLost {
        rank: 1,
        peer: 3,
        has_left: false,
    });
    job.now = ms(50);
    job.exit(1, Ending::Code(1));
    job.now = ms(250);
    job.exit(3, Ending::Code(5));
    job.finish_all();
    assert_eq!(job.blamed(), (Some(3), 5));
}

#[test]
fn ranks_that_blame_each_other_are_taken_by_time() {
    let mut job = Job::running();
    job.event(Event::PeerLost {
        rank: 0,
        peer: 1,
        has_left: false,
    });
    job.event(Event::PeerLost {
        rank: 1,
        peer: 0,
        has_left: false,
    });
    job.event(Event::PeerLost {
        rank: 2,
        peer: 2,
        has_left: false,
    });
    job.exit(1, Ending::Code(4));
    job.now = ms(10);
    job.exit(0, Ending::Code(6));
    job.exit(2, Ending::Code(7));
    job.finish_all();
    assert_eq!(job.blamed(), (Some(1), 4));
}

/// Blaming a peer that runs on explains nothing.
#[test]
fn a_peer_that_lives_is_no_cause() {
    let mut job = Job::running();
    job.event(Event::PeerLost {
        rank: 0,
        peer: 3,
        has_left: false,
    });
    job.exit(0, Ending::Code(9));
    job.finish(0);
    job.wait(ms(400));
    job.exit(3, Ending::Signal(15));
    job.exit(2, Ending::Signal(15));
    job.finish_all();
    assert_eq!(job.blamed(), (Some(0), 9));
}

#[test]
fn a_rank_may_end_before_it_is_said_to_have_started() {
    let mut job = Job::new();
    job.exit(0, Ending::Code(7));
    job.started(0);
    job.finish_all();
    assert_eq!(job.blamed(), (Some(0), 7));
    assert_eq!(job.verdict().ranks[0].fate, Fate::Ended(Ending::Code(7)));
    assert_eq!(job.verdict().ranks[0].pid, Some(1000));
}

#[test]
fn a_second_end_of_a_rank_is_ignored() {
    let mut job = Job::running();
    job.exit(0, Ending::Code(0));
    job.exit(0, Ending::Code(5));
    (1..4).for_each(|rank| job.exit(rank, Ending::Code(0)));
    job.finish_all();
    assert_eq!(job.verdict().exit_code, 0);
}

#[test]
fn what_cannot_be_started_has_the_codes_of_shells() {
    for (what, errno, code) in [
        ("program", 2, 127),
        ("interpreter", 2, 127),
        ("program", 20, 127),
        ("program", 13, 126),
        ("program", 8, 126),
        ("directory", 2, 126),
        ("fork", 11, 126),
    ] {
        let mut job = Job::new();
        job.started(0);
        for rank in [2, 3, 1] {
            let (what, path) = (what.to_owned(), "x".to_owned());
            job.event(Event::LaunchFailed {
                rank,
                what,
                path,
                errno,
            });
        }
        job.wait(ms(300));
        job.exit(0, Ending::Signal(15));
        job.finish_all();
        assert_eq!(job.blamed(), (Some(2), code), "{what} {errno}");
        let Cause::LaunchFailed { host, also, .. } = job.cause() else {
            panic!()
        };
        assert_eq!(
            (host.as_str(), also.as_slice()),
            ("n1", &["n0".to_owned()][..])
        );
        assert_eq!(job.verdict().ranks[3].fate, Fate::NeverStarted);
    }
}

#[test]
fn nothing_left_ends_the_collection_at_once() {
    let mut job = Job::running();
    (0..4).for_each(|rank| job.exit(rank, Ending::Code(1)));
    job.finish_all();
    assert_eq!(job.now, Duration::ZERO);
    assert_eq!(job.verdict().exit_code, 1);
    assert!(job.terminates().is_empty(), "nobody is left to be ended");
}

#[test]
fn an_agent_that_forgets_a_rank_is_broken() {
    let mut job = Job::running();
    job.exit(0, Ending::Code(0));
    job.finish(0);
    assert_eq!(job.told(), [1]);
    job.wait(ms(300));
    job.exit(2, Ending::Code(0));
    job.exit(3, Ending::Code(0));
    job.finish(1);
    assert_eq!(job.blamed(), (Some(1), 125));
}

/// The keeper was killed: the agent ends its ranks unasked.
#[test]
fn ranks_ended_by_their_agent_unasked() {
    let mut job = Job::running();
    let host_time_us = WALL_START_US;
    for (rank, ending) in [(0, Ending::Code(0)), (1, KILL)] {
        let (core_dumped, by_us) = (false, true);
        job.event(Event::Exited {
            rank,
            ending,
            core_dumped,
            by_us,
            keeper_killed: false,
            host_time_us,
            findings: Findings::default(),
        });
    }
    job.finish(0);
    job.wait(ms(300));
    job.exit(2, Ending::Code(0));
    job.exit(3, Ending::Code(0));
    job.finish(1);
    assert_eq!(job.blamed(), (Some(1), 125));
}

#[test]
fn what_comes_after_the_end_is_ignored() {
    let mut job = Job::running();
    (0..4).for_each(|rank| job.exit(rank, Ending::Code(0)));
    job.finish_all();
    let said = job.actions.len();
    job.exit(0, KILL);
    job.finish(0);
    job.event(Event::UserSignal { signal: 2 });
    job.event(Event::HostLost {
        host: 1,
        kind: LossKind::Closed,
        detail: String::new(),
    });
    job.machine.handle_timeout(ms(1_000_000));
    assert_eq!(
        (job.actions.len(), job.machine.poll_timeout()),
        (said, None)
    );
}

#[test]
fn numbers_that_the_job_does_not_have_are_ignored() {
    let mut job = Job::running();
    job.exit(4, Ending::Code(1));
    job.finish(2);
    job.event(Event::PeerLost {
        rank: 0,
        peer: 9,
        has_left: false,
    });
    job.event(Event::Clock {
        host: 7,
        offset_us: 0,
        error_us: 0,
    });
    assert!(job.actions.is_empty());
}

#[test]
fn stopped_ranks_and_leftovers_are_named() {
    let mut job = Job::running();
    job.event(Event::Stopped {
        rank: 1,
        signal: 19,
        continued: false,
    });
    job.event(Event::Stopped {
        rank: 1,
        signal: 18,
        continued: true,
    });
    let (command, state, why) = ("sleep 9".into(), "S".into(), "was left behind".into());
    job.event(Event::Leftover {
        host: 1,
        pid: 5,
        command,
        state,
        why,
    });
    assert_eq!(
        job.warnings(),
        [
            "rank 1 on n0 (pid 1001) was stopped by SIGSTOP: `kill -CONT 1001` there continues it",
            "rank 1 on n0 (pid 1001) continues",
            "n1: process 5 (sleep 9, state S) was left behind",
        ]
    );
    (0..4).for_each(|rank| job.exit(rank, Ending::Code(0)));
    job.finish_all();
    assert_eq!(job.verdict().leftovers.len(), 1);
    assert_eq!(job.verdict().exit_code, 0);
}
