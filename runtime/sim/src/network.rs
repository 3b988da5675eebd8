//! What a message costs.

/// One direction between two ranks. Messages of a link follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub latency_ns: u64,
    pub bytes_per_us: u64,
}

impl Link {
    /// Time that `bytes` occupy the link, latency apart.
    pub fn duration_ns(&self, bytes: u64) -> u64 {
        bytes * 1000 / self.bytes_per_us
    }
}

/// Ranks in hosts of one size, filled in rank order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    pub ranks_per_host: u32,
    pub inside: Link,
    pub between: Link,
}

impl Network {
    pub fn link(&self, from: u32, to: u32) -> Link {
        let same_host = from / self.ranks_per_host == to / self.ranks_per_host;
        if same_host { self.inside } else { self.between }
    }
}

/// Shared memory inside, one 25 Gb/s stream between.
impl Default for Network {
    fn default() -> Self {
        Self {
            ranks_per_host: 8,
            inside: Link {
                latency_ns: 1_000,
                bytes_per_us: 5_000,
            },
            between: Link {
                latency_ns: 15_000,
                bytes_per_us: 2_500,
            },
        }
    }
}
