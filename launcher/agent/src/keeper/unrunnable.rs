//! Why exec refuses a file that is there: what it needs is not.
//!
//! The kernel says ENOENT for an absent file, for an absent interpreter (`#!`) and for an absent
//! loader (a program of another C library); ENOEXEC for a program of another kind of machine. Looked
//! up in the forked child, which a stuck file system may hold up alone.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;

/// What of the file is looked at; interpreter and loader stand near its start.
const LOOKED_AT_BYTES: u64 = 64 << 10;

#[cfg(target_arch = "x86_64")]
const OWN_MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const OWN_MACHINE: u16 = 183;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Need {
    /// Of a script's first line.
    Interpreter(Vec<u8>),
    /// Of a dynamically linked program.
    Loader(Vec<u8>),
    /// It is a program for another kind of machine.
    Machine,
}

/// What `candidate`, which exec refused so, needs and this host has not.
pub(super) fn need(candidate: &[u8], errno: Errno) -> Option<Need> {
    if !matches!(errno, Errno::ENOENT | Errno::ENOEXEC) {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(OsStr::from_bytes(candidate)).ok()?;
    file.take(LOOKED_AT_BYTES).read_to_end(&mut bytes).ok()?;
    let need = read(&bytes)?;
    let is_here = |path: &[u8]| Path::new(OsStr::from_bytes(path)).exists();
    match &need {
        Need::Interpreter(path) | Need::Loader(path) if is_here(path) => None,
        _ => Some(need),
    }
}

fn read(bytes: &[u8]) -> Option<Need> {
    if let Some(line) = bytes.strip_prefix(b"#!") {
        let end = line.iter().position(|byte| *byte == b'\n');
        let line = line[..end.unwrap_or(line.len())].trim_ascii_start();
        let is_end = |byte: &u8| matches!(byte, b' ' | b'\t');
        let end = line.iter().position(is_end).unwrap_or(line.len());
        return Some(Need::Interpreter(line[..end].to_vec()));
    }
    // 64 bits, little end first: what the machines are for which rlaunch is built.
    let is_ours = bytes.starts_with(b"\x7fELF\x02\x01");
    if !bytes.starts_with(b"\x7fELF") {
        return None;
    }
    let machine = number(bytes, 18, 2)?;
    if !is_ours || machine != u64::from(OWN_MACHINE) {
        return Some(Need::Machine);
    }
    loader(bytes).map(Need::Loader)
}

/// The path in the segment PT_INTERP.
fn loader(bytes: &[u8]) -> Option<Vec<u8>> {
    const PT_INTERP: u64 = 3;
    let headers = usize::try_from(number(bytes, 32, 8)?).ok()?;
    let (size, count) = (number(bytes, 54, 2)?, number(bytes, 56, 2)?);
    for index in 0..count {
        let at = headers.checked_add(usize::try_from(index * size).ok()?)?;
        if number(bytes, at, 4)? == PT_INTERP {
            let start = usize::try_from(number(bytes, at.checked_add(8)?, 8)?).ok()?;
            let length = usize::try_from(number(bytes, at.checked_add(32)?, 8)?).ok()?;
            let path = bytes.get(start..start.checked_add(length)?)?;
            return Some(path.split(|byte| *byte == 0).next()?.to_vec());
        }
    }
    None
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreter() {
        let interpreter = |text: &[u8]| read(text).unwrap();
        let named = |path: &[u8]| Need::Interpreter(path.to_vec());
        assert_eq!(interpreter(b"#!/bin/sh -e\nx"), named(b"/bin/sh"));
        assert_eq!(interpreter(b"#! /bin/a\tb"), named(b"/bin/a"));
        assert_eq!(interpreter(b"#!/bin/sh\r\n"), named(b"/bin/sh\r"));
        assert_eq!(read(b"echo\n"), None);
    }

    #[test]
    fn programs_name_their_loader_and_machine() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let Some(Need::Loader(path)) = read(&own) else {
            panic!("{:?}", read(&own[..64]))
        };
        assert!(Path::new(OsStr::from_bytes(&path)).exists());
        let mut other = own[..64].to_vec();
        other[18..20].copy_from_slice(&[40, 0]);
        assert_eq!(read(&other), Some(Need::Machine));
        // Cut anywhere, nothing breaks.
        for end in 0..64 {
            read(&own[..end]);
        }
        let mut wild = own[..64].to_vec();
        wild[32..40].fill(0xff);
        assert_eq!(read(&wild), None);
    }
}
