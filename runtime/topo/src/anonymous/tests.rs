use super::*;

const BEFORE: &str = "\
rlaunch machine 1
proc
  driver
    nvidia
      gpus
        0000:01:00.0
          information = GPU-2fd5b1a3-77c1-4d0e-9f52-0a1b2c3d4e5f
  net
    route = |
      Iface\tDestination\tGateway
      enx00a1b2c3d4e5\t00000000\t0103070A
      ib0\t0003070A\t00000000
  self
    cgroup = |
      1:cpu,cpuacct:/slurm/uid_1000/job_77
      0::/user-1000.slice
rlaunch
  addresses = |
    lo up,loopback 127.0.0.1/8
    enx00a1b2c3d4e5 up 10.7.3.9/24
    enx00a1b2c3d4e5 up fe80::2a1:b2ff:fec3:d4e5/64
    ib0 -
  nccl_topo_file = <cpu host_hash=\"0x1234abcd\"><net guid=\"0xb59f7b0003a1420\" port=\"1\"/></cpu>
  nvml = {\"uuid\":\"GPU-2fd5b1a3-77c1-4d0e-9f52-0a1b2c3d4e5f\",\"x\":\"MIG-2fd5b1a3-77c1-4d0e-9f52-0a1b2c3d4e5f\"}
sys
  class
    infiniband
      mlx5_0
        ports
          1
            gids
              0 = fe80:0000:0000:0000:02a1:b2ff:fec3:d4e5
              3 = 0000:0000:0000:0000:0000:ffff:0a07:0309
    net
      enx00a1b2c3d4e5 -> ../../devices/usb1/net/enx00a1b2c3d4e5
  fs
    cgroup
      cpu,cpuacct
        slurm
          uid_1000
            cpu.cfs_quota_us = -1
";

const AFTER: &str = "\
rlaunch machine 1
proc
  driver
    nvidia
      gpus
        0000:01:00.0
          information = GPU-00000000-0000-0000-0000-000000000001
  net
    route = |
      Iface\tDestination\tGateway
      enx000000000002\t00000000\t00000000
      ib0\t00000001\t00000000
  self
    cgroup = |
      1:cpu,cpuacct:/group1/group2/group3
      0::/group4
rlaunch
  addresses = |
    lo up,loopback 127.0.0.1/8
    enx000000000002 up 198.18.0.1/24
    enx000000000002 up fe80::2/64
    ib0 -
  nccl_topo_file = <cpu host_hash=\"0x000000000004\"><net guid=\"0x000000000003\" port=\"1\"/></cpu>
  nvml = {\"uuid\":\"GPU-00000000-0000-0000-0000-000000000001\",\"x\":\"MIG-00000000-0000-0000-0000-000000000005\"}
sys
  class
    infiniband
      mlx5_0
        ports
          1
            gids
              0 = fe80:0000:0000:0000:0000:0000:0000:0002
              3 = 0000:0000:0000:0000:0000:ffff:c612:0001
    net
      enx000000000002 -> ../../devices/usb1/net/enx000000000002
  fs
    cgroup
      cpu,cpuacct
        group1
          group2
            cpu.cfs_quota_us = -1
";

#[test]
fn nothing_is_left_that_names_the_machine() {
    let found = anonymous(&Tree::parse(BEFORE).unwrap());
    assert_eq!(found.write(), AFTER);
    assert_eq!(Tree::parse(AFTER).unwrap(), found);
}
