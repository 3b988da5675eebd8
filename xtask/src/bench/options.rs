//! What the benchmarks take on their command lines.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) rounds: usize,
    pub(super) ranks: usize,
    pub(super) sizes: Vec<u64>,
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
                "--sizes" => self.sizes = value.split(',').map(size).collect::<Result<_, _>>()?,
                _ => {
                    return Err(format!(
                        "no option `{word}`; there are --rounds, --ranks, --sizes"
                    ));
                }
            }
        }
        Ok(self)
    }
}

fn count(word: &str, value: &str) -> Result<usize, String> {
    match value.parse() {
        Ok(0) | Err(_) => Err(format!("{word} takes a number above 0, not `{value}`")),
        Ok(number) => Ok(number),
    }
}

fn size(text: &str) -> Result<u64, String> {
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
            sizes: vec![8],
        }
        .parse(&words)
    }

    #[test]
    fn words_override_defaults() {
        let options = parse(&["--sizes", "8,64K,1M", "--rounds", "3"]).unwrap();
        assert_eq!(
            options,
            Options {
                rounds: 3,
                ranks: 2,
                sizes: vec![8, 65536, 1 << 20]
            }
        );
    }

    #[test]
    fn bad_words_are_named() {
        for words in [
            &["--round", "3"][..],
            &["--rounds", "0"],
            &["--sizes", "8X"],
            &["--ranks"],
        ] {
            let error = parse(words).unwrap_err();
            assert!(words.iter().any(|word| error.contains(word)), "{error}");
        }
    }
}
