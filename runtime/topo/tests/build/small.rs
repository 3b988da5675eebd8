//! Smaller machines, and those of which only a part is ours.

use rlaunch_topo::Tree;

use super::{A100, Build, CONNECTX_6, H100, L40S, RTX_4090, VIRTUAL_FUNCTION, nic};

const GIGABIT: super::Kind = nic(0x02_0000, 0x8086, 0x1521, 50);
const HDR: &str = "200 Gb/sec (4X HDR)";

/// Four GPUs in slots of two sockets' own, one card, on the second socket.
pub(crate) fn far_nic() -> Tree {
    let mut build = Build::new("Example", "4 GPUs, far NIC");
    build.cpus("GenuineIntel", 2, 2, 16, 2);
    for (root, bus, node) in [
        (0x16, 0x17, 0),
        (0x30, 0x31, 0),
        (0x97, 0x98, 1),
        (0xb0, 0xb1, 1),
    ] {
        let way = format!("pci0000:{root:02x}/0000:{root:02x}:02.0/0000:{bus:02x}:00.0");
        build.gpu(&way, node, L40S, "NVIDIA L40S");
    }
    let way = "pci0000:c9/0000:c9:02.0/0000:ca:00.0";
    build.pci(way, 1, CONNECTX_6);
    build.hca("mlx5_0", way, HDR, "InfiniBand", "ACTIVE");
    let files = [
        ("type", "32"),
        ("speed", "200000"),
        ("carrier", "1"),
        ("operstate", "up"),
    ];
    build.interface("ib0", &files, Some(way));
    build.address("ib0", "up,running", "10.50.0.4/16");
    let way = "pci0000:00/0000:00:1c.0/0000:02:00.0";
    build.pci(way, 0, GIGABIT);
    build.ethernet("eno1", way, 1_000, Some("10.60.0.4/24"));
    build.default_route("eno1");
    build.done(false)
}

/// Two consumer GPUs, one port, Wi-Fi; firmware that tells no NUMA node.
pub(crate) fn desktop() -> Tree {
    let mut build = Build::new("Example", "Desktop");
    build.cpus("AuthenticAMD", 1, 1, 16, 2);
    for (port, bus) in [(1, 1), (2, 2)] {
        let way = format!("pci0000:00/0000:00:01.{port}/0000:{bus:02x}:00.0");
        build.gpu(&way, -1, RTX_4090, "NVIDIA GeForce RTX 4090");
    }
    let chipset = "pci0000:00/0000:00:02.1/0000:03:00.0";
    let way = format!("{chipset}/0000:04:08.0/0000:0a:00.0");
    build.pci(&way, -1, nic(0x02_0000, 0x8086, 0x15f3, 50));
    build.ethernet("enp10s0", &way, 2_500, Some("192.168.1.20/24"));
    build.default_route("enp10s0");
    let way = format!("{chipset}/0000:04:09.0/0000:0b:00.0");
    build.pci(&way, -1, nic(0x02_8000, 0x8086, 0x2725, 50));
    let files = [
        ("type", "1"),
        ("operstate", "down"),
        ("uevent", "DEVTYPE=wlan"),
    ];
    build.interface("wlp11s0", &files, Some(&way));
    build.address("wlp11s0", "-", "");
    build.docker();
    build.done(false)
}

