//! What each member of a team copies and combines, and in what blocks.
//!
//! A plan divides a collective into blocks that fit the staging slots. Three things happen to a
//! block, each on the members that the collective concerns:
//! - *put*: a member copies what others need from its input into its in-slot;
//! - *take*: a member copies, or combines, from the others' in-slots into its output, and into its
//!   out-slot where others need the result;
//! - *fetch*: a member copies results from the others' out-slots into its output.
//!
//! | collective | put | take | fetch |
//! |---|---|---|---|
//! | all_reduce, reduce | the others' shares of the block | own share | the others' shares (all; root) |
//! | the same as a chain | first member: the block | the block, onto what those before made of it | from the first member's slots (all but the last; root) |
//! | all_reduce of 2 members | the other's share | own share, and back into the slot | from the slot |
//! | reduce of 2 members | the block | the block | |
//! | reduce_scatter | a piece of each part | own part | |
//! | all_gather, gather | a piece of the own part | all parts (all; root) | |
//! | broadcast | root: the block | the block | |
//! | scatter | root: a piece of each part | own part | |
//! | all_to_all | a piece of each part | a piece from each | |
//! | scan, exscan | the block | the block, from those before | |

use std::ops::Range;

use rlaunch_transport::shm::SLOTS;
use rlaunch_wire::Collective;

use crate::call::{Call, Counts};

/// Shares of a block begin on cache lines, which are whole elements of every type.
const LINE_BYTES: usize = 64;
/// Up to so many members, one combines the whole block: one turn less to wait for, and hardly more
/// to do.
const WHOLE_MEMBERS_MAX: u32 = 2;

/// Blocks of a chain under way at a time.
pub(crate) const CHAIN_BLOCKS: u64 = 8;
/// Below this a chain's turns, one for each member, cost more than it saves.
const CHAIN_WORTH_BYTES: usize = 128 * 1024;

/// See the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Each member combines its share of the vector.
    Shares,
    /// The same for two. The result goes back into the slot from which the other's part came: so each
    /// line of it travels once to and once back, and only its owner ever waits to write it.
    Pair,
    /// The same where members share cores: a block passes from member to member, see
    /// [`super::exchange`]'s `chain`.
    Chain,
    /// The member that wants the result combines the whole.
    Whole,
    ReduceScatter,
    /// One's own part to all.
    Gather,
    Broadcast,
    /// A part for each.
    Scatter,
    /// Combines what came from the members before (and from oneself, for scan).
    Scan,
    Nothing,
}

/// A collective's division into blocks, as one member sees it. All in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) pattern: Pattern,
    pub(crate) members: u32,
    pub(crate) me: u32,
    /// The only one to put (broadcast, scatter), or to take (reduce, gather).
    pub(crate) root: Option<u32>,
    pub(crate) collective: Collective,
    /// What this member sends to each, by place in its input; of vectors the whole.
    send: Parts,
    recv: Parts,
    /// Of the vector, or of each part.
    block: usize,
    /// Where the piece for each member begins in a slot, for those patterns that put several.
    stride: usize,
    pub(crate) puts: u64,
    pub(crate) takes: u64,
    pub(crate) fetches: u64,
    /// Members differ in how many blocks they put and take.
    pub(crate) is_uneven: bool,
}

/// Parts of a buffer, one for each member.
#[derive(Debug, Clone)]
enum Parts {
    /// All alike, one behind the other.
    Even(usize),
    /// The same place for all: a vector, or the one part that this member has.
    Single(usize),
    Given(Vec<Range<usize>>),
}

impl Parts {
    fn given(counts: &[usize], offsets: &[usize], element: usize) -> Self {
        let ranges = counts.iter().zip(offsets);
        Self::Given(
            ranges
                .map(|(count, offset)| offset * element..(offset + count) * element)
                .collect(),
        )
    }

    fn of(&self, member: u32) -> Range<usize> {
        match self {
            Self::Even(bytes) => member as usize * bytes..(member as usize + 1) * bytes,
            Self::Single(bytes) => 0..*bytes,
            Self::Given(ranges) => ranges.get(member as usize).cloned().unwrap_or(0..0),
        }
    }

    fn longest(&self) -> usize {
        match self {
            Self::Even(bytes) | Self::Single(bytes) => *bytes,
            Self::Given(ranges) => ranges.iter().map(ExactSizeIterator::len).max().unwrap_or(0),
        }
    }
}

