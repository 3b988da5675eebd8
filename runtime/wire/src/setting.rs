//! Which variables of ours there are, for what nobody reads: a setting with a slip in its name.

mod launcher;

use crate::environment as name;

pub use launcher::LAUNCHER;

/// The user's settings of the runtime: they go to every rank.
pub const SETTINGS: [&str; 15] = [
    name::RLAUNCH_SOCKET_IFNAME,
    name::RLAUNCH_SOCKET_FAMILY,
    name::RLAUNCH_PORT_RANGE,
    name::RLAUNCH_SOCKETS,
    name::RLAUNCH_TIMEOUT,
    name::RLAUNCH_INIT_TIMEOUT,
    name::RLAUNCH_TRANSPORT,
    name::RLAUNCH_ALGO,
    name::RLAUNCH_TUNE_FILE,
    name::RLAUNCH_PRECISE,
    name::RLAUNCH_DETERMINISTIC,
    name::RLAUNCH_SINGLE_COPY,
    name::RLAUNCH_HOST_ID,
    name::RLAUNCH_RECORDER_SIGNAL,
    name::RLAUNCH_RECORDER_FILE,
];

/// What is of one job: set by the agent, or by hand where there is none.
const OF_A_JOB: [&str; 5] = [
    name::RLAUNCH_AGENT,
    name::RLAUNCH_JOB_ID,
    name::RLAUNCH_SECRET,
    name::RLAUNCH_PORT,
    name::RLAUNCH_APPNUM,
];

/// Read by the project's own tests and tools.
const DEVELOPMENT: [&str; 5] = ["TEST_", "DEV_", "HOSTS_", "FUZZ_", "GARBAGE_"];

const PREFIX: &str = "RLAUNCH_";

/// Why a variable is none of ours, if it looks like one: `RLAUNCH_TRANSPROT is no variable of rlaunch;
/// hint: did you mean RLAUNCH_TRANSPORT?`
pub fn misspelt(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let rest = name.strip_prefix(PREFIX)?;
    let mut known = SETTINGS.iter().chain(&OF_A_JOB).chain(&LAUNCHER);
    let is_known = known.clone().any(|known| *known == name);
    if is_known || DEVELOPMENT.iter().any(|prefix| rest.starts_with(prefix)) {
        return None;
    }
    let distance = |known: &&&str| slips(name, known);
    let nearest = known.clone().min_by_key(distance);
    let near = nearest.filter(|nearest| slips(name, nearest) <= SLIPS_MAX);
    // A whole word of a longer name: RLAUNCH_IFNAME, RLAUNCH_TRANSPORTS.
    let alike = || {
        known.find(|known| {
            let own = &known[PREFIX.len()..];
            rest.len() >= 4 && (own.ends_with(rest) || rest.starts_with(own))
        })
    };
    let hint = match near.or_else(alike) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("there are {}", SETTINGS.join(", ")),
    };
    Some(format!("{name} is no variable of rlaunch; hint: {hint}"))
}

/// Whether the runtime reads it, or a job sets it for the runtime.
pub fn is_runtime_setting(name: &str) -> bool {
    SETTINGS.iter().chain(&OF_A_JOB).any(|known| *known == name)
}

/// Whether the launcher reads it; the ranks don't need it.
pub fn is_launcher_setting(name: &[u8]) -> bool {
    LAUNCHER.iter().any(|known| known.as_bytes() == name)
}

/// More make it another word.
const SLIPS_MAX: usize = 3;

/// How many characters were left out, added, changed, or swapped with their neighbour.
fn slips(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let changed = last[j] + usize::from(a != b);
            let mut least = changed.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_with_what_was_meant() {
        for (name, meant) in [
            ("RLAUNCH_TRANSPROT", "RLAUNCH_TRANSPORT"),
            ("RLAUNCH_TRANSPORTS", "RLAUNCH_TRANSPORT"),
            ("RLAUNCH_TIMEOUTS", "RLAUNCH_TIMEOUT"),
            ("RLAUNCH_IFNAME", "RLAUNCH_SOCKET_IFNAME"),
            ("RLAUNCH_TUNEFILE", "RLAUNCH_TUNE_FILE"),
            ("RLAUNCH_ALGORITHM", "RLAUNCH_ALGO"),
            ("RLAUNCH_SECRTE", "RLAUNCH_SECRET"),
        ] {
            let text = misspelt(name.as_bytes()).unwrap();
            assert!(
                text.starts_with(&format!("{name} is no variable")),
                "{text}"
            );
            assert!(text.ends_with(&format!("did you mean {meant}?")), "{text}");
        }
        let text = misspelt(b"RLAUNCH_COLOUR_OF_ALL").unwrap();
        assert!(text.contains("there are RLAUNCH_SOCKET_IFNAME, "), "{text}");
    }

    #[test]
    fn what_is_known_and_what_is_nobody_s_is_no_slip() {
        let known = SETTINGS.iter().chain(&OF_A_JOB);
        for name in known.chain(&["RLAUNCHER", "PATH", "RLAUNCH_TEST_PYTHON"]) {
            assert_eq!(misspelt(name.as_bytes()), None);
        }
        assert_eq!(misspelt(b"RLAUNCH_\xff"), None);
    }

    #[test]
    fn distances() {
        for (one, other, expected) in [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("acb", "abc", 1),
            ("xabc", "abcx", 2),
        ] {
            assert_eq!(slips(one, other), expected, "{one} {other}");
        }
    }
}
