//! A machine's raw facts: files and links by path, as the kernel shows them. Pure.
//!
//! A tree is read from a real root ([`crate::snapshot`]) or from one text that stands for it, so that
//! any machine can be described, sent in and replayed:
//!
//! ```text
//! rlaunch machine 1
//! sys/class/net
//!   eth0 -> ../../devices/pci0000:00/0000:00:03.0/net/eth0
//!     mtu = 9000
//! proc/self/status = |
//!   Cpus_allowed_list: 0-3
//! ```
//!
//! Deeper indentation continues the path of the line above. A link may have lines below it: they are
//! what one finds behind it. Nothing here follows a link.

use std::collections::BTreeMap;
use std::str::FromStr;

use thiserror::Error;

const FIRST_LINE: &str = "rlaunch machine 1";
/// A machine with 16 GPUs and 1,024 cores takes a fifth of it.
const LINES_MAX: usize = 200_000;
const DEPTH_MAX: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// By path without the leading `/`.
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    link: Option<String>,
    /// Without the last line feed.
    text: Option<String>,
}

/// Why a text is no machine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TreeError {
    #[error("it is not a recorded machine: its first line is not `{FIRST_LINE}`")]
    NotOne,
    #[error("line {line}: a name is missing")]
    NoName { line: usize },
    #[error("line {line}: over {DEPTH_MAX} levels deep")]
    TooDeep { line: usize },
    #[error("over {LINES_MAX} lines")]
    TooLong,
}

impl Tree {
    pub fn put(&mut self, path: &str, text: &str) {
        let text = text.strip_suffix('\n').unwrap_or(text).to_owned();
        self.entry(path).text = Some(text);
    }

    pub fn put_link(&mut self, path: &str, target: &str) {
        self.entry(path).link = Some(target.to_owned());
    }

    fn entry(&mut self, path: &str) -> &mut Entry {
        let path = path.trim_matches('/').to_owned();
        self.entries.entry(path).or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The whole text.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.entries.get(path)?.text.as_deref()
    }

    /// One word or number: without spaces around it; nothing where it is empty.
    pub fn word(&self, path: &str) -> Option<&str> {
        self.text(path).map(str::trim).filter(|it| !it.is_empty())
    }

    pub fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.word(path)?.parse().ok()
    }

    /// `0x15b3` or `15b3`.
    pub fn hex(&self, path: &str) -> Option<u32> {
        let word = self.word(path)?;
        u32::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    }

    pub fn link(&self, path: &str) -> Option<&str> {
        self.entries.get(path)?.link.as_deref()
    }

    /// The last component of a link's target: the driver of a device, the master of an interface.
    pub fn link_name(&self, path: &str) -> Option<&str> {
        self.link(path)?.trim_end_matches('/').rsplit('/').next()
    }

    /// Whether there is anything at or below `path`.
    pub fn has(&self, path: &str) -> bool {
        self.entries.contains_key(path) || !self.names(path).is_empty()
    }

    /// What stands directly in a folder, in the order of bytes.
    pub fn names(&self, folder: &str) -> Vec<&str> {
        let prefix = format!("{folder}/");
        let below = self.entries.range(prefix.clone()..);
        let below = below.take_while(|(path, _)| path.starts_with(&prefix));
        let mut names: Vec<&str> = below
            .filter_map(|(path, _)| path[prefix.len()..].split('/').next())
            .collect();
        // `a`, `a-b`, `a/c` stand in this order in the map.
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Numbers after `prefix` of what stands in a folder, ascending: `cpu0`, `cpu1`.
    pub fn numbered(&self, folder: &str, prefix: &str) -> Vec<u32> {
        let names = self.names(folder).into_iter();
        let mut numbers: Vec<u32> = names
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// Forgets the paths that are not wanted.
    pub fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.entries.retain(|path, _| wanted(path));
    }

    /// Every path with its link and text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>, Option<&str>)> {
        self.entries
            .iter()
            .map(|(path, entry)| (path.as_str(), entry.link.as_deref(), entry.text.as_deref()))
    }

    /// The text that [`Self::parse`] reads.
    pub fn write(&self) -> String {
        let mut out = format!("{FIRST_LINE}\n");
        let mut open: Vec<&str> = Vec::new();
        for (path, link, text) in self.in_order() {
            let parts: Vec<&str> = path.split('/').collect();
            let common = open.iter().zip(&parts).take_while(|(a, b)| a == b).count();
            let common = common.min(parts.len() - 1);
            for (depth, folder) in parts[..parts.len() - 1].iter().enumerate().skip(common) {
                out.push_str(&format!("{}{folder}\n", indent(depth)));
            }
            let depth = parts.len() - 1;
            write_entry(&mut out, depth, parts[depth], link, text);
            open = parts;
        }
        out
    }

    /// By components, so that what belongs to one folder stands together.
    fn in_order(&self) -> Vec<(&str, Option<&str>, Option<&str>)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_by(|a, b| a.0.split('/').cmp(b.0.split('/')));
        all
    }

    pub fn parse(text: &str) -> Result<Self, TreeError> {
        let mut lines = text.lines().enumerate().peekable();
        match lines.next() {
            Some((_, first)) if first.trim_end() == FIRST_LINE => {}
            _ => return Err(TreeError::NotOne),
        }
        let mut tree = Self::default();
        let mut open: Vec<(usize, String)> = Vec::new();
        while let Some((index, line)) = lines.next() {
            let number = index + 1;
            if number > LINES_MAX {
                return Err(TreeError::TooLong);
            }
            let words = line.trim_start_matches(' ');
            let indent = line.len() - words.len();
            let words = words.trim_end();
            if words.is_empty() || words.starts_with('#') {
                continue;
            }
            while open.last().is_some_and(|(depth, _)| *depth >= indent) {
                open.pop();
            }
            if open.len() >= DEPTH_MAX {
                return Err(TreeError::TooDeep { line: number });
            }
            let (name, text, link) = split(words);
            let name = name.trim_matches('/');
            if name.is_empty() {
                return Err(TreeError::NoName { line: number });
            }
            let path = match open.last() {
                Some((_, folder)) => format!("{folder}/{name}"),
                None => name.to_owned(),
            };
            if let Some(target) = link {
                tree.put_link(&path, target);
            }
            if text == Some("|") {
                let mut block = String::new();
                while let Some((_, line)) = lines.next_if(|(_, line)| is_deeper(line, indent)) {
                    block.push_str(line.get(indent + 2..).unwrap_or_default());
                    block.push('\n');
                }
                tree.put(&path, &block);
            } else if let Some(text) = text {
                tree.put(&path, text);
            }
            open.push((indent, path));
        }
        Ok(tree)
    }
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

