//! Hosts of which ssh's configuration says the same, so that ssh is asked once for all of them.
//!
//! A host's class is which patterns of the configuration's `Host` lines it matches. That tells all,
//! unless the files have something that depends on the host otherwise: `Match`, a token of the
//! host's name in a value, canonical names, an `Include` that is not understood here. Then each
//! host is a class of its own, and nothing is lost but time.

use std::fs;
use std::path::{Path, PathBuf};

use crate::pattern;

/// Of ssh's own readers; where it was built to look elsewhere it has no system-wide file here.
const SYSTEM_FILES: [&str; 2] = ["/etc/ssh/ssh_config", "/usr/etc/ssh/ssh_config"];
/// ssh's bound on files that include each other.
const DEPTH_MAX: usize = 16;
/// A mistyped path is not read into memory.
const FILE_MAX_BYTES: u64 = 1 << 20;
/// Tokens of the host, wherever they stand.
const HOST_TOKENS: [&str; 7] = ["%h", "%n", "%k", "%C", "%j", "%H", "%K"];

/// Which patterns match, and whether a block that applies names the host to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Class {
    matched: Vec<bool>,
    pub(super) named: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Classes {
    blocks: Vec<Block>,
}

/// A `Host` line, or what stands before the first one of a file, and what follows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Block {
    /// Empty: for all hosts.
    patterns: Vec<String>,
    has_hostname: bool,
}

impl Classes {
    /// Of the files that ssh would read; none if hosts can't be put into classes.
    pub(super) fn read(config: Option<&Path>, home: &Path) -> Option<Self> {
        let mut classes = Self::default();
        match config {
            Some(path) if path == Path::new("none") => {}
            Some(path) => classes.add_file(path, home, 0)?,
            None => {
                classes.add_file(&home.join(".ssh/config"), home, 0)?;
                for path in SYSTEM_FILES {
                    classes.add_file(Path::new(path), home, 0)?;
                }
            }
        }
        Some(classes)
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn of_text(text: &str, home: &Path) -> Option<Self> {
        let mut classes = Self::default();
        classes.add_text(text, home, 0)?;
        Some(classes)
    }

    pub(super) fn class(&self, host: &str) -> Class {
        let mut class = Class {
            matched: Vec::new(),
            named: false,
        };
        for block in &self.blocks {
            let (mut taken, mut refused) = (block.patterns.is_empty(), false);
            for pattern in &block.patterns {
                let (negated, pattern) = match pattern.strip_prefix('!') {
                    Some(pattern) => (true, pattern),
                    None => (false, pattern.as_str()),
                };
                let matches = pattern::matches(pattern, host);
                class.matched.push(matches);
                taken |= matches && !negated;
                refused |= matches && negated;
            }
            class.named |= block.has_hostname && taken && !refused;
        }
        class
    }

    /// A file that is absent says nothing; of one that can't be read ssh will tell.
    fn add_file(&mut self, path: &Path, home: &Path, depth: usize) -> Option<()> {
        let Ok(data) = fs::metadata(path) else {
            return Some(());
        };
        if depth > DEPTH_MAX || data.len() > FILE_MAX_BYTES || !data.is_file() {
            return None;
        }
        let text = fs::read_to_string(path).ok()?;
        self.add_text(&text, home, depth)
    }

    fn add_text(&mut self, text: &str, home: &Path, depth: usize) -> Option<()> {
        self.blocks.push(Block::default());
        for line in text.lines() {
            let line = line.trim();
            let Some((keyword, value)) = split(line) else {
                continue;
            };
            if HOST_TOKENS.iter().any(|token| line.contains(token)) {
                return None;
            }
            match keyword.as_str() {
                "match" | "canonicalizehostname" | "canonicaldomains" => return None,
                "host" => self.blocks.push(Block {
                    patterns: value.split_ascii_whitespace().map(unquoted).collect(),
                    has_hostname: false,
                }),
                "hostname" => self.blocks.last_mut()?.has_hostname = true,
                // What is included counts for the block that includes it: then patterns would have
                // to be seen together.
                "include" if self.blocks.last()?.patterns.is_empty() => {
                    for word in value.split_ascii_whitespace() {
                        for file in included(&unquoted(word), home, depth)? {
                            self.add_file(&file, home, depth + 1)?;
                        }
                    }
                    self.blocks.push(Block::default());
                }
                "include" => return None,
                _ => {}
            }
        }
        Some(())
    }
}

/// Keyword in lower case and value; none for a comment.
fn split(line: &str) -> Option<(String, &str)> {
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(|character: char| character.is_ascii_whitespace() || character == '=')?;
    let value = line[end..]
        .trim_start_matches(|character: char| character.is_ascii_whitespace() || character == '=');
    Some((line[..end].to_ascii_lowercase(), value))
}

fn unquoted(word: &str) -> String {
    word.trim_matches('"').to_owned()
}

/// The files of an `Include`: one path, or a pattern for the names in one folder. Relative ones are
/// beside the user's or the system's own file, which can't be told apart once there is more than one
/// level; so both are taken, and a file too many makes only smaller classes.
fn included(word: &str, home: &Path, depth: usize) -> Option<Vec<PathBuf>> {
    if depth > DEPTH_MAX || word.contains(['$', '%', '[', '{']) {
        return None;
    }
    let path = match word.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None if word.starts_with('~') => return None,
        None => PathBuf::from(word),
    };
    let folders = match path.is_absolute() {
        true => vec![PathBuf::from("/")],
        false => vec![home.join(".ssh"), PathBuf::from("/etc/ssh")],
    };
    let mut files = Vec::new();
    for path in folders.into_iter().map(|folder| folder.join(&path)) {
        let (folder, name) = (path.parent()?, path.file_name()?.to_str()?);
        if folder.to_str()?.contains(['*', '?']) {
            return None;
        }
        if !name.contains(['*', '?']) {
            files.push(path);
            continue;
        }
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .map(|entry| entry.path())
            .filter(|path| {
                let own = path.file_name().and_then(|own| own.to_str());
                own.is_some_and(|own| pattern::matches(name, own))
            })
            .collect();
        found.sort();
        files.extend(found);
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str) -> Option<Classes> {
        Classes::of_text(text, Path::new("/nonexistent"))
    }