impl Plan {
    /// The plan of `call` for a team whose slots have `slot_bytes`. Lengths were checked before.
    pub(crate) fn new(call: &Call, members: u32, me: u32, slot_bytes: usize) -> Self {
        let element = call.dtype.size_bytes();
        let bytes = call.count * element;
        let none = Counts::default();
        let counts = call.counts.as_deref().unwrap_or(&none);
        let sent = || Parts::given(&counts.send, &counts.send_offsets, element);
        let received = || Parts::given(&counts.recv, &counts.recv_offsets, element);
        let reduces_whole = members <= WHOLE_MEMBERS_MAX;
        let vector = || (Parts::Single(bytes), Parts::Single(bytes));
        let (pattern, (send, recv)) = match call.collective {
            Collective::AllReduce if members == 2 => (Pattern::Pair, vector()),
            Collective::Reduce if reduces_whole => (Pattern::Whole, vector()),
            Collective::AllReduce | Collective::Reduce => (Pattern::Shares, vector()),
            Collective::Broadcast => (Pattern::Broadcast, vector()),
            Collective::Scan | Collective::Exscan => (Pattern::Scan, vector()),
            Collective::ReduceScatter => {
                let parts = (Parts::Even(bytes), Parts::Single(bytes));
                (Pattern::ReduceScatter, parts)
            }
            Collective::ReduceScatterV => {
                let own = counts
                    .recv
                    .get(me as usize)
                    .map_or(0, |count| count * element);
                (Pattern::ReduceScatter, (received(), Parts::Single(own)))
            }
            Collective::AllGather
            | Collective::Gather
            | Collective::Split
            | Collective::Duplicate
            | Collective::FromRanks
            | Collective::Shrink => {
                let parts = (Parts::Single(bytes), Parts::Even(bytes));
                (Pattern::Gather, parts)
            }
            Collective::AllGatherV => {
                let own = counts
                    .recv
                    .get(me as usize)
                    .map_or(0, |count| count * element);
                (Pattern::Gather, (Parts::Single(own), received()))
            }
            Collective::GatherV => (Pattern::Gather, (Parts::Single(bytes), received())),
            Collective::Scatter => {
                let parts = (Parts::Even(bytes), Parts::Single(bytes));
                (Pattern::Scatter, parts)
            }
            Collective::ScatterV => (Pattern::Scatter, (sent(), Parts::Single(bytes))),
            Collective::AllToAll => (Pattern::Scatter, (Parts::Even(bytes), Parts::Even(bytes))),
            Collective::AllToAllV => (Pattern::Scatter, (sent(), received())),
            Collective::Barrier | Collective::Send | Collective::Recv => {
                (Pattern::Nothing, vector())
            }
        };
        let mut plan = Self {
            pattern,
            members,
            me,
            root: call.collective.has_root().then_some(call.root),
            collective: call.collective,
            send,
            recv,
            block: 0,
            stride: 0,
            puts: 0,
            takes: 0,
            fetches: 0,
            is_uneven: false,
        };
        plan.divide(slot_bytes);
        plan
    }

    fn divide(&mut self, slot_bytes: usize) {
        let members = self.members as usize;
        let longest = self.send.longest().max(self.recv.longest());
        let is_in_pieces = matches!(self.pattern, Pattern::ReduceScatter | Pattern::Scatter);
        let room = if is_in_pieces {
            slot_bytes / members / LINE_BYTES * LINE_BYTES
        } else if self.pattern == Pattern::Pair {
            // A share of each block, of two.
            slot_bytes * members
        } else {
            slot_bytes
        };
        let room = room.max(LINE_BYTES);
        // Blocks of one length, not full ones and a rest. Where not all members know the longest
        // part, each block is as long as can be.
        let is_agreed = !matches!(
            self.collective,
            Collective::GatherV | Collective::ScatterV | Collective::AllToAllV
        );
        self.block = if is_agreed {
            let blocks = longest.div_ceil(room).max(1);
            let unit = if matches!(self.pattern, Pattern::Shares | Pattern::Pair) {
                LINE_BYTES * members
            } else {
                LINE_BYTES
            };
            longest
                .div_ceil(blocks)
                .next_multiple_of(unit)
                .clamp(unit, room.max(unit))
        } else {
            room
        };
        self.stride = if is_in_pieces { self.block } else { 0 };
        self.count_blocks();
    }

    fn count_blocks(&mut self) {
        let blocks = |bytes: usize| bytes.div_ceil(self.block) as u64;
        let is_root = self.root.is_none_or(|root| root == self.me);
        let (sends, receives) = (blocks(self.send.longest()), blocks(self.recv.longest()));
        (self.puts, self.takes, self.fetches) = match self.pattern {
            Pattern::Nothing => (0, 0, 0),
            Pattern::Shares => (sends, sends, if is_root { sends } else { 0 }),
            Pattern::Pair => (sends, sends, sends),
            Pattern::Chain => {
                let is_last = self.me + 1 == self.members;
                let puts = if self.me == 0 { sends } else { 0 };
                let fetches = if is_root && !is_last { sends } else { 0 };
                (puts, sends - puts, fetches)
            }
            Pattern::Whole => {
                let is_alone = self.root == Some(self.me);
                let puts = if is_alone { 0 } else { sends };
                (puts, if is_root { sends } else { 0 }, 0)
            }
            // The root copies its own, where it is not in place.
            Pattern::Broadcast if is_root => (sends, receives, 0),
            Pattern::Broadcast => (0, sends, 0),
            Pattern::ReduceScatter => (sends, receives, 0),
            Pattern::Gather if self.root == Some(self.me) => (0, receives, 0),
            Pattern::Gather => (sends, if is_root { receives } else { 0 }, 0),
            Pattern::Scatter => match self.root {
                None => (sends, receives, 0),
                Some(root) if root == self.me => (sends, receives, 0),
                Some(_) => (0, receives, 0),
            },
            Pattern::Scan => {
                let takes_none = self.collective == Collective::Exscan && self.me == 0;
                (sends, if takes_none { 0 } else { sends }, 0)
            }
        };
        self.is_uneven =
            self.root.is_some() || self.pattern == Pattern::Scan || self.collective.has_counts();
    }

