//! A record's text, read back. Lines that are not understood count for nothing.

use std::collections::BTreeMap;

/// A process for good: its number and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) pid: i32,
    pub(crate) start_time: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankLine {
    pub(crate) rank: u32,
    pub(crate) id: Id,
    /// It leads a session of its own; else it was in the keeper's.
    pub(crate) own_session: bool,
    /// When it was reaped, in ticks.
    pub(crate) ended: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// 32 digits.
    pub(crate) job: String,
    pub(crate) boot: String,
    pub(crate) space: String,
    pub(crate) started_us: i64,
    pub(crate) program: String,
    pub(crate) seen: u64,
    pub(crate) agent: Id,
    pub(crate) keeper: Id,
    pub(crate) ranks: Vec<RankLine>,
}

/// None: no record, or one whose head is not complete.
pub(super) fn parse(text: &str) -> Option<Record> {
    // The last part is empty, or cut off.
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();
    let mut words: BTreeMap<&str, &str> = BTreeMap::new();
    let mut ranks: BTreeMap<u32, RankLine> = BTreeMap::new();
    if lines.first() != Some(&"rlaunch-record 1") {
        return None;
    }
    for line in &lines[1..] {
        let Some((word, rest)) = line.split_once(' ') else {
            continue;
        };
        match word {
            "rank" => {
                ranks.extend(rank(rest).map(|line| (line.rank, line)));
            }
            "end" => {
                if let Some((rank, ticks)) = end(rest)
                    && let Some(line) = ranks.get_mut(&rank)
                {
                    line.ended = Some(ticks);
                }
            }
            _ => {
                words.entry(word).or_insert(rest);
            }
        }
    }
    Some(Record {
        job: (*words.get("job")?).to_owned(),
        boot: (*words.get("boot")?).to_owned(),
        space: (*words.get("space")?).to_owned(),
        started_us: words.get("started")?.parse().ok()?,
        program: words.get("program").copied().unwrap_or_default().to_owned(),
        seen: words.get("seen")?.parse().ok()?,
        agent: id(words.get("agent")?)?,
        keeper: id(words.get("keeper")?)?,
        ranks: ranks.into_values().collect(),
    })
}

fn rank(text: &str) -> Option<RankLine> {
    let words: Vec<&str> = text.split(' ').collect();
    let [rank, pid, start_time, session] = words.as_slice() else {
        return None;
    };
    Some(RankLine {
        rank: rank.parse().ok()?,
        id: Id {
            pid: number(pid)?,
            start_time: start_time.parse().ok()?,
        },
        own_session: match *session {
            "own" => true,
            "shared" => false,
            _ => return None,
        },
        ended: None,
    })
}

fn end(text: &str) -> Option<(u32, u64)> {
    let (rank, ticks) = text.split_once(' ')?;
    Some((rank.parse().ok()?, ticks.parse().ok()?))
}

fn id(text: &str) -> Option<Id> {
    let (pid, start_time) = text.split_once(' ')?;
    Some(Id {
        pid: number(pid)?,
        start_time: start_time.parse().ok()?,
    })
}

/// Never init, a group or everything.
fn number(text: &str) -> Option<i32> {
    text.parse().ok().filter(|pid| *pid > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "rlaunch-record 1\nseen 00000000000000000900\njob 0f\nboot b\nspace pid:[1]\n\
                        started 5\nhost node1\nprogram a b\nagent 10 100\nkeeper 11 101\n\
                        rank 0 12 110 own\nrank 1 13 111 shared\nend 0 500\n";

    #[test]
    fn a_record_is_read_back() {
        let record = parse(TEXT).unwrap();
        assert_eq!((record.seen, record.started_us), (900, 5));
        assert_eq!(record.program, "a b");
        assert_eq!(
            record.keeper,
            Id {
                pid: 11,
                start_time: 101
            }
        );
        assert_eq!(record.ranks.len(), 2);
        assert_eq!(record.ranks[0].ended, Some(500));
        assert!(!record.ranks[1].own_session);
    }

    /// A disk that is full cuts the text anywhere.
    #[test]
    fn a_record_that_is_cut_off_claims_nothing_wrong() {
        let whole = parse(TEXT).unwrap();
        for end in 0..TEXT.len() {
            let Some(record) = parse(&TEXT[..end]) else {
                continue;
            };
            assert_eq!((record.keeper, record.agent), (whole.keeper, whole.agent));
            for rank in &record.ranks {
                assert!(whole.ranks.iter().any(|known| known.id == rank.id), "{end}");
            }
        }
        assert_eq!(parse(&TEXT[..40]), None);
    }

    #[test]
    fn a_number_that_would_reach_others_is_refused() {
        for pid in ["1", "0", "-1", "-12", "99999999999", "x"] {
            let text = TEXT.replace("rank 0 12 ", &format!("rank 0 {pid} "));
            assert_eq!(parse(&text).unwrap().ranks.len(), 1, "{pid}");
        }
    }
}
