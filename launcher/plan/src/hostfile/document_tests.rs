use super::*;
use crate::hostfile;

fn hosts(text: &str) -> Vec<HostEntry> {
    hostfile::parse("hosts.toml", text.as_bytes())
        .unwrap()
        .hosts
}

fn message(text: &str) -> String {
    hostfile::parse("hosts.toml", text.as_bytes())
        .unwrap_err()
        .to_string()
}

#[test]
fn defaults_fill_what_a_host_leaves_open() {
    let hosts = hosts(
        "[defaults]\nslots = 8\nuser = \"me\"\nport = 2222\nenv = { A = \"1\", B = \"2\" }\n\
         [[host]]\nname = \"node[1-2]\"\n\
         [[host]]\nname = \"you@b:2\"\nmax_slots = 4\nworkdir = \"/my data\"\n\
         [host.env]\nB = \"3\"\n",
    );
    assert_eq!(hosts.len(), 3);
    assert_eq!(hosts[0].host.to_string(), "me@node1 port 2222");
    assert_eq!(hosts[0].slots, Some(8));
    assert_eq!(hosts[2].host.to_string(), "you@b port 2222");
    assert_eq!((hosts[2].slots, hosts[2].max_slots), (Some(2), Some(4)));
    assert_eq!(hosts[2].details.directory.as_deref(), Some("/my data"));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(hosts[0].details.variables, [pair("A", "1"), pair("B", "2")]);
    assert_eq!(hosts[2].details.variables, [pair("A", "1"), pair("B", "3")]);
}

#[test]
fn lists_are_lists() {
    let of = |gpus: &str| {
        let text = format!("[[host]]\nname = \"a\"\ngpus = {gpus}\n");
        let host = hosts(&text).remove(0);
        (host.slots, host.details.gpus.unwrap().join(" "))
    };
    assert_eq!(of("[0, 1]"), (Some(2), "0 1".into()));
    assert_eq!(of("[3]"), (Some(1), "3".into()));
    assert_eq!(of("\"0-2\""), (Some(3), "0 1 2".into()));
    assert_eq!(of("[\"GPU-8a\", 1]"), (Some(2), "GPU-8a 1".into()));
    assert_eq!(of("[]"), (None, String::new()));
}

/// The same host in two tables adds up, as in lines.
#[test]
fn the_same_host_again() {
    let text = "[[host]]\nname = \"a:2\"\n[[host]]\nname = \"a\"\nslots = 3\n";
    assert_eq!(hosts(text)[0].slots, Some(5));
}

#[test]
fn all_mistakes_are_told() {
    let text = "[default]\nslots = 2\n[[host]]\nname = \"a b\"\n[[host]]\nslots = true\n\
                [[host]]\nname = \"c\"\nslot = 2\nport = 0\n";
    assert_eq!(
        message(text),
        "hosts.toml:1:2: `default`: unknown key; expected [defaults] and, for each host, [[host]] \
         with name = \"node01\" (hint: did you mean defaults?)\n\
         hosts.toml:4:8: `a b`: ` ` can't stand in a host's name; expected a host: name, name:N, \
         user@name, name[01-04] or [IPv6]\n\
         hosts.toml:5:1: `[[host]]`: a host without a name; expected [defaults] and, for each \
         host, [[host]] with name = \"node01\"\n\
         hosts.toml:9:1: `slot`: unknown option `slot`; expected name, slots, max-slots, port, \
         user, gpus, nics, python, workdir or env (hint: did you mean slots=2?)\n\
         hosts.toml:10:1: `port = 0`: there is no port 0; expected port=N with N from 1 to 65535"
    );
}

#[test]
fn what_is_no_toml() {
    let text = message("node01 slots=4\n");
    assert!(text.starts_with("hosts.toml:1:"), "{text}");
    assert!(text.contains("; expected TOML"), "{text}");
    assert_eq!(
        message("# nothing\n"),
        "hosts.toml: no host in it; expected one host a line, such as `node01 slots=8`"
    );
}
