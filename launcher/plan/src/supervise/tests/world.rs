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
    job.event(Event::PeerLost { rank: 2, peer: 1 });
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
