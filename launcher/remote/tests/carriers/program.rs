//! Programs as carriers, chosen by the user or by themselves.

use super::*;

#[tokio::test]
async fn the_ssh_program_carries_too() {
    let sshd = sshd!("");
    let options = RemoteOptions {
        ssh_program: Some("ssh -o 'LogLevel=ERROR'".into()),
        ..sshd.options()
    };
    let connection = reach(&sshd, &options).await.unwrap();
    assert_eq!((connection.carrier, connection.peer_address), ("ssh", None));
    let connection = converse(connection, 1_000_000).await;
    drop(connection);
    eventually("the agent ends", || processes_in(&sshd.cache()) == 0);

    fs::remove_file(sshd.path("known_hosts")).unwrap();
    let error = reach(&sshd, &options).await.unwrap_err();
    says(
        &error,
        &[
            "Host key verification failed",
            "--ssh-accept-new",
            "exit status: 255",
        ],
    );
    let options = RemoteOptions {
        accept_new: true,
        ..options
    };
    reach(&sshd, &options).await.unwrap();
}

#[tokio::test]
async fn any_program_with_rshs_manners_will_do() {
    let folder = tempfile::tempdir().unwrap();
    let wrapper = folder.path().join("my rsh");
    let home = folder.path().display();
    let text =
        format!("#!/bin/sh\necho \"$@\" >{home}/asked\nexport HOME={home}\nexec sh -c \"$4\"\n");
    fs::write(&wrapper, text).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o700)).unwrap();
    let target = HostTarget {
        name: "gpu1".into(),
        user: Some("bob".into()),
        port: None,
    };
    let options = RemoteOptions {
        agent_path: Some(echo_agent()),
        ..RemoteOptions::default()
    };
    let choice = CarrierChoice::Program(format!("'{}'", wrapper.display()));
    let connection = connect(&target, choice, &options).await.unwrap();
    assert_eq!(connection.carrier, "program");
    converse(connection, 1000).await;
    let asked = fs::read_to_string(folder.path().join("asked")).unwrap();
    assert!(
        asked.starts_with("-l bob gpu1 exec /bin/sh -c '"),
        "{asked}"
    );

    for (line, word) in [("no-such-rsh", "no-such-rsh"), ("'open", "quote")] {
        let choice = CarrierChoice::Program(line.into());
        says(
            &connect(&target, choice, &options).await.unwrap_err(),
            &["gpu1", word],
        );
    }
}

#[tokio::test]
async fn what_libssh2_cannot_do_goes_to_the_ssh_program_by_itself_and_says_why() {
    let sshd = sshd!("");
    let port = sshd.port;
    let known = fs::read_to_string(sshd.path("host_ed25519.pub")).unwrap();
    let print = sshd.path("print");
    fs::write(
        &print,
        format!("#!/bin/sh\necho '[127.0.0.1]:{port} {known}'"),
    )
    .unwrap();
    fs::set_permissions(&print, fs::Permissions::from_mode(0o755)).unwrap();
    let print = print.display();
    for (settings, why) in [
        (
            format!(
                "ProxyCommand bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3 & exec cat >&3'"
            ),
            "proxycommand",
        ),
        (
            format!("KnownHostsCommand {print}\nUserKnownHostsFile /dev/null"),
            "knownhostscommand",
        ),
        (
            format!("Match exec \"test -e {print}\"\nVerifyHostKeyDNS yes"),
            "verifyhostkeydns",
        ),
    ] {
        sshd.write_client_config(&settings);
        let connection = reach(&sshd, &sshd.options()).await;
        let connection = connection.unwrap_or_else(|error| panic!("{settings}: {error}"));
        assert_eq!(connection.carrier, "ssh", "{settings}");
        let told = connection.details.iter().any(|it| it.contains(why));
        assert!(told, "{settings}: {:?}", connection.details);
        converse(connection, 1000).await;
    }
}

#[tokio::test]
async fn what_a_match_block_says_is_followed_without_the_program() {
    let sshd = sshd!("");
    let port = sshd.port;
    let settings =
        format!("Match originalhost gpu* exec \"true\"\nHostName 127.0.0.1\nPort {port}");
    sshd.write_client_config(&settings);
    let connection = connect(
        &HostTarget::new("gpu1"),
        CarrierChoice::Auto,
        &sshd.options(),
    )
    .await;
    assert_eq!(connection.unwrap().carrier, "ssh2");
    sshd.write_client_config("Match exec \"exit 1\"\nProxyJump nowhere\nMatch all");
    assert_eq!(reach(&sshd, &sshd.options()).await.unwrap().carrier, "ssh2");
}

