//! How much of a stream may be under way to the launcher. Pure.

use rlaunch_wire::limits::OUTPUT_CREDIT_PARTS;

#[derive(Debug)]
pub(crate) struct Credit {
    whole: i64,
    /// Negative after a line that is longer than what there was.
    left: i64,
}

impl Credit {
    pub(crate) fn new(whole: u64) -> Self {
        let whole = i64::try_from(whole).unwrap_or(i64::MAX);
        Self { whole, left: whole }
    }

    /// A line that is longer than what is left goes too, once nothing else is under way: by then
    /// less than a part has not come back, and may never.
    pub(crate) fn allows(&self, len: u64) -> bool {
        let part = self.whole / OUTPUT_CREDIT_PARTS.cast_signed();
        len <= self.left.max(0).unsigned_abs() || self.left >= self.whole - part
    }

    pub(crate) fn take(&mut self, len: u64) {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        self.left = self.left.saturating_sub(len);
    }

    pub(crate) fn add(&mut self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.left = self.left.saturating_add(bytes).min(self.whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launcher that gives credit back in whole parts, and lines of any length: each goes in the end.
    #[test]
    fn every_line_goes_in_the_end() {
        const WHOLE: u64 = 1000;
        for lens in [
            [100, 100, 900],
            [249, 1, 1000],
            [1, 5000, 1],
            [800, 200, 1001],
        ] {
            let (mut credit, mut owed, mut most) = (Credit::new(WHOLE), 0, 0);
            for len in lens {
                if !credit.allows(len) {
                    // All that was under way has been printed.
                    let parts = owed / (WHOLE / OUTPUT_CREDIT_PARTS);
                    credit.add(parts * (WHOLE / OUTPUT_CREDIT_PARTS));
                    owed -= parts * (WHOLE / OUTPUT_CREDIT_PARTS);
                }
                assert!(credit.allows(len), "{lens:?}: {len} with {credit:?}");
                credit.take(len);
                owed += len;
                most = most.max(owed - len);
            }
            assert!(most <= WHOLE || lens.contains(&5000), "{lens:?}: {most}");
        }
    }

    #[test]
    fn what_is_used_up_stops_the_stream() {
        let mut credit = Credit::new(1000);
        credit.take(900);
        assert!(credit.allows(100) && !credit.allows(101));
        credit.take(1000);
        credit.add(500);
        assert!(
            !credit.allows(1),
            "a line of twice the credit is still under way"
        );
    }
}
