//! What a private key file says of itself without being decrypted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::known_hosts::{key_type, string};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeyFile {
    /// A passphrase is needed.
    pub(super) encrypted: bool,
    /// The public key, where the format has it in the clear.
    pub(super) public: Option<Vec<u8>>,
}

impl KeyFile {
    /// Lives in a security key, which libssh2 can't ask.
    pub(super) fn in_hardware(&self) -> bool {
        self.public
            .as_deref()
            .and_then(key_type)
            .is_some_and(|kind| kind.starts_with("sk-"))
    }
}

pub(super) fn parse(text: &str) -> KeyFile {
    if text.contains("BEGIN OPENSSH PRIVATE KEY") {
        let body: String = text
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .collect();
        let body = STANDARD.decode(body.trim()).unwrap_or_default();
        return parse_openssh(&body).unwrap_or_default();
    }
    // PEM: PKCS#8 by its title, the older form by a header.
    let encrypted =
        text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED");
    KeyFile {
        encrypted,
        public: None,
    }
}

/// The public key of a `.pub` file.
pub(super) fn parse_public(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.split_ascii_whitespace().nth(1)?).ok()
}

/// magic, cipher, kdf, kdf options, number of keys, public key, …
fn parse_openssh(body: &[u8]) -> Option<KeyFile> {
    let mut rest = body.strip_prefix(b"openssh-key-v1\0")?;
    let cipher = string(&mut rest)?;
    let (_kdf, _options) = (string(&mut rest)?, string(&mut rest)?);
    rest = rest.get(4..)?;
    let public = string(&mut rest)?.to_vec();
    Some(KeyFile {
        encrypted: cipher != b"none",
        public: Some(public),
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn key_files_of_all_kinds_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        for (index, (format, passphrase)) in [
            ("RFC4716", ""),
            ("RFC4716", "secret"),
            ("PEM", ""),
            ("PEM", "secret"),
            ("PKCS8", "secret"),
        ]
        .into_iter()
        .enumerate()
        {
            let path = folder.path().join(format!("key{index}"));
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ecdsa", "-m", format, "-N", passphrase, "-f"])
                .arg(&path)
                .status();
            assert!(made.unwrap().success());
            let key = parse(&std::fs::read_to_string(&path).unwrap());
            assert_eq!(
                key.encrypted,
                !passphrase.is_empty(),
                "{format} {passphrase:?}"
            );
            assert!(!key.in_hardware());
            if format == "RFC4716" {
                let public = std::fs::read_to_string(path.with_extension("pub")).unwrap();
                assert_eq!(key.public, parse_public(&public));
            }
        }
    }

    #[test]
    fn a_torn_file_is_no_key_of_any_kind() {
        for text in [
            "",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n",
            "b3BlbnNzaC1rZXktdjE",
        ] {
            assert_eq!(parse(text), KeyFile::default());
        }
    }
}