/// Kerberos, host-based logins and security keys need what is not here; that ssh is chosen for
/// them, and that both say what they met, is seen all the same.
#[tokio::test]
async fn ways_to_log_in_that_libssh2_has_not_are_left_to_the_ssh_program() {
    let sshd = sshd!("GSSAPIAuthentication yes\nHostbasedAuthentication yes");
    fs::write(sshd.path("authorized_keys"), "").unwrap();
    for (settings, why) in [
        ("GSSAPIAuthentication yes", "Kerberos tickets"),
        ("HostbasedAuthentication yes", "host-based logins"),
    ] {
        sshd.write_client_config(settings);
        let error = reach(&sshd, &sshd.options()).await.unwrap_err();
        says(&error, &["Permission denied", why]);
    }
    // A security key's file: its public part, and nothing that could sign.
    let text = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat();
    let public = [
        text(b"sk-ssh-ed25519@openssh.com"),
        text(&[7; 32]),
        text(b"ssh:"),
    ]
    .concat();
    let none = text(b"none");
    let body = [
        b"openssh-key-v1\0",
        &none[..],
        &none,
        &text(b""),
        &1u32.to_be_bytes(),
        &text(&public),
        &text(&[0; 64]),
    ]
    .concat();
    let body = base64(&body);
    let key = sshd.path("security_key");
    fs::write(
        &key,
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n"),
    )
    .unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    sshd.write_client_config(&format!("IdentityFile {}", key.display()));
    let error = reach(&sshd, &sshd.options()).await.unwrap_err();
    says(&error, &["security key"]);
}

fn base64(bytes: &[u8]) -> String {
    let mut command = Command::new("base64");
    let mut child = command
        .arg("-w70")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_key_exchange_that_libssh2_has_not_goes_to_the_ssh_program_too() {
    let kex = "KexAlgorithms sntrup761x25519-sha512@openssh.com";
    let sshd = sshd!(kex);
    sshd.write_client_config(kex);
    let connection = reach(&sshd, &sshd.options()).await.unwrap();
    assert_eq!(connection.carrier, "ssh");
    let told = connection
        .details
        .iter()
        .any(|detail| detail.contains("key exchange in common"));
    assert!(told, "{:?}", connection.details);
}

#[tokio::test]
async fn an_open_control_master_is_used() {
    let sshd = sshd!("");
    let control = sshd.path("control");
    sshd.write_client_config(&format!("ControlPath {}", control.display()));
    assert_eq!(reach(&sshd, &sshd.options()).await.unwrap().carrier, "ssh2");
    let mut master = Command::new("ssh");
    master
        .arg("-F")
        .arg(sshd.path("config"))
        .args(["-M", "-N", "-p", &sshd.port.to_string()]);
    let mut master = master
        .arg("127.0.0.1")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the master listens", || control.exists());
    let result = reach(&sshd, &sshd.options()).await;
    master.kill().unwrap();
    master.wait().unwrap();
    let connection = result.unwrap();
    assert_eq!(connection.carrier, "ssh");
    assert!(
        connection
            .details
            .iter()
            .any(|detail| detail.contains("ControlMaster"))
    );
}

/// A host of many costs no ssh of its own, unless the configuration has something to say of it.
#[tokio::test]
async fn ssh_is_asked_once_for_hosts_that_are_alike() {
    let sshd = sshd!("");
    let (port, count) = (sshd.port, sshd.path("count"));
    // ssh runs a `Match exec` at each reading of the files; but it would put each host apart.
    let counting = format!("Match exec \"echo >>{}\"\n", count.display());
    let alike = format!("Host h*\nHostName 127.0.0.1\nPort {port}\nHostKeyAlias gpu\n");
    for (settings, asked) in [(counting + &alike, 5), (alike, 0)] {
        sshd.write_client_config(&settings);
        let key = fs::read_to_string(sshd.path("host_ed25519.pub")).unwrap();
        fs::write(sshd.path("known_hosts"), format!("gpu {key}")).unwrap();
        let _ = fs::remove_file(&count);
        let targets = (1..=5).map(|host| HostTarget::new(format!("h{host}")));
        let results: Vec<_> = connect_all(targets.collect(), CarrierChoice::Auto, sshd.options())
            .collect()
            .await;
        for (_, result) in results {
            assert_eq!(result.unwrap().carrier, "ssh2");
        }
        let lines = fs::read_to_string(&count).unwrap_or_default();
        assert_eq!(lines.lines().count(), asked);
    }
    // Hosts of one class keep their own names, and users and ports given beside them.
    sshd.write_client_config("");
    sshd.know("host_ed25519.pub");
    let options = sshd.options();
    for (name, user) in [("localhost", None), ("127.0.0.1", Some("nobody"))] {
        let target = HostTarget {
            name: name.into(),
            user: user.map(String::from),
            port: Some(port),
        };
        let error = connect(&target, CarrierChoice::Ssh2, &options).await;
        match user {
            // Known by its address alone.
            None => says(&error.unwrap_err(), &["localhost", "not known"]),
            Some(_) => says(&error.unwrap_err(), &["nobody@127.0.0.1"]),
        }
    }
}
