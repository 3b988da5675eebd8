//! Collectives between ranks that share memory.

/// Length of a team's staging slots. Two in-slots and two out-slots of the smaller length fit a
/// core's own cache together with what is read from others. Where ranks share cores, larger ones
/// mean fewer turns.
pub(crate) fn slot_bytes(has_core_each: bool) -> usize {
    if has_core_each {
        128 * 1024
    } else {
        512 * 1024
    }
}
