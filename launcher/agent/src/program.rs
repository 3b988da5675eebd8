//! Finding programs: the rank's, and Python.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What exec should try, in order: the word itself if it holds a slash, else each folder of PATH.
pub(crate) fn candidates(word: &[u8], path: &[u8]) -> Vec<Vec<u8>> {
    if word.is_empty() {
        return Vec::new();
    }
    if word.contains(&b'/') {
        return vec![word.to_vec()];
    }
    path.split(|byte| *byte == b':')
        // An empty folder is the current one, as for any shell.
        .map(|folder| {
            if folder.is_empty() {
                b".".as_slice()
            } else {
                folder
            }
        })
        .map(|folder| [folder, b"/", word].concat())
        .collect()
}

/// The interpreter for a script: the named one if it is here, else, unless the user insisted on
/// it, python3 of PATH. Relative words are not looked for: the directory may differ.
pub(crate) fn python(named: &str, required: bool, path: &[u8]) -> Option<PathBuf> {
    let found = find(named.as_bytes(), path);
    if found.is_some() || required {
        return found;
    }
    find(b"python3", path).or_else(|| find(b"python", path))
}

fn find(word: &[u8], path: &[u8]) -> Option<PathBuf> {
    candidates(word, path)
        .into_iter()
        .map(|candidate| PathBuf::from(OsStr::from_bytes(&candidate)))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_slash_is_taken_as_it_is_and_others_are_looked_for() {
        assert_eq!(candidates(b"./a", b"/x"), [b"./a"]);
        let expected: [&[u8]; 3] = [b"/x/a", b"./a", b"y/a"];
        assert_eq!(candidates(b"a", b"/x::y"), expected);
        assert!(candidates(b"", b"/x").is_empty());
    }

    #[test]
    fn python_falls_back_only_if_the_user_did_not_insist() {
        let folder = std::env::temp_dir().join(format!("rlaunch-program-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, mode) in [("python3", 0o755), ("python9", 0o644)] {
            let path = folder.join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = folder.as_os_str().as_encoded_bytes();
        let python3 = Some(folder.join("python3"));
        assert_eq!(python("/absent/python3.12", false, path), python3);
        assert_eq!(python("/absent/python3.12", true, path), None);
        assert_eq!(python("python9", false, path), python3, "not executable");
        assert_eq!(python("python3", true, path), python3);
        assert_eq!(python("", false, path), python3);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