fn write_entry(out: &mut String, depth: usize, name: &str, link: Option<&str>, text: Option<&str>) {
    let space = indent(depth);
    if let Some(target) = link {
        out.push_str(&format!("{space}{name} -> {target}\n"));
    }
    let Some(text) = text else { return };
    let is_plain = !text.contains('\n') && text.trim() == text && text != "|";
    if is_plain {
        out.push_str(&format!("{space}{name} = {text}\n"));
        return;
    }
    out.push_str(&format!("{space}{name} = |\n"));
    for line in text.split('\n') {
        out.push_str(&format!("{space}  {line}\n"));
    }
}

/// Name, text and target of a link.
fn split(line: &str) -> (&str, Option<&str>, Option<&str>) {
    if let Some(name) = line.strip_suffix(" =") {
        return (name, Some(""), None);
    }
    let text = line.find(" = ");
    let link = line.find(" -> ");
    match (text, link) {
        (Some(at), link) if link.is_none_or(|link| at < link) => {
            (&line[..at], Some(&line[at + 3..]), None)
        }
        (_, Some(at)) => (&line[..at], None, Some(&line[at + 4..])),
        _ => (line, None, None),
    }
}

/// A line of a block: indented further, or empty.
fn is_deeper(line: &str, indent: usize) -> bool {
    let own = line.len() - line.trim_start_matches(' ').len();
    own >= indent + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Tree {
        let mut tree = Tree::default();
        tree.put("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3\n");
        tree.put("sys/class/net/eth0/mtu", "9000\n");
        tree.put_link("sys/class/net/eth0", "../../devices/pci0000:00/net/eth0");
        tree.put("sys/class/net/eth0-1/mtu", "1500");
        tree.put("sys/class/net/lo/mtu", "");
        tree.put("dev/nvidia0", "");
        tree.put("a/blank", "\n\n x \n");
        tree
    }

    #[test]
    fn a_text_stands_for_a_tree() {
        let tree = machine();
        assert_eq!(
            Tree::parse(&tree.write()).unwrap(),
            tree,
            "{}",
            tree.write()
        );
        assert_eq!(tree.names("sys/class/net"), ["eth0", "eth0-1", "lo"]);
        assert_eq!(tree.number::<u32>("sys/class/net/eth0/mtu"), Some(9000));
        assert_eq!(tree.link_name("sys/class/net/eth0"), Some("eth0"));
        assert_eq!(tree.word("sys/class/net/lo/mtu"), None);
        assert!(tree.has("sys/class") && tree.has("dev/nvidia0") && !tree.has("sys/cla"));
    }

    #[test]
    fn written_by_hand_it_may_be_shorter() {
        let text = "rlaunch machine 1\n# a comment\n\nsys/class/net\n    eth0 -> ../x = y\n        mtu = 1\n";
        let tree = Tree::parse(text).unwrap();
        assert_eq!(tree.link("sys/class/net/eth0"), Some("../x = y"));
        assert_eq!(tree.word("sys/class/net/eth0/mtu"), Some("1"));
    }

    #[test]
    fn what_is_no_machine_is_refused() {
        assert_eq!(Tree::parse(""), Err(TreeError::NotOne));
        assert_eq!(Tree::parse("<system>"), Err(TreeError::NotOne));
        let deep: String = (0..70)
            .map(|depth| format!("{}a\n", " ".repeat(depth)))
            .collect();
        let error = Tree::parse(&format!("{FIRST_LINE}\n{deep}")).unwrap_err();
        assert_eq!(error, TreeError::TooDeep { line: 66 });
        let error = Tree::parse(&format!("{FIRST_LINE}\n / = x\n")).unwrap_err();
        assert_eq!(error, TreeError::NoName { line: 2 });
    }
}
