use super::*;
use crate::PlacementRequest;
use crate::allocation::{Allocation, parse_host_list};
use crate::placement::place;
use crate::{hostfile, names};

fn read(variables: &[(&str, &str)]) -> Result<Option<SlurmJob>, SlurmError> {
    SlurmJob::read(&|name| {
        let found = variables.iter().find(|(known, _)| *known == name)?;
        Some(found.1.to_owned())
    })
}

fn nodes(job: &SlurmJob) -> Vec<(&str, u32)> {
    let nodes = job.nodes.iter();
    nodes.map(|node| (node.name.as_str(), node.tasks)).collect()
}

fn text(error: Result<Option<SlurmJob>, SlurmError>) -> String {
    error.unwrap_err().to_string()
}

#[test]
fn node_lists_are_expanded() {
    for (list, expected) in [
        ("node4", "node4"),
        ("node[1-2]", "node1 node2"),
        ("node[1-2,4]", "node1 node2 node4"),
        ("n[01-03,07],gpu5", "n01 n02 n03 n07 gpu5"),
        ("gpu[001-003,10],cpu7", "gpu001 gpu002 gpu003 gpu10 cpu7"),
        ("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"),
        ("gpu[9-11]", "gpu9 gpu10 gpu11"),
        ("a,b,c", "a b c"),
    ] {
        assert_eq!(expand_nodes(list).unwrap().join(" "), expected, "{list}");
    }
}

#[test]
fn bad_node_lists_are_refused() {
    for list in [
        "",
        ",",
        "a,,b",
        "n[1-2",
        "n1]",
        "n[2-1]",
        "n[a]",
        "-n",
        "a b",
        "n[1-99999999]",
        "n[[1]]",
    ] {
        assert!(expand_nodes(list).is_err(), "{list}");
    }
}

#[test]
fn counts_are_expanded() {
    for (list, expected) in [
        ("8", vec![8]),
        ("3,1", vec![3, 1]),
        ("5,1(x2)", vec![5, 1, 1]),
        ("8(x2),4", vec![8, 8, 4]),
        ("0(x1)", vec![0]),
    ] {
        assert_eq!(expand_counts(list).unwrap(), expected, "{list}");
    }
    for list in [
        "",
        "x",
        "1(2)",
        "1(x)",
        "1(x2",
        "(x2)",
        "1(x-2)",
        "+1",
        "1(x99999999)",
        "1,",
        "99999999",
    ] {
        assert!(expand_counts(list).is_err(), "{list}");
    }
}

#[test]
fn compressed_lists_expand_to_the_same() {
    for names in [
        &["node1", "node2", "node4"][..],
        &["n01", "n02", "n10", "n9"],
        &["n08", "n09", "n10"],
        &["n9", "n10", "n011"],
        &["a", "b", "a"],
        &["n2", "n1", "x", "n3"],
        &["r1n1", "r1n2", "r2n1"],
        &["n99999999999999999999", "n1"],
        &["0", "1"],
    ] {
        let list = names::compressed(names.iter().copied());
        assert_eq!(expand_nodes(&list).unwrap(), names, "{list}");
    }
    assert_eq!(
        names::compressed(["node1", "node2", "node4", "gpu07"].into_iter()),
        "node[1-2,4],gpu07"
    );
    assert_eq!(compress::counts([3, 1, 1].into_iter()), "3,1(x2)");
    assert_eq!(compress::counts([8, 8].into_iter()), "8(x2)");
}

#[test]
fn a_job_is_read_from_its_variables() {
    assert_eq!(read(&[("SLURM_CONF", "/etc/slurm.conf")]), Ok(None));
    let job = read(&[
        ("SLURM_JOB_ID", "7"),
        ("SLURM_JOB_NODELIST", "node[1-3]"),
        ("SLURM_TASKS_PER_NODE", "5,1(x2)"),
        ("SLURM_JOB_CPUS_PER_NODE", "6,1(x2)"),
    ]);
    let job = job.unwrap().unwrap();
    assert_eq!(job.id, "7");
    assert_eq!(nodes(&job), [("node1", 5), ("node2", 1), ("node3", 1)]);
    assert_eq!(job.nodes[0].cpus, Some(6));
}

/// An interactive step's variables tell of its one task; the job's count.
#[test]
fn the_job_counts_not_the_step() {
    let job = read(&[
        ("SLURM_JOB_ID", "7"),
        ("SLURM_JOB_NODELIST", "node[1-2]"),
        ("SLURM_TASKS_PER_NODE", "3,1"),
        ("SLURM_STEP_NODELIST", "node1"),
        ("SLURM_STEP_NUM_TASKS", "1"),
        ("SLURM_STEP_TASKS_PER_NODE", "1"),
    ]);
    assert_eq!(nodes(&job.unwrap().unwrap()), [("node1", 3), ("node2", 1)]);
}

