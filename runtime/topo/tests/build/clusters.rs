//! Machines of clusters and clouds.

use rlaunch_topo::Tree;

use super::{A100, Build, CONNECTX_4, CONNECTX_7, CONNECTX_7_ETHERNET, H100, Kind, V100, nic};

const NDR: &str = "400 Gb/sec (4X NDR)";

/// NVIDIA DGX H100, by its user guide: eight compute ports, two cards of two ports for storage and
/// management, four NVSwitches. Each GPU stands one switch below that of its network card: PXB.
pub(crate) fn dgx_h100() -> Tree {
    let mut build = Build::new("NVIDIA", "DGXH100");
    build.cpus("GenuineIntel", 2, 2, 56, 2);
    // Bus of the host bridge, of the card and of the GPU; names are in the order of addresses.
    let rows = [
        (0x15, 0x18, 0x1b, 0, "mlx5_0", "ibp24s0"),
        (0x3d, 0x40, 0x43, 0, "mlx5_3", "ibp64s0"),
        (0x4c, 0x4f, 0x52, 0, "mlx5_4", "ibp79s0"),
        (0x5b, 0x5e, 0x61, 0, "mlx5_5", "ibp94s0"),
        (0x97, 0x9a, 0x9d, 1, "mlx5_6", "ibp154s0"),
        (0xbd, 0xc0, 0xc3, 1, "mlx5_9", "ibp192s0"),
        (0xcb, 0xce, 0xd1, 1, "mlx5_10", "ibp206s0"),
        (0xd9, 0xdc, 0xdf, 1, "mlx5_11", "ibp220s0"),
    ];
    for (root, card, gpu, node, name, interface) in rows {
        let switch = format!(
            "pci0000:{root:02x}/0000:{root:02x}:01.0/0000:{:02x}:00.0",
            root + 1
        );
        let ports = root + 2;
        let way = format!("{switch}/0000:{ports:02x}:00.0/0000:{card:02x}:00.0");
        build.pci(&way, node, CONNECTX_7);
        build.hca(name, &way, NDR, "InfiniBand", "ACTIVE");
        infiniband(&mut build, interface, &way);
        let below = format!("{switch}/0000:{ports:02x}:02.0/0000:{:02x}:00.0", card + 1);
        let way = format!("{below}/0000:{:02x}:00.0/0000:{gpu:02x}:00.0", card + 2);
        build.gpu(&way, node, H100, "NVIDIA H100 80GB HBM3");
    }
    storage(&mut build);
    nvswitches(&mut build);
    build.nvswitch(18);
    let way = "pci0000:00/0000:00:1c.4/0000:0b:00.0";
    build.pci(way, 0, nic(0x02_0000, 0x8086, 0x1563, 50));
    build.ethernet("eno3", way, 10_000, Some("10.20.0.7/24"));
    build.default_route("eno3");
    build.docker();
    build
        .tree
        .put("sys/module/nvidia_peermem/version", "550.54.15");
    build.done(true)
}

/// Two cards of two ports, for storage and management.
fn storage(build: &mut Build) {
    for (root, bus, node, names) in [
        (0x26, 0x29, 0, ["mlx5_1", "mlx5_2"]),
        (0xa7, 0xaa, 1, ["mlx5_7", "mlx5_8"]),
    ] {
        let port = format!("pci0000:{root:02x}/0000:{root:02x}:01.0");
        let [infiniband_port, ethernet_port] = names;
        let way = format!("{port}/0000:{bus:02x}:00.0");
        build.pci(&way, node, CONNECTX_7);
        build.hca(infiniband_port, &way, NDR, "InfiniBand", "ACTIVE");
        infiniband(build, &format!("ibp{bus}s0f0"), &way);
        let way = format!("{port}/0000:{bus:02x}:00.1");
        build.pci(&way, node, CONNECTX_7_ETHERNET);
        build.hca(
            ethernet_port,
            &way,
            "100 Gb/sec (4X EDR)",
            "Ethernet",
            "ACTIVE",
        );
        let interface = format!("enp{bus}s0f1np1");
        let address = (node == 0).then_some("10.10.0.7/16");
        build.ethernet(&interface, &way, 100_000, address);
        if node == 0 {
            build.gid(
                ethernet_port,
                "0000:0000:0000:0000:0000:ffff:0a0a:0007",
                &interface,
            );
        }
    }
}

/// On the PCI bus, for their management.
fn nvswitches(build: &mut Build) {
    for bus in 5..9 {
        let switch = Kind {
            class: 0x06_8000,
            vendor: 0x10de,
            device: 0x22a3,
            link: (50, 2),
        };
        let way = format!(
            "pci0000:00/0000:00:0e.0/0000:02:00.0/0000:03:{:02x}.0/0000:{bus:02x}:00.0",
            bus - 5
        );
        build.pci(&way, 0, switch);
    }
}

fn infiniband(build: &mut Build, name: &str, way: &str) {
    let files = [
        ("type", "32"),
        ("speed", "400000"),
        ("carrier", "1"),
        ("operstate", "up"),
    ];
    build.interface(name, &files, Some(way));
    build.address(name, "up,running", "");
}

