//! Names of many hosts as one short list.

/// `node1 node2 node4 gpu07` → `node[1-2,4],gpu07`; what Slurm expands in the same order.
pub fn compressed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for name in names {
        let (prefix, digits) =
            name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
        let number = digits
            .parse::<u32>()
            .ok()
            .filter(|_| digits.len() <= DIGITS_MAX);
        match (groups.last_mut(), number) {
            (Some(group), Some(number)) if group.takes(prefix, digits) => group.add(number),
            _ => groups.push(Group {
                prefix,
                digits,
                ranges: number
                    .map(|number| vec![(number, number)])
                    .unwrap_or_default(),
            }),
        }
    }
    groups.iter().map(Group::text).collect::<Vec<_>>().join(",")
}

/// As many as a range's bounds may have.
const DIGITS_MAX: usize = 9;

/// Names that differ by their number alone, all of one width.
struct Group<'a> {
    prefix: &'a str,
    /// Of the first.
    digits: &'a str,
    ranges: Vec<(u32, u32)>,
}

impl Group<'_> {
    fn takes(&self, prefix: &str, digits: &str) -> bool {
        let padded = self.digits.starts_with('0') || digits.starts_with('0');
        !self.ranges.is_empty()
            && self.prefix == prefix
            && (!padded || self.digits.len() == digits.len())
    }

    fn add(&mut self, number: u32) {
        match self.ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => self.ranges.push((number, number)),
        }
    }

    fn text(&self) -> String {
        let Self {
            prefix,
            digits,
            ranges,
        } = self;
        match ranges.as_slice() {
            [] => format!("{prefix}{digits}"),
            [(first, last)] if first == last => format!("{prefix}{digits}"),
            ranges => {
                let width = if digits.starts_with('0') {
                    digits.len()
                } else {
                    0
                };
                let part = |&(first, last): &(u32, u32)| {
                    if first == last {
                        format!("{first:0width$}")
                    } else {
                        format!("{first:0width$}-{last:0width$}")
                    }
                };
                let parts: Vec<String> = ranges.iter().map(part).collect();
                format!("{prefix}[{}]", parts.join(","))
            }
        }
    }
}