#[test]
fn components_of_a_heterogeneous_job_follow_each_other() {
    for word in ["HET", "PACK"] {
        let name = |text: &str| text.replace("HET", word);
        let names = [
            name("SLURM_HET_SIZE"),
            name("SLURM_JOB_NODELIST_HET_GROUP_0"),
            name("SLURM_TASKS_PER_NODE_HET_GROUP_0"),
            name("SLURM_JOB_NODELIST_HET_GROUP_1"),
            name("SLURM_TASKS_PER_NODE_HET_GROUP_1"),
        ];
        let values = ["2", "node1", "3", "node[2-3]", "1(x2)"];
        let mut variables: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(values).collect();
        // A batch script of such a job has those of its first component too.
        variables.extend([
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOB_NODELIST", "node1"),
            ("SLURM_TASKS_PER_NODE", "3"),
        ]);
        let job = read(&variables).unwrap().unwrap();
        assert_eq!(
            nodes(&job),
            [("node1", 3), ("node2", 1), ("node3", 1)],
            "{word}"
        );
    }
}

#[test]
fn what_is_missing_or_does_not_fit_is_said() {
    let id = ("SLURM_JOB_ID", "7");
    let missing = text(read(&[id]));
    assert!(
        missing.starts_with("inside Slurm job 7, but SLURM_JOB_NODELIST is not set"),
        "{missing}"
    );
    let missing = text(read(&[id, ("SLURM_NODELIST", "a")]));
    assert!(
        missing.contains("SLURM_TASKS_PER_NODE is not set"),
        "{missing}"
    );
    let list = ("SLURM_JOB_NODELIST", "n[1-2");
    let bad = text(read(&[id, list, ("SLURM_TASKS_PER_NODE", "1(x2)")]));
    assert!(
        bad.starts_with("SLURM_JOB_NODELIST=n[1-2: `n[1-2`: `[` without `]`"),
        "{bad}"
    );
    let list = ("SLURM_JOB_NODELIST", "n[1-2]");
    let counts = text(read(&[id, list, ("SLURM_TASKS_PER_NODE", "1")]));
    assert!(
        counts.starts_with(
            "SLURM_JOB_NODELIST=n[1-2] is 2 hosts, but SLURM_TASKS_PER_NODE=1 is for 1"
        ),
        "{counts}"
    );
    let tasks = ("SLURM_STEP_NUM_TASKS", "4");
    let many = text(read(&[id, list, ("SLURM_TASKS_PER_NODE", "2(x2)"), tasks]));
    assert!(
        many.starts_with("this is one of 4 tasks of a step of Slurm job 7"),
        "{many}"
    );
    let size = text(read(&[id, ("SLURM_HET_SIZE", "4000000000")]));
    assert!(
        size.starts_with("SLURM_HET_SIZE=4000000000: expected"),
        "{size}"
    );
}

#[test]
fn names_may_differ_by_their_domain() {
    assert!(same_host("node1", "NODE1.cluster.org"));
    assert!(same_host("node1.cluster.org", "node1"));
    assert!(!same_host("node1.a.org", "node1.b.org"));
    assert!(!same_host("node1", "node11"));
    assert!(!same_host("10", "10.77.0.1"));
}

/// Every rank reads its own numbers, as srun would have told them.
#[test]
fn each_rank_gets_a_tasks_variables() {
    let job = SlurmJob {
        id: "7".into(),
        nodes: ["node1", "node2", "node3"]
            .map(|name| SlurmNode {
                name: name.into(),
                tasks: 2,
                cpus: Some(4),
                address: None,
            })
            .into(),
    };
    let allocation = job.allocation();
    let request = PlacementRequest {
        ranks: Some(3),
        ..PlacementRequest::default()
    };
    let placement = place(&allocation, &[request]).unwrap();
    let step = Step::new(&job, &allocation, &placement);
    let value = |rank, name: &str| {
        let variables = step.variables(&placement, rank);
        let found = variables.into_iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("no {name}")).1
    };
    for (rank, name, expected) in [
        (0, "SLURM_PROCID", "0"),
        (2, "SLURM_PROCID", "2"),
        (1, "SLURM_LOCALID", "1"),
        (2, "SLURM_LOCALID", "0"),
        (2, "SLURM_NODEID", "1"),
        (0, "SLURM_GTIDS", "0,1"),
        (2, "SLURMD_NODENAME", "node2"),
        (2, "SLURM_CPUS_ON_NODE", "4"),
        (2, "SLURM_NTASKS", "3"),
        (0, "SLURM_STEP_NODELIST", "node[1-2]"),
        (0, "SLURM_STEP_TASKS_PER_NODE", "2,1"),
        (0, "SLURM_STEP_NUM_NODES", "2"),
    ] {
        assert_eq!(value(rank, name), expected, "{name} of rank {rank}");
    }
    let all = step.variables(&placement, 0);
    assert!(
        all.iter()
            .all(|(name, _)| is_set_for_each_rank(name.as_bytes()))
    );
}

