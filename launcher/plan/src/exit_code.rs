//! Exit codes of `rlaunch`: the one table that documentation and code share.
//!
//! | code | means |
//! |---|---|
//! | 0 | every rank returned 0 |
//! | 1–255 | the code of the rank that failed first; 128 + N if signal N ended it |
//! | 2 | bad command line or hostfile; no host was contacted |
//! | 123 | a host was lost: its connection ended, or it was silent for `--host-timeout` |
//! | 124 | `--timeout` ran out |
//! | 125 | rlaunch itself failed: a host could not be reached or did not start its ranks in time, an agent broke |
//! | 126 | the program was found but could not be started, or its directory is absent |
//! | 127 | the program, or its interpreter or loader, was not found on a host |
//! | 128 + N | rlaunch was told to stop by signal N (SIGINT: 130, SIGQUIT: 131, SIGTERM: 143, SIGHUP: 129) |
//!
//! It is never 0 after a failure, whatever the ranks that were ended return.

pub const SUCCESS: u8 = 0;
pub const USAGE: u8 = 2;
pub const HOST_LOST: u8 = 123;
pub const TIMEOUT: u8 = 124;
pub const LAUNCHER: u8 = 125;
pub const CANNOT_START: u8 = 126;
pub const NOT_FOUND: u8 = 127;

/// As shells report a process that signal `signal` ended.
pub fn of_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal.clamp(0, 127)).expect("at most 255")
}

/// A rank's own code, as `waitpid` gives it.
pub fn of_exit(code: i32) -> u8 {
    // The kernel keeps 8 bits; anything else is a report that no process can have made.
    u8::try_from(code).unwrap_or(LAUNCHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_count_from_128() {
        assert_eq!(of_signal(9), 137);
        assert_eq!(of_signal(64), 192);
        assert_eq!(of_signal(-1), 128);
    }

    /// A broken report must not turn a failure into 0.
    #[test]
    fn impossible_codes_are_not_success() {
        assert_eq!(of_exit(3), 3);
        assert_eq!(of_exit(256), LAUNCHER);
        assert_eq!(of_exit(-1), LAUNCHER);
    }
}
