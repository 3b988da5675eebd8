//! Whom a signal of the user's reaches.
//!
//! What asks a program for something (USR1: write a checkpoint) is for the one that waits for it: of
//! a rank's processes, the nearest to the rank that has a handler. A data loader below it would end
//! by the signal, or write the checkpoint once more; a shell script above it, too, would end. Where
//! nobody has a handler the rank itself gets it, and what happens is what the kernel does.
//!
//! What stops and continues is for all, as from a terminal.

use nix::libc;

use super::ending::send_all;
use super::run::Keeper;
use crate::processes::{Process, descendants};

impl Keeper {
    /// Not noted: a rank that ends by it ends for want of a handler, not by our will.
    pub(super) fn signal_ranks(&mut self, signal: i32) {
        if !(1..=64).contains(&signal) {
            return;
        }
        let processes = descendants(self.own_pid);
        if matches!(signal, libc::SIGCONT | libc::SIGTSTP) {
            return self.signal_sessions(&processes, signal);
        }
        for rank in self.ranks.iter().filter(|rank| !rank.ended) {
            let takers = takers(rank.pid, &processes, &|process| process.catches(signal));
            send_all(takers.into_iter(), signal);
        }
    }

    /// A process that left its rank's session goes its own way.
    fn signal_sessions(&self, processes: &[Process], signal: i32) {
        let ranks = self.ranks.iter().filter(|rank| !rank.ended);
        let sessions: Vec<i32> = ranks.map(|rank| rank.pid).chain([self.own_pid]).collect();
        let ours = processes.iter();
        let ours = ours.filter(|process| sessions.contains(&process.session));
        send_all(ours, signal);
    }
}

/// The processes at or below `rank` that wait for the signal and have none above them that does;
/// else the rank.
fn takers<'a>(
    rank: i32,
    processes: &'a [Process],
    catches: &dyn Fn(&Process) -> bool,
) -> Vec<&'a Process> {
    let named = |process: &&Process| process.pid == rank;
    let Some(top) = processes.iter().find(named) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut open = vec![top];
    while let Some(process) = open.pop() {
        if catches(process) {
            found.push(process);
        } else {
            let children = processes.iter();
            open.extend(children.filter(|child| child.parent == process.pid));
        }
    }
    if found.is_empty() {
        found.push(top);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 has the children 2 and 3, 2 has 4, 3 has 5; 9 is another rank's.
    fn tree() -> Vec<Process> {
        let process = |(pid, parent)| Process {
            pid,
            parent,
            session: 1,
            start_time: 0,
            state: 'S',
            name: String::new(),
        };
        let pairs = [(9, 0), (4, 2), (1, 0), (2, 1), (3, 1), (5, 3)];
        pairs.into_iter().map(process).collect()
    }

    fn takers_of(catching: &[i32]) -> Vec<i32> {
        let tree = tree();
        let takers = takers(1, &tree, &|process| catching.contains(&process.pid));
        let mut pids: Vec<i32> = takers.iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn the_nearest_to_the_rank_that_wait_for_it_get_it() {
        assert_eq!(takers_of(&[1, 2, 3, 4, 5, 9]), [1]);
        assert_eq!(takers_of(&[2, 4, 5]), [2, 5]);
        assert_eq!(takers_of(&[4]), [4]);
    }

    #[test]
    fn the_rank_gets_what_nobody_waits_for() {
        assert_eq!(takers_of(&[9]), [1]);
        assert!(takers(7, &tree(), &|_| true).is_empty(), "has ended");
    }
}
