//! known_hosts: who has shown which key.
//!
//! The files are read here and not by libssh2, which knows neither patterns nor markers, and which
//! takes a key of another type than the known one for a changed key. Lines are
//! `[@marker] names type key [comment]`; names are patterns separated by commas, or one hashed name.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hmac::{KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::pattern;
use crate::settings::make_parent;

/// What the files say of a host's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Known,
    Unknown,
    /// Another key of this host stands there, as `file:line`.
    Changed {
        place: String,
        file: PathBuf,
    },
    Revoked {
        place: String,
    },
}

#[derive(Debug, Default)]
pub(super) struct KnownHosts {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    file: PathBuf,
    line: usize,
    marker: Marker,
    names: String,
    key: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    None,
    CertAuthority,
    Revoked,
}

/// The name under which a host stands in the files.
pub(super) fn name_of(hostname: &str, port: u16) -> String {
    let hostname = hostname.to_ascii_lowercase();
    if port == 22 {
        hostname
    } else {
        format!("[{hostname}]:{port}")
    }
}

/// `ssh-ed25519`, `ssh-rsa`, …: the first word of a key.
pub(super) fn key_type(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(string(&mut &*key)?).ok()
}

/// The next string of ssh's binary forms: a length of four bytes, and that many.
pub(super) fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, tail) = rest.split_at_checked(4)?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    let (string, tail) = tail.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = tail;
    Some(string)
}

/// As ssh shows it.
pub(super) fn fingerprint(key: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key)))
}

impl KnownHosts {
    /// Files that are absent count as empty; one that can't be read is an error, for a changed key
    /// could hide in it.
    pub(super) fn read<'a>(
        files: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<Self, (PathBuf, io::Error)> {
        let mut known = Self::default();
        for file in files {
            match fs::read(file) {
                Ok(text) => known.add_text(file, &String::from_utf8_lossy(&text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err((file.clone(), error)),
            }
        }
        Ok(known)
    }

    fn add_text(&mut self, file: &Path, text: &str) {
        for (index, line) in text.lines().enumerate() {
            if let Some(entry) = parse(file, index + 1, line) {
                self.entries.push(entry);
            }
        }
    }

    /// Types of the keys that are known of a host, so that it is asked for one of these.
    pub(super) fn key_types(&self, hostname: &str, port: u16) -> Vec<String> {
        let mut types: Vec<String> = Vec::new();
        for name in names(hostname, port) {
            for entry in self.of(&name).filter(|entry| entry.marker == Marker::None) {
                let kind = key_type(&entry.key).unwrap_or_default().to_owned();
                if !types.contains(&kind) {
                    types.push(kind);
                }
            }
        }
        types
    }

    /// Whether the host may be known by a certificate only, which libssh2 can't check.
    pub(super) fn only_by_authority(&self, hostname: &str, port: u16) -> bool {
        self.key_types(hostname, port).is_empty()
            && self
                .of(&name_of(hostname, port))
                .any(|entry| entry.marker == Marker::CertAuthority)
    }

    /// As ssh does: by `[name]:port` first; a key known under the bare name counts too.
    pub(super) fn check(&self, hostname: &str, port: u16, key: &[u8]) -> Verdict {
        let revoked = |entry: &&Entry| entry.marker == Marker::Revoked && entry.key == key;
        let mut changed = None;
        for (index, name) in names(hostname, port).iter().enumerate() {
            if let Some(entry) = self.of(name).find(revoked) {
                return Verdict::Revoked {
                    place: entry.place(),
                };
            }
            let plain = || self.of(name).filter(|entry| entry.marker == Marker::None);
            if plain().any(|entry| entry.key == key) {
                return Verdict::Known;
            }
            // Another key under the bare name may belong to another sshd of that machine.
            if index == 0 {
                changed = plain().next();
            }
        }
        match changed {
            Some(entry) => Verdict::Changed {
                place: entry.place(),
                file: entry.file.clone(),
            },
            None => Verdict::Unknown,
        }
    }

    fn of(&self, name: &str) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(move |entry| names_match(&entry.names, name))
    }
}

impl Entry {
    fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }
}

