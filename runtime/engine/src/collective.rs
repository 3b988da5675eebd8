//! One collective call under way: which way it goes, and what is done before and after.
//!
//! ```text
//! call ─ checked, numbered ─┬─ one rank: a copy
//!                           ├─ all members share memory: over their team, see [`crate::local`]
//!                           ├─ several hosts with several ranks: hierarchical
//!                           └─ else: a schedule, interpreted over the connections
//! ```
//! Before: a premultiplied sum becomes a sum of a multiplied copy; an all_to_all in place gets a copy
//! of its input. After: an average is finished. So the ways themselves know
//! sums only; all but the team's, which does without copies.

use std::sync::Arc;

use rlaunch_schedule::{Algorithm, Question, Shape, Spec};
use rlaunch_transport::Progress;
use rlaunch_wire::{Collective, Descriptor, Op};

use crate::checked::Checked;
use crate::core::Core;
use crate::group::GroupKey;
use crate::hierarchical::{self, Hierarchical};
use crate::interpret::{Interpreter, Plan, Reducer, Task};
use crate::local::TeamOperation;
use crate::wait::{Awaited, Operation};
use crate::{Call, Error, Reduction};

#[derive(Debug)]
pub(crate) struct CollectiveOperation {
    descriptor: Descriptor,
    way: Way,
    average: Option<Average>,
    /// What the input was copied to, where the call needs it.
    _copy: Vec<u64>,
}

/// How a call, or a stage of one, goes.
#[derive(Debug)]
pub(crate) enum Way {
    /// What was to be done is done.
    Done,
    Team(TeamOperation),
    // Boxed, so that small calls of a team move little.
    Schedule(Box<Interpreter>),
    Hierarchical(Box<Hierarchical>),
}

/// A sum that is to become an average.
#[derive(Debug)]
struct Average {
    output: *mut u8,
    count: usize,
    ranks: u32,
}

// SAFETY: the pointer is followed once, when the operation is done, for a buffer that `begin`'s
// caller vouched for, whichever thread polls.
unsafe impl Send for CollectiveOperation {}

impl CollectiveOperation {
    /// Checks, numbers and begins a call. The communicator is busy from then on.
    ///
    /// # Safety
    /// As [`crate::Communicator::run`], until the operation has ended.
    pub(crate) unsafe fn begin(core: &mut Core, key: GroupKey, call: &Call) -> Result<Self, Error> {
        let group = core.group(key);
        let checked = Checked::new(call, group.size(), group.me)?;
        let mut copy = Vec::new();
        let input = if group.is_near {
            call.input
        } else {
            // SAFETY: as the caller vouches.
            unsafe { prepared_input(call, &checked, &mut copy)? }
        };
        // SAFETY: as the caller vouches.
        let descriptor = unsafe { number(core, key, call, &checked)? };
        let op = descriptor.op;
        let group = core.group(key);
        let (size, is_near) = (group.size(), group.is_near);
        let averages = op == Some(Op::Avg) && !is_near && checked.has_result(group.me);
        let average = averages.then_some(Average {
            output: call.output,
            count: checked.result_count,
            ranks: size,
        });
        let is_forced =
            group.choice.is_some() || call.schedule.is_some() || core.selector.has_preference();
        let way = if is_near {
            // SAFETY: as the caller vouches.
            Way::Team(unsafe { TeamOperation::new(group, key, call, descriptor) })
        } else if size == 1 {
            // SAFETY: as the caller vouches.
            unsafe { copy_alone(call, &checked, input) };
            Way::Done
        } else if let Some(lanes) = hierarchical::serves(group, call, is_forced) {
            let call = summed(call, input);
            // SAFETY: as the caller vouches; the copy lives as long as the operation.
            let operation = unsafe { Hierarchical::new(key, descriptor, call, lanes) };
            Way::Hierarchical(Box::new(operation))
        } else {
            let task = task(core, key, descriptor, call, checked, input);
            // SAFETY: as the caller vouches; the copy lives as long as the operation.
            Way::Schedule(Box::new(unsafe { Interpreter::new(core, task) }))
        };
        Ok(Self {
            descriptor,
            way,
            average,
            _copy: copy,
        })
    }
}

