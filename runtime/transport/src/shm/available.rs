//! How much memory may still be taken, before any of it is touched.
//!
//! Shared memory is taken by touching it, and what does not fit ends some process without a word. So
//! large blocks are compared with what the kernel says first: what the machine has available with its
//! free swap, and what the memory limits of this process's control groups leave (version 2 and 1; all
//! levels up to the root). Memory of the page cache counts as free, as the kernel gives it up. What
//! can't be read limits nothing.
//!
//! It is a look, not a reservation: who asks for much asks again while it takes it.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// What is there for this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Available {
    /// Available on the machine, with free swap.
    machine: Option<u64>,
    /// The tightest memory limit: its control group, the limit, and what it leaves.
    group: Option<(String, u64, u64)>,
}

/// A limit from here on is none: version 1 writes the largest number of pages.
const NO_LIMIT: u64 = 1 << 60;

impl Available {
    pub fn read() -> Self {
        Self::below(Path::new("/"))
    }

    /// As if `root` were "/".
    fn below(root: &Path) -> Self {
        let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let swap = kibibytes(&meminfo, "SwapFree:").unwrap_or(0);
        let machine = kibibytes(&meminfo, "MemAvailable:").map(|free| free.saturating_add(swap));
        let limits = groups.lines().filter_map(|line| Limits::of(root, line));
        Self {
            machine,
            group: limits
                .flat_map(|limits| limits.levels(swap))
                .min_by_key(|(_, _, left)| *left),
        }
    }

    /// Whether a block of so many bytes can be had.
    pub fn has(&self, bytes: u64) -> bool {
        let left = self.group.as_ref().map(|(_, _, left)| *left);
        [self.machine, left]
            .iter()
            .flatten()
            .all(|left| bytes <= *left)
    }
}

/// `22.2 GiB are available on this machine, and the memory limit of control group /job (4 GiB) leaves 1 GiB`
impl fmt::Display for Available {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = self.machine.map(|bytes| {
            let bytes = human(bytes.into());
            format!("{bytes} are available on this machine")
        });
        let group = self.group.as_ref().map(|(name, limit, left)| {
            let (limit, left) = (human((*limit).into()), human((*left).into()));
            format!("the memory limit of control group {name} ({limit}) leaves {left}")
        });
        let told: Vec<String> = [machine, group].into_iter().flatten().collect();
        f.write_str(&told.join(", and "))
    }
}

/// `909.5 TiB`
pub fn human(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = format!("{value:.1}");
    format!(
        "{} {}",
        text.strip_suffix(".0").unwrap_or(&text),
        UNITS[unit]
    )
}

/// `MemAvailable:   23314192 kB`
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

/// The limits that hold for one line of /proc/self/cgroup.
struct Limits {
    /// Where the hierarchy is mounted.
    mount: PathBuf,
    /// This process's group in it.
    group: PathBuf,
    limit: &'static str,
    usage: &'static str,
    /// Of memory.stat: pages of files, which the kernel gives up.
    files: [&'static str; 2],
}

impl Limits {
    /// `0::/job` (version 2), `4:memory:/job` (version 1)
    fn of(root: &Path, line: &str) -> Option<Self> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let group = PathBuf::from(group.trim_start_matches('/'));
        let mount = root.join("sys/fs/cgroup");
        if controllers.is_empty() {
            return Some(Self {
                mount,
                group,
                limit: "memory.max",
                usage: "memory.current",
                files: ["inactive_file ", "active_file "],
            });
        }
        let is_memory = controllers.split(',').any(|name| name == "memory");
        is_memory.then(|| Self {
            mount: mount.join("memory"),
            group,
            limit: "memory.limit_in_bytes",
            usage: "memory.usage_in_bytes",
            files: ["total_inactive_file ", "total_active_file "],
        })
    }

    /// Each level's name, limit and what it leaves. Inside a container the group's own folder may be
    /// the mount itself: what is not there is passed over.
    fn levels(&self, swap: u64) -> Vec<(String, u64, u64)> {
        let groups = self.group.ancestors();
        let read = |group: &Path| {
            let folder = self.mount.join(group);
            let number = |name| -> Option<u64> {
                fs::read_to_string(folder.join(name))
                    .ok()?
                    .trim()
                    .parse()
                    .ok()
            };
            let limit = number(self.limit).filter(|limit| *limit < NO_LIMIT)?;
            let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let files: u64 = self
                .files
                .iter()
                .filter_map(|name| count(&stat, name))
                .sum();
            let used = number(self.usage)?.saturating_sub(files);
            let name = format!("/{}", group.display());
            Some((name, limit, limit.saturating_sub(used).saturating_add(swap)))
        };
        groups.filter_map(read).collect()
    }
}

/// `inactive_file 12008550400`
fn count(stat: &str, name: &str) -> Option<u64> {
    let number = stat.lines().find_map(|line| line.strip_prefix(name))?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// A folder that looks like "/" to [`Available::below`].
    fn looking_like(name: &str, files: &[(&str, &str)]) -> Available {
        let root = std::env::temp_dir().join(format!("rlaunch-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let available = Available::below(&root);
        fs::remove_dir_all(&root).unwrap();
        available
    }

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal: 9 kB\nMemAvailable:  8388608 kB\nSwapFree: 1048576 kB\n",
    );

    #[test]
    fn the_machine_with_its_swap() {
        let available = looking_like("machine", &[MEMINFO]);
        assert!(available.has(9 * GIB) && !available.has(9 * GIB + 1));
        assert_eq!(available.to_string(), "9 GiB are available on this machine");
    }

    #[test]
    fn the_tightest_of_all_levels() {
        let available = looking_like(
            "levels",
            &[
                MEMINFO,
                ("proc/self/cgroup", "1:cpu:/x\n0::/slice/job\n"),
                ("sys/fs/cgroup/slice/job/memory.max", "max\n"),
                ("sys/fs/cgroup/slice/memory.max", "4294967296\n"),
                ("sys/fs/cgroup/slice/memory.current", "3221225472\n"),
                (
                    "sys/fs/cgroup/slice/memory.stat",
                    "anon 1\ninactive_file 536870912\nactive_file 536870912\n",
                ),
            ],
        );
        // 4 GiB, of which 2 are in use that are no files; 1 of swap.
        assert!(available.has(3 * GIB) && !available.has(3 * GIB + 1));
        let text = available.to_string();
        assert!(text.contains("group /slice (4 GiB) leaves 3 GiB"), "{text}");
    }

    #[test]
    fn version_1_and_a_container_that_sees_only_its_own() {
        let available = looking_like(
            "version-1",
            &[
                MEMINFO,
                ("proc/self/cgroup", "4:memory:/docker/abc\n0::/\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n"),
            ],
        );
        assert!(available.has(2 * GIB) && !available.has(2 * GIB + 1));
        let unlimited = looking_like(
            "no-limit",
            &[
                ("proc/self/cgroup", "4:memory:/\n"),
                (
                    "sys/fs/cgroup/memory/memory.limit_in_bytes",
                    "9223372036854771712\n",
                ),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n"),
            ],
        );
        assert!(unlimited.has(u64::MAX));
    }

    #[test]
    fn this_machine_has_a_page_and_not_everything() {
        let available = Available::read();
        assert!(available.has(4096) && !available.has(u64::MAX));
    }

    #[test]
    fn sizes_as_people_read_them() {
        assert_eq!(human(1023), "1023 bytes");
        assert_eq!(human(1536), "1.5 KiB");
        assert_eq!(human(10_u128.pow(15)), "909.5 TiB");
    }
}
