//! What a member posts for a call that needs more than the post itself: where in the arena others find
//! what it gives them.
//!
//! ```text
//! parts at their usual places:  | input, flags | output |
//! parts at places of their own: | part for member 0 | … | part for member n-1 |
//! ```
//! 0 stands for memory that others don't see. So, once all have posted, all know whether the call goes
//! directly, and nobody has waited for anything that it would not have waited for anyway.
//!
//! Where parts are only copied, memory outside of the arena will do too, if every member can reach
//! every other's ([`rlaunch_transport::shm::Reach`]): the flags say both.

use std::ops::Range;

use rlaunch_transport::shm::{Area, FLAT_BYTES_MAX, Team};
use rlaunch_wire::{Collective, Op};

use super::super::plan::{Pattern, Plan};
use super::super::{Failure, streams};
use crate::Call;

/// How much fits a post, in words.
const WORDS_MAX: usize = FLAT_BYTES_MAX / size_of::<u64>();
/// From here on an all-reduce of more than two gains by it.
const SHARES_WORTH_BYTES: usize = 512 * 1024;
/// Up to here two members combine everything twice sooner than they wait for each other's half.
const WHOLE_BYTES_MAX: usize = 1 << 20;
/// Posted for a part without elements, which lies nowhere.
const EMPTY: u64 = 1;
/// Flag: the input is an address in the member's own memory, not a place in the arena.
const PRIVATE: u64 = 1 << 63;
/// Flag: the member can reach the memory of all others.
const REACHES: u64 = 1 << 62;
const FLAGS: u64 = PRIVATE | REACHES;
/// From here on the kernel copies a part sooner than it passes through staging.
const PRIVATE_WORTH_BYTES: usize = 8 * 1024;
/// Posted by a member whose memory others don't see.
static NOTHING: [u64; WORDS_MAX] = [0; WORDS_MAX];

/// One member's post.
#[derive(Debug)]
pub(crate) struct Offer {
    words: Words,
    /// Others learn of memory that they may read.
    is_read: bool,
    /// The root, or for the root the others, may write this member's output.
    is_helped: bool,
}

#[derive(Debug)]
enum Words {
    Nothing(&'static [u64]),
    Usual([u64; 2]),
    Table(Vec<u64>),
}

/// Where a member finds what another gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It reads nothing from that one.
    Nowhere,
    /// In this process's memory too.
    Here(*const u8),
    /// At that address of the other's process.
    There(u64),
}

impl Place {
    /// To read from here; null where that can't be.
    pub(crate) fn pointer(&self) -> *const u8 {
        match self {
            Self::Here(pointer) => *pointer,
            Self::Nowhere | Self::There(_) => std::ptr::null(),
        }
    }
}

/// Where this member finds what the others give it, and for an all-reduce their results.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) inputs: Vec<Place>,
    pub(crate) outputs: Vec<*const u8>,
    /// Where all members may write to each other's memory: the addresses of their outputs.
    pub(crate) helped: Option<Vec<u64>>,
}

/// Whether `reader` needs something from `giver`.
pub(crate) fn reads(plan: &Plan, reader: u32, giver: u32) -> bool {
    reader != giver
        && match plan.pattern {
            // Chains go through staging.
            Pattern::Nothing | Pattern::Chain => false,
            Pattern::ReduceScatter => true,
            Pattern::Shares | Pattern::Pair | Pattern::Whole | Pattern::Gather => {
                plan.root.is_none_or(|root| root == reader)
            }
            Pattern::Broadcast | Pattern::Scatter => plan.root.is_none_or(|root| root == giver),
            Pattern::Scan => giver < reader,
        }
}

fn gives(plan: &Plan, member: u32) -> bool {
    (0..plan.members).any(|reader| reads(plan, reader, member))
}

/// Parts whose places only their owner knows.
fn has_table(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::ReduceScatterV | Collective::ScatterV | Collective::AllToAllV
    )
}

