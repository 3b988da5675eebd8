//! The memory control group in which this host's part of the job runs: that of the agent, which
//! ranks inherit. Version 2 or 1, wherever it is mounted.

use std::path::{Path, PathBuf};

use super::read_word;

pub(super) struct MemoryGroup {
    folder: PathBuf,
    /// Where the hierarchy begins, as far as it is seen here.
    root: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Version 1 says "no limit" with a number near this.
const LIMIT_MAX_BYTES: u64 = 1 << 60;

impl MemoryGroup {
    pub(super) fn own() -> Option<Self> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        find(&groups, &mounts)
    }

    /// How many of its processes the kernel's out-of-memory killer has ended.
    pub(super) fn oom_kills(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = std::fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// The smallest of its own and of those above it; none if none is set.
    pub(super) fn limit_bytes(&self) -> Option<u64> {
        let file = match self.version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        let folders = self.folder.ancestors();
        let within = folders.take_while(|folder| folder.starts_with(&self.root));
        let limits = within.filter_map(|folder| read_word(folder.join(file)).parse().ok());
        limits.filter(|limit| *limit < LIMIT_MAX_BYTES).min()
    }
}

/// `groups`: /proc/self/cgroup, `mounts`: /proc/self/mountinfo.
fn find(groups: &str, mounts: &str) -> Option<MemoryGroup> {
    let lines = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
    });
    let one = lines
        .clone()
        .find(|(controllers, _)| has_word(controllers, "memory"));
    let two = lines
        .clone()
        .find(|(controllers, _)| controllers.is_empty());
    let (version, path) = match (one, two) {
        (Some((_, path)), _) => (Version::One, path),
        (None, Some((_, path))) => (Version::Two, path),
        (None, None) => return None,
    };
    mounts.lines().find_map(|line| {
        // `id parent device root mountpoint options … - type source options`
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, mount) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, _, options) = (after.next()?, after.next()?, after.next()?);
        let fits = match version {
            Version::One => kind == "cgroup" && has_word(options, "memory"),
            Version::Two => kind == "cgroup2",
        };
        // In a container the path may be told from the machine's root, or from the container's.
        let inside = Path::new(path)
            .strip_prefix(root)
            .unwrap_or_else(|_| Path::new(""));
        let root = PathBuf::from(mount);
        fits.then(|| MemoryGroup {
            folder: root.join(inside),
            root,
            version,
        })
    })
}

fn has_word(list: &str, word: &str) -> bool {
    list.split(',').any(|entry| entry == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "30 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                       31 23 0:28 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                       32 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n";
    const TWO: &str = "30 23 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

    fn folder(groups: &str, mounts: &str) -> Option<(PathBuf, Version)> {
        find(groups, mounts).map(|group| (group.folder, group.version))
    }

    #[test]
    fn version_1_is_taken_where_it_has_the_memory() {
        let groups = "5:cpu:/\n4:memory:/docker/ab/job\n0::/\n";
        let expected = PathBuf::from("/sys/fs/cgroup/memory/job");
        assert_eq!(folder(groups, ONE), Some((expected, Version::One)));
        // The container's own view: its group is the root.
        let expected = PathBuf::from("/sys/fs/cgroup/memory/");
        let seen = folder("4:memory:/\n0::/\n", ONE);
        assert_eq!(seen, Some((expected, Version::One)));
    }

    #[test]
    fn version_2_has_one_line() {
        let seen = folder("0::/user.slice/a.scope\n", TWO);
        let expected = PathBuf::from("/sys/fs/cgroup/user.slice/a.scope");
        assert_eq!(seen, Some((expected, Version::Two)));
    }

    #[test]
    fn where_nothing_is_nothing_is_found() {
        assert_eq!(folder("", TWO), None);
        assert_eq!(folder("0::/\n", ""), None);
        assert_eq!(folder("x\n1:\n", "y\n - \n1 2 3 - cgroup2\n"), None);
    }
}
