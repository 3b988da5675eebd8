//! Where things lie.

use std::path::{Path, PathBuf};

/// The repository's root: the folder above this crate. As cargo says it now: the checkout may have been
/// moved or copied since this was built.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent()
        .expect("xtask lies in the repository")
        .to_path_buf()
}

/// Cargo's build folder.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The built programs of the everyday profile.
pub fn built(name: &str) -> PathBuf {
    target().join("debug").join(name)
}

/// Python environments and peers of the benchmark: kept outside the checkout, so that a second
/// clone does not download them again.
pub fn cache() -> PathBuf {
    if let Some(dir) = std::env::var_os("RLAUNCH_DEV_CACHE") {
        return PathBuf::from(dir);
    }
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("rlaunch-dev")
}