/// How many words members post for such a call; 0 for one that never goes directly. Equal on all.
fn words(call: &Call, plan: &Plan) -> usize {
    let members = plan.members as usize;
    let reduction = call.reduction.as_ref();
    // What others would read is not yet what they are to combine.
    let is_premultiplied = reduction.is_some_and(|one| one.op == Op::PremulSum);
    let is_slower = members > 2
        && match plan.collective {
            // The root would combine alone.
            Collective::Reduce => true,
            Collective::AllReduce => plan.input_bytes() < SHARES_WORTH_BYTES,
            _ => false,
        };
    if members == 1 || is_premultiplied || is_slower || plan.pattern == Pattern::Nothing {
        return 0;
    }
    match has_table(plan.collective) {
        true if members > WORDS_MAX => 0,
        true => members,
        false => 2,
    }
}

/// Whether this member's result would overwrite what others have yet to read; or, for two members of
/// an all-reduce, what the other has in its cache, line by line (through staging each line travels
/// half as often: measured 0.7 to 0.9 of the time at every length).
fn is_overwritten(call: &Call, plan: &Plan) -> bool {
    let is_in_place = call.input == call.output.cast_const();
    let is_exchange = plan.pattern == Pattern::Scatter && plan.root.is_none();
    is_in_place && (is_exchange || matches!(plan.pattern, Pattern::Scan | Pattern::Pair))
}

/// Whether each member combines the whole, where its output is apart: longer ones by shares.
pub(crate) fn combines_whole(plan: &Plan) -> bool {
    plan.pattern == Pattern::Pair && plan.input_bytes() <= WHOLE_BYTES_MAX
}

fn reads_outputs(plan: &Plan) -> bool {
    plan.collective == Collective::AllReduce && !combines_whole(plan)
}

/// Whether parts are copied as they are.
pub(super) fn copies(plan: &Plan) -> bool {
    matches!(
        plan.pattern,
        Pattern::Gather | Pattern::Broadcast | Pattern::Scatter
    )
}

/// Whether it is worth to have the kernel copy. Not where results go past the cache, which the kernel
/// does not do.
fn is_copied(call: &Call, plan: &Plan) -> bool {
    let is_long = call.count.saturating_mul(call.dtype.size_bytes()) >= PRIVATE_WORTH_BYTES;
    is_long && copies(plan) && (plan.root.is_some() || !streams(call))
}

/// Whether others may help this member to get what it reads: those it reads from have nothing to
/// read themselves.
pub(super) fn is_helped(plan: &Plan, member: u32) -> bool {
    let reads_any = |reader| (0..plan.members).any(|giver| reads(plan, reader, giver));
    copies(plan) && plan.root.is_some() && reads_any(member)
}

impl Offer {
    pub(crate) fn new(team: &Team, call: &Call, plan: &Plan) -> Self {
        let count = words(call, plan);
        let offer = if count == 0 || is_overwritten(call, plan) {
            None
        } else if has_table(plan.collective) {
            Self::table(team, call, plan)
        } else {
            Self::usual(team, call, plan)
        };
        offer.unwrap_or(Self {
            words: Words::Nothing(&NOTHING[..count]),
            is_read: false,
            is_helped: false,
        })
    }

    fn usual(team: &Team, call: &Call, plan: &Plan) -> Option<Self> {
        let whole = 0..plan.input_bytes();
        let reaches = is_copied(call, plan) && team.arena().reach_among(plan.members).is_some();
        let is_read = gives(plan, plan.me);
        let input = if !is_read {
            EMPTY
        } else if let Some(place) = place(team, call.input, &whole) {
            place
        } else if reaches {
            call.input as u64 | PRIVATE
        } else {
            return None;
        };
        let is_helped = reaches && is_helped(plan, plan.me);
        let output = if is_helped {
            call.output as u64
        } else if reads_outputs(plan) {
            place(team, call.output, &whole)?
        } else {
            EMPTY
        };
        let flag = if reaches { REACHES } else { 0 };
        Some(Self {
            words: Words::Usual([input | flag, output]),
            is_read,
            is_helped,
        })
    }

