//! Ranks that take part in the runtime's world, and leave it out of turn.

use super::*;

/// All four run and have joined.
fn joined() -> Job {
    let mut job = Job::running();
    (0..4).for_each(|rank| job.event(Event::Joined { rank }));
    job
}

#[test]
fn an_orderly_leave_is_nobodys_concern() {
    let mut job = joined();
    job.exit(0, Ending::Code(0));
    // The leave travels on another path and may come later.
    job.now = ms(200);
    job.event(Event::Left { rank: 0 });
    job.wait(ms(5_000));
    assert!(job.told().is_empty());
}

#[test]
fn a_rank_that_returns_without_finalize_has_failed_its_peers() {
    let mut job = joined();
    job.exit(1, Ending::Code(0));
    job.wait(ms(1_000));
    assert_eq!(job.told(), [1]);
    assert!(
        job.terminates().is_empty(),
        "it returned 0: the job goes on as long as it can"
    );
    // Its peer says whom it lost, and fails.
    job.event(Event::PeerLost {
        rank: 2,
        peer: 1,
        has_left: false,
    });
    job.exit(2, Ending::Code(8));
    job.wait(ms(1_300));
    job.exit(0, Ending::Signal(15));
    job.exit(3, Ending::Signal(15));
    job.finish_all();
    assert_eq!(job.blamed(), (Some(1), 8));
    assert!(matches!(job.cause(), Cause::RankLeftEarly { .. }));
    assert_eq!(job.verdict().left_early, [1]);
}

#[test]
fn all_may_return_without_finalize() {
    let mut job = joined();
    (0..4).for_each(|rank| job.exit(rank, Ending::Code(0)));
    job.wait(ms(1_000));
    job.finish_all();
    assert!(job.told().is_empty());
    assert_eq!(job.verdict().exit_code, 0);
}

/// Whoever is in init would wait for ever.
#[test]
fn a_rank_that_returns_before_it_joins() {
    let mut job = Job::running();
    job.exit(3, Ending::Code(0));
    job.wait(ms(1_000));
    assert!(job.told().is_empty(), "nobody has joined");
    job.event(Event::Joined { rank: 0 });
    job.wait(ms(2_000));
    assert_eq!(job.told(), [3]);
}

/// apptainer/singularity#5118 and its like: some ranks run another program, or another world.
#[test]
fn ranks_that_do_not_join_are_named() {
    let mut job = Job::running();
    job.event(Event::Joined { rank: 1 });
    job.wait(ms(19_999));
    assert!(job.warnings().is_empty());
    job.wait(ms(40_000));
    assert_eq!(job.warnings().len(), 1);
    assert!(job.warnings()[0].starts_with("1 rank waits in init for 0, 2, 3: "));
    let mut job = joined();
    job.wait(ms(40_000));
    assert!(job.warnings().is_empty());
}

fn blamed(rank: u32, peer: u32, aborted: Option<&str>) -> Event {
    Event::Blamed {
        rank,
        peer,
        aborted: aborted.map(String::from),
    }
}

/// The first that returns a failure is only the first to hear of it.
#[test]
fn an_abort_is_the_cause_however_the_ranks_end() {
    for aborter in [None, Some(Ending::Code(0)), Some(Ending::Code(3))] {
        let mut job = joined();
        for rank in [0, 2, 3] {
            job.event(blamed(rank, 1, Some("the world: loss is NaN")));
            job.exit(rank, Ending::Code(1));
        }
        if let Some(ending) = aborter {
            job.exit(1, ending);
        }
        job.wait(ms(1_000));
        if aborter.is_none() {
            job.exit(1, Ending::Signal(15));
        }
        job.finish_all();
        let code = if aborter == Some(Ending::Code(3)) {
            3
        } else {
            1
        };
        assert_eq!(job.blamed(), (Some(1), code));
        let text = job.verdict().render();
        assert!(
            text.contains("rank 1 on n0 (pid 1001) aborted the world: loss is NaN"),
            "{text}"
        );
    }
}

/// os._exit(0), or a finalize that comes too early.
#[test]
fn who_returned_0_and_is_blamed_is_the_cause() {
    for leaves in [false, true] {
        let mut job = joined();
        if leaves {
            job.event(Event::Left { rank: 1 });
        }
        job.exit(1, Ending::Code(0));
        for rank in [0, 2, 3] {
            job.event(blamed(rank, 1, None));
            job.exit(rank, Ending::Code(1));
        }
        job.wait(ms(1_000));
        job.finish_all();
        assert_eq!(job.blamed(), (Some(1), 1));
        assert!(matches!(job.cause(), Cause::RankLeftEarly { .. }));
    }
}
