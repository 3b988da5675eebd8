//! Sets of ranks as ranges, few of which suffice for all that algorithms make.

/// Sorted, apart and not adjacent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranks {
    ranges: Vec<(u32, u32)>,
}

impl Ranks {
    pub(super) fn of(first: u32, end: u32) -> Self {
        let ranges = if first < end {
            vec![(first, end)]
        } else {
            Vec::new()
        };
        Self { ranges }
    }

    /// Adds the other's; false if one is in both.
    #[must_use]
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let before = self.len() + other.len();
        self.ranges.extend_from_slice(&other.ranges);
        self.ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(self.ranges.len());
        for &(first, end) in &self.ranges {
            match joined.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((first, end)),
            }
        }
        self.ranges = joined;
        self.len() == before
    }

    /// Whether these are consecutive ranks and the other's are those that follow.
    pub(super) fn is_followed_by(&self, other: &Self) -> bool {
        match (&self.ranges[..], &other.ranges[..]) {
            ([(_, end)], [(first, _)]) => end == first,
            _ => false,
        }
    }

    fn len(&self) -> u64 {
        let lengths = self
            .ranges
            .iter()
            .map(|(first, end)| u64::from(end - first));
        lengths.sum()
    }
}
