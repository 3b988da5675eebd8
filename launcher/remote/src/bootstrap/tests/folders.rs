//! Which folder the agent goes to, and why into none.

use super::*;

#[tokio::test]
async fn folders_that_others_may_write_are_not_used() {
    let host = Host::new("/bin/sh");
    fs::create_dir_all(host.cache()).unwrap();
    fs::set_permissions(host.cache(), fs::Permissions::from_mode(0o777)).unwrap();
    let agents = agents([script_agent("tmp")]);
    let said = converse(host.start(&agents).await.unwrap()).await;
    assert!(said.contains(host.tmp().to_str().unwrap()), "{said}");
    // And with none left another build is refused, naming all.
    let agents = super::agents([script_agent("none")]);
    fs::set_permissions(host.tmp(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(host.outside("var"), "a file").unwrap();
    let error = host.start(&agents).await.unwrap_err();
    assert!(matches!(*error.cause, ReachCause::NoFolder(_)), "{error}");
    let (cache, tmp) = (host.cache(), host.tmp());
    for part in [
        "testhost",
        &format!("{}: others may write", cache.display()),
        &format!("{}: others may write", tmp.display()),
        &format!("{}: Not a directory", host.outside("var").display()),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// A shell in which these folders of the host are mounted so.
fn mounted(host: Host, mounts: &[(&str, &str)], agents: &Agents) -> (Host, String) {
    let at = |name: &str| host.folder.path().join(name).display().to_string();
    let mounts: Vec<_> = mounts
        .iter()
        .map(|(name, options)| format!("mount -t tmpfs -o {options} tmpfs {}", at(name)))
        .collect();
    let command = format!("{} && {}", mounts.join(" && "), host.command(agents));
    let login_shell = ["unshare", "-m", "/bin/sh"].map(String::from).to_vec();
    let host = Host {
        login_shell,
        ..host
    };
    (host, command)
}

fn can_mount() -> bool {
    let probe = StdCommand::new("unshare").args(["-m", "true"]).status();
    let can = probe.is_ok_and(|status| status.success());
    if !can {
        eprintln!("SKIPPED: no mount namespace can be made here");
    }
    can
}

#[tokio::test]
async fn folders_that_are_noexec_or_full_are_skipped() {
    let agents = agents([script_agent(&"x".repeat(30_000))]);
    for (mounts, used) in [
        (&[("home", "noexec")][..], "tmp"),
        (&[("home", "size=16k")], "tmp"),
        (&[("home", "size=16k"), ("tmp", "noexec")], "var"),
    ] {
        if !can_mount() {
            return;
        }
        let (host, command) = mounted(Host::new("/bin/sh"), mounts, &agents);
        let raw = host.run(&command);
        let connection = start(&HostTarget::new("h"), raw, &agents, SILENCE_MAX)
            .await
            .unwrap();
        let said = converse(connection).await;
        let used = host.outside(used);
        assert!(said.contains(used.to_str().unwrap()), "{mounts:?}: {said}");
    }
}

#[tokio::test]
async fn each_folder_that_is_no_good_has_its_reason() {
    let agents = agents([script_agent(&"x".repeat(30_000))]);
    let mounts = [
        ("home", "size=16k"),
        ("tmp", "noexec"),
        ("var", "size=4k,nr_inodes=1"),
    ];
    for shell in ["/usr/bin/dash", "/bin/bash --posix", "/bin/busybox sh"] {
        if !can_mount() || !is_there(shell.split(' ').next().unwrap()) {
            continue;
        }
        let host = Host {
            inner_shell: shell,
            ..Host::new("/bin/sh")
        };
        let (host, command) = mounted(host, &mounts, &agents);
        let raw = host.run(&command);
        let error = start(&HostTarget::new("testhost"), raw, &agents, SILENCE_MAX)
            .await
            .unwrap_err();
        for part in [
            format!("{}: No space left on device", host.cache().display()),
            format!("{}: mounted noexec", host.tmp().display()),
            format!("{}: No space left on device", host.outside("var").display()),
            "one of these folders on testhost".to_owned(),
        ] {
            assert!(
                error.to_string().contains(&part),
                "{shell}: {part} in {error}"
            );
        }
        assert_eq!(error.to_string().lines().count(), 2, "{error}");
    }
}
