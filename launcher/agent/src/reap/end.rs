//! Ending what was found: TERM, patience, KILL; by pidfd and start time, never by name.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;

use super::find::{Found, Snapshot};
use crate::processes::Process;
use crate::record::{self, Id, Record};
use crate::sweep::{GIVE_UP_AFTER, ROUND_PERIOD, why_alive};

/// Between looks while processes may end by TERM.
const LOOK_PERIOD: Duration = Duration::from_millis(20);

/// How one process came out.
pub(super) struct Outcome {
    pub(super) found: Found,
    pub(super) ended: bool,
    /// Where it did not end.
    pub(super) why_not: String,
}

/// Ends `found` and whatever sure ones appear meanwhile. Blocks for `patience`, and at most
/// [`GIVE_UP_AFTER`] more.
pub(super) fn end(record: &Record, found: Vec<Found>, patience: Duration) -> Vec<Outcome> {
    let mut all = found;
    for signal in [libc::SIGTERM, libc::SIGCONT] {
        for one in &all {
            one.process.signal(signal).ok();
        }
    }
    let term_until = Instant::now() + patience;
    while Instant::now() < term_until && all.iter().any(is_there) {
        std::thread::sleep(LOOK_PERIOD);
    }
    let kill_until = Instant::now() + GIVE_UP_AFTER;
    loop {
        // Stopped first, all of them: one that forks would otherwise be a child ahead.
        look_again(record, &mut all);
        signal_all(&all, libc::SIGSTOP);
        look_again(record, &mut all);
        signal_all(&all, libc::SIGKILL);
        if !all.iter().any(is_there) || Instant::now() >= kill_until {
            break;
        }
        std::thread::sleep(ROUND_PERIOD);
    }
    all.into_iter().map(outcome).collect()
}

fn signal_all(all: &[Found], signal: libc::c_int) {
    for one in all.iter().filter(|one| is_there(one)) {
        one.process.signal(signal).ok();
    }
}

/// Adds those that are sure now, such as children that were born since.
fn look_again(record: &Record, all: &mut Vec<Found>) {
    let known: Vec<Id> = all.iter().map(|one| id(&one.process)).collect();
    let snapshot = Snapshot::new(crate::processes::all(), nix::unistd::getpid().as_raw());
    let now = snapshot.left(record, &known, |_| false);
    all.extend(
        now.into_iter()
            .filter(|one| !known.contains(&id(&one.process))),
    );
}

fn is_there(one: &Found) -> bool {
    Process::read(one.process.pid)
        .is_some_and(|now| now.start_time == one.process.start_time && !now.is_zombie())
}

fn outcome(found: Found) -> Outcome {
    let ended = !is_there(&found);
    let why_not = if ended {
        String::new()
    } else {
        why_alive(&Process::read(found.process.pid).unwrap_or_else(|| found.process.clone()))
    };
    Outcome {
        found,
        ended,
        why_not,
    }
}

/// Asks a job that still runs to end: its keeper ends all ranks at once when it gets TERM. Gives why
/// not, or waits until the keeper is gone.
pub(super) fn end_running(path: &Path, record: &Record) -> Result<(), String> {
    let Some(keeper) = Process::read(record.keeper.pid)
        .filter(|process| process.start_time == record.keeper.start_time)
    else {
        return Ok(());
    };
    record::note_reaped(path);
    match keeper.signal(libc::SIGTERM) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => return Err(format!("its keeper cannot be signalled: {}", error.desc())),
    }
    let until = Instant::now() + 2 * GIVE_UP_AFTER;
    while Instant::now() < until {
        let snapshot = Snapshot::new(crate::processes::all(), nix::unistd::getpid().as_raw());
        if !snapshot.is_running(record) {
            return Ok(());
        }
        std::thread::sleep(LOOK_PERIOD);
    }
    Err("it has not ended yet".to_owned())
}

pub(super) fn id(process: &Process) -> Id {
    Id {
        pid: process.pid,
        start_time: process.start_time,
    }
}
