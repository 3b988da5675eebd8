//! Every bound of launcher and runtime, with its reason. Past a bound comes a typed error or a
//! wait, never truncation.

use std::time::Duration;

/// Output a rank's stream may have under way to the launcher. A stalled reader must not fill
/// HTTP/2's window, or heartbeats behind it would stop and the host would look lost.
pub const OUTPUT_CREDIT_BYTES: u64 = 1 << 20;
/// Credit comes back in parts of the whole, for each costs a message; a smaller rest may never come
/// back.
pub const OUTPUT_CREDIT_PARTS: u64 = 4;
/// Beyond the credit the agent spills this much of one stream to an unlinked file; then the
/// printing rank waits.
pub const OUTPUT_SPILL_MAX_BYTES: u64 = 64 << 20;
/// All streams of a job on one host together: what eight ranks can use up, so that a host with many
/// more keeps a disk of the usual size. Whoever prints past it waits.
pub const OUTPUT_SPILL_HOST_MAX_BYTES: u64 = 1 << 30;
/// Left free on the disk that it spills to: what others need of a host's root.
pub const SPILL_FREE_MIN_BYTES: u64 = 64 << 20;
/// One line kept whole by the agent; a longer one is passed on in pieces, marked partial.
pub const LINE_MAX_BYTES: usize = 1 << 20;
/// The launcher lets what other ranks print wait while one prints a line longer than that, up to so
/// much: then nobody waits any longer for its end.
pub const LINE_RUN_MAX_BYTES: u64 = 1 << 30;
/// Between two pieces of such a line, at most; a rank that pauses for longer is not waited for.
pub const LINE_RUN_PAUSE_MAX: Duration = Duration::from_secs(1);
/// One output message: small enough that a heartbeat is never stuck behind a large one.
pub const OUTPUT_CHUNK_MAX_BYTES: usize = 64 * 1024;
/// A started line without an end is shown after this long (progress bars, prompts).
pub const PARTIAL_LINE_DELAY: Duration = Duration::from_millis(200);
/// …if nothing more of it has come for so long: a line that is just being written stays whole…
pub const PARTIAL_LINE_QUIET: Duration = Duration::from_millis(20);
/// …and after this long in any case.
pub const PARTIAL_LINE_DELAY_MAX: Duration = Duration::from_secs(1);
/// After a rank's exit its output is read this long when a grandchild still holds the pipe.
pub const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Heartbeat period on the control stream.
pub const HEARTBEAT_PERIOD: Duration = Duration::from_secs(1);
/// Hosts being connected to at a time: sshd's MaxStartups and the launcher's own cores.
pub const CONNECTS_MAX: usize = 32;
/// One gRPC message.
pub const GRPC_MESSAGE_MAX_BYTES: usize = 16 << 20;
/// One message between rank and agent.
pub const RANK_MESSAGE_MAX_BYTES: usize = 4 << 20;
/// What one rank says of itself when it joins.
pub const CARD_MAX_BYTES: usize = 4096;
/// Ranks of one job; a u32 on the wire, bounded so that tables stay in memory.
pub const WORLD_MAX: u32 = 65_536;
/// A hostfile; more is surely the wrong file.
pub const HOSTFILE_MAX_BYTES: u64 = 16 << 20;
/// A file of variables: more than all environments of a machine together.
pub const ENV_FILE_MAX_BYTES: u64 = 16 << 20;
/// GPUs or interfaces that a hostfile may list for one host; MIG makes up to 7 of one GPU.
pub const HOST_DEVICES_MAX: usize = 128;
