//! A rank that is killed, or stopped, in the middle of each collective: every survivor is told which
//! rank, on which host, of which process, in which call of what number, what the others were doing, and
//! in time.
//!
//! Ranks are processes; each plays one collective over and over (`TEST_ROLE`), on buffers of its own or
//! on such as its peers read in place.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::process::{Rank, say, start};
use rlaunch_runtime::{Collective, Error, Op, SharedBuffer, World};

const WORLD: u32 = 3;
/// What a dead rank's peers may take to be told, and a stopped one's after their timeout.
const TOLD_WITHIN: Duration = Duration::from_secs(2);
/// Jobs at a time: most of what they do is wait.
const AT_ONCE: usize = 4;
/// Elements of a part: few go in lines of a slot, many in segments of the peers' memory.
const COUNTS: [usize; 2] = [8, 40_000];

/// Each that ranks call together; messages between two are played as `send`.
fn played() -> impl Iterator<Item = Collective> {
    let all = Collective::ALL.iter().copied();
    all.filter(|one| !matches!(one, Collective::Recv) && !one.makes_communicator())
}

#[test]
#[ignore = "run by the other tests, as a rank"]
fn rank_process() {
    let Ok(role) = std::env::var("TEST_ROLE") else {
        return;
    };
    let role: Vec<&str> = role.split(' ').collect();
    let (calls, is_shared) = (role[2].parse().unwrap(), role[3] == "shared");
    let collective = played().find(|one| one.name() == role[0]).unwrap();
    let world = rlaunch_runtime::init().unwrap();
    let count = role[1].parse().unwrap();
    let mut player = Player::new(&world, collective, count, is_shared);
    match player.play(calls) {
        Ok(()) => say("done"),
        Err(error) => say(&error.to_string()),
    }
}

enum Memory {
    Private(Vec<i64>),
    Shared(SharedBuffer<i64>),
}

impl std::ops::Deref for Memory {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        match self {
            Self::Private(vec) => vec,
            Self::Shared(buffer) => buffer,
        }
    }
}

impl std::ops::DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [i64] {
        match self {
            Self::Private(vec) => vec,
            Self::Shared(buffer) => buffer,
        }
    }
}

/// One rank's buffers for a collective.
struct Player<'w> {
    world: &'w World,
    collective: Collective,
    part: Memory,
    whole: Memory,
    other: Memory,
    counts: Vec<usize>,
}

impl<'w> Player<'w> {
    fn new(world: &'w World, collective: Collective, count: usize, is_shared: bool) -> Self {
        let size = world.size() as usize;
        let memory = |count| match is_shared {
            true => Memory::Shared(world.allocate(count).unwrap()),
            false => Memory::Private(vec![0; count]),
        };
        let mut player = Self {
            world,
            collective,
            part: memory(count),
            whole: memory(count * size),
            other: memory(count * size),
            counts: vec![count; size],
        };
        player.part.fill(1);
        player.whole.fill(1);
        player
    }

    fn play(&mut self, calls: usize) -> Result<(), Error> {
        // Ranks begin together, however long the others' processes took to start.
        self.world.barrier()?;
        for call in 0..calls {
            self.call(call as u32 % WORLD)?;
            if call == 20 {
                say("in the middle");
            }
        }
        self.world.barrier()
    }

