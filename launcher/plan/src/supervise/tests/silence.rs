//! Hosts that are lost or silent.

use super::*;

fn lose(job: &mut Job, host: usize) {
    let detail = "connection reset".to_owned();
    job.event(Event::HostLost {
        host,
        kind: LossKind::Reset,
        detail,
    });
}

#[test]
fn a_lost_host_ends_the_job() {
    let mut job = Job::running();
    lose(&mut job, 1);
    assert_eq!(job.disconnected(), [1]);
    assert_eq!(job.told(), [2, 3]);
    job.wait(ms(300));
    assert_eq!(job.terminates(), [(vec![0], ms(10_000))]);
    job.exit(0, Ending::Signal(15));
    job.exit(1, Ending::Signal(15));
    job.finish(0);
    assert_eq!(job.verdict().exit_code, 123);
    let Cause::HostLost { host, ranks, .. } = job.cause() else {
        panic!()
    };
    assert_eq!((host.as_str(), ranks.as_slice()), ("n1", &[2, 3][..]));
    assert_eq!(job.verdict().unconfirmed[0].kind, HostFateKind::Lost);
    assert_eq!(job.verdict().ranks[2].fate, Fate::Unknown);
}

#[test]
fn silence_is_named_at_5_s_and_acted_on_at_the_timeout() {
    let mut job = Job::running();
    job.wait_without(ms(4_999), &[1]);
    assert!(job.actions.is_empty());
    job.wait_without(ms(5_000), &[1]);
    let warning = "n1 has been silent for 5 s; it counts as lost after 30 s (--host-timeout)";
    assert_eq!(job.warnings(), [warning]);
    job.wait_without(ms(29_999), &[1]);
    assert_eq!(job.actions.len(), 1, "named once");
    job.wait_without(ms(30_000), &[1]);
    assert_eq!(job.disconnected(), [1]);
    job.wait_without(ms(30_300), &[1]);
    assert_eq!(job.terminates().len(), 1);
    job.exit(0, Ending::Signal(15));
    job.exit(1, Ending::Signal(15));
    job.finish(0);
    let Cause::HostLost {
        kind, silent_ms, ..
    } = job.cause()
    else {
        panic!()
    };
    assert_eq!((*kind, *silent_ms), (LossKind::Silent, 30_000));
}

#[test]
fn any_byte_is_life() {
    let mut job = Job::running();
    job.wait_without(ms(29_999), &[1]);
    job.now = ms(30_000);
    // At the very edge the byte that arrived counts before the timer.
    job.event(Event::Activity { host: 1 });
    job.machine.handle_timeout(ms(30_000));
    assert!(job.disconnected().is_empty());
    assert_eq!(job.warnings()[1], "n1 answers again, after 30 s");
}

#[test]
fn a_short_timeout_warns_at_half() {
    let mut job = Job::with(&[1, 1], |settings| settings.host_timeout = ms(4_000));
    job.wait_without(ms(2_000), &[0]);
    assert_eq!(job.warnings().len(), 1);
    job.wait_without(ms(4_000), &[0]);
    assert_eq!(job.disconnected(), [0]);
}

/// A launcher that was stopped itself (^Z, SIGSTOP) has heard nobody; nobody is to blame.
#[test]
fn a_launcher_that_slept_blames_nobody() {
    let mut job = Job::running();
    job.wait(ms(10_000));
    job.machine.handle_timeout(ms(600_000));
    job.now = ms(600_000);
    job.wait_without(ms(604_000), &[1]);
    assert!(job.actions.is_empty(), "{:?}", job.actions);
    job.wait_without(ms(629_000), &[1]);
    assert!(job.disconnected().is_empty());
    job.wait_without(ms(630_000), &[1]);
    assert_eq!(job.disconnected(), [1]);
}

#[test]
fn a_host_lost_while_the_job_is_ended() {
    let mut job = Job::running();
    job.exit(0, Ending::Code(3));
    job.wait(ms(300));
    lose(&mut job, 1);
    job.exit(1, Ending::Signal(15));
    job.finish(0);
    assert_eq!(job.blamed(), (Some(0), 3));
    assert_eq!(job.verdict().unconfirmed.len(), 1);
    assert_eq!(job.told(), [0], "nobody needs to hear it any more");
}

