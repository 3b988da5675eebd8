//! Sets of ranks as ranges, few of which suffice for all that algorithms make.

/// Most sets are one range, which needs no memory of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranks {
    /// Empty in an empty set.
    lowest: (u32, u32),
    /// Sorted, apart and not adjacent, above the lowest.
    others: Vec<(u32, u32)>,
}

impl Ranks {
    pub(super) fn of(first: u32, end: u32) -> Self {
        Self {
            lowest: if first < end { (first, end) } else { (0, 0) },
            others: Vec::new(),
        }
    }

    /// Adds the other's; false if one is in both.
    #[must_use]
    pub(super) fn join(&mut self, other: &Self) -> bool {
        if other.is_empty() {
            return true;
        }
        if self.others.is_empty() && other.others.is_empty() {
            let (low, high) = match self.lowest < other.lowest {
                true => (self.lowest, other.lowest),
                false => (other.lowest, self.lowest),
            };
            if low.1 == high.0 {
                self.lowest = (low.0, high.1);
                return true;
            }
        }
        self.join_ranges(other)
    }

    fn join_ranges(&mut self, other: &Self) -> bool {
        let before = self.len() + other.len();
        let mut ranges: Vec<_> = self.ranges().chain(other.ranges()).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, end) in ranges {
            match joined.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((first, end)),
            }
        }
        self.lowest = joined.remove(0);
        self.others = joined;
        self.len() == before
    }

    /// Whether these are consecutive ranks and the other's are those that follow.
    pub(super) fn is_followed_by(&self, other: &Self) -> bool {
        let are_single = self.others.is_empty() && other.others.is_empty();
        are_single && !self.is_empty() && !other.is_empty() && self.lowest.1 == other.lowest.0
    }

    fn is_empty(&self) -> bool {
        self.lowest.0 == self.lowest.1
    }

    fn ranges(&self) -> impl Iterator<Item = (u32, u32)> {
        let all = std::iter::once(self.lowest).chain(self.others.iter().copied());
        all.filter(|(first, end)| first < end)
    }

    fn len(&self) -> u64 {
        self.ranges()
            .map(|(first, end)| u64::from(end - first))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_where_they_meet() {
        let mut set = Ranks::default();
        for (first, end) in [(4, 6), (0, 1), (8, 9), (1, 4)] {
            assert!(set.join(&Ranks::of(first, end)), "{first}..{end}");
        }
        assert_eq!(set.ranges().collect::<Vec<_>>(), [(0, 6), (8, 9)]);
        assert!(!set.is_followed_by(&Ranks::of(9, 10)));
        assert!(set.join(&Ranks::of(6, 8)));
        assert_eq!(set, Ranks::of(0, 9));
        assert!(set.is_followed_by(&Ranks::of(9, 10)));
    }

    #[test]
    fn what_is_in_both_is_told() {
        for (first, end) in [(0, 1), (2, 4), (3, 5), (0, 9)] {
            assert!(!Ranks::of(0, 4).join(&Ranks::of(first, end)));
        }
        assert!(Ranks::of(0, 4).join(&Ranks::default()));
    }
}