/// An HGX H100 board of eight GPUs behind four PCIe switches, each with two GPUs and one card of
/// 400 Gb/s Ethernet, as many makers build it.
pub(crate) fn hgx_4_nics() -> Tree {
    let mut build = Build::new("Example", "HGX H100, 4 NICs");
    build.cpus("AuthenticAMD", 2, 2, 48, 2);
    for (number, (root, node)) in [(0x00, 0), (0x40, 0), (0x80, 1), (0xc0, 1)]
        .into_iter()
        .enumerate()
    {
        let (up, ports) = (root + 1, root + 2);
        let switch = format!("pci0000:{root:02x}/0000:{root:02x}:01.1/0000:{up:02x}:00.0");
        for port in 0..2 {
            let way = format!(
                "{switch}/0000:{ports:02x}:{port:02x}.0/0000:{:02x}:00.0",
                root + 3 + port
            );
            build.gpu(&way, node, H100, "NVIDIA H100 80GB HBM3");
        }
        let way = format!("{switch}/0000:{ports:02x}:02.0/0000:{:02x}:00.0", root + 5);
        build.pci(&way, node, CONNECTX_7_ETHERNET);
        let (name, interface) = (format!("mlx5_{number}"), format!("rail{number}"));
        build.hca(&name, &way, NDR, "Ethernet", "ACTIVE");
        build.ethernet(
            &interface,
            &way,
            400_000,
            Some(&format!("10.{number}.0.3/16")),
        );
        build.gid(
            &name,
            &format!("0000:0000:0000:0000:0000:ffff:0a{number:02x}:0003"),
            &interface,
        );
    }
    build.nvswitch(18);
    let way = "pci0000:e0/0000:e0:03.1/0000:e1:00.0";
    build.pci(way, 1, nic(0x02_0000, 0x8086, 0x1563, 50));
    build.ethernet("eno1", way, 1_000, Some("10.30.0.3/24"));
    build.default_route("eno1");
    build.docker();
    build.done(true)
}

/// A virtual machine with eight A100 in the form of Amazon's p4d: each device on a root bus, no
/// switches, no NUMA nodes; `topology.xml` tells what hides behind that.
pub(crate) fn cloud_vm() -> Tree {
    let mut build = Build::new("Amazon EC2", "p4d.24xlarge");
    build.cpus("GenuineIntel", 2, 2, 24, 2);
    for root in [0x10, 0x20, 0x90, 0xa0] {
        let adapter = nic(0x02_0000, 0x1d0f, 0xefa1, 80);
        let way = format!("pci0000:{root:02x}/0000:{root:02x}:1b.0");
        build.pci(&way, -1, adapter);
        let name = format!("rdmap{root}s27");
        build.hca(&name, &way, "100 Gb/sec (4X EDR)", "Unspecified", "ACTIVE");
        for device in [0x1c, 0x1d] {
            let way = format!("pci0000:{root:02x}/0000:{root:02x}:{device:02x}.0");
            build.gpu(&way, -1, A100, "NVIDIA A100-SXM4-40GB");
        }
    }
    build.nvswitch(12);
    let way = "pci0000:00/0000:00:05.0";
    build.pci(way, -1, nic(0x02_0000, 0x1d0f, 0xec20, 0));
    build.interface(
        "ens5",
        &[
            ("type", "1"),
            ("carrier", "1"),
            ("operstate", "up"),
            ("mtu", "9001"),
        ],
        Some(way),
    );
    build.address("ens5", "up,running", "172.31.5.20/20");
    build.default_route("ens5");
    build.docker();
    build.done(true)
}

/// NVIDIA DGX-1 with V100: NVLinks from GPU to GPU, of which some pairs have none.
pub(crate) fn dgx_1v() -> Tree {
    let mut build = Build::new("NVIDIA", "DGX-1 with V100-32");
    build.cpus("GenuineIntel", 2, 2, 20, 2);
    for (number, (root, port, bus, node)) in [
        (0x00, 2, 0x03, 0),
        (0x00, 3, 0x08, 0),
        (0x80, 2, 0x82, 1),
        (0x80, 3, 0x87, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let up = format!("pci0000:{root:02x}/0000:{root:02x}:{port:02x}.0/0000:{bus:02x}:00.0");
        let ports = bus + 1;
        let device = |at: u32| {
            format!(
                "{up}/0000:{ports:02x}:{:02x}.0/0000:{:02x}:00.0",
                8 + at * 4,
                bus + 2 + at
            )
        };
        build.pci(&device(0), node, CONNECTX_4);
        build.hca(
            &format!("mlx5_{number}"),
            &device(0),
            "100 Gb/sec (4X EDR)",
            "InfiniBand",
            "ACTIVE",
        );
        build.gpu(&device(1), node, V100, "Tesla V100-SXM2-32GB");
        build.gpu(&device(2), node, V100, "Tesla V100-SXM2-32GB");
    }
    for (a, b, links) in [
        (0, 1, 1),
        (0, 2, 1),
        (0, 3, 2),
        (0, 4, 2),
        (1, 2, 2),
        (1, 3, 1),
        (1, 5, 2),
        (2, 3, 2),
        (2, 6, 1),
        (3, 7, 1),
        (4, 5, 1),
        (4, 6, 1),
        (4, 7, 2),
        (5, 6, 2),
        (5, 7, 1),
        (6, 7, 2),
    ] {
        build.nvlink(a, b, links);
    }
    let way = "pci0000:00/0000:00:1c.0/0000:01:00.0";
    build.pci(way, 0, nic(0x02_0000, 0x8086, 0x1528, 50));
    build.ethernet("enp1s0f0", way, 10_000, Some("10.40.0.2/24"));
    build.default_route("enp1s0f0");
    build.done(true)
}
