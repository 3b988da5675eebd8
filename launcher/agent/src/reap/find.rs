//! Which processes a job has left: pure, over one reading of /proc.
//!
//! Sure are, in this order:
//! - a recorded process: same number *and* start time;
//! - a member of a rank's session. The kernel gives a number to nobody else while a session of that
//!   number has a member. So the session is the rank's if the rank still leads it, or if one member
//!   is older than the last moment at which the rank is known to have been there (its end as the
//!   keeper wrote it, else the record's `seen`): then the session has had members ever since;
//! - whatever is below a sure one, by parents.
//!
//! A process that did none of these but carries the job's id in its environment is only *hinted*:
//! an environment can be copied (and erased). Names count for nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::processes::Process;
use crate::record::{Id, Record};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) process: Process,
    pub(super) evidence: Evidence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    Rank(u32),
    /// A member of this rank's session; of the keeper's, where ranks shared it.
    Session(Option<u32>),
    Below(i32),
    Environment,
}

impl Evidence {
    pub(super) fn is_sure(self) -> bool {
        self != Self::Environment
    }
}

/// /proc at one moment.
pub(super) struct Snapshot {
    processes: Vec<Process>,
    /// This process and all above it: the agent that looks, its sshd, the user's shell. Never
    /// anybody's leftovers.
    spared: BTreeSet<i32>,
}

impl Snapshot {
    pub(super) fn new(processes: Vec<Process>, own: i32) -> Self {
        let parents: BTreeMap<i32, i32> = processes
            .iter()
            .map(|process| (process.pid, process.parent))
            .collect();
        let mut spared = BTreeSet::from([0, 1]);
        let mut pid = own;
        while spared.insert(pid) {
            pid = parents.get(&pid).copied().unwrap_or(0);
        }
        Self { processes, spared }
    }

    pub(super) fn is_alive(&self, id: Id) -> bool {
        self.processes
            .iter()
            .any(|process| is(process, id) && !process.is_zombie())
    }

    /// Whether agent or keeper still look after the job.
    pub(super) fn is_running(&self, record: &Record) -> bool {
        self.is_alive(record.keeper) || self.is_alive(record.agent)
    }

    /// What `record`'s job has left. `known` are processes that were sure at an earlier look; who is
    /// below them is sure too. `carries` asks whether a process has the job's id in its environment.
    pub(super) fn left(
        &self,
        record: &Record,
        known: &[Id],
        carries: impl Fn(&Process) -> bool,
    ) -> Vec<Found> {
        let mut sure: BTreeMap<i32, Evidence> = BTreeMap::new();
        for process in &self.processes {
            if let Some(evidence) = self.recorded(record, known, process) {
                sure.insert(process.pid, evidence);
            }
        }
        self.add_below(&mut sure);
        let found = |process: &Process| {
            let evidence = match sure.get(&process.pid) {
                Some(evidence) => *evidence,
                None if carries(process) => Evidence::Environment,
                None => return None,
            };
            let process = process.clone();
            Some(Found { process, evidence })
        };
        let others = self.processes.iter();
        others
            .filter(|process| !process.is_zombie() && !self.spared.contains(&process.pid))
            .filter_map(found)
            .collect()
    }

    /// Processes whose chain of parents leads to one of `roots`; these included.
    pub(super) fn with_below(&self, roots: &[Id]) -> BTreeSet<i32> {
        let is_root = |process: &&Process| roots.iter().any(|root| is(process, *root));
        let roots = self.processes.iter().filter(is_root);
        let mut all: BTreeMap<i32, Evidence> = roots
            .map(|root| (root.pid, Evidence::Below(root.pid)))
            .collect();
        self.add_below(&mut all);
        all.into_keys().collect()
    }

    pub(super) fn processes(&self) -> impl Iterator<Item = &Process> {
        let processes = self.processes.iter();
        processes.filter(|process| !process.is_zombie() && !self.spared.contains(&process.pid))
    }

    fn recorded(&self, record: &Record, known: &[Id], process: &Process) -> Option<Evidence> {
        let ranks = || record.ranks.iter();
        if let Some(rank) = ranks().find(|rank| is(process, rank.id)) {
            return Some(Evidence::Rank(rank.rank));
        }
        if known.iter().any(|id| is(process, *id)) {
            return Some(Evidence::Session(None));
        }
        let own =
            |rank: &&crate::record::RankLine| rank.own_session && rank.id.pid == process.session;
        if let Some(rank) = ranks().find(own) {
            let until = rank.ended.unwrap_or(record.seen);
            return self
                .session_is(rank.id, until)
                .then_some(Evidence::Session(Some(rank.rank)));
        }
        let shared = process.session == record.keeper.pid
            && ranks().any(|rank| !rank.own_session)
            && self.session_is(record.keeper, record.seen);
        shared.then_some(Evidence::Session(None))
    }

