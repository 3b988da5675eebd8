//! Our reading of node lists against Slurm's own.

use super::Rig;
use rlaunch_plan::slurm::expand_nodes;

const LISTS: &[&str] = &[
    "node4",
    "node[1-2]",
    "node[1-2,4]",
    "n[01-03,07],gpu5",
    "gpu[001-003,10],cpu7",
    "gpu[9-11]",
    "gpu[09-11]",
    "gpu[098-102]",
    "r[1-2]n[1-3]",
    "a,b,c",
    "a-b[0-1]",
    "n[0-0]",
    "n[5,3,4]",
    "c1,c1",
    "x[1-2],y[1-2],z9",
    "n[000-002,10-12]",
    "long-name-0[1-9].part,n.org",
];

/// `scontrol show hostnames` prints one name a line. It says 0 also where it refuses.
pub(super) fn as_scontrol_expands_them(rig: &Rig) {
    let line: String = LISTS
        .iter()
        .map(|list| format!("echo '# {list}'; scontrol show hostnames '{list}' 2>/dev/null; "))
        .collect();
    let answer = rig.shell(&line);
    let mut blocks = answer.stdout.split("# ").skip(1);
    let mut compared = 0;
    for list in LISTS {
        let block = blocks
            .next()
            .unwrap_or_else(|| panic!("{}", answer.report()));
        let theirs: Vec<&str> = block.lines().skip(1).collect();
        if theirs.is_empty() {
            continue; // this version refuses it; others write such
        }
        compared += 1;
        assert_eq!(expand_nodes(list).unwrap(), theirs, "{list}");
    }
    assert!(compared >= LISTS.len() - 2, "{}", answer.report());
}
