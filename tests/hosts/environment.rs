//! What ranks are given: their numbers, the meeting point, arguments and variables.

use crate::common::{cluster, rlaunch, run_well, write};
use rlaunch_harness::{Nic, Running};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::common::JOB_LIMIT;

/// `NAME=VALUE` lines of each rank, by rank.
fn ranks(stdout: &str) -> BTreeMap<u32, BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for line in stdout.lines() {
        let mut variables: BTreeMap<String, String> = BTreeMap::new();
        for word in line.split(' ') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            variables.insert(name.to_owned(), value.to_owned());
        }
        let rank = variables["RANK"]
            .parse()
            .unwrap_or_else(|_| panic!("no rank in {line}"));
        assert!(
            all.insert(rank, variables).is_none(),
            "rank {rank} twice in {stdout}"
        );
    }
    all
}

const NAMES: &[&str] = &[
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_COMM_WORLD_NODE_RANK",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "HERE",
];

fn show() -> String {
    let words: Vec<String> = NAMES.iter().map(|name| format!("{name}=${name}")).collect();
    format!("HERE=$(hostname); echo {}", words.join(" "))
}

/// Every rank gets its numbers; hosts are filled in the hostfile's order.
#[test]
fn numbers_of_ranks() {
    let Some(cluster) = cluster(2) else { return };
    write(
        &cluster,
        "head",
        "/job/uneven",
        "node2 slots=3\nnode1 slots=1\n",
    );
    let finished = run_well(&cluster, &["-hostfile", "uneven", "/bin/sh", "-c", &show()]);
    let ranks = ranks(&finished.stdout);
    assert_eq!(ranks.len(), 4, "{}", finished.report());
    for (rank, variables) in &ranks {
        let (host, group, local, local_size) = if *rank < 3 {
            ("node2", 0, *rank, 3)
        } else {
            ("node1", 1, 0, 1)
        };
        let expected = [
            ("HERE", host.to_owned()),
            ("LOCAL_RANK", local.to_string()),
            ("WORLD_SIZE", "4".to_owned()),
            ("LOCAL_WORLD_SIZE", local_size.to_string()),
            ("GROUP_RANK", group.to_string()),
            ("NODE_RANK", group.to_string()),
            ("OMPI_COMM_WORLD_RANK", rank.to_string()),
            ("OMPI_COMM_WORLD_SIZE", "4".to_owned()),
            ("OMPI_COMM_WORLD_LOCAL_RANK", local.to_string()),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", local_size.to_string()),
            ("OMPI_COMM_WORLD_NODE_RANK", local.to_string()),
            ("MPI_LOCALRANKID", local.to_string()),
            ("MPI_LOCALNRANKS", local_size.to_string()),
        ];
        for (name, value) in expected {
            assert_eq!(variables[name], value, "{name} of rank {rank}");
        }
        assert_eq!(variables["MASTER_ADDR"], ranks[&0]["MASTER_ADDR"]);
        assert_eq!(variables["MASTER_PORT"], ranks[&0]["MASTER_PORT"]);
    }
    let port: u16 = ranks[&0]["MASTER_PORT"].parse().unwrap();
    assert_ne!(port, 0);
}

/// docker0 and virbr0 have the same address everywhere; the meeting point must be rank 0's host.
#[test]
fn meeting_point_is_no_decoy() {
    let Some(cluster) = cluster(2) else { return };
    let finished = run_well(&cluster, &["-hostfile", "hosts", "/bin/sh", "-c", &show()]);
    let address = &ranks(&finished.stdout)[&0]["MASTER_ADDR"];
    let own = ["10.77.0.1", "10.78.0.1", "fd77::1", "fd78::1"];
    assert!(own.contains(&address.as_str()), "{address}");
}

/// An address that one host can't reach is not taken, whatever its place in rank 0's list.
#[test]
fn meeting_point_is_proven() {
    let Some(cluster) = cluster(2) else { return };
    cluster.unplug("node2", Nic::Eth0).unwrap();
    let finished = run_well(
        &cluster,
        &["-H", "node1-ib,node2-ib", "/bin/sh", "-c", &show()],
    );
    let address = &ranks(&finished.stdout)[&0]["MASTER_ADDR"];
    assert!(
        ["10.78.0.1", "fd78::1"].contains(&address.as_str()),
        "{address}"
    );
}

/// Arguments and variables arrive byte for byte, through every shell on the way.
#[test]
fn arguments_and_variables_byte_for_byte() {
    let Some(cluster) = cluster(1) else { return };
    let odd: &[&[u8]] = &[
        b"",
        b"two words",
        b"a b",
        b"it's",
        b"\"quoted\"",
        b"$HOME",
        b"$HOME `id` $(id)",
        b"back\\slash\\n",
        b"*",
        b"new\nline",
        b"tab\there",
        "\u{e9}\u{1f600}".as_bytes(),
        b"\xff\xfe",
        b"-np",
        b"--",
        b"!x",
        b"a;b&c|d",
    ];
    // All that one byte can be but NUL, and 100 kB of it.
    let every: Vec<u8> = (1..=255).collect();
    let long: Vec<u8> = every.iter().copied().cycle().take(100_000).collect();
    let variables: &[(&str, &[u8])] = &[
        ("ODD", b"line one\nline 'two' $X \"three\" `id` $(id) \xff"),
        ("EVERY", &every),
        ("LONG", &long),
        ("EMPTY", b""),
        ("EQUALS", b"a=b=c"),
        ("BLANKS", b" a  b "),
        ("SLURM_JOB_CPUS_PER_NODE", b"64(x2)"),
        // As bash exports a function.
        ("BASH_FUNC_mine%%", b"() {  echo \"mine `id` $1\";\n}"),
    ];
    let mut command = rlaunch(
        &cluster,
        &["-np", "1", "-H", "node1", "-x", "GIVEN=it's $HOME"],
    );
    for (name, value) in variables {
        command.env(name, OsStr::from_bytes(value));
    }
    command.args(["/bin/sh", "-c", DUMP, "sh"]);
    command.args(odd.iter().map(|word| OsStr::from_bytes(word)));
    let finished = Running::start(command).unwrap().wait(JOB_LIMIT).unwrap();
    assert!(finished.success(), "{}", finished.report());
    let mut lines = finished.stdout.lines();
    for word in odd {
        assert_eq!(
            lines.next(),
            Some(format!("<{}>", hex(word)).as_str()),
            "{word:?}"
        );
    }
    let environment = lines.next().expect("a line with the environment");
    // Variables are parted by a NUL; the hexadecimal digits of a byte never lie across one.
    let bytes: Vec<&str> = (0..environment.len() / 2)
        .map(|at| &environment[2 * at..2 * at + 2])
        .collect();
    let found: Vec<String> = bytes
        .split(|byte| *byte == "00")
        .map(<[_]>::concat)
        .collect();
    let given: [(&str, &[u8]); 1] = [("GIVEN", b"it's $HOME")];
    for (name, value) in variables.iter().chain(&given) {
        let expected = hex(&[name.as_bytes(), b"=", value].concat());
        assert!(found.contains(&expected), "{name}");
    }
}

/// Each argument in hexadecimal on a line of its own, then all that this shell was started with. (Its
/// own variables lack what is no name to it.)
const DUMP: &str = "for word; do printf '<'; printf '%s' \"$word\" | od -An -v -tx1 | tr -d ' \\n'; \
                    echo '>'; done; od -An -v -tx1 /proc/$$/environ | tr -d ' \\n'; echo";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
