//! What is pushed to hosts: a stripped copy of this executable, and `--agent`'s.
//!
//! An agent needs of its file only what the kernel and the loader map, so the copy ends behind the
//! last loadable segment, and the header's reference to the sections is cleared. That takes no
//! tools, and keeps 9 of 10 bytes of a build with debug information at home.
//!
//! The build is the first half of the SHA-256 of the copy *behind the ELF header*: a host can
//! compute it from a whole file too, with `tail -c +65 | head -c N | sha256sum`, and so see whether
//! the file at the launcher's own path is the same build.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::error::ReachCause;

/// Of a 64-bit ELF file; the part that differs between a file and its stripped copy.
pub(crate) const HEADER_BYTES: usize = 64;
/// Larger than any build of ours; a wrong `--agent` is not read into memory.
const FILE_MAX_BYTES: u64 = 1 << 30;
/// The ELF header and the table of segments, where linkers put it.
const HEAD_BYTES: u64 = 4096;
const BUILD_CHARACTERS: usize = 32;

/// One executable, ready to be pushed.
pub(crate) struct Agent {
    /// As `uname -m` says it.
    pub(crate) machine: &'static str,
    pub(crate) build: String,
    pub(crate) bytes: Arc<Vec<u8>>,
    /// Where it may be found on hosts that share a file system with this one.
    pub(crate) path: Option<PathBuf>,
    pub(crate) packed: OnceLock<Arc<Vec<u8>>>,
}

/// At most one for each kind of machine.
pub(crate) struct Agents(Vec<Arc<Agent>>);

impl Agents {
    /// Once in the life of the process for each `--agent`: all others wait for the one result.
    pub(crate) async fn loaded(agent_path: Option<&Path>) -> Result<Arc<Self>, ReachCause> {
        type Cells = HashMap<Option<PathBuf>, Arc<OnceCell<Arc<Agents>>>>;
        static LOADED: Mutex<Option<Cells>> = Mutex::new(None);
        let path = agent_path.map(Path::to_owned);
        let cell = {
            let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
            let cells = loaded.get_or_insert_default();
            Arc::clone(cells.entry(path.clone()).or_default())
        };
        // Off the runtime's threads: it takes tens of milliseconds.
        let load = || async {
            let loaded = tokio::task::spawn_blocking(move || Self::load(path.as_deref())).await;
            loaded.unwrap_or_else(|error| Err(ReachCause::Local(error.to_string())))
        };
        cell.get_or_try_init(load).await.cloned()
    }

    /// Reads, strips and hashes. Blocking.
    fn load(agent_path: Option<&Path>) -> Result<Arc<Self>, ReachCause> {
        let own = Agent::read(Path::new("/proc/self/exe"), own_path());
        let agents = match agent_path {
            None => vec![Arc::new(own?)],
            Some(path) => {
                let given = Agent::read(path, fs::canonicalize(path).ok())?;
                let own = own.ok().filter(|own| own.machine != given.machine);
                std::iter::once(given).chain(own).map(Arc::new).collect()
            }
        };
        Ok(Arc::new(Self(agents)))
    }

    #[cfg(test)]
    pub(crate) fn from_parts(agents: Vec<Arc<Agent>>) -> Self {
        Self(agents)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.0.iter()
    }

    pub(crate) fn for_machine(&self, machine: &str) -> Option<&Arc<Agent>> {
        self.0.iter().find(|agent| agent.machine == machine)
    }

    pub(crate) fn has_build(&self, build: &str) -> bool {
        self.0.iter().any(|agent| agent.build == build)
    }

    pub(crate) fn machines(&self) -> String {
        self.0
            .iter()
            .map(|agent| agent.machine)
            .collect::<Vec<_>>()
            .join(", ")
    }

