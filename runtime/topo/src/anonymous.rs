//! A recorded machine without what names it: for a bug report. Pure.
//!
//! Addresses, GIDs, UUIDs, MAC addresses in names of interfaces, and names of control groups become
//! others, each the same wherever it stands: what is equal stays equal, what reaches no further than
//! its link or machine stays so. Serial numbers and MAC addresses are not read at all
//! ([`crate::snapshot`] says what is).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::snapshot::ADDRESSES;
use crate::tree::Tree;

const GROUPS: &str = "sys/fs/cgroup/";
const OWN_GROUP: &str = "proc/self/cgroup";

/// A word that names something.
struct Naming {
    begin: &'static str,
    /// Letters that follow.
    is_part: fn(char) -> bool,
    /// How many of them, where that is known.
    length: Option<usize>,
    /// Stands in their place, before a number.
    instead: &'static str,
}

const fn naming(
    begin: &'static str,
    is_part: fn(char) -> bool,
    length: Option<usize>,
    instead: &'static str,
) -> Naming {
    Naming {
        begin,
        is_part,
        length,
        instead,
    }
}

const NAMINGS: [Naming; 6] = [
    naming("GPU-", is_of_uuid, Some(36), "00000000-0000-0000-0000-"),
    naming("MIG-", is_of_uuid, Some(36), "00000000-0000-0000-0000-"),
    // udev's names of USB adapters end in their MAC address.
    naming("enx", is_hex, Some(12), ""),
    naming("wlx", is_hex, Some(12), ""),
    // NCCL's files.
    naming("guid=\"", is_no_quote, None, "0x"),
    naming("host_hash=\"", is_no_quote, None, "0x"),
];

pub fn anonymous(tree: &Tree) -> Tree {
    let mut names = Names::default();
    names.groups(tree.text(OWN_GROUP).unwrap_or_default());
    let mut out = Tree::default();
    for (path, link, text) in tree.iter() {
        let new = names.path(path);
        if let Some(target) = link {
            out.put_link(&new, &names.words(target));
        }
        if let Some(text) = text {
            // A line feed at the end was taken when it was put there.
            out.put(&new, &format!("{}\n", names.text(path, text)));
        }
    }
    out
}

/// What stands for what, in the order in which it was met.
#[derive(Default)]
struct Names {
    words: Vec<String>,
    addresses: Vec<IpAddr>,
    groups: Vec<String>,
}

impl Names {
    fn groups(&mut self, own: &str) {
        let is_controllers =
            |part: &str| own.lines().any(|line| line.split(':').nth(1) == Some(part));
        let paths = own.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        for part in paths.flat_map(|path| path.split('/')) {
            if !part.is_empty() && part != ".." && !is_controllers(part) {
                number(&mut self.groups, part.to_owned());
            }
        }
    }

