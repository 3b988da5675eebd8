//! `--split` and NCCL_TESTS_SPLIT: several groups of ranks that run the test at the same time.

use std::str::FromStr;

/// Which group a rank belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    Modulo(u32),
    Divide(u32),
    And(u32),
    Or(u32),
}

const ENVIRONMENT: &str = "NCCL_TESTS_SPLIT";
const ENVIRONMENT_MASK: &str = "NCCL_TESTS_SPLIT_MASK";

impl Split {
    /// The option, else NCCL_TESTS_SPLIT, else NCCL_TESTS_SPLIT_MASK.
    pub(crate) fn choose(
        option: Option<Self>,
        read: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        if option.is_some() {
            return Ok(option);
        }
        if let Some(text) = read(ENVIRONMENT) {
            return text
                .parse()
                .map(Some)
                .map_err(|error| format!("{ENVIRONMENT}: {error}"));
        }
        let Some(text) = read(ENVIRONMENT_MASK) else {
            return Ok(None);
        };
        let digits = text
            .trim()
            .trim_start_matches("0x")
            .trim_start_matches("0X");
        u32::from_str_radix(digits, 16)
            .map(|mask| Some(Self::And(mask)))
            .map_err(|_| format!("{ENVIRONMENT_MASK}={text} is no hexadecimal number"))
    }

    pub(crate) fn group(self, rank: u32) -> u32 {
        match self {
            Self::Modulo(number) => rank % number,
            Self::Divide(number) => rank / number,
            Self::And(mask) => rank & mask,
            Self::Or(mask) => rank | mask,
        }
    }
}

impl FromStr for Split {
    type Err = String;

    /// `MOD 8`, `%8`, `div 4`, `AND 0x7`, `|1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no split; write MOD N, DIV N, AND MASK or OR MASK (or %, /, &, |), \
                 for example \"MOD 8\""
            )
        };
        let text = text.trim();
        let start = text
            .find(|letter: char| letter.is_ascii_digit())
            .ok_or_else(wrong)?;
        let (word, number) = (text[..start].trim().to_ascii_uppercase(), &text[start..]);
        let number = match number.strip_prefix("0x").or(number.strip_prefix("0X")) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        }
        .map_err(|_| wrong())?;
        let above_zero = || {
            (number > 0)
                .then_some(number)
                .ok_or_else(|| format!("`{text}`: {word} takes a number above 0"))
        };
        match word.as_str() {
            "MOD" | "%" => above_zero().map(Self::Modulo),
            "DIV" | "/" => above_zero().map(Self::Divide),
            "AND" | "&" => Ok(Self::And(number)),
            "OR" | "|" => Ok(Self::Or(number)),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_words_and_signs() {
        for (text, split) in [
            ("MOD 8", Split::Modulo(8)),
            ("%2", Split::Modulo(2)),
            ("div 4", Split::Divide(4)),
            ("/ 4", Split::Divide(4)),
            ("AND 0x7", Split::And(7)),
            ("&1", Split::And(1)),
            ("or 0X1", Split::Or(1)),
            ("|3", Split::Or(3)),
        ] {
            assert_eq!(text.parse(), Ok(split), "{text}");
        }
        for text in ["", "MOD", "MOD 0", "8", "XOR 1", "AND 0xg", "MOD 8 9"] {
            assert!(text.parse::<Split>().is_err(), "{text}");
        }
    }

    #[test]
    fn groups_are_those_of_nccl_tests() {
        let groups = |split: &str| {
            let split: Split = split.parse().unwrap();
            (0..6).map(|rank| split.group(rank)).collect::<Vec<_>>()
        };
        assert_eq!(groups("MOD 2"), [0, 1, 0, 1, 0, 1]);
        assert_eq!(groups("DIV 2"), [0, 0, 1, 1, 2, 2]);
        assert_eq!(groups("AND 0x1"), [0, 1, 0, 1, 0, 1]);
        assert_eq!(groups("OR 0x1"), [1, 1, 3, 3, 5, 5]);
    }

    #[test]
    fn the_option_comes_before_the_environment() {
        let both = |name: &str| (name == ENVIRONMENT).then(|| "MOD 2".to_owned());
        let option = Some(Split::Divide(2));
        assert_eq!(Split::choose(option, both), Ok(option));
        assert_eq!(Split::choose(None, both), Ok(Some(Split::Modulo(2))));
        let mask = |name: &str| (name == ENVIRONMENT_MASK).then(|| "0x3".to_owned());
        assert_eq!(Split::choose(None, mask), Ok(Some(Split::And(3))));
        assert!(Split::choose(None, |_| Some("x".to_owned())).is_err());
    }
}
