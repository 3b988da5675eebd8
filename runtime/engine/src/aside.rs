//! How much of the messages that are not asked for yet may be set aside in memory.
//!
//! What a peer sends for a call that has not begun here stands in the way of what is asked for behind it.
//! A program may begin a call there and wait for another one here, so setting aside must not end before
//! the memory does: up to [`BYTES_MAX`] of a peer always, beyond that while all together leave most of
//! the machine's memory free. A peer's calls send at most what their own buffers hold. Past the bound the
//! stream waits, and the timeout's text says for what.

/// Bytes of one peer that may be set aside whatever the machine's memory.
const BYTES_MAX: usize = 64 << 20;
/// Of the memory that is available, the part that may be used beyond that.
const AVAILABLE_DIVISOR: usize = 4;

/// Whether `bytes` more may be set aside of a peer with `of_peer` bytes there, `of_all` with the others.
pub(crate) fn has_room(of_peer: usize, of_all: usize, bytes: usize) -> bool {
    if of_peer.saturating_add(bytes) <= BYTES_MAX {
        return true;
    }
    let file = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    // What is set aside already is not available any more.
    bytes <= may_be_used(&file, of_all)
}

/// Bytes; 0 where the file does not say.
fn may_be_used(file: &str, used: usize) -> usize {
    let available = file.lines().find_map(|line| {
        let value = line.strip_prefix("MemAvailable:")?.trim();
        let kibibytes: usize = value.strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    });
    let whole = available.unwrap_or(0).saturating_add(used);
    (whole / AVAILABLE_DIVISOR).saturating_sub(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_what_is_available_may_be_used() {
        let file = "MemTotal:  8000 kB\nMemAvailable:    4000 kB\n";
        assert_eq!(may_be_used(file, 0), 1000 * 1024);
        assert_eq!(may_be_used(file, 1024), 1000 * 1024 + 256 - 1024);
        assert_eq!(may_be_used("", 7), 0);
        assert!(has_room(0, 0, BYTES_MAX) && !has_room(1, 1, usize::MAX));
    }
}
