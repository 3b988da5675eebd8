//! A line's words, and where each begins.
//!
//! Blanks part words, `"…"` holds blanks together, `#` anywhere and `//` at the beginning of a word
//! begin a comment, and blanks around `=` are as if they weren't there.

use super::line::Located;
use super::{LineError, located};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Without quotes.
    pub(super) text: String,
    /// In bytes.
    pub(super) start: usize,
    /// Offsets into the text are then none into the line.
    pub(super) quoted: bool,
}

impl Word {
    /// Where byte `offset` of the text stands in the line.
    pub(super) fn at(&self, offset: usize) -> usize {
        self.start + if self.quoted { 0 } else { offset }
    }
}

/// `line` has no line end.
pub(super) fn split(line: &str) -> Result<Vec<Word>, Located> {
    let mut words: Vec<Word> = Vec::new();
    let mut open: Option<Word> = None;
    let mut characters = line.char_indices();
    while let Some((at, character)) = characters.next() {
        let begins = open.is_none();
        if character == '#' || (begins && line[at..].starts_with("//")) {
            break;
        }
        if character.is_ascii_whitespace() {
            words.extend(open.take());
            continue;
        }
        let word = open.get_or_insert_with(|| Word {
            text: String::new(),
            start: at,
            quoted: false,
        });
        if character != '"' {
            word.text.push(character);
            continue;
        }
        word.quoted = true;
        let inside = &line[at + 1..];
        let Some(length) = inside.find('"') else {
            let error = LineError {
                word: crate::text::show(inside),
                problem: "a quote without its end".to_owned(),
                expected: "\"…\" around what holds blanks".to_owned(),
                hint: None,
            };
            return Err(located(line, at, error));
        };
        word.text.push_str(&inside[..length]);
        // To behind the closing quote.
        let _ = characters
            .by_ref()
            .find(|(position, _)| *position == at + 1 + length);
    }
    words.extend(open);
    Ok(join(words))
}

/// `slots = 4`, `slots =4` and `slots= 4` are `slots=4`.
fn join(words: Vec<Word>) -> Vec<Word> {
    let mut joined: Vec<Word> = Vec::new();
    for word in words {
        // The host's name stands alone.
        let belongs = joined.len() > 1
            && joined.last().is_some_and(|last| {
                let bare = !last.text.contains('=') && word.text.starts_with('=');
                bare || (last.text.ends_with('=') && !word.text.contains('='))
            });
        match joined.last_mut().filter(|_| belongs) {
            Some(last) => {
                last.text.push_str(&word.text);
                last.quoted = true;
            }
            None => joined.push(word),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line)
            .unwrap()
            .into_iter()
            .map(|word| word.text)
            .collect()
    }

    #[test]
    fn words_and_comments() {
        assert_eq!(texts("a\tslots=4 # x"), ["a", "slots=4"]);
        assert_eq!(texts("a // x"), ["a"]);
        assert_eq!(texts("// a"), [""; 0]);
        assert_eq!(texts("a workdir=/b//c"), ["a", "workdir=/b//c"]);
        assert_eq!(texts("a#b"), ["a"]);
    }

    #[test]
    fn quotes_hold_blanks_together() {
        assert_eq!(
            texts("\"a\" workdir=\"/my data/#1\" x"),
            ["a", "workdir=/my data/#1", "x"]
        );
        assert_eq!(texts("a é=\"ü ö\"b"), ["a", "é=ü öb"]);
        assert!(split("a workdir=\"/x").is_err());
    }

    #[test]
    fn blanks_around_equals() {
        for line in ["a slots = 4", "a slots =4", "a slots= 4", "a slots=4"] {
            assert_eq!(texts(line), ["a", "slots=4"], "{line}");
        }
        assert_eq!(texts("a slots= port=2"), ["a", "slots=", "port=2"]);
        assert_eq!(texts("a = 4"), ["a", "=4"]);
        assert_eq!(texts("a slots 4"), ["a", "slots", "4"]);
    }
}
