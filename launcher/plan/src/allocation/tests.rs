use super::*;
use crate::hostfile;

fn list(text: &str) -> Vec<HostListEntry> {
    parse_host_list(text).unwrap()
}

fn shown(allocation: &Allocation) -> String {
    let hosts = allocation
        .hosts
        .iter()
        .map(|host| format!("{}={}", host.host, host.slots));
    hosts.collect::<Vec<_>>().join(" ")
}

fn select(text: &str, picked: &str) -> Result<String, String> {
    let hostfile = hostfile::parse("hosts", text.as_bytes()).unwrap();
    Allocation::select(&hostfile, &list(picked), false)
        .map(|allocation| shown(&allocation))
        .map_err(|error| error.to_string())
}

#[test]
fn a_list_counts_mentions_as_mpirun_does() {
    let shown = |text: &str| shown(&Allocation::from_list(&list(text)));
    assert_eq!(shown("a,b:2,user@c"), "a=1 b=2 user@c=1");
    assert_eq!(shown("a,a,b,a"), "a=3 b=1");
    assert_eq!(shown("a:2,a:3,a"), "a=6");
    assert_eq!(shown("a:*,b:0,a"), "a=? b=0");
    assert_eq!(shown("a:auto"), "a=?");
    assert_eq!(shown(" n[1-2,4]:2 , [::1]:4"), "n1=2 n2=2 n4=2 ::1=4");
}

#[test]
fn bad_lists_are_named() {
    for (text, message) in [
        ("", "-H names no host"),
        ("a,,b", "-H a,,b: ``: no name of a host"),
        ("a:x", "-H a:x: `a:x`: `x` is not a number"),
        ("-ox", "-H -ox: `-ox`: a host's name can't begin with `-`"),
    ] {
        let error = parse_host_list(text).unwrap_err().to_string();
        assert_eq!(error.lines().next().unwrap(), message);
        assert!(error.contains("\nhint: "), "{error}");
    }
    assert!(parse_host_list("n[1-5000]").is_err());
}

#[test]
fn a_list_picks_from_the_hostfile() {
    let text = "a slots=4\nb slots=4 max_slots=6\nu@c port=22\nu@c port=23\nd\n";
    assert_eq!(select(text, "b,a").unwrap(), "b=4 (at most 6) a=4");
    assert_eq!(select(text, "a:2,d").unwrap(), "a=2 d=?");
    // Repeats add up here too.
    assert_eq!(select(text, "a,b:1,a,b:2").unwrap(), "a=2 b=3 (at most 6)");
    assert_eq!(select(text, "a:0").unwrap(), "a=0");
    assert!(select(text, "a,a,a,a,a").is_err());
    assert_eq!(select(text, "d:8,b:*").unwrap(), "d=8 b=4 (at most 6)");
    // An open user and port match every host of that name.
    assert_eq!(select(text, "c").unwrap(), "u@c port 22=? u@c port 23=?");
    assert_eq!(
        select(text, "u@c,c").unwrap(),
        "u@c port 22=? u@c port 23=?"
    );
    assert_eq!(
        select(text, "x@a").unwrap_err().lines().next().unwrap(),
        "-H x@a: hosts has no such host"
    );
    assert_eq!(
        select(text, "a:5").unwrap_err(),
        "-H a:5: hosts gives it 4 slots\nhint: ask for at most 4, raise slots= in hosts, or pass --oversubscribe"
    );
    let error = select("node01\n", "nodo01").unwrap_err();
    assert!(error.ends_with("hint: did you mean node01?"), "{error}");
}

#[test]
fn the_survey_fills_only_what_is_open() {
    let hostfile = hostfile::parse("h", b"a\nb slots=2\nc max_slots=3\nd\n").unwrap();
    let mut allocation = Allocation::from_hostfile(&hostfile);
    assert_eq!(shown(&allocation), "a=? b=2 c=? (at most 3) d=?");
    allocation.survey(0, 8, 64);
    allocation.survey(1, 8, 64);
    allocation.survey(2, 0, 64);
    allocation.survey(3, 0, 0);
    assert_eq!(shown(&allocation), "a=8 b=2 c=3 d=1");
    assert_eq!(Allocation::local("here").hosts.len(), 1);
}

/// As under mpirun; what the file says is the most stays the most.
#[test]
fn a_host_takes_more_than_its_slots_where_that_is_allowed() {
    let text = "a slots=1\nb slots=1 max_slots=2\nc slots=0\n";
    let hostfile = hostfile::parse("hosts", text.as_bytes()).unwrap();
    let select = |picked: &str| {
        Allocation::select(&hostfile, &list(picked), true)
            .map(|allocation| shown(&allocation))
            .map_err(|error| error.to_string())
    };
    assert_eq!(select("a:3").unwrap(), "a=3");
    assert_eq!(
        select("b:3").unwrap_err(),
        "-H b:3: hosts gives it 2 slots\n\
         hint: max_slots=2 in hosts holds for --oversubscribe too; ask for at most that, or raise it"
    );
    assert_eq!(
        select("c:1").unwrap_err(),
        "-H c:1: hosts gives it 0 slots\nhint: raise slots= in hosts"
    );
}
