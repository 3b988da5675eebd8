//! Small helpers for messages.

use std::time::Duration;

/// How many entries a list in a message shows before it says "and N more".
const SHOWN_MAX: usize = 12;

/// `1 slot`, `8 slots`
pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// `a, b, c and 9 more`
pub(crate) fn table(entries: impl ExactSizeIterator<Item = String>) -> String {
    let total = entries.len();
    let shown = if total > SHOWN_MAX {
        SHOWN_MAX - 1
    } else {
        total
    };
    let mut text = entries.take(shown).collect::<Vec<_>>().join(", ");
    if shown < total {
        text.push_str(&format!(" and {} more", total - shown));
    }
    text
}

/// Ranks as ranges: `0-3, 7`. The input is in ascending order.
pub(crate) fn ranges(ranks: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match parts.last_mut() {
            Some((_, last)) if rank == *last + 1 => *last = rank,
            _ => parts.push((rank, rank)),
        }
    }
    table(parts.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    }))
}

/// `8 s`, `2.5 s`, `300 ms`
pub(crate) fn seconds(time: Duration) -> String {
    let ms = time.as_millis();
    match (ms < 1000, ms % 1000 / 100) {
        (true, _) => format!("{ms} ms"),
        (false, 0) => format!("{} s", ms / 1000),
        (false, tenths) => format!("{}.{tenths} s", ms / 1000),
    }
}

/// [`seconds`] of so many milliseconds.
pub(crate) fn seconds_of_ms(ms: u64) -> String {
    seconds(Duration::from_millis(ms))
}

/// `64 MiB`, `1.5 GiB`; below 1 MiB in KiB.
pub(crate) fn bytes(number: u64) -> String {
    let (unit, name) = match number {
        0..0x10_0000 => (1 << 10, "KiB"),
        0x10_0000..0x4000_0000 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    let tenths = number % unit * 10 / unit;
    match (number / unit, tenths) {
        (whole, 1..) if whole < 100 => format!("{whole}.{tenths} {name}"),
        (whole, _) => format!("{whole} {name}"),
    }
}

/// Longest line that a message repeats.
const LINE_MAX_CHARACTERS: usize = 300;

/// A line of a program's as messages repeat it: printable, not endless.
pub(crate) fn clip(line: &str) -> String {
    cut(line, LINE_MAX_CHARACTERS)
}

/// Longest word a message repeats.
const WORD_MAX_CHARACTERS: usize = 60;

/// A word of the user's as messages repeat it: one line, printable, not endless.
pub(crate) fn show(word: &str) -> String {
    cut(word, WORD_MAX_CHARACTERS)
}

fn cut(word: &str, max: usize) -> String {
    let mut shown = String::new();
    for (index, character) in word.chars().enumerate() {
        if index == max {
            shown.push('…');
            break;
        }
        let invisible = character == '\u{feff}' || (character.is_whitespace() && character != ' ');
        if character.is_control() || invisible {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// The word of `known` that `word` was probably meant to be.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = word.to_ascii_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for &candidate in known {
        let distance = edit_distance(lower.as_bytes(), candidate.as_bytes());
        let close = distance <= 2 && distance < candidate.len().min(lower.len());
        if close && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &right) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_short() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[0, 1, 2, 3, 7]), "0-3, 7");
        assert_eq!(ranges(&[1, 2, 5, 6, 7]), "1, 2, 5-7");
    }

    #[test]
    fn sizes_are_short() {
        let texts = [0, 65_536, 20 << 20, 3 << 29, 300 << 30].map(bytes);
        assert_eq!(texts, ["0 KiB", "64 KiB", "20 MiB", "1.5 GiB", "300 GiB"]);
    }

    #[test]
    fn long_lists_are_cut() {
        let text = table((0..40).map(|n| n.to_string()));
        assert!(text.ends_with("10 and 29 more"), "{text}");
    }

    #[test]
    fn near_misses_are_found() {
        assert_eq!(nearest("slot", &["slots", "port"]), Some("slots"));
        assert_eq!(nearest("Slots", &["slots", "port"]), Some("slots"));
        assert_eq!(nearest("prt", &["slots", "port"]), Some("port"));
        assert_eq!(nearest("gpus", &["slots", "port"]), None);
        assert_eq!(nearest("x", &["slots", "port"]), None);
    }
}
