//! What members of a v-variant say of their counts, and whether it fits together.
//!
//! Each posts, behind its descriptor, what others must know to compare: the whole list where all give
//! the same one; at the root of a gather or scatter what it gives or expects for each, elsewhere this
//! member's own count; in an all_to_all what it sends to each. So each pair's two counts meet on at
//! least one of the two, before any data is used.
//!
//! A team of more than [`MEMBERS_MAX`] posts nothing: lists that all give are compared by their digest
//! alone, and pairs not at all. Then each reads and writes what its own counts say, inside its own
//! buffers and the team's memory: elements past the shorter count are undefined, no more.

use rlaunch_transport::shm::{FLAT_BYTES_MAX, Team};
use rlaunch_wire::Collective;

use crate::call::Call;

/// Whose counts fit a post.
const MEMBERS_MAX: usize = FLAT_BYTES_MAX / COUNT_BYTES;
const COUNT_BYTES: usize = size_of::<u64>();

/// The counts of one call, as this member gives them.
#[derive(Debug)]
pub(crate) struct Told {
    collective: Collective,
    root: u32,
    posted: Vec<u64>,
    /// Of an all_to_all: from each.
    expected: Vec<u64>,
}

/// Counts of two members that don't fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountsDiffer {
    /// Both give the whole list, and differ in what it says of this member.
    Lists { of: u32, mine: u64, theirs: u64 },
    /// One sends so many elements to another that expects so many.
    Pair {
        from: u32,
        to: u32,
        sent: u64,
        expected: u64,
    },
}

impl Told {
    /// `None` for a call without counts, and where they don't fit a post.
    pub(crate) fn new(call: &Call, members: u32, me: u32) -> Option<Self> {
        use Collective as C;
        let counts = call.counts.as_deref()?;
        if members as usize > MEMBERS_MAX {
            return None;
        }
        let is_root = call.root == me;
        let own = [call.count];
        let posted = match call.collective {
            C::AllGatherV | C::ReduceScatterV => &counts.recv,
            C::GatherV if is_root => &counts.recv,
            C::ScatterV if is_root => &counts.send,
            C::GatherV | C::ScatterV => &own[..],
            C::AllToAllV => &counts.send,
            _ => return None,
        };
        let expected = match call.collective {
            C::AllToAllV => &counts.recv[..],
            _ => &[],
        };
        let words = |counts: &[usize]| counts.iter().map(|count| *count as u64).collect();
        Some(Self {
            collective: call.collective,
            root: call.root,
            posted: words(posted),
            expected: words(expected),
        })
    }

    pub(crate) fn posted(&self) -> (*const u8, usize) {
        let bytes = self.posted.len() * COUNT_BYTES;
        (self.posted.as_ptr().cast(), bytes)
    }

    /// Compares with what `member` has posted, which has made the same call but for its counts.
    pub(crate) fn compare(&self, team: &Team, member: u32) -> Result<(), CountsDiffer> {
        let (me, root) = (team.me(), self.root);
        match self.collective {
            Collective::GatherV if me == root => {
                self.pair(member, me, self.theirs(team, member, 0), self.mine(member))
            }
            Collective::GatherV if member == root => {
                self.pair(me, root, self.mine(0), self.theirs(team, root, me))
            }
            Collective::ScatterV if me == root => {
                self.pair(me, member, self.mine(member), self.theirs(team, member, 0))
            }
            Collective::ScatterV if member == root => {
                self.pair(root, me, self.theirs(team, root, me), self.mine(0))
            }
            Collective::GatherV | Collective::ScatterV => Ok(()),
            Collective::AllToAllV => {
                let expected = self.expected[member as usize];
                self.pair(member, me, self.theirs(team, member, me), expected)
            }
            _ => (0..team.size()).try_for_each(|of| {
                let (mine, theirs) = (self.mine(of), self.theirs(team, member, of));
                if mine == theirs {
                    return Ok(());
                }
                Err(CountsDiffer::Lists { of, mine, theirs })
            }),
        }
    }

    fn pair(&self, from: u32, to: u32, sent: u64, expected: u64) -> Result<(), CountsDiffer> {
        if sent == expected {
            return Ok(());
        }
        Err(CountsDiffer::Pair {
            from,
            to,
            sent,
            expected,
        })
    }

    fn mine(&self, at: u32) -> u64 {
        self.posted[at as usize]
    }

    /// Number `at` of the counts that `member` has posted.
    fn theirs(&self, team: &Team, member: u32, at: u32) -> u64 {
        let has_one = match self.collective {
            Collective::GatherV | Collective::ScatterV => member != self.root,
            _ => false,
        };
        let posted = if has_one { 1 } else { team.size() as usize };
        let data = team.posted_data(member, posted * COUNT_BYTES);
        // SAFETY: that member has posted so many counts: as many as every member of its part in
        // this collective does.
        unsafe { data.cast::<u64>().add(at as usize).read_unaligned() }
    }
}
