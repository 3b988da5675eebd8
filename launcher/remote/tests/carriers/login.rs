//! Keys, certificates, agents, and what a refusal says.

use super::*;

#[tokio::test]
async fn an_encrypted_key_needs_the_agent_and_the_error_says_so() {
    let sshd = sshd!("");
    sshd.keygen("locked", &["-t", "ed25519", "-N", "secret"]);
    fs::copy(sshd.path("locked.pub"), sshd.path("authorized_keys")).unwrap();
    let locked = sshd.path("locked");
    let options = RemoteOptions {
        identity_files: vec![locked.clone()],
        ..sshd.options()
    };
    let error = reach(&sshd, &options).await.unwrap_err();
    says(
        &error,
        &["passphrase", &format!("ssh-add {}", locked.display())],
    );

    let socket = sshd.path("agent");
    let mut command = Command::new("ssh-agent");
    command
        .arg("-D")
        .arg("-a")
        .arg(&socket)
        .stdout(Stdio::null());
    let mut agent = command.spawn().unwrap();
    eventually("ssh-agent listens", || socket.exists());
    let askpass = sshd.path("askpass");
    fs::write(&askpass, "#!/bin/sh\necho secret\n").unwrap();
    fs::set_permissions(&askpass, fs::Permissions::from_mode(0o700)).unwrap();
    let added = Command::new("ssh-add")
        .arg(&locked)
        .env("SSH_AUTH_SOCK", &socket)
        .env("SSH_ASKPASS", &askpass)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .stderr(Stdio::null())
        .status();
    sshd.write_client_config(&format!("IdentityAgent {}", socket.display()));
    let by_option = reach(&sshd, &options).await;
    let by_agent_alone = reach(&sshd, &sshd.options()).await;
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(added.unwrap().success());
    by_option.unwrap();
    by_agent_alone.unwrap();
}

#[tokio::test]
async fn a_certificate_beside_the_key_is_shown() {
    let sshd = sshd!("");
    sshd.keygen("authority", &["-t", "ed25519"]);
    let user = nix::unistd::User::from_uid(nix::unistd::getuid())
        .unwrap()
        .unwrap()
        .name;
    let mut sign = Command::new("ssh-keygen");
    sign.args(["-q", "-I", "test", "-n", &user, "-s"])
        .arg(sshd.path("authority"));
    assert!(sign.arg(sshd.path("key.pub")).status().unwrap().success());
    let authority = fs::read_to_string(sshd.path("authority.pub")).unwrap();
    let line = format!("cert-authority {authority}");
    fs::write(sshd.path("authorized_keys"), line).unwrap();
    reach(&sshd, &sshd.options()).await.unwrap();
}

#[tokio::test]
async fn a_login_that_is_refused_says_for_whom_and_with_what() {
    let sshd = sshd!("");
    fs::write(sshd.path("authorized_keys"), "").unwrap();
    let target = HostTarget {
        user: Some("nobody".into()),
        ..sshd.target()
    };
    let error = connect(&target, CarrierChoice::Auto, &sshd.options())
        .await
        .unwrap_err();
    let key = sshd.path("key").display().to_string();
    says(
        &error,
        &[
            "nobody@127.0.0.1",
            "refused for nobody",
            &key,
            "authorized_keys",
        ],
    );
    let options = RemoteOptions {
        identity_files: vec!["/nonexistent/key".into()],
        ..sshd.options()
    };
    let error = reach(&sshd, &options).await.unwrap_err();
    says(&error, &["/nonexistent/key", "No such file"]);
}

#[tokio::test]
async fn an_account_without_a_shell_is_told_in_its_own_words() {
    let sshd = sshd!("ForceCommand echo This account is currently not available.; exit 1");
    for program in [None, Some("ssh".to_owned())] {
        let options = RemoteOptions {
            ssh_program: program,
            ..sshd.options()
        };
        let error = reach(&sshd, &options).await.unwrap_err();
        says(
            &error,
            &[
                "127.0.0.1",
                "This account is currently not available.",
                "status",
            ],
        );
    }
}
