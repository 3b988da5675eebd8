//! Answers for the ssh program's questions.
//!
//! ssh, told so by `SSH_ASKPASS`, runs a program with its question as the argument and takes what
//! that prints for the answer. Ours is a script that exists in this process's memory alone: it
//! gives the passphrases of the keys it knows. Of any other question it shows on stderr what was
//! asked, so that the launcher learns which key is wanted and what ssh would have asked a person,
//! and refuses. ssh and the ssh that it starts for a jump host all ask it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use super::Passphrase;
use crate::held_file::HeldFile;

/// In front of a question that was not answered.
pub(crate) const UNANSWERED: &str = "ssh asks: ";
/// ssh's words about a key, of whose path it shows so many bytes.
const OF_KEY: &str = "passphrase for key '";
const PATH_SHOWN_BYTES: usize = 100;

/// The script, while it lives.
#[derive(Debug)]
pub(crate) struct Askpass(HeldFile);

impl Askpass {
    pub(crate) fn new(opened: &HashMap<PathBuf, Passphrase>) -> io::Result<Self> {
        HeldFile::new("rlaunch askpass", &script(opened)).map(Self)
    }

    /// Where ssh finds it.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path()
    }
}

fn script(opened: &HashMap<PathBuf, Passphrase>) -> String {
    let cases = opened.iter().map(|(path, passphrase)| {
        let (path, passphrase) = (quoted(shown(path)), quoted(passphrase.reveal()));
        format!("*\"{OF_KEY}\"{path}\"'\"*) printf '%s\\n' {passphrase}; exit 0;;\n")
    });
    let cases: String = cases.collect();
    format!(
        "#!/bin/sh\ncase \"$1\" in\n{cases}esac\nprintf '{UNANSWERED}%s\\n' \"$1\" >&2\nexit 1\n"
    )
}

/// The key that ssh wanted opened; none if its path is too long to be told.
pub(crate) fn wanted(said: &[String]) -> Option<PathBuf> {
    let mut paths = said.iter().filter_map(|line| {
        let (_, rest) = line.strip_prefix(UNANSWERED)?.split_once(OF_KEY)?;
        let (path, _) = rest.rsplit_once('\'')?;
        Some(PathBuf::from(path))
    });
    paths.find(|path| path.is_file())
}

fn shown(path: &Path) -> &str {
    let text = path.to_str().unwrap_or_default();
    let mut end = text.len().min(PATH_SHOWN_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_what_is_known_is_answered() {
        let keys = [
            ("/home/it's/.ssh/id", "it's $HOME `x` \\ \"é\""),
            ("/other", "second"),
        ];
        let opened = keys.map(|(path, text)| (PathBuf::from(path), Passphrase::new(text)));
        let askpass = Askpass::new(&opened.into()).unwrap();
        let ask = |question: &str| {
            let mut command = Command::new(askpass.path());
            command.arg(question).output().unwrap()
        };
        for (path, answer) in keys {
            let output = ask(&format!("Enter passphrase for key '{path}': "));
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                format!("{answer}\n")
            );
        }
        for question in [
            "Enter passphrase for key '/third': ",
            "alice@gpu1's password: ",
            "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
        ] {
            let output = ask(question);
            assert!(!output.status.success() && output.stdout.is_empty());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(said, format!("{UNANSWERED}{question}\n"));
        }
    }

    #[test]
    fn the_key_that_is_wanted_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("it's a key");
        std::fs::write(&key, "").unwrap();
        let line = |path: &Path| {
            let path = path.display();
            vec![format!("{UNANSWERED}Enter passphrase for key '{path}': ")]
        };
        assert_eq!(wanted(&line(&key)), Some(key));
        assert_eq!(wanted(&line(Path::new("/nonexistent"))), None);
        assert_eq!(wanted(&["Permission denied".to_owned()]), None);
    }
}