#[test]
fn all_hosts_lost_while_reports_are_collected() {
    let mut job = Job::running();
    job.exit(0, Ending::Code(3));
    lose(&mut job, 1);
    lose(&mut job, 0);
    assert_eq!(job.blamed(), (Some(0), 3));
    assert_eq!(job.disconnected(), [1, 0]);
}

/// What its ranks returned is known; the agent has nothing to add.
#[test]
fn a_host_lost_after_its_ranks_returned_0_is_no_failure() {
    let mut job = Job::running();
    (0..4).for_each(|rank| job.exit(rank, Ending::Code(0)));
    lose(&mut job, 1);
    job.finish(0);
    assert_eq!(job.verdict().exit_code, 0);
    assert_eq!(job.verdict().unconfirmed.len(), 1);
    assert!(!job.verdict().render().is_empty(), "but it is said");
}

#[test]
fn a_host_that_has_finished_is_not_lost() {
    let mut job = Job::running();
    (0..2).for_each(|rank| job.exit(rank, Ending::Code(0)));
    job.finish(0);
    lose(&mut job, 0);
    job.wait_without(ms(100_000), &[0]);
    assert!(job.actions.is_empty(), "{:?}", job.actions);
}

#[test]
fn an_agent_that_does_not_finish_is_given_up() {
    let mut job = Job::running();
    job.exit(0, Ending::Code(3));
    job.exit(1, Ending::Code(0));
    job.finish(0);
    let end = ms(300) + ms(10_000) + GRACE;
    job.wait(end - ms(1));
    assert!(!job.machine.is_done());
    job.wait(end);
    assert_eq!(job.blamed(), (Some(0), 3));
    assert_eq!(job.disconnected(), [1]);
    assert_eq!(
        job.verdict().unconfirmed[0].kind,
        HostFateKind::Unresponsive
    );
}

/// `rlaunch … | less`: the ranks are gone, their output still waits for its reader.
#[test]
fn a_host_whose_ranks_have_ended_may_take_its_time() {
    let mut job = Job::running();
    (0..4).for_each(|rank| job.exit(rank, Ending::Code(1)));
    job.wait(ms(3_600_000));
    assert!(!job.machine.is_done());
    assert_eq!(job.warnings().len(), 1, "{:?}", job.warnings());
    job.finish_all();
    assert_eq!(job.verdict().exit_code, 1);
}

#[test]
fn a_silent_host_is_lost_while_the_job_is_ended() {
    let mut job = Job::with(&[2, 2], |settings| {
        settings.host_timeout = ms(8_000);
        settings.kill_after = ms(60_000);
    });
    job.exit(0, Ending::Code(3));
    job.exit(1, Ending::Code(0));
    job.wait_without(ms(300), &[1]);
    job.finish(0);
    job.wait_without(ms(8_000), &[1]);
    assert_eq!(job.blamed(), (Some(0), 3));
}

/// A black hole: ranks elsewhere notice (no route) before the launcher's patience ends.
#[test]
fn a_silent_host_is_suspected_when_others_fail() {
    let mut job = Job::running();
    job.wait_without(ms(3_100), &[1]);
    job.exit(0, Ending::Code(1));
    job.wait_without(ms(3_400), &[1]);
    job.exit(1, Ending::Signal(15));
    job.finish(0);
    job.wait_without(ms(40_000), &[1]);
    assert_eq!(job.blamed(), (Some(0), 1));
    assert_eq!(job.verdict().suspects[0].host, "n1");

    let mut job = Job::running();
    job.wait_without(ms(3_100), &[1]);
    job.event(Event::PeerLost {
        rank: 0,
        peer: 2,
        has_left: false,
    });
    job.exit(0, Ending::Code(1));
    job.wait_without(ms(3_400), &[1]);
    job.exit(1, Ending::Signal(15));
    job.finish(0);
    job.wait_without(ms(40_000), &[1]);
    let Cause::HostLost { host, .. } = job.cause() else {
        panic!()
    };
    assert_eq!((host.as_str(), job.verdict().exit_code), ("n1", 123));
}
