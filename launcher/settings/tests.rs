use std::ffi::OsString;
use std::time::Duration;

use super::*;
use crate::cli::{Request, parse};
use crate::knobs::Loaded;

fn resolve_line(line: &str) -> Result<(Settings, Vec<String>), SettingsError> {
    let words = line.split_whitespace().map(OsString::from);
    let Ok(Request::Job { options, mut notes }) = parse(words, |_| Loaded::default()) else {
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
            "-np 99999999999 true",
            "-np 99999999999: expected a whole number, at most 4294967295",
        ),
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
            "--nnodes 1:2 true",
            "--nnodes 1:2: a job has the same hosts from its start to its end\nhint: --nnodes N",
        ),
        (
            "--bind-to hwthread true",
            "--bind-to hwthread: expected none, core or numa\n\
             hint: a rank gets whole cores, with all their threads: --bind-to core",
        ),
        (
            "--bind-to core:2 true",
            "--bind-to core:2: only `if-supported`, `overload-allowed` and `report` stand behind `:`\n\
             hint: --cores-per-rank N gives each rank N cores",
        ),
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
    let (bound, _) = resolve_line("--bind-to core:overload-allowed,REPORT -np 1 true").unwrap();
    assert_eq!(bound.binding.wish.map(|wish| wish.to), Some(BindTo::Core));
    assert!(bound.binding.report);
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

/// The port of every sshd is a likely number of slots only on some machines.
#[test]
fn slots_that_may_be_a_port_are_told() {
    // Others tell of this process's own environment.
    let note = |line: &str| -> Vec<String> {
        let (_, notes) = resolve_line(line).unwrap();
        notes
            .into_iter()
            .filter(|note| note.contains("port"))
            .collect()
    };
    assert_eq!(
        note("-H a,b:22 -np 2 true"),
        [
            "-H b:22: these are 22 slots; a port is written in a hostfile: b port=22; -H has no \
          ports, but --ssh-port"
        ]
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts");
    std::fs::write(&path, "a:4\nb:22 # all\n").unwrap();
    let line = format!("-hostfile {} -np 2 true", path.display());
    assert_eq!(
        note(&line),
        [format!(
            "{}: b:22: these are 22 slots; a port is written in a hostfile: b port=22",
            path.display()
        )]
    );
    std::fs::write(&path, "a:2 slots=22\nb slots=22\n").unwrap();
    assert!(
        mistake(&line).contains("a port is port=N"),
        "{}",
        mistake(&line)
    );
    std::fs::write(&path, "a slots=1\nb slots=1\n").unwrap();
    let over = format!("-hostfile {} -H b:3 -np 3", path.display());
    let text = mistake(&format!("{over} true"));
    assert!(text.ends_with("or pass --oversubscribe"), "{text}");
    for how in ["--oversubscribe", "--map-by slot:OVERSUBSCRIBE"] {
        resolve_line(&format!("{over} {how} true")).unwrap();
    }
}
