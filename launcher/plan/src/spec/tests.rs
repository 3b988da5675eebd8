use super::*;

fn names(word: &str) -> Vec<String> {
    parse(word).unwrap().names
}

#[test]
fn every_part_is_optional_but_the_name() {
    let spec = parse("me@node01:4").unwrap();
    assert_eq!(spec.user.as_deref(), Some("me"));
    assert_eq!(spec.names, ["node01"]);
    assert_eq!(spec.slots, Some(SpecSlots::Number(4)));
    assert_eq!(parse("10.0.0.1").unwrap().slots, None);
    assert_eq!(parse("a:*").unwrap().slots, Some(SpecSlots::All));
    assert_eq!(parse("a:0").unwrap().slots, Some(SpecSlots::Number(0)));
    assert_eq!(parse("me@corp@a").unwrap().user.as_deref(), Some("me@corp"));
}

#[test]
fn addresses_stand_in_brackets() {
    let spec = parse("u@[2001:db8::1]:8").unwrap();
    assert_eq!(
        (spec.names[0].as_str(), spec.slots),
        ("2001:db8::1", Some(SpecSlots::Number(8)))
    );
    assert_eq!(names("[fe80::1%eth0]"), ["fe80::1%eth0"]);
    assert!(parse("[::1]x").is_err());
    assert!(parse("[::1").is_err());
    assert!(parse("[::g]").is_err());
    assert!(parse("[fe80::1%]").is_err());
    let bare = parse("2001:db8::1").unwrap_err();
    assert_eq!(
        bare.hint.unwrap(),
        "an IPv6 address stands in brackets: [2001:db8::1]"
    );
}

#[test]
fn ranges_keep_their_width() {
    assert_eq!(
        names("node[01-03,07]"),
        ["node01", "node02", "node03", "node07"]
    );
    assert_eq!(names("n[8-10].lan"), ["n8.lan", "n9.lan", "n10.lan"]);
    assert_eq!(names("n[08-10]"), ["n08", "n09", "n10"]);
    assert_eq!(names("r[1-2]n[1-2]"), ["r1n1", "r1n2", "r2n1", "r2n2"]);
    assert_eq!(names("n[5]"), ["n5"]);
    assert_eq!(names("n[00]"), ["n00"]);
    assert_eq!(names("[1-2]x"), ["1x", "2x"]);
}

#[test]
fn bad_ranges_are_named() {
    for (word, offset, problem) in [
        ("n[3-1]", 2, "the range `3-1` runs backwards"),
        ("n[1-2", 1, "`[` without `]`"),
        ("n1-2]", 4, "`]` without `[`"),
        ("n]1[2]", 1, "`]` without `[`"),
        ("n[1,,2]", 4, "`` is no range of numbers"),
        ("n[a-c]", 2, "`a-c` is no range of numbers"),
        ("n[1-99999999]", 2, "a range of more than 65536 hosts"),
        (
            "n[1-9999999999]",
            2,
            "`1-9999999999` is no range of numbers",
        ),
        ("n[1-1000][1-1000]", 9, "a range of more than 65536 hosts"),
    ] {
        let error = parse(word).unwrap_err();
        assert_eq!(
            (error.offset, error.problem.as_str()),
            (offset, problem),
            "{word}"
        );
    }
}

/// `-oProxyCommand=…` as a host would run a command of the hostfile's author.
#[test]
fn nothing_can_pass_for_an_option_of_ssh() {
    for word in ["-oProxyCommand=x", "-l@a", "a@-b", "-[1-2]"] {
        assert!(parse(word).is_err(), "{word}");
    }
}

#[test]
fn a_port_behind_a_colon_is_not_taken_for_slots() {
    let error = parse("node01:2222").unwrap_err();
    assert_eq!(
        error.hint.unwrap(),
        "an ssh port is written in a hostfile: node01 port=2222"
    );
    assert_eq!(
        parse("a:1023").unwrap().slots,
        Some(SpecSlots::Number(1023))
    );
}

#[test]
fn odd_names_are_refused() {
    for word in [
        "", "@a", "a@", "a b", "a$b", "nöde", "a:", "a:x", "a:-1", "a:1:2", ":4", "a/b",
    ] {
        assert!(parse(word).is_err(), "{word}");
    }
}
