//! Elements that repeat: what is made once serves any length, and is compared as fast as memory is
//! read. The period is a prime, so that no chunk, block or part in another's place looks right.

/// Of elements; a period of most types stays in a core's cache.
pub(crate) const PERIOD: usize = 65_521;

/// Elements from some first one on, as many as were asked for, or a whole period of them.
#[derive(Debug)]
pub(crate) struct Pattern {
    bytes: Vec<u8>,
    size: usize,
    first: usize,
    elements: usize,
}

impl Pattern {
    /// `write` writes one element of the period.
    pub(crate) fn new(
        size: usize,
        first: usize,
        elements: usize,
        mut write: impl FnMut(usize, &mut [u8]),
    ) -> Self {
        let made = elements.min(PERIOD);
        // A whole period begins where it does.
        let from = if made == PERIOD { 0 } else { first };
        let mut bytes = vec![0; made * size];
        for (index, element) in bytes.chunks_exact_mut(size).enumerate() {
            write((from + index) % PERIOD, element);
        }
        Self {
            bytes,
            size,
            first,
            elements,
        }
    }

    /// The elements in runs: where each run begins, in bytes, and what stands there.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let is_whole = self.elements >= PERIOD;
        let mut done = 0;
        std::iter::from_fn(move || {
            let left = self.elements - done;
            if left == 0 {
                return None;
            }
            let begin = if is_whole {
                (self.first + done) % PERIOD
            } else {
                done
            };
            let length = left.min(self.bytes.len() / self.size - begin);
            let run = &self.bytes[begin * self.size..(begin + length) * self.size];
            let at = done * self.size;
            done += length;
            Some((at, run))
        })
    }

    pub(crate) fn copy_to(&self, into: &mut [u8]) {
        for (at, run) in self.runs() {
            into[at..at + run.len()].copy_from_slice(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(first: usize, count: usize) -> Vec<u32> {
        let write = |element: usize, bytes: &mut [u8]| {
            bytes.copy_from_slice(&(element as u32).to_le_bytes());
        };
        let mut bytes = vec![0; count * 4];
        Pattern::new(4, first, count, write).copy_to(&mut bytes);
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        bytes.chunks_exact(4).map(word).collect()
    }

    #[test]
    fn any_first_and_any_length_are_parts_of_one_row() {
        for first in [0, 1, PERIOD - 1, PERIOD, 3 * PERIOD + 7] {
            for count in [0, 1, 5, PERIOD - 1, PERIOD, PERIOD + 1, 2 * PERIOD + 9] {
                let expected = (first..first + count).map(|element| (element % PERIOD) as u32);
                assert!(
                    elements(first, count).into_iter().eq(expected),
                    "{first} {count}"
                );
            }
        }
    }
}