/// Two H100, one divided into seven MIG devices, one into two.
pub(crate) fn mig() -> Tree {
    let mut build = Build::new("Example", "MIG");
    build.cpus("AuthenticAMD", 2, 2, 32, 1);
    for (root, node, parts) in [(0x20, 0, 7), (0xa0, 1, 2)] {
        let way = format!(
            "pci0000:{root:02x}/0000:{root:02x}:01.1/0000:{:02x}:00.0",
            root + 1
        );
        let number = build.gpu(&way, node, H100, "NVIDIA H100 80GB HBM3");
        let profile = match parts {
            7 => "1g.10gb",
            _ => "3g.40gb",
        };
        let slice = |part: u32| {
            let uuid = format!("MIG-0000000{number}-0000-0000-0000-{part:012}");
            (uuid, Some(profile.to_owned()))
        };
        let told = &mut build.nvml()[number as usize];
        told.mig = Some(true);
        told.slices = (0..parts).map(slice).collect();
        for part in 0..parts {
            let folder = format!(
                "proc/driver/nvidia/capabilities/gpu{number}/mig/gi{}",
                part + 1
            );
            build
                .tree
                .put(&format!("{folder}/ci0/access"), "DeviceFileMinor: 30");
        }
        let way = format!(
            "pci0000:{root:02x}/0000:{root:02x}:03.1/0000:{:02x}:00.0",
            root + 4
        );
        build.pci(&way, node, CONNECTX_6);
        build.hca(&format!("mlx5_{number}"), &way, HDR, "InfiniBand", "ACTIVE");
    }
    build.done(true)
}

/// A container with two of eight GPUs, two virtual functions and 16 cores; its /sys shows the host's
/// devices, and its own interfaces are cables into the host's namespace.
pub(crate) fn sriov_container() -> Tree {
    let mut build = Build::new("Example", "8 GPUs, SR-IOV");
    build.cpus("GenuineIntel", 2, 2, 32, 2);
    build.allow("32-47,96-111");
    build.tree.put("sys/fs/cgroup/cpu.max", "1600000 100000");
    build
        .tree
        .put("sys/fs/cgroup/cpuset.cpus.effective", "32-47,96-111");
    for (number, (root, node)) in [(0x17, 0), (0x3a, 0), (0x85, 1), (0xae, 1)]
        .into_iter()
        .enumerate()
    {
        let switch = format!(
            "pci0000:{root:02x}/0000:{root:02x}:02.0/0000:{:02x}:00.0",
            root + 1
        );
        let ports = root + 2;
        let gpu = format!("{switch}/0000:{ports:02x}:00.0/0000:{:02x}:00.0", root + 3);
        match node {
            1 => {
                build.gpu(&gpu, node, A100, "NVIDIA A100-SXM4-80GB");
            }
            _ => {
                build.pci(&gpu, node, A100);
            }
        }
        let card = format!("{switch}/0000:{ports:02x}:01.0/0000:{:02x}:00", root + 4);
        build.pci(&format!("{card}.0"), node, super::CONNECTX_7_ETHERNET);
        functions(&mut build, number, root, node, &card);
    }
    let files = [
        ("type", "1"),
        ("iflink", "77"),
        ("speed", "10000"),
        ("carrier", "1"),
        ("operstate", "up"),
    ];
    build.interface("eth0", &files, None);
    build.address("eth0", "up,running", "10.244.3.9/24");
    build.default_route("eth0");
    let mut tree = build.done(false);
    // Device files of the own functions alone.
    tree.retain(|path| match path.strip_prefix("dev/infiniband/uverbs") {
        Some(number) => ["5", "7"].contains(&number),
        None => true,
    });
    tree
}

/// A card's RDMA devices: the physical function, whose addresses are elsewhere, and a virtual one.
fn functions(build: &mut Build, number: usize, root: u32, node: i32, card: &str) {
    let physical = format!("mlx5_{number}");
    build.hca(&physical, &format!("{card}.0"), HDR, "Ethernet", "ACTIVE");
    build.tree.put(
        &format!("sys/class/infiniband/{physical}/ports/1/gids/0"),
        "0000:0000:0000:0000:0000:0000:0000:0000",
    );
    let way = format!("{card}.1");
    let address = build.pci(&way, node, VIRTUAL_FUNCTION);
    let target = format!("../0000:{:02x}:00.0", root + 4);
    build
        .tree
        .put_link(&format!("sys/bus/pci/devices/{address}/physfn"), &target);
    let name = format!("mlx5_{}", number + 4);
    build.hca(&name, &way, HDR, "Ethernet", "ACTIVE");
    build.tree.put_link(
        &format!("sys/class/infiniband/{name}/device/physfn"),
        &target,
    );
    if node == 1 {
        let interface = format!("net{}", number - 1);
        build.ethernet(
            &interface,
            &way,
            200_000,
            Some(&format!("10.7.{number}.2/24")),
        );
        build.gid(
            &name,
            &format!("0000:0000:0000:0000:0000:ffff:0a07:{number:02x}02"),
            &interface,
        );
    }
}

