//! Writes down machines from public facts (guides of their makers, posted `nvidia-smi topo -m`): what
//! stands in `tests/topologies/NAME/machine.txt` comes from here or from `rlaunch topo --snapshot`.

mod clusters;
mod small;

use std::fmt::Write;

use rlaunch_topo::Tree;
use rlaunch_topo::nvml::{NvmlFacts, NvmlGpu, Remote};
use rlaunch_topo::snapshot;

const PCI: &str = "sys/bus/pci/devices";

/// Every machine of ours, by name.
pub(crate) fn machines() -> Vec<(&'static str, Tree)> {
    vec![
        ("bonded-ethernet", small::bonded_ethernet()),
        ("cloud-vm", clusters::cloud_vm()),
        ("cpu-only", small::cpu_only()),
        ("desktop", small::desktop()),
        ("dgx-1v", clusters::dgx_1v()),
        ("dgx-h100", clusters::dgx_h100()),
        ("far-nic", small::far_nic()),
        ("hgx-4-nics", clusters::hgx_4_nics()),
        ("mig", small::mig()),
        ("sriov-container", small::sriov_container()),
    ]
}

#[derive(Default)]
pub(crate) struct Build {
    pub(crate) tree: Tree,
    addresses: String,
    nvml: Vec<NvmlGpu>,
    gpus: u32,
    verbs: u32,
    interfaces: u32,
}

/// What a PCI device is.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub class: u32,
    pub vendor: u32,
    pub device: u32,
    /// Tenths of GT/s and lanes.
    pub link: (u32, u32),
}

pub(crate) const H100: Kind = gpu(0x2330, 320);
pub(crate) const A100: Kind = gpu(0x20b2, 160);
pub(crate) const V100: Kind = gpu(0x1db1, 80);
pub(crate) const L40S: Kind = gpu(0x26b9, 160);
pub(crate) const RTX_4090: Kind = gpu(0x2684, 160);
pub(crate) const CONNECTX_7: Kind = nic(0x02_0700, 0x15b3, 0x1021, 320);
pub(crate) const CONNECTX_6: Kind = nic(0x02_0700, 0x15b3, 0x101b, 160);
pub(crate) const CONNECTX_4: Kind = nic(0x02_0700, 0x15b3, 0x1013, 80);
pub(crate) const CONNECTX_7_ETHERNET: Kind = nic(0x02_0000, 0x15b3, 0x1021, 320);
pub(crate) const VIRTUAL_FUNCTION: Kind = nic(0x02_0000, 0x15b3, 0x101e, 320);

const fn gpu(device: u32, speed: u32) -> Kind {
    Kind {
        class: 0x03_0200,
        vendor: 0x10de,
        device,
        link: (speed, 16),
    }
}

pub(crate) const fn nic(class: u32, vendor: u32, device: u32, speed: u32) -> Kind {
    Kind {
        class,
        vendor,
        device,
        link: (speed, 16),
    }
}

impl Build {
    pub(crate) fn new(maker: &str, product: &str) -> Self {
        let mut build = Self::default();
        build.tree.put("sys/class/dmi/id/sys_vendor", maker);
        build.tree.put("sys/class/dmi/id/product_name", product);
        build.interface("lo", &[("type", "772"), ("operstate", "unknown")], None);
        build.address("lo", "up,running,loopback", "127.0.0.1/8");
        build
    }

    /// NUMA nodes of so many cores; hardware threads are numbered after all cores.
    pub(crate) fn cpus(
        &mut self,
        vendor: &str,
        sockets: u32,
        nodes: u32,
        cores: u32,
        threads: u32,
    ) {
        let total = nodes * cores;
        let list = |first: u32, count: u32| {
            let part = |thread: u32| {
                let first = thread * total + first;
                match count {
                    1 => first.to_string(),
                    _ => format!("{first}-{}", first + count - 1),
                }
            };
            (0..threads).map(part).collect::<Vec<_>>().join(",")
        };
        for core in 0..total {
            let path = format!("sys/devices/system/cpu/cpu{core}");
            let socket = core / (total / sockets);
            let topology = format!("{path}/topology");
            self.tree.put(
                &format!("{topology}/physical_package_id"),
                &socket.to_string(),
            );
            self.tree
                .put(&format!("{topology}/thread_siblings_list"), &list(core, 1));
        }
        for node in 0..nodes {
            let cache = format!("sys/devices/system/cpu/cpu{}/cache/index3", node * cores);
            self.tree.put(&format!("{cache}/level"), "3");
            self.tree.put(&format!("{cache}/size"), "32768K");
            self.tree.put(
                &format!("{cache}/shared_cpu_list"),
                &list(node * cores, cores),
            );
            let folder = format!("sys/devices/system/node/node{node}");
            self.tree
                .put(&format!("{folder}/cpulist"), &list(node * cores, cores));
            let memory = format!("Node {node} MemTotal:       263921344 kB");
            self.tree.put(&format!("{folder}/meminfo"), &memory);
            let distance = |other: u32| match (node == other, node * sockets / nodes) {
                (true, _) => "10",
                (false, socket) if socket == other * sockets / nodes => "12",
                _ => "21",
            };
            let distances: Vec<&str> = (0..nodes).map(distance).collect();
            self.tree
                .put(&format!("{folder}/distance"), &distances.join(" "));
        }
        self.tree
            .put("proc/cpuinfo", &format!("vendor_id\t: {vendor}"));
        self.allow(&list(0, total));
    }