    pub(crate) fn builds(&self) -> String {
        self.0
            .iter()
            .map(|agent| agent.build.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl Agent {
    fn read(path: &Path, shown: Option<PathBuf>) -> Result<Self, ReachCause> {
        let failed = |reason: String| ReachCause::File {
            path: path.to_owned(),
            reason,
            option: Some("agent"),
        };
        let file = read_loaded(path).map_err(|error| failed(error.to_string()))?;
        Self::from_file(file, shown).map_err(failed)
    }

    fn from_file(mut file: Vec<u8>, path: Option<PathBuf>) -> Result<Self, String> {
        let machine = strip(&mut file)?;
        Ok(Self::from_parts(machine, file, path))
    }

    pub(crate) fn from_parts(machine: &'static str, bytes: Vec<u8>, path: Option<PathBuf>) -> Self {
        let hash = Sha256::digest(&bytes[HEADER_BYTES..]);
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            machine,
            build: hash[..BUILD_CHARACTERS].to_owned(),
            bytes: Arc::new(bytes),
            path,
            packed: OnceLock::new(),
        }
    }

    /// Gzip of the bytes, made at the first call.
    pub(crate) fn packed(&self) -> Arc<Vec<u8>> {
        let pack = || {
            let level = flate2::Compression::new(4);
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder
                .write_all(&self.bytes)
                .expect("a Vec takes all that is written");
            Arc::new(encoder.finish().expect("a Vec takes all that is written"))
        };
        Arc::clone(self.packed.get_or_init(pack))
    }
}

/// The file as far as it is loaded, two thirds of a build with line tables being behind; wholly, where
/// its first bytes don't tell.
fn read_loaded(path: &Path) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    if length > FILE_MAX_BYTES {
        return Err(io::Error::other("too large for an executable of ours"));
    }
    let mut bytes = Vec::new();
    (&file).take(HEAD_BYTES).read_to_end(&mut bytes)?;
    let end = loaded_end(&bytes).map_or(length, |end| length.min(end as u64));
    bytes.reserve_exact(end.saturating_sub(HEAD_BYTES) as usize);
    (&file)
        .take(end.saturating_sub(HEAD_BYTES))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn own_path() -> Option<PathBuf> {
    let path = fs::read_link("/proc/self/exe").ok()?;
    // A file that was removed or replaced meanwhile reads as `… (deleted)`, which is no file.
    path.is_file().then_some(path)
}

/// Cuts `file` behind what is loaded and gives its machine.
fn strip(file: &mut Vec<u8>) -> Result<&'static str, String> {
    let wrong = || String::from("not a 64-bit little-endian ELF executable");
    if file.len() < HEADER_BYTES || !file.starts_with(b"\x7fELF\x02\x01") {
        return Err(wrong());
    }
    let machine = match number(file, 18, 2).ok_or_else(wrong)? {
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv64",
        other => return Err(format!("an ELF file for a machine unknown here ({other})")),
    };
    let end = loaded_end(file).filter(|end| *end <= file.len());
    file.truncate(end.ok_or_else(wrong)?);
    // e_shoff, e_shnum, e_shstrndx.
    file[40..48].fill(0);
    file[60..64].fill(0);
    Ok(machine)
}

/// Where the last byte ends that the program headers, or any segment in the file, refer to; `None`
/// if `file`, which may be but a file's beginning, does not have them all.
fn loaded_end(file: &[u8]) -> Option<usize> {
    const LOAD: usize = 1;
    let table = number(file, 32, 8)?;
    let entry_bytes = number(file, 54, 2)?;
    let entries = number(file, 56, 2)?;
    if entry_bytes < 56 || entries == 0 {
        return None;
    }
    let mut end = table.checked_add(entry_bytes.checked_mul(entries)?)?;
    let mut loads = 0;
    for index in 0..entries {
        let entry = table + index * entry_bytes;
        let segment_end = number(file, entry + 8, 8)?.checked_add(number(file, entry + 32, 8)?)?;
        end = end.max(segment_end);
        loads += usize::from(number(file, entry, 4)? == LOAD);
    }
    (loads > 0).then_some(end)
}

fn number(file: &[u8], offset: usize, length: usize) -> Option<usize> {
    let bytes = file.get(offset..offset.checked_add(length)?)?;
    let value = bytes
        .iter()
        .rev()
        .fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_stripped_copy_of_a_program_runs_and_is_smaller() {
        let own = std::env::current_exe().unwrap();
        let agent = Agent::read(&own, None).unwrap();
        let whole = fs::metadata(&own).unwrap().len();
        assert!(
            (agent.bytes.len() as u64) < whole,
            "{} of {whole}",
            agent.bytes.len()
        );
        let copy = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        fs::write(&copy, &*agent.bytes).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
        let output = std::process::Command::new(&*copy)
            .arg("--list")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        // The copy of the copy is the same build.
        assert_eq!(Agent::read(&copy, None).unwrap().build, agent.build);
    }

    #[test]
    fn what_is_no_program_is_refused_whatever_its_bytes() {
        let whole = fs::read("/bin/true").unwrap();
        assert!(strip(&mut whole.clone()).is_ok());
        for length in [0, 10, 63, 64, 100, 200, 1000] {
            assert!(strip(&mut whole[..length].to_vec()).is_err(), "{length}");
        }
        assert!(strip(&mut b"#!/bin/sh\n".repeat(20)).is_err());
        // Any header field may be wild; none may panic.
        for offset in 0..HEADER_BYTES + 128 {
            let mut wild = whole.clone();
            wild[offset] = 0xff;
            let _ = strip(&mut wild);
        }
    }

    #[tokio::test]
    async fn loading_twice_gives_the_same_agents() {
        let first = Agents::loaded(None).await.unwrap();
        assert!(Arc::ptr_eq(&first, &Agents::loaded(None).await.unwrap()));
        assert!(first.for_machine(std::env::consts::ARCH).is_some());
        let absent = Agents::loaded(Some(Path::new("/nonexistent"))).await;
        let error = absent.err().unwrap();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
    }
}