/// Two ports of 25 Gb/s, one on each socket, in one bond with a VLAN on it; no RDMA.
pub(crate) fn bonded_ethernet() -> Tree {
    let mut build = Build::new("Example", "Bonded Ethernet");
    build.cpus("GenuineIntel", 2, 2, 12, 2);
    for (root, node) in [(0x3a, 0), (0xae, 1)] {
        let way = format!(
            "pci0000:{root:02x}/0000:{root:02x}:00.0/0000:{:02x}:00.0",
            root + 1
        );
        build.gpu(&way, node, L40S, "NVIDIA L40S");
    }
    let card = nic(0x02_0000, 0x8086, 0x158b, 80);
    for (root, node, name) in [(0x17, 0, "ens1f0"), (0xd7, 1, "ens5f0")] {
        let way = format!(
            "pci0000:{root:02x}/0000:{root:02x}:00.0/0000:{:02x}:00.0",
            root + 1
        );
        build.pci(&way, node, card);
        build.ethernet(name, &way, 25_000, None);
        build.tree.put_link(
            &format!("sys/class/net/{name}/master"),
            "../../../../../virtual/net/bond0",
        );
    }
    let up = [
        ("type", "1"),
        ("speed", "50000"),
        ("carrier", "1"),
        ("operstate", "up"),
        ("mtu", "9000"),
    ];
    build.interface("bond0", &up, None);
    build.tree.put("sys/class/net/bond0/uevent", "DEVTYPE=bond");
    build
        .tree
        .put("sys/class/net/bond0/bonding/mode", "802.3ad 4");
    build
        .tree
        .put("sys/class/net/bond0/bonding/slaves", "ens1f0 ens5f0");
    build.address("bond0", "up,running", "fe80::1/64");
    build.interface("bond0.120", &up, None);
    build
        .tree
        .put("sys/class/net/bond0.120/uevent", "DEVTYPE=vlan");
    build
        .tree
        .put_link("sys/class/net/bond0.120/lower_bond0", "../bond0");
    build.address("bond0.120", "up,running", "10.120.0.9/24");
    let way = "pci0000:00/0000:00:1c.0/0000:04:00.0";
    build.pci(way, 0, GIGABIT);
    build.ethernet("eno1", way, 1_000, None);
    build
        .tree
        .put_link("sys/class/net/eno1/master", "../../../../virtual/net/br0");
    build.interface(
        "br0",
        &[
            ("type", "1"),
            ("speed", "1000"),
            ("carrier", "1"),
            ("operstate", "up"),
            ("bridge", ""),
        ],
        None,
    );
    build.tree.put("sys/class/net/br0/brif/eno1", "");
    build.address("br0", "up,running", "10.80.0.9/24");
    build.default_route("br0");
    build.docker();
    build.done(false)
}

/// Two sockets of four NUMA nodes each, one InfiniBand card whose second port has no cable.
pub(crate) fn cpu_only() -> Tree {
    let mut build = Build::new("Example", "CPU only");
    build.cpus("AuthenticAMD", 2, 8, 8, 1);
    for (function, name, state) in [(0, "mlx5_0", "ACTIVE"), (1, "mlx5_1", "DOWN")] {
        let way = format!("pci0000:a0/0000:a0:03.1/0000:a1:00.{function}");
        build.pci(&way, 5, CONNECTX_6);
        build.hca(name, &way, HDR, "InfiniBand", state);
    }
    let way = "pci0000:60/0000:60:05.1/0000:62:00.0";
    build.pci(way, 1, GIGABIT);
    build.ethernet("eno1", way, 1_000, Some("10.90.0.1/24"));
    build.default_route("eno1");
    build.done(false)
}
