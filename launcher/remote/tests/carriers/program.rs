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
async fn what_libssh2_cannot_do_goes_to_the_ssh_program_by_itself() {
    let sshd = sshd!("");
    let port = sshd.port;
    sshd.write_client_config(&format!(
        "Host far\nHostName 127.0.0.1\nPort {port}\nProxyJump near\n\
         Host near\nHostName 127.0.0.1\nPort {port}\n"
    ));
    let connection = connect(
        &HostTarget::new("far"),
        CarrierChoice::Auto,
        &sshd.options(),
    )
    .await;
    let connection = connection.unwrap();
    assert_eq!(connection.carrier, "ssh");
    assert!(
        connection
            .notes
            .iter()
            .any(|note| note.contains("proxyjump near"))
    );
    converse(connection, 1000).await;
    let near = connect(
        &HostTarget::new("near"),
        CarrierChoice::Auto,
        &sshd.options(),
    )
    .await;
    assert_eq!(near.unwrap().carrier, "ssh2");
    let error = connect(
        &HostTarget::new("far"),
        CarrierChoice::Ssh2,
        &sshd.options(),
    )
    .await;
    says(&error.unwrap_err(), &["proxyjump near"]);
}

#[tokio::test]
async fn a_key_exchange_that_libssh2_has_not_goes_to_the_ssh_program_too() {
    let kex = "KexAlgorithms sntrup761x25519-sha512@openssh.com";
    let sshd = sshd!(kex);
    sshd.write_client_config(kex);
    let connection = reach(&sshd, &sshd.options()).await.unwrap();
    assert_eq!(connection.carrier, "ssh");
    let told = connection
        .notes
        .iter()
        .any(|note| note.contains("key exchange in common"));
    assert!(told, "{:?}", connection.notes);
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
            .notes
            .iter()
            .any(|note| note.contains("ControlMaster"))
    );
}