    fn group_path(&self, path: &str) -> String {
        let part = |part: &str| match self.groups.iter().position(|known| known == part) {
            Some(index) => format!("group{}", index + 1),
            None => part.to_owned(),
        };
        path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    fn path(&mut self, path: &str) -> String {
        match path.starts_with(GROUPS) {
            true => self.group_path(path),
            false => self.words(path),
        }
    }

    fn text(&mut self, path: &str, text: &str) -> String {
        let text = match path {
            ADDRESSES => self.lines(text, Self::address_line),
            OWN_GROUP => self.lines(text, |names, line| {
                let mut parts = line.splitn(3, ':');
                let head = [parts.next(), parts.next()].map(Option::unwrap_or_default);
                let path = names.group_path(parts.next().unwrap_or_default());
                format!("{}:{}:{path}", head[0], head[1])
            }),
            "proc/net/route" => self.lines(text, |_, line| route(line)),
            _ if path.contains("/gids/") => self.gid(text),
            _ => text.to_owned(),
        };
        self.words(&text)
    }

    fn lines(&mut self, text: &str, change: impl Fn(&mut Self, &str) -> String) -> String {
        let lines = text.split('\n').map(|line| match line.is_empty() {
            true => String::new(),
            false => change(self, line),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// `eth0 up,running 10.0.0.5/24`
    fn address_line(&mut self, line: &str) -> String {
        let Some((before, address)) = line.rsplit_once(' ') else {
            return line.to_owned();
        };
        let (ip, prefix) = match address.split_once('/') {
            Some((ip, prefix)) => (ip, format!("/{prefix}")),
            None => (address, String::new()),
        };
        match ip.parse() {
            Ok(ip) => format!("{before} {}{prefix}", self.address(ip)),
            Err(_) => line.to_owned(),
        }
    }

    fn gid(&mut self, text: &str) -> String {
        let Ok(gid) = text.trim().parse::<Ipv6Addr>() else {
            return text.to_owned();
        };
        let ip = gid.to_ipv4_mapped().map_or(IpAddr::V6(gid), IpAddr::V4);
        let new = match self.address(ip) {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        // As the kernel writes it.
        let parts = new.segments().map(|part| format!("{part:04x}"));
        parts.join(":")
    }

    /// Of the networks for documentation and for measurements; of the same reach.
    fn address(&mut self, ip: IpAddr) -> IpAddr {
        if ip.is_loopback() || ip.is_unspecified() {
            return ip;
        }
        let number = number(&mut self.addresses, ip);
        match ip {
            IpAddr::V4(ip) => {
                let network = match ip.is_link_local() {
                    true => Ipv4Addr::new(169, 254, 0, 0),
                    false => Ipv4Addr::new(198, 18, 0, 0),
                };
                IpAddr::V4((network.to_bits() | (number & 0xffff)).into())
            }
            IpAddr::V6(ip) => {
                let network: u128 = match ip.is_unicast_link_local() {
                    true => 0xfe80 << 112,
                    false => 0x2001_0db8 << 96,
                };
                IpAddr::V6((network | u128::from(number)).into())
            }
        }
    }

    /// Without the words of [`NAMINGS`], wherever they stand.
    fn words(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for naming in &NAMINGS {
            if text.contains(naming.begin) {
                text = self.renamed(naming, &text);
            }
        }
        text
    }

    fn renamed(&mut self, naming: &Naming, text: &str) -> String {
        let begin = naming.begin;
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(begin) {
            let (before, behind) = rest.split_at(at + begin.len());
            out.push_str(before);
            let end = behind.find(|letter| !(naming.is_part)(letter));
            let (word, behind) = behind.split_at(end.unwrap_or(behind.len()));
            if naming.length.is_none_or(|length| word.len() == length) {
                let number = number(&mut self.words, format!("{begin}{word}"));
                out.push_str(&format!("{}{number:012x}", naming.instead));
            } else {
                out.push_str(word);
            }
            rest = behind;
        }
        out.push_str(rest);
        out
    }
}

/// From 1 on; the same for the same.
fn number<T: PartialEq>(known: &mut Vec<T>, it: T) -> u32 {
    let index = known.iter().position(|known| *known == it);
    let index = index.unwrap_or_else(|| {
        known.push(it);
        known.len() - 1
    });
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

/// Which interface, and whether it leads everywhere; the head stays.
fn route(line: &str) -> String {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let is_hex = |word: &&str| word.len() == 8 && word.bytes().all(|it| it.is_ascii_hexdigit());
    if words.get(1).is_some_and(is_hex) {
        if words[1] != "00000000" {
            words[1] = "00000001";
        }
        if let Some(gateway) = words.get_mut(2) {
            *gateway = "00000000";
        }
    }
    words.join("\t")
}

fn is_hex(letter: char) -> bool {
    letter.is_ascii_hexdigit()
}

fn is_of_uuid(letter: char) -> bool {
    letter.is_ascii_hexdigit() || letter == '-'
}

fn is_no_quote(letter: char) -> bool {
    letter != '"'
}

#[cfg(test)]
mod tests;