    /// The same call as a chain over slots of so many bytes, where that is shorter for members that share
    /// cores: it moves as many bytes, but through an eighth of the memory, and each member waits for one
    /// other alone. Whether it is, is the same on all members; whether its type and operation allow for
    /// it, is the caller's to know.
    pub(crate) fn chained(mut self, slot_bytes: usize) -> Self {
        let bytes = self.send.longest();
        if self.pattern != Pattern::Shares || bytes < CHAIN_WORTH_BYTES {
            return self;
        }
        self.pattern = Pattern::Chain;
        let room = slot_bytes * SLOTS / CHAIN_BLOCKS as usize / LINE_BYTES * LINE_BYTES;
        self.block = bytes
            .div_ceil(CHAIN_BLOCKS as usize)
            .next_multiple_of(LINE_BYTES)
            .min(room.max(LINE_BYTES));
        self.count_blocks();
        self
    }

    /// Where a chain's block lies in its slots.
    pub(crate) fn chain_place(&self, block: u64) -> usize {
        (block % CHAIN_BLOCKS) as usize * self.block
    }

    /// Whether `member` wants the result of a chain, and does not make it.
    pub(crate) fn fetches_of_chain(&self, member: u32) -> bool {
        self.root.is_none_or(|root| root == member) && member + 1 < self.members
    }

    /// Whether take number `block` reads what `member` put.
    pub(crate) fn takes_from(&self, member: u32, block: u64) -> bool {
        let at = block as usize * self.block;
        member != self.me
            && match self.pattern {
                Pattern::Nothing => false,
                Pattern::Shares | Pattern::Pair | Pattern::Whole | Pattern::ReduceScatter => true,
                Pattern::Chain => member + 1 == self.me,
                Pattern::Gather => self.recv.of(member).len() > at,
                Pattern::Broadcast => self.root == Some(member),
                Pattern::Scatter => match self.root {
                    None => self.recv.of(member).len() > at,
                    Some(root) => root == member && self.me != root,
                },
                Pattern::Scan => member < self.me,
            }
    }

    /// All that this member sends to `member`, by place in the input.
    pub(crate) fn part_for(&self, member: u32) -> Range<usize> {
        self.send.of(member)
    }

    /// All that it receives from `member`, by place in the output.
    pub(crate) fn part_from(&self, member: u32) -> Range<usize> {
        self.recv.of(member)
    }

    /// The length of the input, where its parts lie at their usual places.
    pub(crate) fn input_bytes(&self) -> usize {
        match &self.send {
            Parts::Even(bytes) => bytes * self.members as usize,
            Parts::Single(bytes) => *bytes,
            Parts::Given(parts) => parts.iter().map(|part| part.end).max().unwrap_or(0),
        }
    }

    /// Block number `block` of what this member sends to `member`, by place in the input.
    pub(crate) fn sent(&self, member: u32, block: u64) -> Range<usize> {
        self.piece(self.send.of(member), block)
    }

    /// Block number `block` of what it receives from `member`, by place in the output.
    pub(crate) fn received(&self, member: u32, block: u64) -> Range<usize> {
        self.piece(self.recv.of(member), block)
    }

    fn piece(&self, part: Range<usize>, block: u64) -> Range<usize> {
        let begin = part.len().min(block as usize * self.block);
        let end = part.len().min(begin + self.block);
        part.start + begin..part.start + end
    }

    /// `owner`'s share of a block of the vector, by place in the vector.
    pub(crate) fn share(&self, owner: u32, block: u64) -> Range<usize> {
        let whole = self.sent(0, block);
        share(whole, self.members, owner)
    }

    /// Where the piece for `member` begins in a slot.
    pub(crate) fn place_for(&self, member: u32) -> usize {
        member as usize * self.stride
    }
}

/// `owner`'s share of a range; all but the last are of one length, whole cache lines.
pub(crate) fn share(whole: Range<usize>, members: u32, owner: u32) -> Range<usize> {
    let length = whole
        .len()
        .div_ceil(members as usize)
        .next_multiple_of(LINE_BYTES);
    let begin = whole.end.min(whole.start + owner as usize * length);
    begin..whole.end.min(begin + length)
}