fn three_nodes() -> SlurmJob {
    let variables = [
        ("SLURM_JOB_ID", "7"),
        ("SLURM_JOB_NODELIST", "node[1-3]"),
        ("SLURM_TASKS_PER_NODE", "4,2(x2)"),
    ];
    read(&variables).unwrap().unwrap()
}

/// Name and slots.
fn slots(allocation: &Allocation) -> Vec<(String, Option<u32>)> {
    let hosts = allocation.hosts.iter();
    hosts
        .map(|it| (it.host.to_string(), it.slots.known()))
        .collect()
}

#[test]
fn a_host_list_picks_within_the_allocation() {
    let job = three_nodes();
    let select = |list: &str| {
        let list = parse_host_list(list).unwrap();
        job.select(&list, false, |name| name == "localhost" || name == "node1")
    };
    let some = select("me@node3,node1.lan:3,node2:*").unwrap();
    let expected = [("me@node3", 2), ("node1.lan", 3), ("node2", 2)]
        .map(|(name, slots)| (name.to_owned(), Some(slots)));
    assert_eq!(slots(&some), expected);
    assert_eq!(
        slots(&select("localhost").unwrap()),
        [("node1".to_owned(), Some(4))]
    );
    let other = select("node1,node9").unwrap_err().to_string();
    assert!(
        other.starts_with("node9 is not among the hosts of Slurm job 7: node1, node2, node3\n"),
        "{other}"
    );
    let more = select("node2:3").unwrap_err().to_string();
    assert!(
        more.starts_with("-H node2:3: Slurm job 7 gives it 2\n"),
        "{more}"
    );
    let list = parse_host_list("node2:3").unwrap();
    let over = job.select(&list, true, |_| false).unwrap();
    assert_eq!(slots(&over), [("node2".to_owned(), Some(3))]);
}

#[test]
fn a_hostfile_within_the_allocation_has_the_last_word_on_slots() {
    let job = three_nodes();
    let fit = |text: &str| {
        let file = hostfile::parse("hosts", text.as_bytes()).unwrap();
        let mut allocation = Allocation::from_hostfile(&file);
        job.fit(&mut allocation, |_| false).map(|()| allocation)
    };
    let fitted = fit("node2\nnode1 slots=8\nnode3 max_slots=1\n").unwrap();
    let expected = [("node2", 2), ("node1", 8), ("node3", 1)]
        .map(|(name, slots)| (name.to_owned(), Some(slots)));
    assert_eq!(slots(&fitted), expected);
    assert!(fit("node1\nlocalhost\n").is_err());
}

/// Nodes of a cloud have names that may not resolve.
#[test]
fn aliases_tell_where_nodes_are_reached() {
    let job = |aliases: &'static str| {
        let variables = [
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOB_NODELIST", "node[1-3]"),
            ("SLURM_TASKS_PER_NODE", "2(x3)"),
            ("SLURM_NODE_ALIASES", aliases),
        ];
        read(&variables)
            .map(Option::unwrap)
            .map_err(|error| error.to_string())
    };
    let names = |allocation: &Allocation| {
        let hosts = allocation.hosts.iter().map(|it| it.host.to_string());
        hosts.collect::<Vec<_>>().join(" ")
    };
    for (aliases, expected) in [
        (
            "node1:10.0.0.7:foo,node3:[fd00::8]:bar",
            "10.0.0.7 node2 fd00::8",
        ),
        (
            "node2:[10.0.0.8]:x,other:10.0.0.9:y,",
            "node1 10.0.0.8 node3",
        ),
        ("(null)", "node1 node2 node3"),
        ("node1:node1:node1", "node1 node2 node3"),
    ] {
        let found = job(aliases).unwrap();
        assert_eq!(
            names(&found.allocation()).replace(['[', ']'], ""),
            expected,
            "{aliases}"
        );
    }
    let found = job("node1:10.0.0.7:foo").unwrap();
    let list = parse_host_list("me@node1,10.0.0.7,node2").unwrap();
    let chosen = found.select(&list, false, |_| false).unwrap();
    assert_eq!(names(&chosen), "me@10.0.0.7 10.0.0.7 node2");
    assert_eq!(found.node("10.0.0.7").unwrap().name, "node1");
    for wrong in [
        "node1",
        "node1:10.0.0.7",
        "node1::foo",
        "node1:fd00::8:foo",
        "node1:[fd00::8:foo",
        ":a:b",
    ] {
        let error = job(wrong).unwrap_err();
        assert!(
            error.contains("is not name:address:hostname"),
            "{wrong}: {error}"
        );
    }
}