    fn table(team: &Team, call: &Call, plan: &Plan) -> Option<Self> {
        if !gives(plan, plan.me) {
            return None;
        }
        let members = 0..plan.members;
        let places = members.map(|member| place(team, call.input, &plan.part_for(member)));
        let places = places.collect::<Option<_>>()?;
        Some(Self {
            words: Words::Table(places),
            is_read: true,
            is_helped: false,
        })
    }

    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    pub(crate) fn is_helped(&self) -> bool {
        self.is_helped
    }

    /// Whether the call may go directly, as far as this member knows before the others have posted.
    pub(crate) fn is_open(&self, plan: &Plan) -> bool {
        !self.posted().is_empty() && (self.is_read || !gives(plan, plan.me))
    }

    /// What to post; as long on all members.
    pub(crate) fn posted(&self) -> &[u64] {
        match &self.words {
            Words::Nothing(words) => words,
            Words::Usual(words) => words,
            Words::Table(words) => words,
        }
    }
}

/// 0 is no place in a zone, and so is [`EMPTY`].
fn place(team: &Team, buffer: *const u8, part: &Range<usize>) -> Option<u64> {
    if part.is_empty() {
        return Some(EMPTY);
    }
    let at = buffer.wrapping_add(part.start);
    team.arena().place_of(team.local_rank(), at, part.len())
}

impl Sources {
    /// From what all members have posted; `None` where one that gives has memory of its own. All
    /// members find the same.
    pub(crate) fn find(team: &Team, call: &Call, plan: &Plan) -> Result<Option<Self>, Failure> {
        let words = words(call, plan);
        let posted = |member: u32, word: usize| {
            let data = team.posted_data(member, words * size_of::<u64>());
            // SAFETY: every member has posted that many words; the data is aligned to 8, and stays
            // until this member begins another round.
            unsafe { data.cast::<u64>().add(word).read() }
        };
        let has_table = has_table(plan.collective);
        let flags = |member: u32| match has_table {
            true => 0,
            false => posted(member, 0) & FLAGS,
        };
        let is_hidden = |member: u32| gives(plan, member) && posted(member, 0) & !FLAGS == 0;
        let is_private = |member: u32| flags(member) & PRIVATE != 0;
        let all_reach = (0..plan.members).all(|member| flags(member) & REACHES != 0);
        if (0..plan.members).any(|member| is_hidden(member) || is_private(member) && !all_reach) {
            return Ok(None);
        }
        let me = plan.me;
        let input = |giver: u32| {
            let start = plan.part_for(me).start;
            if giver == me {
                return Ok(Place::Here(call.input.wrapping_add(start)));
            }
            let bytes = plan.part_from(giver).len();
            if !reads(plan, me, giver) || bytes == 0 {
                return Ok(Place::Nowhere);
            }
            if has_table {
                return locate(team, posted(giver, me as usize), bytes).map(Place::Here);
            }
            // Uniform parts: what is for me lies with all where it lies with me.
            let place = (posted(giver, 0) & !FLAGS) + start as u64;
            match is_private(giver) {
                true => Ok(Place::There(place)),
                false => locate(team, place, bytes).map(Place::Here),
            }
        };
        let output = |owner: u32| locate(team, posted(owner, 1), plan.input_bytes());
        let inputs = (0..plan.members).map(input).collect::<Result<_, _>>()?;
        let outputs = if reads_outputs(plan) {
            (0..plan.members).map(output).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        let addresses = || (0..plan.members).map(|member| posted(member, 1)).collect();
        Ok(Some(Self {
            inputs,
            outputs,
            helped: all_reach.then(addresses),
        }))
    }
}

fn locate(team: &Team, offset: u64, bytes: usize) -> Result<*const u8, Failure> {
    let place = team.arena().locate(Area { offset, bytes })?;
    Ok(place.as_ptr().cast_const())
}
