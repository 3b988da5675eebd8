//! Puts the Python module where rlaunch and the tests look for it, and the C library where a compiler
//! does.
//!
//! ```text
//! <target>/debug/rlaunch                         the program
//! <target>/debug/lib_rlaunch.so                  cargo's name for the native part
//! <target>/debug/python/rlaunch/__init__.py …    bindings/python/rlaunch, copied
//! <target>/debug/python/rlaunch/_rlaunch.abi3.so the native part, under the name Python wants
//! <target>/debug/c/{include,lib,lib/pkgconfig}   header, library, pkg-config file
//! ```
//! `<target>/debug/python` is what goes on PYTHONPATH, `<target>/debug/c/lib/pkgconfig` on
//! PKG_CONFIG_PATH.

use crate::{paths, sh, system};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

const NATIVE_BUILT: &str = "lib_rlaunch.so";
const NATIVE_STAGED: &str = "_rlaunch.abi3.so";

/// `cargo x stage`
pub fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(word) = arguments.first() {
        return Err(format!("takes no arguments, found `{word}`"));
    }
    system::ensure_build()?;
    sh::run(&mut sh::cargo(["build"]))?;
    let python = stage(&paths::target())?;
    let c = paths::target().join("debug/c/lib/pkgconfig");
    println!("PYTHONPATH={}", python.display());
    println!("PKG_CONFIG_PATH={}", c.display());
    Ok(())
}

/// Copies what has changed; returns the folder for PYTHONPATH. A file that a running process has
/// loaded keeps its old content there: each copy is renamed into place.
pub fn stage(target_dir: &Path) -> Result<PathBuf, String> {
    let built = target_dir.join("debug").join(NATIVE_BUILT);
    if !built.exists() {
        return Err(format!(
            "{} is not built\nhint: cargo build -p rlaunch-python",
            built.display()
        ));
    }
    let python_path = target_dir.join("debug/python");
    let package = python_path.join("rlaunch");
    let source = paths::root().join("bindings/python/rlaunch");
    fs::create_dir_all(&package).map_err(|error| format!("{}: {error}", package.display()))?;
    let mut names = vec![NATIVE_STAGED.into()];
    for file in files(&source)? {
        let name = file
            .file_name()
            .expect("a folder's entry has a name")
            .to_owned();
        copy(&file, &package.join(&name))?;
        names.push(name);
    }
    copy(&built, &package.join(NATIVE_STAGED))?;
    remove_strays(&package, &names)?;
    stage_c(target_dir)?;
    Ok(python_path)
}

/// The library under the names that the linker and the loader look for.
fn stage_c(target_dir: &Path) -> Result<(), String> {
    let built = target_dir.join("debug/librlaunch.so");
    if !built.exists() {
        return Ok(()); // built for Python alone
    }
    let prefix = target_dir.join("debug/c");
    let source = paths::root().join("bindings/c");
    let (include, lib) = (prefix.join("include"), prefix.join("lib"));
    for folder in [&include, &lib.join("pkgconfig")] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    copy(
        &source.join("include/rlaunch.h"),
        &include.join("rlaunch.h"),
    )?;
    let loaded = format!("librlaunch.so.{}", env!("CARGO_PKG_VERSION_MAJOR"));
    copy(&built, &lib.join(&loaded))?;
    copy(&built, &lib.join("librlaunch.so"))?;
    let template = source.join("rlaunch.pc.in");
    let description = fs::read_to_string(&template)
        .map_err(|error| format!("{}: {error}", template.display()))?
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    let file = lib.join("pkgconfig/rlaunch.pc");
    fs::write(&file, description).map_err(|error| format!("{}: {error}", file.display()))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

/// Files of an earlier version would still be imported.
fn remove_strays(package: &Path, names: &[std::ffi::OsString]) -> Result<(), String> {
    for file in files(package)? {
        let known = file
            .file_name()
            .is_some_and(|name| names.iter().any(|known| known == name));
        if !known {
            fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if same(from, to) {
        return Ok(());
    }
    let failed = |error| {
        format!(
            "cannot copy {} to {}: {error}",
            from.display(),
            to.display()
        )
    };
    let mut temporary = to.file_name().unwrap_or(OsStr::new("file")).to_owned();
    temporary.push(format!(".{}", std::process::id()));
    let temporary = to.with_file_name(temporary);
    fs::copy(from, &temporary).map_err(failed)?;
    fs::rename(&temporary, to).map_err(failed)
}

fn same(from: &Path, to: &Path) -> bool {
    match (fs::metadata(from), fs::metadata(to)) {
        (Ok(a), Ok(b)) if a.len() == b.len() => {
            matches!((fs::read(from), fs::read(to)), (Ok(a), Ok(b)) if a == b)
        }
        _ => false,
    }
}
