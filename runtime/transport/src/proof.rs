//! Proof that both ends of a connection know the job's secret, without saying it.
//!
//! Each side sends a random nonce; a proof is HMAC-SHA-256 over a role and all that identifies the
//! connection, both nonces among it. The roles differ per side, so a proof can't be sent back.

use std::fs::File;
use std::io::{self, Read};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

pub const NONCE_BYTES: usize = 16;
pub const PROOF_BYTES: usize = 32;

pub type Proof = [u8; PROOF_BYTES];

/// What only the ranks of one job know.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// From bytes of any length.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Lengths are bound in, so that parts can't shift their borders.
    pub fn proof(&self, role: &str, parts: &[&[u8]]) -> Proof {
        self.mac(role, parts).finalize().into_bytes().into()
    }

    fn mac(&self, role: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes any key length");
        for part in [role.as_bytes()].iter().chain(parts) {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Compares in constant time.
pub fn verify(secret: &Secret, role: &str, parts: &[&[u8]], proof: &[u8]) -> bool {
    secret.mac(role, parts).verify_slice(proof).is_ok()
}

pub fn nonce() -> io::Result<[u8; NONCE_BYTES]> {
    let mut bytes = [0; NONCE_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_only_for_its_role_parts_and_secret() {
        let secret = Secret::new(b"s");
        let proof = secret.proof("a", &[b"12", b"3"]);
        assert!(verify(&secret, "a", &[b"12", b"3"], &proof));
        assert!(!verify(&secret, "b", &[b"12", b"3"], &proof));
        assert!(!verify(&secret, "a", &[b"1", b"23"], &proof));
        assert!(!verify(&Secret::new(b"t"), "a", &[b"12", b"3"], &proof));
    }
}
