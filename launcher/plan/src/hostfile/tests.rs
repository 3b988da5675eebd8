use super::*;

fn hosts(text: &str) -> Vec<HostEntry> {
    parse("hosts", text.as_bytes()).unwrap().hosts
}

fn slots(text: &str) -> Vec<(String, Option<u32>)> {
    hosts(text)
        .into_iter()
        .map(|entry| (entry.host.to_string(), entry.slots))
        .collect()
}

fn message(text: &str) -> String {
    parse("hosts", text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn every_form_of_a_line() {
    let text = "a\nb slots=2\nc:3\nme@d port=2222\n[::1]:4\n\tn[1-2]\tmax-slots=8 # five\n# x\n\n";
    let expected = [
        ("a", None),
        ("b", Some(2)),
        ("c", Some(3)),
        ("me@d port 2222", None),
        ("::1", Some(4)),
        ("n1", None),
        ("n2", None),
    ];
    let expected: Vec<_> = expected
        .map(|(name, slots)| (name.to_owned(), slots))
        .into();
    assert_eq!(slots(text), expected);
    assert_eq!(hosts(text)[6].max_slots, Some(8));
    assert_eq!(hosts(text)[6].line, 6);
}

/// pmodels/mpich#6719 and its like: what editors and shells leave in a text file.
#[test]
fn files_as_editors_leave_them() {
    let expected = slots("a slots=1\nlocalhost\n");
    for text in [
        "a slots=1\nlocalhost",
        "a slots=1\r\nlocalhost\r\n",
        "a slots=1\r\nlocalhost",
        "\u{feff}a slots=1\nlocalhost\n",
        "\n\n  a   slots=1  \n\t# x\n\tlocalhost#y\n\n",
    ] {
        assert_eq!(slots(text), expected, "{text:?}");
    }
}

/// open-mpi/ompi#11136: the same host again adds up; without numbers it counts lines.
#[test]
fn the_same_host_again() {
    assert_eq!(
        slots("a slots=2\nb\na slots=3\n"),
        [("a".into(), Some(5)), ("b".into(), None)]
    );
    assert_eq!(slots("a\na\na\n"), [("a".into(), Some(3))]);
    assert_eq!(slots("a slots=4\na\n"), [("a".into(), Some(5))]);
    assert_eq!(slots("a slots=0\na slots=0"), [("a".into(), Some(0))]);
    assert_eq!(
        hosts("a slots=4 max_slots=4\na slots=4\n")[0].slots,
        Some(4)
    );
}

/// open-mpi/ompi#7120: two containers behind one name.
#[test]
fn identity_is_user_name_and_port() {
    assert_eq!(hosts("a port=1\na port=2\nu@a port=1\na\n").len(), 4);
    assert_eq!(hosts("u@a port=1\nu@a port=1\n").len(), 1);
}

#[test]
fn zero_means_none() {
    assert_eq!(
        slots("a:0\nb slots=0\n"),
        [("a".into(), Some(0)), ("b".into(), Some(0))]
    );
}

#[test]
fn nothing_in_it_is_an_error() {
    let expected = "hosts: no host in it; expected one host a line, such as `node01 slots=8`";
    for text in ["", "\n\n", "# a\n", "\u{feff}", "   \t\r\n"] {
        assert_eq!(message(text), expected);
    }
}

#[test]
fn columns_count_characters() {
    assert_eq!(
        message("a\n\té slots=4"),
        "hosts:2:2: `é`: `é` can't stand in a host's name; expected a host: name, name:N, \
         user@name, name[01-04] or [IPv6]"
    );
    assert!(message("a  port=4  slots=x").starts_with("hosts:1:18: "));
}

#[test]
fn what_is_no_text_is_said_so() {
    let error = parse("hosts", b"a\nb\xff\n").unwrap_err().to_string();
    assert_eq!(
        error,
        "hosts:2:2: `\\xff`: not UTF-8 text; expected a text file"
    );
    let error = parse("hosts", b"\xff\xfea\0").unwrap_err().to_string();
    assert_eq!(error, "hosts: this is UTF-16; save it as UTF-8 text");
    let long = vec![b'#'; 17 << 20];
    assert!(matches!(
        parse("hosts", &long),
        Err(HostfileError::TooLong { .. })
    ));
}

/// The options of other launchers' hostfiles, and what only ours know.
#[test]
fn options_and_their_synonyms() {
    let text = "a slots_max=4 count=2 // x\nb cpu = 3 user-name=me\n\
                c gpus=0-1,5 nics=ib0,ib1 python=/opt/py workdir=\"/my data\"\nd gpus=none\n";
    let hosts = hosts(text);
    assert_eq!((hosts[0].slots, hosts[0].max_slots), (Some(2), Some(4)));
    assert_eq!(
        (hosts[1].slots, hosts[1].host.to_string()),
        (Some(3), "me@b".into())
    );
    let details = &hosts[2].details;
    assert_eq!(hosts[2].slots, Some(3), "one for each GPU");
    assert_eq!(details.gpus.as_ref().unwrap().join(" "), "0 1 5");
    assert_eq!(details.nics.join(" "), "ib0 ib1");
    assert_eq!(details.python.as_deref(), Some("/opt/py"));
    assert_eq!(details.directory.as_deref(), Some("/my data"));
    assert_eq!(
        (hosts[3].slots, &hosts[3].details.gpus),
        (None, &Some(Vec::new()))
    );
}

/// What several lines say of a host must fit together.
#[test]
fn details_of_a_host_named_again() {
    let host = hosts("a gpus=0,1\na gpus=2,3 python=py\n").remove(0);
    assert_eq!((host.slots, host.details.gpus.unwrap().len()), (Some(4), 4));
    assert_eq!(
        message("a python=x\na python=y\n"),
        "hosts:2:1: `a`: python= differs from line 1; expected the same on each line of a host"
    );
}

/// Whoever mends a file sees all that is wrong, up to a few.
#[test]
fn mistakes_are_told_together() {
    let text = message("a slot=1 port=0\nb\nc:x\n");
    let places: Vec<&str> = text
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(places, ["hosts:1:3", "hosts:1:15", "hosts:3:3"]);
    let text = message(&"a:x\n".repeat(9));
    assert_eq!(text.lines().count(), 6);
    assert!(text.ends_with("\nhosts: and 4 more mistakes"), "{text}");
}

#[test]
fn numbers_are_bounded() {
    assert!(message("a slots=65536\na slots=1\n").contains("add up to 65537 slots"));
    assert!(message("n[1-40000]\nm[1-40000]\n").starts_with("hosts:2:1: `m25537`: more than"));
    assert!(message("a slots=99999999999999999999").contains("slots is more than 65536"));
}

const PIECES: [&str; 36] = [
    "a",
    "node",
    "[",
    "]",
    "-",
    "1",
    "01",
    ",",
    ":",
    "::",
    "@",
    "=",
    "slots",
    "slots=",
    "port=",
    "max_slots=",
    "4",
    "65536",
    "0",
    " ",
    "\t",
    "\n",
    "\r\n",
    "#",
    "\u{feff}",
    "é",
    "%",
    "*",
    "\0",
    "n[1-3]",
    "gpus=",
    "nics=",
    "\"",
    "//",
    "[::1]",
    "99999999999",
];

/// Random bytes, and random words of the grammar, give a hostfile or a few lines of mistakes.
#[test]
fn no_bytes_make_it_panic() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as usize % below
    };
    let mut good = 0;
    for round in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..next(24) {
            if round % 2 == 0 {
                bytes.push(next(256) as u8);
            } else {
                bytes.extend_from_slice(PIECES[next(PIECES.len())].as_bytes());
            }
        }
        match parse("hosts", &bytes) {
            Ok(hostfile) => {
                good += 1;
                assert!(!hostfile.hosts.is_empty());
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.lines().count() <= 6, "{bytes:?}");
                assert!(
                    text.lines().all(|line| line.starts_with("hosts:")),
                    "{text}"
                );
            }
        }
    }
    assert!(
        good > 100,
        "only {good} good ones: the test has lost its point"
    );
}
