//! The only IO: the facts of a machine below a root folder, as the kernel shows them.
//!
//! What is read is what the tables below name, so a recorded machine cannot hold more than they say.
//! What cannot be read is absent; nothing here judges. Time is bounded: no folder is read past
//! [`NAMES_MAX`] names, no file past [`FILE_MAX_BYTES`].

mod addresses;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::layout::numbers;
use crate::tree::{Tree, TreeError};

/// Where addresses of interfaces stand in a tree: the kernel tells them in no file.
pub const ADDRESSES: &str = "rlaunch/addresses";
/// Where NVML's facts stand in a tree, as JSON.
pub const NVML: &str = "rlaunch/nvml";
/// Where the text of the file stands that NCCL_TOPO_FILE names.
pub const NCCL_FILE: &str = "rlaunch/nccl_topo_file";
/// Where a cloud's machine describes what its virtual PCI hides.
pub const VIRTUAL_TOPOLOGY: &str = "var/run/nvidia-topologyd/virtualTopology.xml";

const NAMES_MAX: usize = 8192;
const FILE_MAX_BYTES: u64 = 256 * 1024;
/// A recorded machine.
const RECORD_MAX_BYTES: u64 = 16 * 1024 * 1024;
/// NVML starts slowly without persistence mode, and hangs on a GPU that is lost.
const NVML_PATIENCE: Duration = Duration::from_secs(20);

const FILES: &[&str] = &[
    "proc/driver/nvidia/version",
    "proc/driver/nvidia/gpus/*/information",
    "proc/driver/nvidia/capabilities/gpu*/mig/gi*/ci*/access",
    "proc/net/route",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "sys/devices/system/node/node*/cpulist",
    "sys/devices/system/node/node*/distance",
    "sys/class/net/*/type",
    "sys/class/net/*/speed",
    "sys/class/net/*/mtu",
    "sys/class/net/*/carrier",
    "sys/class/net/*/operstate",
    "sys/class/net/*/ifindex",
    "sys/class/net/*/iflink",
    "sys/class/net/*/uevent",
    "sys/class/net/*/bonding/mode",
    "sys/class/net/*/bonding/slaves",
    "sys/class/net/*/bonding/active_slave",
    "sys/class/net/*/tun_flags",
    "sys/class/infiniband/*/node_type",
    "sys/class/infiniband/*/hca_type",
    "sys/class/infiniband/*/ports/*/state",
    "sys/class/infiniband/*/ports/*/phys_state",
    "sys/class/infiniband/*/ports/*/rate",
    "sys/class/infiniband/*/ports/*/link_layer",
    "sys/class/infiniband_verbs/uverbs*/ibdev",
    "sys/module/nvidia_peermem/version",
    "sys/kernel/mm/memory_peers/*/version",
    VIRTUAL_TOPOLOGY,
];

const LINKS: &[&str] = &[
    "sys/class/net/*",
    "sys/class/net/*/device",
    "sys/class/net/*/device/physfn",
    "sys/class/net/*/master",
    "sys/class/net/*/lower_*",
    "sys/class/infiniband/*",
    "sys/class/infiniband/*/device",
    "sys/class/infiniband/*/device/physfn",
];

/// That they are there.
const NAMES: &[&str] = &[
    "dev/nvidia[0-9]",
    "dev/infiniband/uverbs*",
    "sys/class/net/*/bridge",
    "sys/class/net/*/brif/*",
    "sys/class/net/*/wireless",
    "sys/class/infiniband/*/device/net/*",
];

const PCI: &str = "sys/bus/pci/devices";
const PCI_FILES: &[&str] = &[
    "class",
    "vendor",
    "device",
    "numa_node",
    "local_cpulist",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
    "sriov_numvfs",
];

/// Lines that are kept of a file whose others are private or long.
const LINES: &[(&str, &[&str])] = &[
    (
        "proc/self/status",
        &["Cpus_allowed_list", "Mems_allowed_list"],
    ),
    (
        "proc/cpuinfo",
        &[
            "vendor_id",
            "cpu family",
            "model",
            "CPU implementer",
            "CPU part",
        ],
    ),
    ("sys/devices/system/node/node*/meminfo", &["MemTotal"]),
];

