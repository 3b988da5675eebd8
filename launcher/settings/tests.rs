use std::ffi::OsString;
use std::time::Duration;

use super::*;
use crate::cli::{Request, parse};
use crate::knobs::Layers;

fn resolve_line(line: &str) -> Result<(Settings, Vec<String>), SettingsError> {
    let words = line.split_whitespace().map(OsString::from);
    let Ok(Request::Job { options, mut notes }) = parse(words, |_| Ok(Layers::default())) else {
        panic!("`{line}`")
    };
    let settings = resolve(*options, &mut notes)?;
    Ok((settings, notes))
}

fn mistake(line: &str) -> String {
    resolve_line(line).unwrap_err().to_string()
}

#[test]
fn mistakes_are_refused_with_their_values() {
    let table = [
        ("-np x true", "-np x: expected a whole number"),
        ("-np -1 true", "-np -1: expected a whole number"),
        (
            "--timeout soon true",
            "--timeout soon: expected a time, such as 90, 1.5, 500ms, 10m, 2h",
        ),
        (
            "--stdin x true",
            "--stdin x: expected a rank, `all` or `none`",
        ),
        (
            "--only 0-x true",
            "--only 0-x: expected ranks, such as 0 or 0,4-7, or `none`",
        ),
        (
            "--master-port 0 true",
            "--master-port 0: expected a port, 1 to 65535",
        ),
        (
            "--master-addr node1 true",
            "--master-addr node1: expected a numeric address: names may not resolve on every host",
        ),
        ("--nnodes 0 true", "--nnodes 0: asks for no hosts"),
        (
            "--nnodes 2 true",
            "--nnodes 2 asks for more hosts than there are (1)",
        ),
        (
            "-H /etc/hosts true",
            "-H /etc/hosts: this is a file, -H takes hosts\nhint: -hostfile /etc/hosts",
        ),
        (
            "-hostfile /nonexistent/hosts true",
            "hostfile /nonexistent/hosts: No such file or directory (os error 2)",
        ),
    ];
    for (line, text) in table {
        assert_eq!(mistake(line), text, "{line}");
    }
}

#[test]
fn defaults_and_values() {
    let (settings, _) = resolve_line("true").unwrap();
    assert_eq!(settings.limits.kill_after, Duration::from_secs(10));
    assert_eq!(settings.limits.host_timeout, Duration::from_secs(30));
    assert_eq!(
        (settings.limits.timeout, settings.streams.stdin),
        (None, None)
    );
    assert!(settings.programs[0].directory.is_absolute() && settings.rendezvous.hold_port);
    let (settings, _) = resolve_line(
        "-np 2 --timeout 1.5 --kill-after 500ms --stdin 1 --wdir sub --master-addr [::1] p a",
    )
    .unwrap();
    assert_eq!(settings.limits.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(settings.limits.kill_after, Duration::from_millis(500));
    assert_eq!(settings.streams.stdin, Some(StdinTo::Rank(1)));
    assert!(
        settings.programs[0].directory.ends_with("sub")
            && settings.programs[0].directory.is_absolute()
    );
    assert_eq!(
        settings.rendezvous.master_address,
        Some("::1".parse().unwrap())
    );
}
