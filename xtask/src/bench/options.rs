//! What the benchmarks take on their command lines.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) rounds: usize,
    pub(super) ranks: usize,
}

impl Options {
    /// Reads `--word value` pairs over the given defaults.
    pub(super) fn parse(mut self, arguments: &[String]) -> Result<Self, String> {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| format!("{word} takes a value"))?;
            match word.as_str() {
                "--rounds" => self.rounds = count(word, value)?,
                "--ranks" => self.ranks = count(word, value)?,
                _ => return Err(format!("no option `{word}`; there are --rounds, --ranks")),
            }
        }
        Ok(self)
    }
}

pub(super) fn count(word: &str, value: &str) -> Result<usize, String> {
    match value.parse() {
        Ok(0) | Err(_) => Err(format!("{word} takes a number above 0, not `{value}`")),
        Ok(number) => Ok(number),
    }
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let wrong = || format!("`{text}` is no size; write bytes, or a number with K, M or G");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Options {
            rounds: 5,
            ranks: 2,
        }
        .parse(&words)
    }

    #[test]
    fn words_override_defaults() {
        let options = parse(&["--rounds", "3"]).unwrap();
        assert_eq!((options.rounds, options.ranks), (3, 2));
        for (words, part) in [
            (&["--rounds", "0"][..], "--rounds"),
            (&["--ranks"], "a value"),
            (&["--sizes", "8"], "--sizes"),
        ] {
            assert!(parse(words).unwrap_err().contains(part), "{words:?}");
        }
    }

    #[test]
    fn sizes_take_powers_of_1024() {
        assert_eq!(
            (size("8"), size("64K"), size("1M")),
            (Ok(8), Ok(65536), Ok(1 << 20))
        );
        for wrong in ["", "0", "8X", "-1", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
