//! Signals by name, and what each often means for a training job. Linux numbers.

/// `SIGKILL`, `SIGRTMIN+2`; `signal 99` for numbers that Linux does not have.
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        16 => "SIGSTKFLT",
        17 => "SIGCHLD",
        18 => "SIGCONT",
        19 => "SIGSTOP",
        20 => "SIGTSTP",
        21 => "SIGTTIN",
        22 => "SIGTTOU",
        23 => "SIGURG",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        26 => "SIGVTALRM",
        27 => "SIGPROF",
        28 => "SIGWINCH",
        29 => "SIGIO",
        30 => "SIGPWR",
        31 => "SIGSYS",
        34 => "SIGRTMIN",
        35..=64 => return format!("SIGRTMIN+{}", signal - 34),
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

/// What usually stands behind a rank that this signal ended, and what to try.
pub fn signal_hint(signal: i32) -> Option<&'static str> {
    Some(match signal {
        4 => "an instruction this CPU lacks: was the program built for another machine?",
        6 => "the program aborted itself; its last lines usually say why",
        7 => "often a full /dev/shm or a file that shrank under a mapping: `df /dev/shm`",
        8 => "often an integer division by zero",
        9 => {
            "somebody killed it: a person, a batch system, or the out-of-memory killer of the \
             machine around a container, which could not be asked (`dmesg` or `journalctl -k` there)"
        }
        10 | 12 => "it has no handler for it; rlaunch passes on those that it gets",
        11 => "a bad memory access: rerun with PYTHONFAULTHANDLER=1, or look at the core",
        13 => "it wrote to a pipe or socket that nobody reads any more",
        15 => "something on that host ended it: a person, a batch system, a shutdown",
        24 => "it used up its CPU time: `ulimit -t`",
        25 => "it wrote past the file size limit: `ulimit -f`",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_linux() {
        assert_eq!(signal_name(9), "SIGKILL");
        assert_eq!(signal_name(36), "SIGRTMIN+2");
        assert_eq!(signal_name(0), "signal 0");
        assert!(signal_hint(9).unwrap().contains("killed it"));
    }
}
