//! Who is named, and as what.

use super::*;

const KILL: Ending = Ending::Signal(9);

/// That the memory ran out is not claimed of it.
#[test]
fn a_killed_keeper_is_told_as_such() {
    let mut job = Job::running();
    for rank in [0, 1] {
        job.event(Event::Exited {
            rank,
            ending: KILL,
            core_dumped: false,
            by_us: false,
            keeper_killed: true,
            host_time_us: WALL_START_US,
            findings: Findings::default(),
        });
    }
    job.wait(ms(300));
    job.exit(2, Ending::Signal(15));
    job.exit(3, Ending::Signal(15));
    job.finish_all();
    assert_eq!(job.blamed(), (Some(0), 125));
    let text = job.verdict().render();
    assert!(text.contains("agent on n0 lost the process that"), "{text}");
    assert!(!text.contains("out-of-memory"), "{text}");
}

/// All ranks find the same mistake; the one that was first by chance said nothing of it.
#[test]
fn of_those_that_fail_alike_the_one_that_says_why_is_named() {
    for (words, blamed) in [
        (vec![], 2),
        (vec![(0, Words::Stderr)], 0),
        (vec![(0, Words::Stderr), (1, Words::Traceback)], 1),
        (vec![(2, Words::Stderr), (0, Words::Stderr)], 2),
        // Another code is another failure.
        (vec![(3, Words::Traceback)], 2),
    ] {
        let mut job = Job::running();
        for (rank, words) in words {
            let host_time_us = WALL_START_US;
            job.event(Event::Printed {
                rank,
                words,
                host_time_us,
            });
        }
        for (at, rank, code) in [(10, 2, 1), (20, 0, 1), (30, 1, 1), (40, 3, 4)] {
            job.now = ms(at);
            job.exit(rank, Ending::Code(code));
        }
        job.wait(ms(400));
        job.finish_all();
        assert_eq!(job.blamed(), (Some(blamed), 1));
    }
}
