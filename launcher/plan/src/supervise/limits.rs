//! The time limits of supervision that no option sets.

use std::time::Duration;

/// From the first failure to the end of the others: what was under way arrives in it.
pub const COLLECT: Duration = Duration::from_millis(300);
/// After KILL an agent needs up to 5 s to give up on a process in D state and 2 s for the last
/// output; then it is taken for unresponsive.
pub const GRACE: Duration = Duration::from_secs(10);
/// A rank that its peers have shut out has had its time: KILL at once.
pub(super) const SHUT_OUT_KILL: Duration = Duration::ZERO;
/// A host silent for so long is named.
pub const SILENCE_WARNING: Duration = Duration::from_secs(5);
/// A host silent for so long when something fails elsewhere is suspected: hosts are heard every
/// second.
pub(super) const SUSPECT: Duration = Duration::from_millis(2500);
/// The machine wants to be called at least this often, so that it notices when it was not.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// A longer pause between calls means that the launcher itself was stopped; hosts are not blamed.
pub(super) const ASLEEP: Duration = Duration::from_secs(3);
/// A rank that returned 0 is not reported to its peers before its orderly leave, sent at the same
/// moment on another path, has had this time to arrive.
pub(super) const LEAVE_DELAY: Duration = Duration::from_millis(300);
/// Once one rank has joined the runtime's world, the others have so long before they are named.
pub(super) const JOIN_WARNING: Duration = Duration::from_secs(20);
/// Hosts that have not finished so long after the decision to end the job are named.
pub(super) const FINISH_WARNING: Duration = Duration::from_secs(15);
