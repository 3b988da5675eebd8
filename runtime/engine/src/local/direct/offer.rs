//! What a member posts for a call that needs more than the post itself: where in the arena others find
//! what it gives them.
//!
//! ```text
//! parts at their usual places:  | input | output |
//! parts at places of their own: | part for member 0 | … | part for member n-1 |
//! ```
//! 0 stands for memory that others don't see. So, once all have posted, all know whether the call goes
//! directly, and nobody has waited for anything that it would not have waited for anyway.

use std::ops::Range;

use rlaunch_transport::shm::{Area, FLAT_BYTES_MAX, Team};
use rlaunch_wire::{Collective, Op};

use super::super::Failure;
use super::super::plan::{Pattern, Plan};
use crate::Call;

/// How much fits a post, in words.
const WORDS_MAX: usize = FLAT_BYTES_MAX / size_of::<u64>();
/// From here on an all-reduce of more than two gains by it.
const SHARES_WORTH_BYTES: usize = 512 * 1024;
/// Up to here two members combine everything twice sooner than they wait for each other's half.
const WHOLE_BYTES_MAX: usize = 1 << 20;
/// Posted for a part without elements, which lies nowhere.
const EMPTY: u64 = 1;
/// Posted by a member whose memory others don't see.
static NOTHING: [u64; WORDS_MAX] = [0; WORDS_MAX];

/// One member's post.
#[derive(Debug)]
pub(crate) enum Offer {
    Nothing(&'static [u64]),
    Usual([u64; 2]),
    Table(Vec<u64>),
}

/// Where this member finds what the others give it, and for an all-reduce their results. Null for
/// those it reads nothing from.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) inputs: Vec<*const u8>,
    pub(crate) outputs: Vec<*const u8>,
}

/// Whether `reader` needs something from `giver`.
pub(crate) fn reads(plan: &Plan, reader: u32, giver: u32) -> bool {
    reader != giver
        && match plan.pattern {
            Pattern::Nothing => false,
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

impl Offer {
    pub(crate) fn new(team: &Team, call: &Call, plan: &Plan) -> Self {
        let words = words(call, plan);
        let is_hidden = words == 0 || is_overwritten(call, plan) || !gives(plan, plan.me);
        let offer = if is_hidden {
            None
        } else if has_table(plan.collective) {
            Self::table(team, call, plan)
        } else {
            Self::usual(team, call, plan)
        };
        offer.unwrap_or(Self::Nothing(&NOTHING[..words]))
    }

    fn usual(team: &Team, call: &Call, plan: &Plan) -> Option<Self> {
        let whole = 0..plan.input_bytes();
        let input = place(team, call.input, &whole)?;
        let output = if reads_outputs(plan) {
            place(team, call.output, &whole)?
        } else {
            EMPTY
        };
        Some(Self::Usual([input, output]))
    }

    fn table(team: &Team, call: &Call, plan: &Plan) -> Option<Self> {
        let members = 0..plan.members;
        let places = members.map(|member| place(team, call.input, &plan.part_for(member)));
        places.collect::<Option<_>>().map(Self::Table)
    }

    /// Whether the others learn of memory that they may read.
    pub(crate) fn is_something(&self) -> bool {
        !matches!(self, Self::Nothing(_))
    }

    /// Whether the call may go directly, as far as this member knows before the others have posted.
    pub(crate) fn is_open(&self, plan: &Plan) -> bool {
        !self.posted().is_empty() && (self.is_something() || !gives(plan, plan.me))
    }

    /// What to post; as long on all members.
    pub(crate) fn posted(&self) -> &[u64] {
        match self {
            Self::Nothing(words) => words,
            Self::Usual(words) => words,
            Self::Table(words) => words,
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
        let is_hidden = |member: u32| gives(plan, member) && posted(member, 0) == 0;
        if (0..plan.members).any(is_hidden) {
            return Ok(None);
        }
        let me = plan.me;
        let has_table = has_table(plan.collective);
        let input = |giver: u32| {
            if giver == me {
                return Ok(call.input.wrapping_add(plan.part_for(me).start));
            }
            let bytes = plan.part_from(giver).len();
            if !reads(plan, me, giver) || bytes == 0 {
                return Ok(std::ptr::null());
            }
            let place = if has_table {
                posted(giver, me as usize)
            } else {
                // Uniform parts: what is for me lies with all where it lies with me.
                posted(giver, 0) + plan.part_for(me).start as u64
            };
            locate(team, place, bytes)
        };
        let output = |owner: u32| locate(team, posted(owner, 1), plan.input_bytes());
        let inputs = (0..plan.members).map(input).collect::<Result<_, _>>()?;
        let outputs = if reads_outputs(plan) {
            (0..plan.members).map(output).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        Ok(Some(Self { inputs, outputs }))
    }
}

fn locate(team: &Team, offset: u64, bytes: usize) -> Result<*const u8, Failure> {
    let place = team.arena().locate(Area { offset, bytes })?;
    Ok(place.as_ptr().cast_const())
}