/// The same for a call on a communicator whose members share memory, which is told apart so that
/// the smallest calls move little.
///
/// # Safety
/// As [`CollectiveOperation::begin`].
#[inline]
pub(crate) unsafe fn begin_near(
    core: &mut Core,
    key: GroupKey,
    call: &Call,
) -> Result<TeamOperation, Error> {
    let group = core.group(key);
    let checked = Checked::new(call, group.size(), group.me)?;
    // SAFETY: as the caller vouches.
    let descriptor = unsafe { number(core, key, call, &checked)? };
    // SAFETY: as the caller vouches.
    Ok(unsafe { TeamOperation::new(core.group(key), key, call, descriptor) })
}

/// Numbers a call; the communicator is busy from then on, unless it has failed.
///
/// # Safety
/// As [`CollectiveOperation::begin`].
#[inline]
unsafe fn number(
    core: &mut Core,
    key: GroupKey,
    call: &Call,
    checked: &Checked,
) -> Result<Descriptor, Error> {
    let op = call.reduction.as_ref().map(|reduction| reduction.op);
    let op = op.filter(|_| call.collective.reduces());
    let (root, counts) = (checked.root, (checked.agreed_count, checked.digest));
    let group = core.group_mut(key);
    if call.collective == Collective::Broadcast && root == group.me {
        // SAFETY: at the root both are valid for the vector; `copy` allows for one being both.
        unsafe { copy_vector(call) };
    }
    let descriptor = group.begin(call.collective, call.dtype, op, root, counts);
    group.is_busy = true;
    if let Err(error) = core.check(key) {
        core.group_mut(key).is_busy = false;
        return Err(error);
    }
    Ok(descriptor)
}

/// The input as the ways need it: the caller's, or a copy of it.
///
/// # Safety
/// As [`CollectiveOperation::begin`].
unsafe fn prepared_input(
    call: &Call,
    checked: &Checked,
    copy: &mut Vec<u64>,
) -> Result<*const u8, Error> {
    let size = call.dtype.size_bytes();
    let bytes = checked.input_elements * size;
    let scalar = call
        .reduction
        .as_ref()
        .and_then(|reduction| reduction.scalar);
    let is_exchange = matches!(
        call.collective,
        Collective::AllToAll | Collective::AllToAllV
    );
    let is_copied_for_exchange = is_exchange && call.input == call.output.cast_const();
    if scalar.is_none() && !is_copied_for_exchange {
        return Ok(call.input);
    }
    let words = bytes.div_ceil(8);
    copy.try_reserve_exact(words)
        .map_err(|error| Error::Memory(format!("a copy of {bytes} bytes of input: {error}")))?;
    let place = copy.as_mut_ptr().cast::<u8>();
    match scalar {
        // SAFETY: the input is valid for its elements, and the copy has room for them.
        Some(scalar) => unsafe {
            let count = checked.input_elements;
            rlaunch_device::premultiply_raw(call.dtype, place, call.input, scalar.as_ptr(), count);
        },
        // SAFETY: as above.
        None => unsafe { std::ptr::copy_nonoverlapping(call.input, place, bytes) },
    }
    Ok(place)
}

/// # Safety
/// As [`CollectiveOperation::begin`], with the input prepared.
unsafe fn copy_alone(call: &Call, checked: &Checked, input: *const u8) {
    use Collective as C;
    if matches!(call.collective, C::Barrier | C::Broadcast | C::Exscan) {
        return;
    }
    let size = call.dtype.size_bytes();
    let (from, to) = (checked.own_input(), checked.own_output());
    let bytes = checked.result_count * size;
    if bytes == 0 {
        return;
    }
    // SAFETY: both are valid for this rank's part; `copy` allows for them being the same.
    unsafe { std::ptr::copy(input.add(from * size), call.output.add(to * size), bytes) };
}

/// # Safety
/// As [`CollectiveOperation::begin`].
unsafe fn copy_vector(call: &Call) {
    if call.count == 0 || call.input.is_null() || call.input == call.output.cast_const() {
        return;
    }
    let bytes = call.count * call.dtype.size_bytes();
    // SAFETY: both are valid for the vector and apart, as the caller vouches.
    unsafe { std::ptr::copy_nonoverlapping(call.input, call.output, bytes) };
}