    #[test]
    fn hosts_that_match_the_same_lines_are_of_one_class() {
        let classes = classes(
            "User bob\nHost node* !node9\n Port 7\nHost=gpu1 \"gpu2\"\nHostName 10.0.0.1\n\
             # Host node3\nHOST *\nCompression no\n",
        )
        .unwrap();
        let class = |host: &str| classes.class(host);
        assert_eq!(class("node1"), class("node2"));
        assert_ne!(class("node1"), class("node9"));
        assert_ne!(class("node1"), class("other"));
        assert_ne!(
            class("gpu1"),
            class("gpu2"),
            "there may be two names in one line"
        );
        assert!(class("gpu1").named && class("gpu2").named && !class("node1").named);
        assert!(!class("node9").named);
    }

    #[test]
    fn what_depends_on_the_host_otherwise_makes_no_classes() {
        for text in [
            "Match host x\nUser a",
            "match all\n",
            "HostName %h.example.com",
            "Host a\nIdentityFile ~/k-%n",
            "CanonicalizeHostname yes",
            "Host a\nInclude more",
            "Include ~bob/x",
            "Include $X",
            "Include /etc/*/ssh",
        ] {
            assert_eq!(classes(text), None, "{text}");
        }
        assert!(classes("").is_some() && classes("# Match x\n\nPort 3\n").is_some());
    }

    #[test]
    fn included_files_count_too() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at(".ssh/conf.d")).unwrap();
        fs::write(at(".ssh/conf.d/a.conf"), "Host a*\nPort 1\n").unwrap();
        fs::write(at("b"), "Host b*\nHostName x\n").unwrap();
        let text = "Include conf.d/*.conf ~/b nothing\nHost c\nUser c\n";
        fs::write(at("config"), text).unwrap();
        let read = || Classes::read(Some(&at("config")), folder.path());
        let classes = read().unwrap();
        assert_ne!(classes.class("a1"), classes.class("x"));
        assert!(classes.class("b1").named && !classes.class("c").named);
        assert_ne!(classes.class("c"), classes.class("x"));
        fs::write(at("b"), "Include ~/b\n").unwrap();
        assert_eq!(read(), None, "it includes itself");
        fs::write(at("b"), "Match all\n").unwrap();
        assert_eq!(read(), None);
    }
}
