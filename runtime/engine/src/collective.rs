//! One collective call under way: which way it goes.
//!
//! ```text
//! call ─ checked, numbered ─┬─ one rank: a copy
//!                           ├─ all members share memory: over their team, see [`crate::local`]
//!                           └─ else: a schedule, interpreted over the connections, see [`crate::far`]
//! ```

use rlaunch_transport::Progress;
use rlaunch_wire::{Collective, Descriptor};

use crate::checked::Checked;
use crate::core::Core;
use crate::far::{Finish, Preparation};
use crate::group::GroupKey;
use crate::interpret::Interpreter;
use crate::local::TeamOperation;
use crate::wait::{Awaited, Operation};
use crate::{Call, Error};

#[derive(Debug)]
pub(crate) struct CollectiveOperation {
    descriptor: Descriptor,
    way: Way,
}

/// How a call goes.
#[derive(Debug)]
enum Way {
    /// What was to be done is done.
    Done,
    Team(TeamOperation),
    // Boxed, so that small calls of a team move little.
    Schedule(Box<Interpreter>, Box<Finish>),
}

impl CollectiveOperation {
    /// Checks, numbers and begins a call. The communicator is busy from then on.
    ///
    /// # Safety
    /// As [`crate::Communicator::run`], until the operation has ended.
    pub(crate) unsafe fn begin(core: &mut Core, key: GroupKey, call: &Call) -> Result<Self, Error> {
        let group = core.group(key);
        let (size, me, is_near) = (group.size(), group.me, group.is_near);
        let checked = Checked::new(call, size, me)?;
        let preparation = if is_near {
            None
        } else {
            // SAFETY: as the caller vouches.
            Some(unsafe { Preparation::new(core, key, call, &checked)? })
        };
        // SAFETY: as the caller vouches.
        let descriptor = unsafe { number(core, key, call, &checked)? };
        let way = match preparation {
            None => {
                let group = core.group(key);
                // SAFETY: as the caller vouches.
                Way::Team(unsafe { TeamOperation::new(group, key, call, descriptor) })
            }
            Some(preparation) if size == 1 => {
                // SAFETY: as the caller vouches.
                unsafe { copy_alone(call, &checked, preparation.input) };
                Way::Done
            }
            Some(preparation) => {
                let (task, finish) = preparation.into_task(core, key, descriptor, call, checked);
                // SAFETY: as the caller vouches; what was prepared lives as long as the operation.
                let interpreter = unsafe { Interpreter::new(core, task) };
                Way::Schedule(Box::new(interpreter), Box::new(finish))
            }
        };
        Ok(Self { descriptor, way })
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

impl Operation for CollectiveOperation {
    fn call(&self) -> Descriptor {
        self.descriptor
    }

    #[inline]
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        match &mut self.way {
            Way::Done => Ok(Progress::Done),
            Way::Team(operation) => operation.poll(core),
            Way::Schedule(interpreter, finish) => {
                let progress = interpreter.poll(core)?;
                if progress == Progress::Done {
                    // SAFETY: the schedule is done, and `begin`'s caller vouched for the output.
                    unsafe { finish.run() };
                }
                Ok(progress)
            }
        }
    }

    fn awaited(&self, core: &Core) -> Vec<Awaited> {
        match &self.way {
            Way::Done => Vec::new(),
            Way::Team(operation) => operation.awaited(core),
            Way::Schedule(interpreter, _) => interpreter.awaited(core),
        }
    }

    fn end(&mut self, core: &mut Core) {
        match &mut self.way {
            Way::Done => {}
            Way::Team(operation) => operation.end(core),
            Way::Schedule(interpreter, finish) => {
                interpreter.end(core);
                finish.end(core);
            }
        }
    }
}
