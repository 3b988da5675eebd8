//! The bundle: our Python module and librlaunch.so, for hosts that have none.
//!
//! It lies in `python/` beside the executable, or in `../lib/rlaunch/python`. Its identity is made
//! of names, sizes and times, so that nothing is read for a job whose hosts have it already; the
//! archive is made only when some host lacks it. Without a bundle, hosts use what they have.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::join_all;
use rlaunch_control::v1;
use tracing::info;

use super::DriveError;
use super::reach::Reached;
use crate::talk::note;

#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) path: PathBuf,
    pub(super) id: String,
}

/// One message of the transfer: far below gRPC's bound, large enough to be few.
const CHUNK_BYTES: usize = 1 << 20;
/// More than any bundle of ours: a wrong directory is not walked to its end.
const FILES_MAX: usize = 1000;

pub(super) fn find() -> Option<Bundle> {
    let executable = std::env::current_exe().ok()?;
    let directory = executable.parent()?;
    ["python", "../lib/rlaunch/python"]
        .iter()
        .map(|relative| directory.join(relative))
        .filter(|path| path.join("rlaunch").is_dir())
        .find_map(|path| {
            let path = path.canonicalize().ok()?;
            let id = identity(&path).ok()?;
            Some(Bundle { path, id })
        })
}

/// Brings the bundle to the hosts that lack it. A host where that fails gets a warning, not an
/// end: it may have the module, or need none.
pub(super) async fn install(bundle: &Bundle, nodes: &mut [Reached]) -> Result<(), DriveError> {
    let lacking = |node: &&mut Reached| !node.local && node.survey.bundle_path.is_empty();
    if !nodes.iter_mut().any(|node| lacking(&node)) {
        return Ok(());
    }
    let archive = pack(&bundle.path).map_err(|error| DriveError::Bundle {
        path: bundle.path.display().to_string(),
        error,
    })?;
    let chunks: Vec<v1::InstallChunk> = archive
        .chunks(CHUNK_BYTES)
        .map(|data| v1::InstallChunk {
            bundle_id: bundle.id.clone(),
            tar_gz: data.to_vec().into(),
        })
        .collect();
    let calls = nodes.iter_mut().filter(lacking).map(|node| {
        let stream = tokio_stream::iter(chunks.clone());
        async move {
            match node.client.install(stream).await {
                Ok(reply) => {
                    node.survey.bundle_path = reply.into_inner().bundle_path;
                    info!(
                        host = node.name,
                        path = node.survey.bundle_path,
                        "module installed"
                    );
                }
                Err(status) => note(&format!(
                    "warning: {}: the Python module was not installed: {}",
                    node.name,
                    status.message()
                )),
            }
        }
    });
    join_all(calls).await;
    Ok(())
}

fn pack(path: &Path) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    archive.follow_symlinks(true);
    for file in files(path)? {
        let name = file
            .strip_prefix(path)
            .expect("files() stays below its path");
        archive.append_path_with_name(&file, name)?;
    }
    archive.into_inner()?.finish()
}

/// FNV-1a over name, size and time of every file.
fn identity(path: &Path) -> io::Result<String> {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    };
    for file in files(path)? {
        let meta = file.metadata()?;
        add(std::os::unix::ffi::OsStrExt::as_bytes(file.as_os_str()));
        add(&meta.size().to_le_bytes());
        add(&meta.mtime().to_le_bytes());
        add(&meta.mtime_nsec().to_le_bytes());
    }
    Ok(format!("{hash:016x}"))
}

/// All files below, sorted; what Python compiled here stays here.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![path.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                if !path.ends_with("__pycache__") {
                    open.push(path);
                }
            } else {
                found.push(path);
            }
            if found.len() + open.len() > FILES_MAX {
                return Err(io::Error::other(format!("more than {FILES_MAX} files")));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_follows_the_files() {
        let directory = tempfile::tempdir().unwrap();
        let package = directory.path().join("rlaunch");
        std::fs::create_dir_all(package.join("__pycache__")).unwrap();
        std::fs::write(package.join("__init__.py"), "a").unwrap();
        let before = identity(directory.path()).unwrap();
        std::fs::write(package.join("__pycache__/x.pyc"), "x").unwrap();
        assert_eq!(identity(directory.path()).unwrap(), before);
        std::fs::write(package.join("__init__.py"), "ab").unwrap();
        assert_ne!(identity(directory.path()).unwrap(), before);
        let archive = pack(directory.path()).unwrap();
        let mut names = tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()));
        let names: Vec<_> = names
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().into_owned())
            .collect();
        assert_eq!(names, [Path::new("rlaunch/__init__.py")]);
    }
}
