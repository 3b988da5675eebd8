//! What a user's certificate says of itself.
//!
//! sshd refuses one that is out of its time, or made for other users, without a word about it; so
//! the words come from here. Whether it is any good stays the host's decision.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::known_hosts::{key_type, string};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    principals: Vec<String>,
    /// Seconds since 1970, the first and the first that is too late.
    valid_from: u64,
    valid_until: u64,
}

/// Strings behind the nonce that make the public key, by its type.
const KEY_FIELDS: [(&str, usize); 6] = [
    ("ssh-ed25519-cert-", 1),
    ("ssh-rsa-cert-", 2),
    ("rsa-sha2-", 2),
    ("ecdsa-sha2-", 2),
    ("sk-ssh-ed25519-cert-", 2),
    ("sk-ecdsa-sha2-", 3),
];

/// type, nonce, key, serial, kind, id, principals, from, until, …
pub(super) fn parse(blob: &[u8]) -> Option<Certificate> {
    let kind = key_type(blob)?;
    let (_, fields) = KEY_FIELDS.iter().find(|(name, _)| kind.starts_with(name))?;
    let mut rest = blob;
    for _ in 0..2 + fields {
        string(&mut rest)?;
    }
    let _serial = number(&mut rest, 8)?;
    let _kind = number(&mut rest, 4)?;
    let _id = string(&mut rest)?;
    let mut names = string(&mut rest)?;
    let mut principals = Vec::new();
    while !names.is_empty() {
        principals.push(String::from_utf8_lossy(string(&mut names)?).into_owned());
    }
    Some(Certificate {
        principals,
        valid_from: number(&mut rest, 8)?,
        valid_until: number(&mut rest, 8)?,
    })
}

impl Certificate {
    /// Why a host would not take it for this user, as far as can be seen from here.
    pub(super) fn trouble(&self, user: &str, now: SystemTime) -> Option<String> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if now >= self.valid_until {
            let since = duration(now - self.valid_until);
            return Some(format!(
                "it ended {since} ago: have it renewed, or set the clock here if it is off"
            ));
        }
        if now < self.valid_from {
            let until = duration(self.valid_from - now);
            return Some(format!(
                "it begins to count in {until}: is the clock here off?"
            ));
        }
        if !self.principals.is_empty() && !self.principals.iter().any(|name| name == user) {
            let names = self.principals.join(", ");
            return Some(format!(
                "it is for {names}, not for {user}: log in as USER@HOST"
            ));
        }
        None
    }
}

/// One unit, rounded down: `3 h`.
fn duration(seconds: u64) -> String {
    let duration = Duration::from_secs(seconds).as_secs();
    match duration {
        0..60 => format!("{duration} s"),
        60..3600 => format!("{} min", duration / 60),
        3600..86_400 => format!("{} h", duration / 3600),
        _ => format!("{} d", duration / 86_400),
    }
}

/// Of 4 or 8 bytes.
fn number(rest: &mut &[u8], length: usize) -> Option<u64> {
    let (bytes, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(
        bytes
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::keyfile::parse_public;
    use super::*;

    #[test]
    fn certificates_of_all_types_tell_whom_and_when_they_serve() {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| {
            let mut command = Command::new("ssh-keygen");
            command.current_dir(folder.path()).arg("-q").args(arguments);
            assert!(command.status().unwrap().success(), "{arguments:?}");
        };
        run(&["-t", "ed25519", "-N", "", "-f", "authority"]);
        for kind in ["ed25519", "rsa", "ecdsa"] {
            run(&["-t", kind, "-N", "", "-f", kind]);
            let public = format!("{kind}.pub");
            run(&[
                "-s",
                "authority",
                "-I",
                "id",
                "-n",
                "alice,bob",
                "-V",
                "19700101000140Z:19700101000320Z",
                &public,
            ]);
            let path = folder.path().join(format!("{kind}-cert.pub"));
            let text = std::fs::read_to_string(path).unwrap();
            let blob = parse_public(&text).unwrap();
            let certificate = parse(&blob).unwrap();
            let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
            let trouble = |user: &str, seconds| certificate.trouble(user, at(seconds));
            assert_eq!(trouble("bob", 100), None, "{kind} {certificate:?}");
            for (user, seconds, said) in [
                ("bob", 40, "begins to count in 1 min"),
                ("bob", 200 + 7300, "ended 2 h ago"),
                ("eve", 150, "for alice, bob, not for eve"),
            ] {
                let trouble = trouble(user, seconds).unwrap();
                assert!(trouble.contains(said), "{kind}: {trouble}");
            }
            // Cut anywhere, it is none, and no panic.
            for length in 0..blob.len() {
                let _ = parse(&blob[..length]);
            }
        }
    }
}