    fn call(&mut self, root: u32) -> Result<(), Error> {
        let Self { world, counts, .. } = self;
        let (part, whole) = (&mut self.part[..], &mut self.whole[..]);
        let other = &mut self.other[..];
        let own = part.len();
        match self.collective {
            Collective::Barrier => world.barrier(),
            Collective::Broadcast => world.broadcast(part, root),
            Collective::AllReduce => world.all_reduce(part, Op::Max),
            Collective::Reduce => world.reduce(part, &mut other[..own], Op::Max, root),
            Collective::Scan => world.scan(part, Op::Max),
            Collective::Exscan => world.exscan(part, Op::Max),
            Collective::AllGather => world.all_gather(part, whole),
            Collective::Gather => world.gather(part, whole, root),
            Collective::Scatter => world.scatter(whole, part, root),
            Collective::ReduceScatter => world.reduce_scatter(whole, part, Op::Max),
            Collective::AllToAll => world.all_to_all(whole, other),
            Collective::AllGatherV => world.all_gather_v(part, whole, counts),
            Collective::GatherV => world.gather_v(part, whole, counts, root),
            Collective::ScatterV => world.scatter_v(whole, counts, part, root),
            Collective::ReduceScatterV => world.reduce_scatter_v(whole, counts, part, Op::Max),
            Collective::AllToAllV => world.all_to_all_v(whole, counts, other, counts),
            // Around the ring; who sends first changes by turns.
            _ => {
                let (me, size) = (world.rank(), world.size());
                let (right, left) = ((me + 1) % size, (me + size - 1) % size);
                if me == root {
                    world.send(part, right, 0)?;
                    world.recv(&mut other[..own], left, 0).map(drop)
                } else {
                    world.recv(&mut other[..own], left, 0)?;
                    world.send(part, right, 0)
                }
            }
        }
    }
}

/// One collective over one transport, with a victim.
#[derive(Debug, Clone, Copy)]
struct Case {
    collective: Collective,
    transport: &'static str,
    memory: &'static str,
    count: usize,
    victim: usize,
}

/// Every collective over both transports, few elements and many, and many in buffers that peers read in
/// place; the victim changes, also among the collectives of one transport.
fn cases() -> Vec<Case> {
    let [few, many] = COUNTS;
    let kinds = [
        ("shm", "private", few),
        ("shm", "private", many),
        ("shm", "shared", many),
        ("tcp", "private", few),
        ("tcp", "private", many),
    ];
    let mut cases = Vec::new();
    for (number, collective) in played().enumerate() {
        for (index, (transport, memory, count)) in kinds.into_iter().enumerate() {
            cases.push(Case {
                collective,
                transport,
                memory,
                count,
                victim: (number + index) % WORLD as usize,
            });
        }
    }
    cases
}

impl Case {
    /// Ranks in the middle of so many calls.
    fn begin(&self, calls: usize, more: &[(&str, &str)]) -> Vec<Rank> {
        let role = format!("{} {} {calls} {}", self.collective, self.count, self.memory);
        let mut ranks = start(WORLD, WORLD, self.transport, &role, more);
        for rank in &mut ranks {
            assert_eq!(rank.line(), "in the middle", "{self:?}");
        }
        ranks
    }

    /// What every survivor is told, and that it comes between `earliest` and `latest` after `begin`.
    fn assert_told(&self, ranks: &mut [Rank], begin: Instant, [earliest, latest]: [Duration; 2]) {
        let ranks_pids: Vec<u32> = ranks.iter().map(|rank| rank.child.id()).collect();
        let pid = ranks_pids[self.victim];
        for (number, rank) in ranks.iter_mut().enumerate() {
            if number == self.victim {
                continue;
            }
            let line = rank.line();
            let took = begin.elapsed();
            let at = format!("{self:?}, rank {number} after {took:.2?}: {line}");
            let names_victim = line.contains(&format!("rank {} (host ", self.victim))
                && line.contains(&format!("pid {pid}"));
            // Whoever waits for a message can name only the rank that should have sent it.
            let is_stopped = earliest > Duration::ZERO;
            let names_sender = self.collective == Collective::Send && line.contains(" (host ");
            assert!(names_victim || is_stopped && names_sender, "{at}");
            assert!(self.names_the_call(&line), "{at}");
            let third = 3 - number - self.victim;
            assert!(
                is_stopped || self.tells_of(&line, third, ranks_pids[third]),
                "{at}"
            );
            assert!(took > earliest && took < latest, "{at}");
        }
    }