    /// A cpuset.
    pub(crate) fn allow(&mut self, cpus: &str) {
        let status = format!("Cpus_allowed_list:\t{cpus}");
        self.tree.put("proc/self/status", &status);
        self.tree.put("proc/self/cgroup", "0::/");
    }

    /// A device at the end of a way `pci0000:15/0000:15:01.0/…`, and the bridges on it.
    pub(crate) fn pci(&mut self, way: &str, node: i32, kind: Kind) -> String {
        let parts: Vec<&str> = way.split('/').collect();
        for (depth, name) in parts.iter().enumerate().skip(1) {
            let is_last = depth + 1 == parts.len();
            let path = format!("{PCI}/{name}");
            if self.tree.has(&path) {
                continue;
            }
            let target = format!("../../../devices/{}", parts[..=depth].join("/"));
            self.tree.put_link(&path, &target);
            let kind = match is_last {
                true => kind,
                false => Kind {
                    class: 0x06_0400,
                    vendor: 0x1000,
                    device: 0xc030,
                    link: kind.link,
                },
            };
            let mut put =
                |field: &str, text: String| self.tree.put(&format!("{path}/{field}"), &text);
            put("class", format!("0x{:06x}", kind.class));
            put("vendor", format!("0x{:04x}", kind.vendor));
            put("device", format!("0x{:04x}", kind.device));
            put("numa_node", node.to_string());
            let (speed, width) = kind.link;
            if width > 0 {
                for which in ["current", "max"] {
                    let speed = format!("{}.{} GT/s PCIe", speed / 10, speed % 10);
                    put(&format!("{which}_link_speed"), speed);
                    put(&format!("{which}_link_width"), width.to_string());
                }
            }
        }
        parts[parts.len() - 1].to_owned()
    }

    /// A GPU that the driver has.
    pub(crate) fn gpu(&mut self, way: &str, node: i32, kind: Kind, model: &str) -> u32 {
        let number = self.gpus;
        self.gpus += 1;
        let address = self.pci(way, node, kind);
        self.tree.put_link(
            &format!("{PCI}/{address}/driver"),
            "../../../../bus/pci/drivers/nvidia",
        );
        let uuid = format!("GPU-00000000-0000-0000-0000-{number:012}");
        let information = format!(
            "Model: \t\t {model}\nGPU UUID: \t {uuid}\nBus Type: \t PCIe\nBus Location: \t {address}\nDevice Minor: \t {number}"
        );
        self.tree.put(
            &format!("proc/driver/nvidia/gpus/{address}/information"),
            &information,
        );
        self.tree.put(&format!("dev/nvidia{number}"), "");
        let version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024";
        self.tree.put("proc/driver/nvidia/version", version);
        self.nvml.push(NvmlGpu {
            pci: format!("0000{address}"),
            name: Some(model.to_owned()),
            uuid: Some(uuid),
            minor: Some(number),
            mig: Some(false),
            links: Some(Vec::new()),
            ..NvmlGpu::default()
        });
        number
    }

    /// So many NVLinks of each GPU to NVSwitches.
    pub(crate) fn nvswitch(&mut self, links: u32) {
        for gpu in &mut self.nvml {
            gpu.links = Some(vec![Remote {
                pci: None,
                is_switch: true,
                count: links,
            }]);
        }
    }

    pub(crate) fn nvlink(&mut self, a: usize, b: usize, links: u32) {
        for (own, other) in [(a, b), (b, a)] {
            let remote = Remote {
                pci: Some(self.nvml[other].pci.clone()),
                is_switch: false,
                count: links,
            };
            self.nvml[own].links.get_or_insert_default().push(remote);
        }
    }