/// Why there is no machine at a path.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("cannot read it: {0}")]
    Read(#[source] io::Error),
    #[error("{0}")]
    Tree(#[from] TreeError),
    #[error("the folder holds no machine: neither sys/ nor proc/ is in it")]
    Empty,
}

/// This machine. NVML is asked only `with_nvml`: it may take seconds.
pub fn this_machine(with_nvml: bool) -> Tree {
    let mut tree = read(Path::new("/"));
    tree.put(ADDRESSES, &addresses::read());
    if with_nvml && let Some(facts) = crate::nvml::read(NVML_PATIENCE) {
        tree.put(NVML, &facts.to_json());
    }
    tree
}

/// The file that NCCL_TOPO_FILE names here: NCCL then reads it in place of the cloud's.
pub fn nccl_file_of_environment() -> Option<PathBuf> {
    let path = std::env::var_os("NCCL_TOPO_FILE");
    path.filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Puts the text of a NCCL file into the tree.
pub fn add_nccl_file(tree: &mut Tree, path: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        let limit = FILE_MAX_BYTES / 1024;
        return Err(io::Error::other(format!("it has over {limit} KiB")));
    }
    tree.put(NCCL_FILE, &String::from_utf8_lossy(&bytes));
    Ok(())
}

/// A machine on file: a folder that stands for its root, or one text of it ([`Tree::parse`]).
pub fn open(path: &Path) -> Result<Tree, OpenError> {
    if path.is_dir() {
        let recorded = path.join("machine.txt");
        if recorded.is_file() {
            return open(&recorded);
        }
        let tree = read(path);
        return match tree.is_empty() {
            true => Err(OpenError::Empty),
            false => Ok(tree),
        };
    }
    let file = std::fs::File::open(path).map_err(OpenError::Read)?;
    let mut bytes = Vec::new();
    file.take(RECORD_MAX_BYTES)
        .read_to_end(&mut bytes)
        .map_err(OpenError::Read)?;
    Ok(Tree::parse(&String::from_utf8_lossy(&bytes))?)
}

/// What stands in files below `root`.
pub fn read(root: &Path) -> Tree {
    let mut reader = Reader {
        root: root.to_owned(),
        tree: Tree::default(),
    };
    for pattern in FILES {
        reader.each(pattern, Reader::file);
    }
    for pattern in LINKS {
        reader.each(pattern, Reader::link);
    }
    for pattern in NAMES {
        reader.each(pattern, |reader, path| reader.tree.put(path, ""));
    }
    for (pattern, wanted) in LINES {
        reader.each(pattern, |reader, path| reader.lines(path, wanted));
    }
    for known in [ADDRESSES, NVML, NCCL_FILE] {
        reader.file(known);
    }
    reader.cpus();
    reader.pci();
    reader.gids();
    reader.control_groups();
    reader.tree
}

struct Reader {
    root: PathBuf,
    tree: Tree,
}

impl Reader {
    fn text(&self, path: &str) -> Option<String> {
        let file = std::fs::File::open(self.root.join(path)).ok()?;
        let mut bytes = Vec::new();
        file.take(FILE_MAX_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn file(&mut self, path: &str) {
        if let Some(text) = self.text(path) {
            self.tree.put(path, &text);
        }
    }

    fn link(&mut self, path: &str) {
        if let Ok(target) = std::fs::read_link(self.root.join(path)) {
            self.tree.put_link(path, &target.to_string_lossy());
        }
    }

    /// Calls for each path that a pattern stands for and that is there.
    fn each(&mut self, pattern: &str, mut visit: impl FnMut(&mut Self, &str)) {
        let mut paths = vec![String::new()];
        for part in pattern.split('/') {
            let is_pattern = part.contains('*') || part.contains('[');
            let mut longer = Vec::new();
            for folder in &paths {
                let join = |name: &str| match folder.as_str() {
                    "" => name.to_owned(),
                    folder => format!("{folder}/{name}"),
                };
                if !is_pattern {
                    longer.push(join(part));
                    continue;
                }
                let names = crate::survey::names(&self.root.join(folder));
                let names = names.iter().take(NAMES_MAX).filter(|name| fits(part, name));
                longer.extend(names.map(|name| join(name)));
            }
            paths = longer;
        }
        for path in paths {
            if self.root.join(&path).symlink_metadata().is_ok() {
                visit(self, &path);
            }
        }
    }

    /// The first of each kind, such as the first processor's model.
    fn lines(&mut self, path: &str, wanted: &[&str]) {
        let Some(text) = self.text(path) else { return };
        let mut kept = String::new();
        for word in wanted {
            let is_wanted = |line: &&str| match line.split_once(':') {
                Some((name, _)) => {
                    let name = name.trim();
                    name == *word || name.ends_with(&format!(" {word}"))
                }
                None => false,
            };
            if let Some(line) = text.lines().find(is_wanted) {
                kept.push_str(line);
                kept.push('\n');
            }
        }
        self.tree.put(path, &kept);
    }

    /// What is the same for the hardware threads of a core, or the cores of a cache, once.
    fn cpus(&mut self) {
        let folder = "sys/devices/system/cpu";
        for name in crate::survey::names(&self.root.join(folder)) {
            let number = name
                .strip_prefix("cpu")
                .and_then(|it| it.parse::<u32>().ok());
            let Some(number) = number else { continue };
            let path = format!("{folder}/{name}");
            let siblings = format!("{path}/topology/thread_siblings_list");
            let threads = numbers(&self.text(&siblings).unwrap_or_default());
            if threads.first().is_none_or(|first| *first == number) {
                self.file(&siblings);
                self.file(&format!("{path}/topology/physical_package_id"));
            }
            self.each(&format!("{path}/cache/index*"), |reader, cache| {
                let shared = reader.text(&format!("{cache}/shared_cpu_list"));
                let shared = numbers(&shared.unwrap_or_default());
                if shared.first() == Some(&number) && shared.len() > threads.len() {
                    for field in ["level", "size", "shared_cpu_list"] {
                        reader.file(&format!("{cache}/{field}"));
                    }
                }
            });
        }
    }

    /// GPUs, NVSwitches, network devices, and the bridges above them.
    fn pci(&mut self) {
        for name in crate::survey::names(&self.root.join(PCI)) {
            let path = format!("{PCI}/{name}");
            let class = self.text(&format!("{path}/class")).unwrap_or_default();
            if !is_of_interest(class.trim()) {
                continue;
            }
            self.link(&path);
            self.link(&format!("{path}/physfn"));
            self.link(&format!("{path}/driver"));
            for field in PCI_FILES {
                self.file(&format!("{path}/{field}"));
            }
        }
    }

    /// Without the empty ones, which are most of 256 a port.
    fn gids(&mut self) {
        self.each("sys/class/infiniband/*/ports/*/gids/*", |reader, path| {
            let gid = reader.text(path).unwrap_or_default();
            if !gid
                .bytes()
                .any(|byte| byte.is_ascii_hexdigit() && byte != b'0')
            {
                return;
            }
            reader.tree.put(path, &gid);
            if let Some((port, index)) = path.split_once("/gids/") {
                reader.file(&format!("{port}/gid_attrs/types/{index}"));
                reader.file(&format!("{port}/gid_attrs/ndevs/{index}"));
            }
        });
    }

    /// The limits of the own group and of those around it.
    fn control_groups(&mut self) {
        self.file("proc/self/cgroup");
        let own = self.tree.text("proc/self/cgroup").unwrap_or_default();
        for folder in crate::parse::cpu::group_folders(own) {
            for field in [
                "cpu.max",
                "cpuset.cpus.effective",
                "cpuset.cpus",
                "cpu.cfs_quota_us",
                "cpu.cfs_period_us",
            ] {
                self.file(&format!("{folder}/{field}"));
            }
        }
    }
}

/// One `*` for anything, `[0-9]` at the end for a number.
fn fits(pattern: &str, name: &str) -> bool {
    if let Some(prefix) = pattern.strip_suffix("[0-9]") {
        let number = name.strip_prefix(prefix).unwrap_or_default();
        return !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    }
    let (before, after) = pattern.split_once('*').unwrap_or((pattern, ""));
    name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
}

/// Displays and accelerators, network, InfiniBand, bridges and NVSwitches.
fn is_of_interest(class: &str) -> bool {
    let class = class.strip_prefix("0x").unwrap_or(class);
    ["02", "03", "0604", "0680", "0c06", "12"]
        .iter()
        .any(|kind| class.starts_with(kind))
}