/// What the interpreter is to run.
fn task(
    core: &mut Core,
    key: GroupKey,
    descriptor: Descriptor,
    call: &Call,
    checked: Checked,
    input: *const u8,
) -> Task {
    let group = core.group(key);
    let (ranks, me, size) = (group.ranks.clone(), group.me, group.size());
    let collective = match descriptor.collective {
        // What ranks tell each other to make a communicator.
        Collective::Create => Collective::AllGather,
        other => other,
    };
    let user = call
        .reduction
        .as_ref()
        .and_then(|reduction| reduction.user.clone());
    let in_order = user.as_ref().is_some_and(|user| !user.is_commutative);
    let question = Question {
        collective,
        bytes: checked.bytes_of_all,
        shape: group.shape(),
        in_order,
    };
    let wanted = call
        .schedule
        .or(group.choice)
        .filter(|choice| choice.serves(question));
    let choice = wanted.unwrap_or_else(|| core.selector.select(question));
    let mut spec = Spec::new(collective, choice.algorithm, size)
        .with_root(descriptor.root)
        .with_order(in_order);
    if choice.algorithm == Algorithm::Hierarchical {
        spec = spec.with_hosts(group.hosts.clone());
    }
    let op = match descriptor.op {
        Some(Op::Avg | Op::PremulSum) => Some(Op::Sum),
        other => other,
    };
    Task {
        plan: core.plan(spec, me),
        layout: checked.layout,
        segment_bytes: choice.segment_bytes,
        descriptor,
        reducer: op.map(|op| Reducer {
            dtype: call.dtype,
            op,
            user,
        }),
        ranks,
        input,
        output: call.output,
    }
}

/// The call as a stage takes it: what was prepared as its input, and a sum where that is meant.
fn summed(call: &Call, input: *const u8) -> Call {
    let sum = |reduction: &Reduction| match reduction.op {
        Op::Avg | Op::PremulSum => Op::Sum.into(),
        _ => reduction.clone(),
    };
    Call {
        input,
        reduction: call.reduction.as_ref().map(sum),
        ..call.clone()
    }
}

/// The steps of rank `me` of `world`, each on a host of its own, and the length of segments.
pub(crate) fn between(
    core: &mut Core,
    collective: Collective,
    bytes: usize,
    world: u32,
    me: u32,
    root: u32,
) -> (Arc<Plan>, usize) {
    let question = Question {
        collective,
        bytes,
        shape: Shape::of_strangers(world),
        in_order: false,
    };
    let choice = core.selector.select(question);
    let spec = Spec::new(collective, choice.algorithm, world).with_root(root);
    (core.plan(spec, me), choice.segment_bytes)
}

impl Way {
    #[inline]
    pub(crate) fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        match self {
            Self::Done => Ok(Progress::Done),
            Self::Team(operation) => operation.poll(core),
            Self::Schedule(interpreter) => interpreter.poll(core),
            Self::Hierarchical(operation) => operation.poll(core),
        }
    }

    pub(crate) fn awaited(&self, core: &Core) -> Vec<Awaited> {
        match self {
            Self::Done => Vec::new(),
            Self::Team(operation) => operation.awaited(core),
            Self::Schedule(interpreter) => interpreter.awaited(core),
            Self::Hierarchical(operation) => operation.awaited(core),
        }
    }

    pub(crate) fn end(&mut self, core: &mut Core) {
        match self {
            Self::Done => {}
            Self::Team(operation) => operation.end(core),
            Self::Schedule(interpreter) => interpreter.end(core),
            Self::Hierarchical(operation) => operation.end(core),
        }
    }
}

impl Operation for CollectiveOperation {
    fn call(&self) -> Descriptor {
        self.descriptor
    }

    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        let progress = self.way.poll(core)?;
        if progress == Progress::Done
            && let Some(average) = self.average.take()
        {
            let dtype = self.descriptor.dtype;
            let Average {
                output,
                count,
                ranks,
            } = average;
            // SAFETY: the output is valid for the result, which lies there now.
            unsafe { rlaunch_device::finish_avg_raw(dtype, output, count, ranks) };
        }
        Ok(progress)
    }

    fn awaited(&self, core: &Core) -> Vec<Awaited> {
        self.way.awaited(core)
    }

    fn end(&mut self, core: &mut Core) {
        self.way.end(core);
    }
}
