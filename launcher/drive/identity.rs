//! A job's id and secret: fresh random bytes.

use std::fs::File;
use std::io::{self, Read};

#[derive(Clone)]
pub(super) struct JobIdentity {
    pub(super) id: [u8; 16],
    /// Reaches ranks through their agents only, never argv or the environment.
    pub(super) secret: [u8; 32],
}

impl JobIdentity {
    pub(super) fn new() -> io::Result<Self> {
        let mut random = File::open("/dev/urandom")?;
        let (mut id, mut secret) = ([0; 16], [0; 32]);
        random.read_exact(&mut id)?;
        random.read_exact(&mut secret)?;
        Ok(Self { id, secret })
    }

    /// The same job's next attempt: ranks of an earlier one must not be let in.
    pub(super) fn again(&self) -> io::Result<Self> {
        let secret = Self::new()?.secret;
        Ok(Self {
            id: self.id,
            secret,
        })
    }

    /// Enough digits to tell jobs apart in messages.
    pub(super) fn short(&self) -> String {
        self.id[..4]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}
