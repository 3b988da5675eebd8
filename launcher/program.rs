//! What a rank runs: a command, or Python on a script or module.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// argv as it is; the first word is looked for on each host.
    Command(Vec<OsString>),
    Python {
        /// What follows the interpreter: a script or `-m MODULE`, and arguments.
        argv: Vec<OsString>,
        /// `--python`: this one, or refused.
        named: Option<String>,
        /// The launcher's own, used where it exists on a host.
        own: Option<PathBuf>,
    },
}

impl Program {
    pub(crate) fn new(
        module: Option<OsString>,
        command: Vec<OsString>,
        named: Option<String>,
    ) -> Self {
        let is_script = command
            .first()
            .is_some_and(|word| word.as_bytes().ends_with(b".py"));
        let argv = match module {
            Some(module) => ["-m".into(), module].into_iter().chain(command).collect(),
            None if is_script => command,
            None => return Self::Command(command),
        };
        let own = named
            .is_none()
            .then(|| own_python(std::env::var_os("PATH").as_deref()))
            .flatten();
        Self::Python { argv, named, own }
    }

    pub fn argv(&self) -> &[OsString] {
        match self {
            Self::Command(argv) | Self::Python { argv, .. } => argv,
        }
    }

    /// The interpreter to ask the hosts for; empty: none is needed, or theirs will do.
    pub fn interpreter(&self) -> String {
        match self {
            Self::Command(_) => String::new(),
            Self::Python {
                named: Some(named), ..
            } => named.clone(),
            Self::Python { own, .. } => own
                .as_deref()
                .map_or_else(String::new, |path| path.to_string_lossy().into_owned()),
        }
    }

    /// The words as a person would type them.
    pub fn shown(&self) -> Vec<String> {
        let words = self.whole().into_iter();
        words.map(|word| printable(&word)).collect()
    }

    /// The words as they are, as far as they are text.
    pub fn words(&self) -> Vec<String> {
        let words = self.whole().into_iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    fn whole(&self) -> Vec<OsString> {
        let python = matches!(self, Self::Python { .. }).then(|| match self.interpreter() {
            interpreter if interpreter.is_empty() => "python3".to_owned(),
            interpreter => interpreter,
        });
        python
            .into_iter()
            .map(OsString::from)
            .chain(self.argv().iter().cloned())
            .collect()
    }
}

/// The first `python3` in PATH, by absolute path and without following links: in a virtual
/// environment the link is what matters.
fn own_python(path: Option<&OsStr>) -> Option<PathBuf> {
    let directories: Vec<PathBuf> = std::env::split_paths(path?).collect();
    ["python3", "python"].iter().find_map(|name| {
        directories
            .iter()
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name))
            .find(|candidate| is_executable(candidate))
    })
}

pub(crate) fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// A word as people can read it in one line, quoted where a shell would need it.
pub(crate) fn printable(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |letter: char| letter.is_alphanumeric() || "-_./=:,+@%^".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    if text.chars().any(char::is_control) {
        return format!("$'{}'", text.escape_debug());
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn scripts_and_modules_run_under_python() {
        let script = Program::new(None, words("dir/train.py --lr 0.1"), Some("py".into()));
        assert_eq!(script.interpreter(), "py");
        assert_eq!(script.argv(), words("dir/train.py --lr 0.1"));
        let module = Program::new(Some("a.b".into()), words("x"), Some("py".into()));
        assert_eq!(module.shown(), ["py", "-m", "a.b", "x"]);
        let command = Program::new(None, words("python x.py"), None);
        assert_eq!(command, Program::Command(words("python x.py")));
    }

    #[test]
    fn the_own_python_is_the_first_in_path() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("python3");
        std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
        let path =
            std::env::join_paths(["/nonexistent".into(), directory.path().to_owned()]).unwrap();
        assert_eq!(own_python(Some(&path)), Some(link));
        assert_eq!(own_python(Some(OsStr::new("/nonexistent"))), None);
    }

    #[test]
    fn words_are_shown_on_one_line() {
        assert_eq!(printable(OsStr::new("a-b=c/d")), "a-b=c/d");
        assert_eq!(printable(OsStr::new("")), "''");
        assert_eq!(printable(OsStr::new("it's a")), "'it'\\''s a'");
        assert_eq!(printable(OsStr::new("a\nb")), "$'a\\nb'");
    }
}