    /// What the third rank was doing. Without rank 0, which passes words on where no agent is, it is known
    /// only from what it has sent.
    fn tells_of(&self, line: &str, third: usize, pid: u32) -> bool {
        let Some((_, rest)) = line.split_once("; the others: ") else {
            return false;
        };
        let is_relayed = self.victim != 0 || self.transport == "shm" && !self.is_of_two();
        let doing = rest.split_once(&format!("rank {third} (host "));
        let doing = doing.and_then(|(_, rest)| rest.split_once(&format!(", pid {pid})")));
        doing.is_some_and(|(_, doing)| {
            let is_known = doing.starts_with(" in ") || doing.starts_with(" last heard of in ");
            is_known || !is_relayed && doing.starts_with(" not heard of")
        })
    }

    /// Messages between two.
    fn is_of_two(&self) -> bool {
        self.collective == Collective::Send
    }

    /// `all_reduce #17`; of messages either side's.
    fn names_the_call(&self, line: &str) -> bool {
        let numbered = |name: &str| {
            let after = line.split(&format!("{name} #")).nth(1);
            after.is_some_and(|text| text.starts_with(|digit: char| digit.is_ascii_digit()))
        };
        match self.collective {
            Collective::Send => numbered("send") || numbered("recv"),
            other => numbered(other.name()),
        }
    }
}

/// Runs the cases, some at a time; the first that panics fails the test.
fn each(cases: &[Case], check: impl Fn(&Case) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) =
                    cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    check(case);
                }
            });
        }
    });
}

#[test]
fn a_rank_killed_in_the_middle_of_each_collective_is_named() {
    each(&cases(), |case| {
        let mut ranks = case.begin(usize::MAX, &[]);
        ranks[case.victim].signal(libc::SIGKILL);
        let begin = Instant::now();
        case.assert_told(&mut ranks, begin, [Duration::ZERO, TOLD_WITHIN]);
    });
}

#[test]
fn a_rank_stopped_in_the_middle_of_each_collective_is_named() {
    each(&cases(), |case| {
        let mut ranks = case.begin(usize::MAX, &[("RLAUNCH_TIMEOUT", "2")]);
        ranks[case.victim].signal(libc::SIGSTOP);
        let begin = Instant::now();
        let timeout = Duration::from_secs(2);
        // Calls that it had done its part in may have begun before.
        let limits = [timeout - Duration::from_millis(200), timeout + TOLD_WITHIN];
        case.assert_told(&mut ranks, begin, limits);
    });
}

/// A stop that ends before the timeout is a pause, and no more.
#[test]
fn a_rank_continued_in_time_does_no_harm() {
    each(&cases(), |case| {
        let mut ranks = case.begin(2000, &[("RLAUNCH_TIMEOUT", "20")]);
        ranks[case.victim].signal(libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(300));
        ranks[case.victim].signal(libc::SIGCONT);
        for (number, rank) in ranks.iter_mut().enumerate() {
            assert_eq!(rank.line(), "done", "{case:?}, rank {number}");
        }
    });
}

/// Half a minute, as a frozen machine: the others are told when their time is up, and the rank itself
/// when it wakes.
#[test]
fn a_rank_stopped_for_thirty_seconds_learns_that_it_was_given_up() {
    const STOPPED: Duration = Duration::from_secs(30);
    let cases = [("shm", 0), ("shm", 1), ("tcp", 0), ("tcp", 1)].map(|(transport, victim)| Case {
        collective: Collective::AllReduce,
        transport,
        memory: "private",
        count: COUNTS[1],
        victim,
    });
    each(&cases, |case| {
        let mut ranks = case.begin(usize::MAX, &[("RLAUNCH_TIMEOUT", "2")]);
        ranks[case.victim].signal(libc::SIGSTOP);
        let begin = Instant::now();
        let timeout = Duration::from_secs(2);
        case.assert_told(&mut ranks, begin, [timeout / 2, timeout + TOLD_WITHIN]);
        std::thread::sleep(STOPPED.saturating_sub(begin.elapsed()));
        ranks[case.victim].signal(libc::SIGCONT);
        let woken = Instant::now();
        let line = ranks[case.victim].line();
        let at = format!("{case:?} after {:.2?}: {line}", woken.elapsed());
        assert!(line.contains("rank ") && case.names_the_call(&line), "{at}");
        assert!(woken.elapsed() < TOLD_WITHIN, "{at}");
    });
}
