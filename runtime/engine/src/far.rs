//! Collectives over connections: by which algorithm, on which numbers, and what is done before and
//! after.
//!
//! Schedules know sums of what lies in memory. So before: a premultiplied sum becomes a sum of a
//! multiplied copy, an all_to_all in place gets a copy of its input, and floats of 16 and 8 bits that
//! are to be rounded once become a binary32 copy ([`rlaunch_schedule::Numbers`] says when). After: an
//! average is divided, and a binary32 result rounded, in one.

use rlaunch_schedule::{Algorithm, Choice, Question, Spec};
use rlaunch_wire::{Collective, DType, Descriptor, Op};

use crate::checked::Checked;
use crate::core::Core;
use crate::group::GroupKey;
use crate::interpret::{Reducer, Task};
use crate::{Call, Error};

/// A call before it is numbered: all that can fail has been done.
#[derive(Debug)]
pub(crate) struct Preparation {
    question: Question,
    choice: Choice,
    dtype: DType,
    pub(crate) input: *const u8,
    output: *mut u8,
    finish: Finish,
}

/// What follows when the schedule is done, and the memory it worked on.
#[derive(Debug)]
pub(crate) struct Finish {
    step: Step,
    /// A changed input.
    _copy: Vec<u64>,
    wide: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Nothing,
    /// The sum in the output becomes an average.
    Divide {
        output: *mut u8,
        dtype: DType,
        count: usize,
        ranks: u32,
    },
    /// The binary32 result becomes the output, divided by `ranks`.
    Narrow {
        from: *const u8,
        output: *mut u8,
        dtype: DType,
        count: usize,
        ranks: u32,
    },
}

// SAFETY: the pointers are followed once, when the operation is done, for buffers that `begin`'s
// caller vouched for or that live in `wide`, whichever thread polls.
unsafe impl Send for Finish {}

impl Preparation {
    /// # Safety
    /// The call's buffers are valid as its collective needs them.
    pub(crate) unsafe fn new(
        core: &mut Core,
        key: GroupKey,
        call: &Call,
        checked: &Checked,
    ) -> Result<Self, Error> {
        let question = question(core, key, call, checked);
        let wanted = call.schedule.filter(|choice| choice.serves(question));
        let choice = wanted.unwrap_or_else(|| core.choose(question));
        let mut copy = Vec::new();
        // SAFETY: as the caller vouches.
        let input = unsafe { prepared_input(call, checked, &mut copy)? };
        let mut preparation = Self {
            question,
            choice,
            dtype: call.dtype,
            input,
            output: call.output,
            finish: Finish {
                step: Step::Nothing,
                _copy: copy,
                wide: Vec::new(),
            },
        };
        let group = core.group(key);
        let (size, me) = (group.size(), group.me);
        if size == 1 {
            return Ok(preparation);
        }
        let has_result =
            checked.has_result(me) && (call.collective != Collective::Exscan || me > 0);
        let averages = call.reduction.as_ref().is_some_and(|one| one.op == Op::Avg);
        if question.is_widened_by(choice.algorithm) {
            // SAFETY: as the caller vouches.
            unsafe { preparation.widen(core, call, checked)? };
            if has_result {
                preparation.finish.step = Step::Narrow {
                    from: preparation.output,
                    output: call.output,
                    dtype: call.dtype,
                    count: checked.result_count,
                    ranks: if averages { size } else { 1 },
                };
            }
        } else if averages && has_result && !choice.algorithm.sums_at_once(call.collective) {
            preparation.finish.step = Step::Divide {
                output: call.output,
                dtype: call.dtype,
                count: checked.result_count,
                ranks: size,
            };
        }
        Ok(preparation)
    }

