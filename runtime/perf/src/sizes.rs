//! Sizes as written, and the row of sizes that are timed.

/// `8`, `64K`, `1M`, `2G`, also `64KB` and `64KiB`: always powers of 1024, as nccl-tests reads them.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let unit = suffix.to_ascii_uppercase();
    let shift = match unit
        .strip_suffix("IB")
        .or(unit.strip_suffix('B'))
        .unwrap_or(&unit)
    {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => {
            return Err(format!(
                "`{text}` is no size; write bytes, or a number with K, M or G"
            ));
        }
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("`{text}` is no size; write bytes, or a number with K, M or G"))?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| format!("`{text}` is too large"))
}

/// From the smallest up; the smallest comes even where it exceeds the largest.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    next: Option<u64>,
    max: u64,
    factor: Option<u64>,
    step: u64,
}

impl Sizes {
    pub(crate) fn new(min: u64, max: u64, factor: Option<u64>, step: u64) -> Self {
        Self {
            next: Some(min),
            max: max.max(min),
            factor,
            step,
        }
    }

    pub(crate) fn one(size: u64) -> Self {
        Self::new(size, size, None, 0)
    }

    /// The largest of the row.
    pub(crate) fn largest(&self) -> u64 {
        self.max
    }
}

impl Iterator for Sizes {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let size = self.next?;
        let following = match self.factor {
            Some(factor) => size.checked_mul(factor),
            None => size.checked_add(self.step),
        };
        self.next = following.filter(|next| *next <= self.max && *next > size);
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units() {
        assert_eq!(parse_size("8"), Ok(8));
        assert_eq!(parse_size("64K"), Ok(65536));
        assert_eq!(parse_size("2g"), Ok(2 << 30));
        assert_eq!(parse_size("1MiB"), Ok(1 << 20));
        for bad in ["", "K", "8X", "-1", "1.5M", "99999999999G"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn steps_by_factor_or_bytes_and_ends() {
        let factor: Vec<_> = Sizes::new(8, 100, Some(3), 1).collect();
        assert_eq!(factor, [8, 24, 72]);
        let step: Vec<_> = Sizes::new(8, 20, None, 6).collect();
        assert_eq!(step, [8, 14, 20]);
        assert_eq!(Sizes::new(8, 4, Some(2), 1).collect::<Vec<_>>(), [8]);
        assert_eq!(Sizes::new(0, 4, Some(2), 1).collect::<Vec<_>>(), [0]);
        assert_eq!(Sizes::new(0, 4, None, 0).collect::<Vec<_>>(), [0]);
    }
}
