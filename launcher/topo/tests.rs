//! What is shown of several hosts.

use std::path::Path;

use rlaunch_topo::{Tree, snapshot};

use super::show;
use super::understand::{Facts, Understood, listed, understand};

/// A host with two cores, `eth0` and what else there is.
fn facts(host: &str, address: &str, other: &str) -> Facts {
    let mut tree = Tree::default();
    tree.put("proc/self/status", "Cpus_allowed_list:\t0-1\n");
    tree.put("sys/devices/system/node/node0/cpulist", "0-1");
    let net = "sys/class/net";
    tree.put_link(
        &format!("{net}/eth0"),
        "../../devices/pci0000:00/0000:00:03.0/net/eth0",
    );
    tree.put(&format!("{net}/eth0/type"), "1");
    tree.put(&format!("{net}/eth0/mtu"), "9000");
    tree.put(&format!("{net}/{other}/type"), "1");
    tree.put(&format!("{net}/{other}/bridge"), "");
    let lines = format!("eth0 up,running {address}/24\n{other} up,running 172.18.0.1/16\n");
    tree.put(snapshot::ADDRESSES, &lines);
    Facts {
        host: Some(host.to_owned()),
        tree,
        not_read: None,
    }
}

fn alike(facts: Vec<Facts>) -> String {
    show::text(&understand(facts, None).seen)
}

/// Docker's networks have random names, and every host an address of its own.
#[test]
fn hosts_that_differ_in_names_alone_are_shown_once() {
    let two = || {
        vec![
            facts("node1", "10.0.0.1", "br-0a1b2c3d4e5f"),
            facts("node2", "10.0.0.2", "br-f5e4d3c2b1a0"),
        ]
    };
    let text = alike(two());
    assert!(
        text.starts_with("node[1-2]: the same\nUnnamed machine"),
        "{text}"
    );
    assert!(!text.contains("10.0.0.") && !text.contains("br-"), "{text}");

    let mut three = two();
    three.push(facts("node3", "10.0.0.3", "lan0"));
    let text = alike(three);
    assert!(text.contains("\nnode3:\nUnnamed machine"), "{text}");
    assert!(
        text.contains("10.0.0.3/24") && text.contains("lan0"),
        "{text}"
    );

    // A picture has both kinds, one below the other.
    let seen = understand(two(), None).seen;
    let one = show::svg(&seen);
    assert_eq!(
        one.matches("node[1-2]: Unnamed machine").count(),
        1,
        "{one}"
    );

    let json: serde_json::Value = serde_json::from_str(&show::json(&seen)).unwrap();
    assert_eq!(json[1]["host"], "node2");
    assert!(json[1]["machine"].to_string().contains("10.0.0.2/24"));
}

/// The same word of many hosts is said once.
#[test]
fn troubles_with_the_topology_file_are_gathered() {
    let trouble = |topo_file: Option<&Path>| -> Understood {
        let mut all: Vec<Facts> = (1..=3)
            .map(|number| facts(&format!("node{number}"), "10.0.0.1", "lan0"))
            .collect();
        all[0].not_read = Some("/a.xml: No such file".to_owned());
        all[2].not_read = Some("/a.xml: No such file".to_owned());
        understand(all, topo_file)
    };
    let told = trouble(None);
    let expected = "node[1,3]: NCCL_TOPO_FILE /a.xml: No such file; shown without it";
    assert_eq!(told.notes, [expected]);
    assert_eq!((told.seen.len(), told.failed.len()), (3, 0));
    let told = trouble(Some(Path::new("/a.xml")));
    assert_eq!(told.failed, ["node[1,3]: --topo-file /a.xml: No such file"]);
    assert_eq!((told.seen.len(), told.notes.len()), (1, 0));
}

#[test]
fn lists_of_hosts_are_short_where_they_are_names() {
    let list = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        listed(&names)
    };
    assert_eq!(list(&["node1", "node2", "gpu07"]), "node[1-2],gpu07");
    assert_eq!(list(&["10.0.0.1", "10.0.0.2"]), "10.0.0.1, 10.0.0.2");
    assert_eq!(list(&["a@n port 22", "n"]), "a@n port 22, n");
}
