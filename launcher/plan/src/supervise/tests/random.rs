//! Any order of events, plausible or not, ends in one verdict that is 0 only if every rank's is.

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    fn ending(&mut self) -> Ending {
        match self.below(4) {
            0 => Ending::Signal(self.below(70) as i32),
            1 => Ending::Code(self.below(300) as i32),
            _ => Ending::Code(0),
        }
    }

    fn event(&mut self, hosts: u64, ranks: u64) -> Event {
        let (rank, host) = (self.below(ranks + 1) as u32, self.below(hosts + 1) as usize);
        match self.below(24) {
            0..4 => Event::Started {
                rank,
                pid: 7,
                host_time_us: 0,
            },
            4..10 => Event::Exited {
                rank,
                ending: self.ending(),
                core_dumped: false,
                by_us: self.below(8) == 0,
                keeper_killed: self.below(8) == 0,
                host_time_us: WALL_START_US + self.below(10_000_000) as i64,
                findings: Findings::default(),
            },
            10..12 => Event::Joined { rank },
            12 => Event::Left { rank },
            13 => Event::PeerLost {
                rank,
                peer: self.below(ranks) as u32,
                has_left: self.below(2) == 0,
            },
            14 => Event::Clock {
                host,
                offset_us: self.below(2000) as i64 - 1000,
                error_us: 500,
            },
            15..18 => Event::Finished { host },
            18 if self.below(4) == 0 => Event::HostLost {
                host,
                kind: LossKind::Closed,
                detail: "x".into(),
            },
            19 if self.below(8) == 0 => Event::UserSignal { signal: 2 },
            20 if self.below(8) == 0 => {
                let (what, path) = ("program".into(), "p".into());
                Event::LaunchFailed {
                    rank,
                    what,
                    path,
                    errno: 2,
                }
            }
            21 => Event::Stopped {
                rank,
                signal: 19,
                continued: self.below(2) == 0,
            },
            22 => Event::Printed {
                rank,
                words: if self.below(2) == 0 {
                    Words::Stderr
                } else {
                    Words::Traceback
                },
                host_time_us: WALL_START_US + self.below(10_000_000) as i64,
            },
            _ => Event::Activity { host },
        }
    }
}

fn play(seed: u64) -> (u8, bool) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let hosts: Vec<u32> = (0..1 + random.below(3))
        .map(|_| 1 + random.below(3) as u32)
        .collect();
    let ranks: u32 = hosts.iter().sum();
    let timeout = (random.below(4) == 0).then(|| ms(random.below(4000)));
    let mut job = Job::with(&hosts, |settings| {
        settings.job_timeout = timeout.map(Limit::fresh);
        settings.host_timeout = ms(8_000);
    });
    for _ in 0..random.below(80) {
        let event = random.event(hosts.len() as u64, ranks.into());
        job.event(event);
        if random.below(3) == 0 {
            let until = job.now + ms(random.below(400));
            let silent = [random.below(4) as usize];
            job.wait_without(until, &silent);
        }
    }
    // The world falls silent: whatever was, it ends.
    let everyone: Vec<usize> = (0..hosts.len()).collect();
    job.wait_without(job.now + ms(60_000), &everyone);
    let done = job
        .actions
        .iter()
        .filter(|action| matches!(action, Action::Done(_)))
        .count();
    assert_eq!(done, 1, "seed {seed}");
    let verdict = job.verdict();
    let all_0 = verdict
        .ranks
        .iter()
        .all(|rank| rank.fate == Fate::Ended(Ending::Code(0)));
    assert!(
        verdict.exit_code != 0 || all_0,
        "seed {seed}: 0 after a failure"
    );
    assert_eq!(
        verdict.exit_code == 0,
        verdict.outcome == Outcome::Success,
        "seed {seed}"
    );
    assert_eq!(verdict.ranks.len(), ranks as usize);
    let mut told = job.told();
    told.sort_unstable();
    assert!(
        told.windows(2).all(|pair| pair[0] != pair[1]),
        "seed {seed}: told twice"
    );
    assert!(!verdict.to_json().is_empty() && verdict.render().len() < 10_000);
    (verdict.exit_code, all_0)
}

#[test]
fn any_order_of_events_ends_in_one_verdict() {
    let mut successes = 0;
    for seed in 1..20_000 {
        successes += u32::from(play(seed).0 == 0);
    }
    assert!(
        successes > 20,
        "only {successes} successes: the test has lost its point"
    );
}
