//! Each way in which a job of four ranks ends, and the only exit codes that are right for it. Run
//! over and over: a wrong code comes of a race, once in a hundred times. 0 is right only where
//! every rank returns 0.

use std::ops::Range;

/// One way to end.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) options: &'static [&'static str],
    /// The program and its arguments.
    pub(crate) words: &'static [&'static str],
    pub(crate) codes: &'static [i32],
}

const fn sh(name: &'static str, script: &'static [&'static str; 3], codes: &'static [i32]) -> Case {
    Case {
        name,
        options: &[],
        words: script,
        codes,
    }
}

macro_rules! script {
    ($text:literal) => {
        &["/bin/sh", "-c", $text]
    };
}

pub(crate) const CASES: &[Case] = &[
    sh("all return 0", script!("exit 0"), &[0]),
    sh(
        "all return 0, one late",
        script!("[ $RANK != 2 ] || sleep 0.05"),
        &[0],
    ),
    sh(
        "one fails, the others run on",
        script!("[ $RANK != 3 ] || exit 3; exec sleep 1000"),
        &[3],
    ),
    sh("all fail alike at once", script!("exit 3"), &[3]),
    sh(
        "all fail, each with its own code",
        script!("exit $((1 << RANK))"),
        &[1, 2, 4, 8],
    ),
    sh(
        "one fails after the others returned 0",
        script!("[ $RANK != 1 ] || { sleep 0.05; exit 9; }"),
        &[9],
    ),
    sh(
        "the largest code",
        script!("[ $RANK != 0 ] || exit 255; exec sleep 1000"),
        &[255],
    ),
    sh(
        "SIGKILL",
        script!("[ $RANK != 3 ] || kill -9 $$; exec sleep 1000"),
        &[137],
    ),
    sh(
        "SIGSEGV",
        script!("[ $RANK != 0 ] || kill -SEGV $$; exec sleep 1000"),
        &[139],
    ),
    sh(
        "SIGTERM, not by us",
        script!("[ $RANK != 1 ] || kill -TERM $$; exec sleep 1000"),
        &[143],
    ),
    sh(
        "a shell tells of its killed child",
        script!("sh -c 'kill -9 $$'; exit $?"),
        &[137],
    ),
    sh(
        "much output, then a failure",
        script!("seq 1 20000; [ $RANK != 2 ] || exit 6; exec sleep 1000"),
        &[6],
    ),
    sh(
        "a child in a session of its own stays behind",
        script!("setsid sleep 1000 >/dev/null 2>&1 & [ $RANK != 3 ] || exit 7; exec sleep 1000"),
        &[7],
    ),
    sh(
        "the others return 0 when they are ended",
        script!("trap 'exit 0' TERM; [ $RANK != 3 ] || exit 5; while :; do sleep 0.01; done"),
        &[5],
    ),
    Case {
        name: "the others ignore TERM",
        options: &["--kill-after", "0.1"],
        words: script!("trap '' TERM; [ $RANK != 3 ] || exit 5; while :; do sleep 0.1; done"),
        codes: &[5],
    },
    Case {
        name: "--timeout",
        options: &["--timeout", "0.1"],
        words: script!("exec sleep 1000"),
        codes: &[124],
    },
    Case {
        name: "--timeout, and all return 0 when they are ended",
        options: &["--timeout", "0.1"],
        words: script!("trap 'exit 0' TERM; while :; do sleep 0.01; done"),
        codes: &[124],
    },
    Case {
        name: "the others go on",
        options: &["--on-failure", "continue"],
        words: script!("[ $RANK != 3 ] || exit 8; sleep 0.05; exit 0"),
        codes: &[8],
    },
    Case {
        name: "started again, and again failed",
        options: &["--max-restarts", "1"],
        words: script!("[ $RANK != 3 ] || exit 4; exec sleep 1000"),
        codes: &[4],
    },
    Case {
        name: "started again, and well then",
        options: &["--max-restarts", "1"],
        words: script!("exit $((1 - TORCHELASTIC_RESTART_COUNT))"),
        codes: &[0],
    },
    Case {
        name: "no such program",
        options: &[],
        words: &["/no/such/program"],
        codes: &[127],
    },
    Case {
        name: "no program at all, but a folder",
        options: &[],
        words: &["/etc"],
        codes: &[126],
    },
    Case {
        name: "no such folder",
        options: &["--wdir", "/proc/no/folder"],
        words: &["true"],
        codes: &[126],
    },
    Case {
        name: "a mistake in an option",
        options: &["--timeout", "soon"],
        words: &["true"],
        codes: &[2],
    },
];

/// How often each is run: so often, or as often as `RLAUNCH_TEST_RUNS` says.
pub(crate) fn runs(usual: u32) -> Range<u32> {
    let runs = std::env::var("RLAUNCH_TEST_RUNS").ok();
    0..runs.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A delay that is another one each time, from none to `max_ms`: the same for the same run.
pub(crate) fn delay(run: u32, max_ms: u64) -> std::time::Duration {
    let mixed = u64::from(run + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    std::time::Duration::from_micros(mixed % (max_ms * 1000))
}
