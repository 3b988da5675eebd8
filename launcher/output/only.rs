//! `--only`: whose output is shown. Pure.

use std::ops::RangeInclusive;

/// Ranks, as a user writes them: `0`, `0,4-7`, `none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only(Vec<RangeInclusive<u32>>);

impl Only {
    /// What is wrong with the text, if something is.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "expected ranks, such as 0 or 0,4-7, or `none`";
        if text == "none" {
            return Ok(Self(Vec::new()));
        }
        let ranges = text.split(',').map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u32>().map_err(|_| EXPECTED);
            let range = number(first)?..=number(last)?;
            if range.is_empty() {
                return Err("a range begins with its smaller rank");
            }
            Ok(range)
        });
        Ok(Self(ranges.collect::<Result<_, _>>()?))
    }

    pub fn shows(&self, rank: u32) -> bool {
        self.0.iter().any(|range| range.contains(&rank))
    }

    /// The largest rank that is named.
    pub fn last(&self) -> Option<u32> {
        self.0.iter().map(|range| *range.end()).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_ranges() {
        let only = Only::parse("0,4-6").unwrap();
        let shown: Vec<u32> = (0..10).filter(|rank| only.shows(*rank)).collect();
        assert_eq!((shown, only.last()), (vec![0, 4, 5, 6], Some(6)));
        let none = Only::parse("none").unwrap();
        assert_eq!((none.shows(0), none.last()), (false, None));
    }

    #[test]
    fn mistakes() {
        for text in ["", "x", "1,", "1-", "-1", "1-2-3", "0.5", "all of them"] {
            assert!(Only::parse(text).is_err(), "{text:?}");
        }
        assert!(Only::parse("3-1").unwrap_err().contains("smaller"));
    }
}