/// Appends a host's key; the file and its folder are made for this user alone if absent.
pub(super) fn add(file: &Path, name: &str, key: &[u8], hash_name: bool) -> io::Result<()> {
    let kind = key_type(key).ok_or_else(|| io::Error::other("the key has no type"))?;
    let shown = if hash_name {
        hashed(name)?
    } else {
        name.to_owned()
    };
    make_parent(file)?;
    let mut opened = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(file)?;
    let mut line = format!("{shown} {kind} {}\n", STANDARD.encode(key));
    if opened.seek(SeekFrom::End(0))? > 0 {
        opened.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        opened.read_exact(&mut last)?;
        if last != *b"\n" {
            line.insert(0, '\n');
        }
    }
    // One write: other launches may append at the same time.
    opened.write_all(line.as_bytes())
}

fn names(hostname: &str, port: u16) -> Vec<String> {
    let mut names = vec![name_of(hostname, port)];
    if port != 22 {
        names.push(name_of(hostname, 22));
    }
    names
}

fn parse(file: &Path, line_number: usize, line: &str) -> Option<Entry> {
    let mut words = line.split_ascii_whitespace();
    let mut names = words.next()?;
    let mut marker = Marker::None;
    if names.starts_with('#') {
        return None;
    }
    if names.starts_with('@') {
        marker = match names {
            "@cert-authority" => Marker::CertAuthority,
            "@revoked" => Marker::Revoked,
            _ => return None,
        };
        names = words.next()?;
    }
    let kind = words.next()?;
    let key = STANDARD.decode(words.next()?).ok()?;
    if key_type(&key) != Some(kind) {
        return None;
    }
    Some(Entry {
        file: file.to_owned(),
        line: line_number,
        marker,
        names: names.to_owned(),
        key,
    })
}

/// Without regard to case; `name` is in lower case.
fn names_match(names: &str, name: &str) -> bool {
    if names.starts_with('|') {
        return hashed_matches(names, name).unwrap_or(false);
    }
    let mut matched = false;
    for pattern in names.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if pattern::matches(&pattern.to_ascii_lowercase(), name) => return false,
            Some(_) => {}
            None => matched |= pattern::matches(&pattern.to_ascii_lowercase(), name),
        }
    }
    matched
}

/// `|1|salt|hash`.
fn hashed_matches(names: &str, name: &str) -> Option<bool> {
    let (salt, hash) = names.strip_prefix("|1|")?.split_once('|')?;
    Some(hash_of(&STANDARD.decode(salt).ok()?, name) == STANDARD.decode(hash).ok()?)
}

fn hashed(name: &str) -> io::Result<String> {
    let mut salt = [0; 20];
    fs::File::open("/dev/urandom")?.read_exact(&mut salt)?;
    Ok(format!(
        "|1|{}|{}",
        STANDARD.encode(salt),
        STANDARD.encode(hash_of(&salt, name))
    ))
}