    /// Gives the call a binary32 copy of its input and room for its result: of vectors one for both.
    ///
    /// # Safety
    /// As [`Preparation::new`].
    unsafe fn widen(
        &mut self,
        core: &mut Core,
        call: &Call,
        checked: &Checked,
    ) -> Result<(), Error> {
        let is_in_blocks = matches!(
            call.collective,
            Collective::ReduceScatter | Collective::ReduceScatterV
        );
        let room = if is_in_blocks {
            checked.result_count
        } else {
            0
        };
        let count = checked.input_elements;
        let words = count.saturating_add(room).div_ceil(2);
        let mut wide = std::mem::take(&mut core.spare.wide);
        wide.clear();
        wide.try_reserve_exact(words).map_err(|error| {
            Error::Memory(format!("{} bytes for sums in float32: {error}", words * 8))
        })?;
        let place = wide.as_mut_ptr().cast::<u8>();
        // SAFETY: the input is valid for its elements, and the copy has room for them.
        unsafe { rlaunch_device::widen_raw(call.dtype, place, self.input, count) };
        self.dtype = DType::F32;
        self.input = place;
        self.output = if is_in_blocks {
            place.wrapping_add(count * size_of::<f32>())
        } else {
            place
        };
        self.finish.wide = wide;
        Ok(())
    }

    /// What the interpreter is to run, and what follows.
    pub(crate) fn into_task(
        self,
        core: &mut Core,
        key: GroupKey,
        descriptor: Descriptor,
        call: &Call,
        checked: Checked,
    ) -> (Task, Finish) {
        let group = core.group(key);
        let (ranks, me, size) = (group.ranks.clone(), group.me, group.size());
        let algorithm = self.choice.algorithm;
        let collective = self.question.collective;
        let mut spec = Spec::new(collective, algorithm, size)
            .with_root(descriptor.root)
            .with_fold(self.question.fold);
        if algorithm == Algorithm::Hierarchical {
            spec = spec.with_hosts(group.hosts.clone());
        }
        let user = call
            .reduction
            .as_ref()
            .and_then(|reduction| reduction.user.clone());
        let op = match descriptor.op {
            Some(Op::Avg) if algorithm.sums_at_once(collective) => Some(Op::Avg),
            Some(Op::Avg | Op::PremulSum) => Some(Op::Sum),
            other => other,
        };
        let task = Task {
            plan: core.plan(spec, me),
            layout: checked.layout,
            segment_bytes: self.choice.segment_bytes,
            descriptor,
            dtype: self.dtype,
            reducer: op.map(|op| Reducer {
                dtype: self.dtype,
                op,
                user,
            }),
            ranks,
            input: self.input,
            output: self.output,
        };
        (task, self.finish)
    }
}

impl Finish {
    /// Does what follows, once.
    ///
    /// # Safety
    /// The schedule is done, and the output valid for the result.
    pub(crate) unsafe fn run(&mut self) {
        match std::mem::replace(&mut self.step, Step::Nothing) {
            Step::Nothing => {}
            Step::Divide {
                output,
                dtype,
                count,
                ranks,
            } => {
                // SAFETY: the result lies in the output, as the caller vouches.
                unsafe { rlaunch_device::finish_avg_raw(dtype, output, count, ranks) };
            }
            Step::Narrow {
                from,
                output,
                dtype,
                count,
                ranks,
            } => {
                // SAFETY: the result lies in `wide`, which lives; the output as the caller vouches.
                unsafe { rlaunch_device::narrow_raw(dtype, output, from, count, ranks) };
            }
        }
    }

    /// Gives back what others can use.
    pub(crate) fn end(&mut self, core: &mut Core) {
        self.step = Step::Nothing;
        if self.wide.capacity() > core.spare.wide.capacity() {
            core.spare.wide = std::mem::take(&mut self.wide);
        }
    }
}

/// What the choice of the call's algorithm depends on.
fn question(core: &Core, key: GroupKey, call: &Call, checked: &Checked) -> Question {
    let collective = match call.collective {
        // What ranks tell each other to make a communicator.
        one if one.makes_communicator() => Collective::AllGather,
        other => other,
    };
    let reduction = call.reduction.as_ref().filter(|_| collective.reduces());
    let user = reduction.and_then(|reduction| reduction.user.as_ref());
    core.selector.question(
        collective,
        checked.bytes_of_all,
        core.group(key).shape(),
        reduction.map(|reduction| (call.dtype, reduction.op)),
        user.is_none_or(|user| user.is_commutative),
    )
}

/// The input as schedules need it: the caller's, or a copy of it.
///
/// # Safety
/// As [`Preparation::new`].
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
            let factor = scalar.factor.as_ptr();
            rlaunch_device::premultiply_raw(call.dtype, place, call.input, factor, count);
        },
        // SAFETY: as above.
        None => unsafe { std::ptr::copy_nonoverlapping(call.input, place, bytes) },
    }
    Ok(place)
}
