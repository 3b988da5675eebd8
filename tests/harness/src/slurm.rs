//! A real Slurm over a [`Cluster`]: the controller on head, a daemon on every node, and on each host
//! a munged with the cluster's one key.
//!
//! Hosts keep their names and addresses; each node claims eight cores, whatever this machine has.
//! The daemons run in the foreground below this process and end when this is dropped.

use crate::cluster::Cluster;
use crate::error::{HarnessError, failed};
use crate::requirements;
use crate::run::Running;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// From the daemons' start until every node may be used.
const READY_LIMIT: Duration = Duration::from_secs(60);
const KEY: &str = "/etc/munge/munge.key";

/// Cores that each node claims.
pub const SLURM_CORES: u32 = 8;

pub struct Slurm {
    // The controller first: without it nothing is started on nodes that go.
    _controller: Running,
    _nodes: Vec<Running>,
    _munge: Vec<Running>,
}

/// Why no Slurm can be run here, for a test that then says so and stops; none if one can.
pub fn slurm_unavailable() -> Option<String> {
    let missing = requirements::check().and_then(|()| requirements::check_slurm());
    missing.err().map(|error| error.to_string())
}

impl Slurm {
    /// Returns when all nodes are idle.
    pub fn up(cluster: &Cluster) -> Result<Self, HarnessError> {
        requirements::check_slurm()?;
        let key = key()?;
        let nodes = cluster.hosts().len() - 1;
        for host in cluster.hosts() {
            prepare(cluster, host, &key, nodes)?;
        }
        let start = |host: &String, words: &[&str]| cluster.spawn(host, words);
        let munge = cluster.hosts().iter();
        let munge: Vec<Running> = munge
            .map(|host| start(host, &["/usr/sbin/munged", "--foreground", "--force"]))
            .collect::<Result<_, _>>()?;
        for host in cluster.hosts() {
            await_file(cluster, host, "/run/munge/munge.socket.2")?;
        }
        let controller = start(&cluster.hosts()[0], &["/usr/sbin/slurmctld", "-D"])?;
        let daemons = cluster.hosts()[1..].iter();
        let daemons: Vec<Running> = daemons
            .map(|host| start(host, &["/usr/sbin/slurmd", "-D"]))
            .collect::<Result<_, _>>()?;
        let slurm = Self {
            _controller: controller,
            _nodes: daemons,
            _munge: munge,
        };
        slurm.await_idle(cluster, nodes)?;
        Ok(slurm)
    }

    fn await_idle(&self, cluster: &Cluster, nodes: usize) -> Result<(), HarnessError> {
        let start = Instant::now();
        loop {
            let seen = cluster.exec("head", &["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"])?;
            if seen.stdout.lines().count() == nodes {
                return Ok(());
            }
            if start.elapsed() > READY_LIMIT {
                let logs = [&self._controller].into_iter().chain(&self._nodes);
                let logs: Vec<String> = logs.map(Running::stderr).collect();
                return Err(HarnessError::TooLong {
                    what: "waiting for Slurm's nodes".to_owned(),
                    limit: READY_LIMIT,
                    detail: format!("\n{}\n{}", seen.report(), logs.join("\n--\n")),
                });
            }
            std::thread::sleep(Duration::from_millis(50)); // it tells nobody when it is ready
        }
    }
}

/// Files and mounts of one host.
fn prepare(cluster: &Cluster, host: &str, key: &[u8], nodes: usize) -> Result<(), HarnessError> {
    // slurmd refuses to start where no file system is mounted there, even if it uses no cgroups.
    let line = "mkdir -p /etc/munge /etc/slurm /run/munge /var/lib/munge /var/log/munge \
                /var/spool/slurmd /var/spool/slurmctld /var/log/slurm && \
                mount -t tmpfs cgroup /sys/fs/cgroup";
    let made = cluster.shell(host, line)?;
    if !made.success() {
        return Err(HarnessError::Tool {
            program: format!("/bin/sh on {host}"),
            message: made.stderr,
        });
    }
    let files = [
        ("/etc/slurm/slurm.conf", configuration(nodes).into_bytes()),
        ("/etc/slurm/cgroup.conf", CGROUP.as_bytes().to_vec()),
        (KEY, key.to_vec()),
    ];
    for (path, bytes) in files {
        let seen = cluster.path_on(host, path)?;
        // The package's own key is read-only and another user's.
        fs::remove_file(&seen).ok();
        fs::write(&seen, bytes)
            .and_then(|()| fs::set_permissions(&seen, fs::Permissions::from_mode(0o600)))
            .map_err(failed(format!("write {path} of {host}")))?;
    }
    Ok(())
}

fn key() -> Result<Vec<u8>, HarnessError> {
    let mut key = vec![0; 128];
    fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut key))
        .map_err(failed("read /dev/urandom"))?;
    Ok(key)
}

fn await_file(cluster: &Cluster, host: &str, path: &str) -> Result<(), HarnessError> {
    let seen = cluster.path_on(host, path)?;
    let start = Instant::now();
    while !seen.exists() {
        if start.elapsed() > READY_LIMIT {
            return Err(HarnessError::TooLong {
                what: format!("waiting for {path} on {host}"),
                limit: READY_LIMIT,
                detail: String::new(),
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Nothing that needs cgroups, accounting or a device; all waits as short as they can be.
fn configuration(nodes: usize) -> String {
    format!(
        "ClusterName=rlaunch\n\
         SlurmctldHost=head\n\
         SlurmUser=root\n\
         AuthType=auth/munge\n\
         CredType=cred/munge\n\
         StateSaveLocation=/var/spool/slurmctld\n\
         SlurmdSpoolDir=/var/spool/slurmd\n\
         SlurmctldPidFile=/run/slurmctld.pid\n\
         SlurmdPidFile=/run/slurmd.pid\n\
         ProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\n\
         JobAcctGatherType=jobacct_gather/none\n\
         MpiDefault=none\n\
         SwitchType=switch/none\n\
         SelectType=select/cons_tres\n\
         SelectTypeParameters=CR_Core\n\
         SlurmdParameters=config_overrides\n\
         ReturnToService=2\n\
         SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0\n\
         InactiveLimit=0\n\
         KillWait=2\n\
         LaunchParameters=use_interactive_step\n\
         NodeName=node[1-{nodes}] Sockets=1 CoresPerSocket={SLURM_CORES} ThreadsPerCore=1 \
         RealMemory=1000 State=UNKNOWN\n\
         PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO\n"
    )
}

const CGROUP: &str = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n";