    pub(crate) fn nvml(&mut self) -> &mut Vec<NvmlGpu> {
        &mut self.nvml
    }

    /// An RDMA device at an address; `rate` as the kernel writes it.
    pub(crate) fn hca(&mut self, name: &str, way: &str, rate: &str, layer: &str, state: &str) {
        let path = format!("sys/class/infiniband/{name}");
        let address = way.rsplit('/').next().unwrap();
        let target = format!("../../devices/{way}/infiniband/{name}");
        self.tree.put_link(&path, &target);
        self.tree
            .put_link(&format!("{path}/device"), &format!("../../../{address}"));
        self.tree.put(&format!("{path}/hca_type"), "MT4129");
        let port = format!("{path}/ports/1");
        let mut put = |field: &str, text: &str| self.tree.put(&format!("{port}/{field}"), text);
        let (number, physical) = match state {
            "ACTIVE" => (4, "5: LinkUp"),
            _ => (1, "2: Polling"),
        };
        put("state", &format!("{number}: {state}"));
        put("phys_state", physical);
        put("rate", rate);
        put("link_layer", layer);
        put("gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001");
        match layer {
            "InfiniBand" => put("gid_attrs/types/0", "IB/RoCE v1"),
            _ => put("gid_attrs/types/0", "RoCE v2"),
        }
        let verbs = self.verbs;
        self.verbs += 1;
        self.tree.put(
            &format!("sys/class/infiniband_verbs/uverbs{verbs}/ibdev"),
            name,
        );
        self.tree.put(&format!("dev/infiniband/uverbs{verbs}"), "");
    }

    /// RoCE's address of a port, and its interface.
    pub(crate) fn gid(&mut self, name: &str, gid: &str, interface: &str) {
        let port = format!("sys/class/infiniband/{name}/ports/1");
        self.tree.put(&format!("{port}/gids/3"), gid);
        self.tree
            .put(&format!("{port}/gid_attrs/types/3"), "RoCE v2");
        self.tree
            .put(&format!("{port}/gid_attrs/ndevs/3"), interface);
    }

    /// An interface; its place below `/sys/devices`, without one it is virtual.
    pub(crate) fn interface(&mut self, name: &str, files: &[(&str, &str)], way: Option<&str>) {
        self.interfaces += 1;
        let path = format!("sys/class/net/{name}");
        let target = match way {
            Some(way) => format!("../../devices/{way}/net/{name}"),
            None => format!("../../devices/virtual/net/{name}"),
        };
        self.tree.put_link(&path, &target);
        if let Some(way) = way {
            let address = way.rsplit('/').next().unwrap();
            self.tree
                .put_link(&format!("{path}/device"), &format!("../../../{address}"));
        }
        let number = self.interfaces.to_string();
        for (field, text) in [
            ("ifindex", number.as_str()),
            ("iflink", &number),
            ("mtu", "1500"),
        ] {
            self.tree.put(&format!("{path}/{field}"), text);
        }
        for (field, text) in files {
            self.tree.put(&format!("{path}/{field}"), text);
        }
    }

    /// A card's interface with carrier.
    pub(crate) fn ethernet(&mut self, name: &str, way: &str, mbits: u32, address: Option<&str>) {
        let speed = mbits.to_string();
        let files = [
            ("type", "1"),
            ("speed", speed.as_str()),
            ("carrier", "1"),
            ("operstate", "up"),
        ];
        self.interface(name, &files, Some(way));
        self.address(name, "up,running", address.unwrap_or_default());
    }

    pub(crate) fn address(&mut self, name: &str, flags: &str, address: &str) {
        let line = format!("{name} {flags} {address}");
        writeln!(self.addresses, "{}", line.trim_end()).unwrap();
    }

    /// What everybody has who runs containers.
    pub(crate) fn docker(&mut self) {
        let files = [
            ("type", "1"),
            ("bridge", ""),
            ("carrier", "0"),
            ("operstate", "down"),
        ];
        self.interface("docker0", &files, None);
        self.address("docker0", "up", "172.17.0.1/16");
    }

    pub(crate) fn default_route(&mut self, interface: &str) {
        let route = format!(
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n{interface}\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0"
        );
        self.tree.put("proc/net/route", &route);
    }

    pub(crate) fn done(mut self, with_nvml: bool) -> Tree {
        self.tree.put(snapshot::ADDRESSES, &self.addresses);
        if with_nvml {
            let facts = NvmlFacts { gpus: self.nvml };
            self.tree.put(snapshot::NVML, &facts.to_json());
        }
        self.tree
    }
}
