//! What a machine is. What it does not tell is `None`: never a guess.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

use crate::layout::Layout;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Machine {
    /// `NVIDIA DGXH100`, as its maker calls it.
    pub product: Option<String>,
    pub processor: Processor,
    /// The cores that may be used here, by NUMA node.
    pub usable: Layout,
    pub limits: CpuLimits,
    /// In the order of their numbers.
    pub nodes: Vec<NumaNode>,
    /// Caches that several cores share.
    pub caches: Vec<Cache>,
    /// Devices of interest and the bridges above them, in the order of addresses.
    pub pci: Vec<PciDevice>,
    /// In the order of addresses: as `nvidia-smi` and CUDA_DEVICE_ORDER=PCI_BUS_ID number them.
    pub gpus: Vec<Gpu>,
    pub interfaces: Vec<Interface>,
    pub hcas: Vec<Hca>,
    pub drivers: Drivers,
    /// Where devices hang is what a NCCL file says.
    pub told_by_nccl_file: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Processor {
    /// `GenuineIntel`, `AuthenticAMD`; on Arm the implementer's number.
    pub vendor: Option<String>,
    pub family: Option<u32>,
    pub model: Option<u32>,
    pub sockets: Option<u32>,
}

/// Of control groups.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CpuLimits {
    /// Thousandths of a core's time, where it is limited.
    pub quota_milli: Option<u32>,
    /// The CPUs of the cpuset, where there is one.
    pub cpuset: Option<Vec<u32>>,
    /// The NUMA nodes whose memory may be used.
    pub memory_nodes: Option<Vec<u32>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NumaNode {
    pub number: u32,
    pub socket: Option<u32>,
    /// All its CPUs, whether or not they may be used here.
    pub cpus: Vec<u32>,
    /// By the kernel's measure, to the nodes in order: 10 is itself.
    pub distances: Vec<u32>,
    pub memory_kib: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cache {
    pub level: u32,
    pub size: Option<String>,
    pub cpus: Vec<u32>,
}

/// `0000:18:00.0`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    pub domain: u32,
    pub bus: u8,
    pub device: u8,
    pub function: u8,
}

/// Where a device hangs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Place {
    /// The host bridge (`pci0000:15`), or the NUMA node that stands for it in a NCCL file (`cpu0`).
    pub root: Option<String>,
    /// Bridges from the host bridge to the device, ports of switches each by itself.
    pub bridges: Vec<Address>,
    /// Switches from the host bridge to the device, each by its upstream port.
    pub switches: Vec<Address>,
    pub node: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PciDevice {
    pub address: Address,
    pub place: Place,
    pub class: Option<u32>,
    pub vendor: Option<u32>,
    pub device: Option<u32>,
    pub driver: Option<String>,
    pub link: Link,
    /// Of which it is a virtual function.
    pub physical: Option<Address>,
    pub virtual_functions: Option<u32>,
}

/// PCI Express. A device's own figures, and as wide and fast as it can be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    pub now: Lanes,
    pub max: Lanes,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Lanes {
    /// Tenths of GT/s: 25, 50, 80, 160, 320, 640.
    pub speed: Option<u32>,
    pub width: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Gpu {
    pub number: u32,
    pub address: Address,
    pub model: Option<String>,
    pub uuid: Option<String>,
    /// N of `/dev/nvidiaN`.
    pub minor: Option<u32>,
    /// Whether `/dev/nvidiaN` is there.
    pub present: Option<bool>,
    pub place: Place,
    /// Unknown without NVML or a NCCL file.
    pub nvlinks: Option<Vec<NvLink>>,
    pub mig: Option<bool>,
    /// MIG devices.
    pub slices: Vec<Slice>,
    pub compute: Option<(u32, u32)>,
    pub health: Option<Health>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NvLink {
    pub peer: Peer,
    pub count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    Gpu(u32),
    /// Any of the NVSwitches: which one makes no difference.
    Switch,
    Other,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Slice {
    /// `MIG-…`; known to NVML alone.
    pub uuid: Option<String>,
    /// `1g.10gb`
    pub profile: Option<String>,
    /// GPU and compute instance.
    pub instance: Option<(u32, u32)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Errors since the driver was loaded that ECC could not correct.
    pub uncorrected: Option<u64>,
    /// Memory waits for a reset of the GPU to be replaced.
    pub repair_pending: Option<bool>,
    pub processes: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Interface {
    pub name: String,
    pub kind: Kind,
    pub pci: Option<Address>,
    pub speed_mbits: Option<u32>,
    pub mtu: Option<u32>,
    pub up: Option<bool>,
    pub carrier: Option<bool>,
    pub state: Option<String>,
    /// Unknown where the machine was not asked, in a folder of files.
    pub addresses: Option<Vec<Network>>,
    /// The bridge or bond that it is a member of.
    pub master: Option<String>,
    /// Members of a bridge or bond, what a VLAN stands on.
    pub below: Vec<String>,
    pub bond_mode: Option<String>,
    /// The physical function, of a virtual one.
    pub physical: Option<Address>,
    pub default_route: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Loopback,
    Ethernet,
    /// IP over InfiniBand.
    Infiniband,
    Wireless,
    Bond,
    Bridge,
    Vlan,
    /// A cable between network namespaces: what a container has.
    Veth,
    Tunnel,
    #[default]
    Unknown,
}

/// An address and how long its network's part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    pub ip: IpAddr,
    pub prefix: Option<u8>,
}

/// An RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Hca {
    pub name: String,
    pub pci: Option<Address>,
    pub physical: Option<Address>,
    pub board: Option<String>,
    /// Whether its device file is there; a container sees all devices in /sys.
    pub usable: Option<bool>,
    pub ports: Vec<Port>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Port {
    pub number: u32,
    /// `ACTIVE`, `DOWN`, `INIT`, `ARMED`.
    pub state: Option<String>,
    /// `LinkUp`, `Polling`, `Disabled`.
    pub physical_state: Option<String>,
    pub rate_mbits: Option<u32>,
    pub layer: Option<Layer>,
    pub gids: Vec<Gid>,
    pub interfaces: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    Infiniband,
    Ethernet,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gid {
    pub index: u32,
    pub gid: Ipv6Addr,
    pub kind: Option<GidKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GidKind {
    Infiniband,
    RoceV1,
    RoceV2,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Drivers {
    pub nvidia: Option<String>,
    /// The module that lets a network device read GPU memory.
    pub peer_memory: Option<String>,
    /// Whether NVML was asked and answered.
    pub nvml: bool,
}

impl Machine {
    pub fn pci(&self, address: Address) -> Option<&PciDevice> {
        let found = self.pci.binary_search_by_key(&address, |it| it.address);
        found.ok().map(|index| &self.pci[index])
    }

    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|it| it.name == name)
    }

    /// Where a device hangs; nowhere if it is not known.
    pub fn place(&self, address: Option<Address>) -> Place {
        let device = address.and_then(|address| self.pci(address));
        device
            .map(|device| device.place.clone())
            .unwrap_or_default()
    }
}

impl Lanes {
    /// Of PCI Express, 1 to 6.
    pub fn generation(&self) -> Option<u32> {
        let speed = self.speed?;
        let slower = [25, 50, 80, 160, 320]
            .iter()
            .filter(|limit| speed > **limit);
        u32::try_from(slower.count()).ok().map(|count| count + 1)
    }

    /// GB/s, by the figures that NCCL plans with: those of a generation times the width.
    pub fn gbytes(&self) -> Option<f64> {
        // One lane of the first generation carries 1.5 Gb/s by that measure; each doubles it.
        let per_lane = f64::from(15_u32 << (self.generation()? - 1));
        Some(per_lane * f64::from(self.width?) / 80.0)
    }

    /// The slower of two, as far as they are known.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        let least = |a: Option<u32>, b: Option<u32>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self {
            speed: least(self.speed, other.speed),
            width: least(self.width, other.width),
        }
    }
}

impl Gpu {
    /// Links to another GPU, through NVSwitches or not; `None` where nobody can say.
    pub fn links_to(&self, other: &Self) -> Option<u32> {
        let (own, others) = (self.nvlinks.as_ref()?, other.nvlinks.as_ref()?);
        let count = |links: &[NvLink], peer: Peer| {
            let links = links.iter().filter(|link| link.peer == peer);
            links.fold(0_u32, |sum, link| sum.saturating_add(link.count))
        };
        let direct = count(own, Peer::Gpu(other.number));
        let switched = count(own, Peer::Switch).min(count(others, Peer::Switch));
        Some(direct.max(switched))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

/// As the kernel, NVML (eight digits of domain) and the driver (capitals) write it.
impl FromStr for Address {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.trim().split([':', '.']);
        let mut next = |digits: usize| match parts.next() {
            Some(part) if (1..=digits).contains(&part.len()) => {
                u32::from_str_radix(part, 16).map_err(|_| ())
            }
            _ => Err(()),
        };
        let (domain, bus, device, function) = (next(8)?, next(2)?, next(2)?, next(1)?);
        if parts.next().is_some() || device > 31 {
            return Err(());
        }
        let small = |number: u32| u8::try_from(number).map_err(|_| ());
        Ok(Self {
            domain,
            bus: small(bus)?,
            device: small(device)?,
            function: small(function)?,
        })
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix {
            Some(prefix) => write!(f, "{}/{prefix}", self.ip),
            None => write!(f, "{}", self.ip),
        }
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