    /// Whether the session of `leader`'s number is the one that it led, having led it at `until`.
    fn session_is(&self, leader: Id, until: u64) -> bool {
        match self
            .processes
            .iter()
            .find(|process| process.pid == leader.pid)
        {
            Some(process) => process.start_time == leader.start_time,
            None => {
                let members = self.processes.iter();
                members
                    .filter(|process| process.session == leader.pid)
                    .any(|process| process.start_time <= until)
            }
        }
    }

    fn add_below(&self, sure: &mut BTreeMap<i32, Evidence>) {
        loop {
            let new: Vec<(i32, i32)> = self
                .processes
                .iter()
                .filter(|process| {
                    !sure.contains_key(&process.pid) && sure.contains_key(&process.parent)
                })
                .map(|process| (process.pid, process.parent))
                .collect();
            if new.is_empty() {
                return;
            }
            sure.extend(
                new.into_iter()
                    .map(|(pid, parent)| (pid, Evidence::Below(parent))),
            );
        }
    }
}

fn is(process: &Process, id: Id) -> bool {
    process.pid == id.pid && process.start_time == id.start_time
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RankLine;

    fn process(pid: i32, parent: i32, session: i32, start_time: u64) -> Process {
        Process {
            pid,
            parent,
            session,
            start_time,
            state: 'S',
            name: String::new(),
        }
    }

    /// Rank 0 is process 100, started at 1000, seen at 2000 last.
    fn record(ended: Option<u64>) -> Record {
        let id = |pid, start_time| Id { pid, start_time };
        Record {
            job: "0f".into(),
            boot: String::new(),
            space: String::new(),
            started_us: 0,
            program: String::new(),
            seen: 2000,
            agent: id(98, 990),
            keeper: id(99, 991),
            ranks: vec![RankLine {
                rank: 0,
                id: id(100, 1000),
                own_session: true,
                ended,
            }],
        }
    }

    fn left(record: &Record, processes: Vec<Process>) -> Vec<(i32, Evidence)> {
        let snapshot = Snapshot::new(processes, 7);
        let found = snapshot.left(record, &[], |_| false);
        let pair = |found: &Found| (found.process.pid, found.evidence);
        found.iter().map(pair).collect()
    }

    #[test]
    fn the_recorded_process_and_all_below() {
        let found = left(
            &record(None),
            vec![
                process(100, 1, 100, 1000),
                process(120, 100, 120, 3000),
                process(130, 120, 130, 3001),
                process(140, 1, 140, 3002),
            ],
        );
        let expected = [
            (100, Evidence::Rank(0)),
            (120, Evidence::Below(100)),
            (130, Evidence::Below(120)),
        ];
        assert_eq!(found, expected);
    }

    /// The number was taken over: neither it, nor its session, nor what is below it.
    #[test]
    fn another_process_of_that_number_is_not_touched() {
        let others = vec![
            process(100, 1, 100, 5000),
            process(101, 100, 100, 5001),
            process(102, 1, 100, 1500),
        ];
        assert_eq!(left(&record(None), others), []);
    }

    #[test]
    fn members_of_a_session_whose_leader_is_gone() {
        let workers = vec![process(110, 1, 100, 1900), process(111, 1, 100, 9000)];
        let session = Evidence::Session(Some(0));
        assert_eq!(
            left(&record(None), workers.clone()),
            [(110, session), (111, session)]
        );
        // The rank ended before any of them began: the number may have been taken over since.
        assert_eq!(left(&record(Some(1800)), workers), []);
        // None of them was there when the job was seen last.
        assert_eq!(left(&record(None), vec![process(111, 1, 100, 9000)]), []);
    }

    #[test]
    fn a_session_that_ranks_shared_with_the_keeper() {
        let mut record = record(None);
        record.ranks[0].own_session = false;
        let found = left(&record, vec![process(110, 1, 99, 1900)]);
        assert_eq!(found, [(110, Evidence::Session(None))]);
        // Without such a rank nobody is in it but the keeper.
        record.ranks[0].own_session = true;
        assert_eq!(left(&record, vec![process(110, 1, 99, 1900)]), []);
    }

    /// Whoever looks, and all above, is spared, whatever the record says.
    #[test]
    fn the_way_back_to_the_user_is_spared() {
        let processes = vec![
            process(100, 1, 100, 1000),
            process(6, 100, 6, 1500),
            process(7, 6, 7, 1600),
            process(8, 100, 8, 1600),
        ];
        let found = left(&record(None), processes);
        assert_eq!(found, [(8, Evidence::Below(100))]);
    }

    #[test]
    fn the_environment_is_a_hint() {
        let snapshot = Snapshot::new(vec![process(300, 1, 300, 1500)], 7);
        let found = snapshot.left(&record(None), &[], |process| process.pid == 300);
        assert_eq!(found[0].evidence, Evidence::Environment);
        assert!(!found[0].evidence.is_sure());
    }

    #[test]
    fn a_job_whose_keeper_lives_is_running() {
        let snapshot = Snapshot::new(vec![process(99, 1, 99, 991)], 7);
        assert!(snapshot.is_running(&record(None)));
        let snapshot = Snapshot::new(vec![process(99, 1, 99, 992)], 7);
        assert!(!snapshot.is_running(&record(None)));
    }
}
