//! A bundle of files, sent by the launcher, put where [`crate::cache`] says.
//!
//! Unpacked beside its place and renamed, so that it is there whole or not at all. Of the archive
//! only folders and plain files count, below the bundle's own folder.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use rlaunch_control::v1::InstallChunk;
use tonic::{Status, Streaming};

use crate::cache;

/// The packed bundle: a Python module and a library.
const PACKED_MAX_BYTES: usize = 64 << 20;
/// Unpacked; a small archive must not fill the disk.
const UNPACKED_MAX_BYTES: u64 = 512 << 20;

/// Receives and installs; gives the bundle's folder.
pub(crate) async fn receive(mut chunks: Streaming<InstallChunk>) -> Result<PathBuf, Status> {
    let mut id = String::new();
    let mut packed = Vec::new();
    while let Some(chunk) = chunks.message().await? {
        if id.is_empty() {
            id = chunk.bundle_id;
        }
        if packed.len() + chunk.tar_gz.len() > PACKED_MAX_BYTES {
            return Err(Status::resource_exhausted(
                "the bundle is larger than 64 MiB",
            ));
        }
        packed.extend_from_slice(&chunk.tar_gz);
    }
    if !cache::is_id(&id) {
        return Err(Status::invalid_argument(format!("{id:?} is no bundle id")));
    }
    let installed = tokio::task::spawn_blocking(move || {
        let folder = cache::prepare()?;
        install(&folder, &id, &packed)
    });
    match installed.await {
        Ok(Ok(path)) => Ok(path),
        Ok(Err(error)) => Err(Status::internal(format!(
            "the Python module could not be installed on this host: {error}"
        ))),
        Err(error) => Err(Status::internal(error.to_string())),
    }
}

fn install(folder: &Path, id: &str, packed: &[u8]) -> io::Result<PathBuf> {
    let place = folder.join(id);
    let temporary = folder.join(format!(".{id}-{}", crate::random::hex::<8>()));
    std::fs::create_dir(&temporary)?;
    let done =
        unpack(&temporary, packed).and_then(|()| match std::fs::rename(&temporary, &place) {
            // Another job was faster, with the same content: the id is made from it.
            Err(_) if place.is_dir() => std::fs::remove_dir_all(&temporary),
            renamed => renamed,
        });
    if let Err(error) = done {
        std::fs::remove_dir_all(&temporary).ok();
        return Err(error);
    }
    Ok(place)
}

fn unpack(folder: &Path, packed: &[u8]) -> io::Result<()> {
    let mut archive = tar::Archive::new(GzDecoder::new(packed).take(UNPACKED_MAX_BYTES));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let escapes = path
            .components()
            .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
        let kind = entry.header().entry_type();
        if escapes || !(kind.is_file() || kind.is_dir()) {
            let text = format!("{}: not a plain file below the bundle", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        entry.set_preserve_mtime(false);
        entry.unpack_in(folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("rlaunch-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn packed(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (path, kind, data) in entries {
            let mut header = tar::Header::new_gnu();
            // set_path refuses what an attacker would write.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(data.len() as u64);
            header.set_mode(0o644);
            if *kind == tar::EntryType::Symlink {
                header.set_link_name("/etc").unwrap();
            }
            header.set_cksum();
            builder.append(&header, *data).unwrap();
        }
        let mut gzip = builder.into_inner().unwrap();
        gzip.flush().unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn a_bundle_appears_whole_and_twice_is_once() {
        let root = folder("install");
        let file = tar::EntryType::Regular;
        let bundle = packed(&[
            ("rlaunch/__init__.py", file, b"x = 1\n"),
            ("lib.so", file, b"\x7f"),
        ]);
        for _ in 0..2 {
            let place = install(&root, "id-1", &bundle).unwrap();
            assert_eq!(
                std::fs::read(place.join("rlaunch/__init__.py")).unwrap(),
                b"x = 1\n"
            );
        }
        let names: Vec<_> = std::fs::read_dir(&root).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_leaves_the_bundle_is_refused_and_nothing_stays() {
        let root = folder("install-bad");
        let file = tar::EntryType::Regular;
        for bad in [
            packed(&[("../out", file, b"x")]),
            packed(&[("/tmp/rlaunch-out", file, b"x")]),
            packed(&[
                ("link", tar::EntryType::Symlink, b""),
                ("link/x", file, b"x"),
            ]),
            packed(&[("fifo", tar::EntryType::Fifo, b"")]),
            b"no gzip".to_vec(),
        ] {
            assert!(install(&root, "id", &bad).is_err());
        }
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
        assert!(!root.parent().unwrap().join("out").exists());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