fn hash_of(salt: &[u8], name: &str) -> Vec<u8> {
    let mut mac = hmac::Hmac::<sha1::Sha1>::new_from_slice(salt).expect("HMAC takes any length");
    mac.update(name.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[cfg(any(test, fuzzing))]
pub(super) fn take_garbage(text: &str) {
    let mut known = KnownHosts::default();
    known.add_text(Path::new("/kh"), text);
    for port in [22, 2222] {
        let _ = known.key_types("gpu1", port);
        let _ = known.only_by_authority("gpu1", port);
        // No file has this one in it.
        let verdict = known.check("gpu1", port, b"\0\0\0\x04none");
        assert_ne!(verdict, Verdict::Known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, fill: u8) -> Vec<u8> {
        let mut key = u32::try_from(kind.len()).unwrap().to_be_bytes().to_vec();
        key.extend(kind.as_bytes());
        key.extend([fill; 32]);
        key
    }

    fn line(names: &str, key: &[u8]) -> String {
        format!(
            "{names} {} {} comment\n",
            key_type(key).unwrap(),
            STANDARD.encode(key)
        )
    }

    fn known(text: &str) -> KnownHosts {
        let mut known = KnownHosts::default();
        known.add_text(Path::new("/kh"), text);
        known
    }

    #[test]
    fn a_host_is_found_by_name_pattern_port_and_hash() {
        let good = key("ssh-ed25519", 1);
        for names in [
            "gpu1",
            "other,GPU1",
            "gpu?",
            "g*,!gpu2",
            "*",
            "a*,g*1",
            &hashed("gpu1").unwrap(),
        ] {
            let known = known(&line(names, &good));
            assert_eq!(known.check("Gpu1", 22, &good), Verdict::Known, "{names}");
            assert_eq!(known.key_types("gpu1", 22), ["ssh-ed25519"], "{names}");
        }
        for names in [
            "gpu2",
            "g*,!gpu1",
            "gpu",
            "gpu1?",
            "[gpu1]:2222",
            "|1|x|y",
            "|2|a",
        ] {
            let known = known(&line(names, &good));
            assert_eq!(known.check("gpu1", 22, &good), Verdict::Unknown, "{names}");
        }
        for names in ["[gpu1]:2222", "gpu1", &hashed("[gpu1]:2222").unwrap()] {
            assert_eq!(
                known(&line(names, &good)).check("gpu1", 2222, &good),
                Verdict::Known
            );
        }
    }

    #[test]
    fn a_changed_key_is_told_from_an_unknown_one() {
        let (good, bad) = (key("ssh-ed25519", 1), key("ssh-ed25519", 2));
        let text = format!("# comment\n\n{}", line("gpu1", &good));
        let changed = Verdict::Changed {
            place: "/kh:3".into(),
            file: "/kh".into(),
        };
        assert_eq!(known(&text).check("gpu1", 22, &bad), changed);
        // Whoever is in between may show a key of another type.
        assert_eq!(known(&text).check("gpu1", 22, &key("ssh-rsa", 1)), changed);
        // Under another port another sshd may run.
        assert_eq!(known(&text).check("gpu1", 2222, &bad), Verdict::Unknown);
        // Two keys of one host.
        let both = format!("{text}{}", line("gpu1", &bad));
        assert_eq!(known(&both).check("gpu1", 22, &bad), Verdict::Known);
    }

    #[test]
    fn markers_are_heeded() {
        let good = key("ssh-ed25519", 1);
        let text = format!("{}@revoked {}", line("gpu1", &good), line("*", &good));
        let revoked = Verdict::Revoked {
            place: "/kh:2".into(),
        };
        assert_eq!(known(&text).check("gpu1", 22, &good), revoked);
        let authority = known(&format!("@cert-authority {}", line("*.site", &good)));
        assert!(authority.only_by_authority("a.site", 22));
        assert!(!authority.only_by_authority("a.other", 22));
        assert_eq!(authority.check("a.site", 22, &good), Verdict::Unknown);
        assert!(authority.key_types("a.site", 22).is_empty());
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        for text in [
            "gpu1",
            "gpu1 ssh-rsa",
            "gpu1 ssh-rsa !!!",
            "@x gpu1 ssh-rsa AAAA",
            "gpu1 ssh-dss AAAAB3NzaC1yc2EAAA==",
        ] {
            assert_eq!(
                known(text).check("gpu1", 22, &key("ssh-rsa", 1)),
                Verdict::Unknown
            );
        }
    }

    #[test]
    fn a_key_is_added_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/known_hosts");
        let (first, second) = (key("ssh-ed25519", 1), key("ssh-ed25519", 2));
        add(&file, "[gpu1]:2222", &first, false).unwrap();
        let mut text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("[gpu1]:2222 ssh-ed25519 AAAA"), "{text}");
        // A last line without an end is not to be glued together with the new one.
        text.pop();
        fs::write(&file, text).unwrap();
        add(&file, "gpu2", &second, true).unwrap();
        assert!(!fs::read_to_string(&file).unwrap().contains("gpu2"));
        let known = KnownHosts::read([&file, &folder.path().join("absent")].into_iter()).unwrap();
        assert_eq!(known.check("gpu1", 2222, &first), Verdict::Known);
        assert_eq!(known.check("gpu2", 22, &second), Verdict::Known);
    }

    #[test]
    fn a_fingerprint_reads_as_sshs() {
        let text =
            STANDARD.decode("AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl");
        assert_eq!(
            fingerprint(&text.unwrap()),
            "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"
        );
    }
}
