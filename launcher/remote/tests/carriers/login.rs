//! Keys, certificates, agents, and what a refusal says.

use super::*;

fn user() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid());
    user.unwrap().unwrap().name
}

fn with_key(sshd: &Sshd, name: &str) -> RemoteOptions {
    RemoteOptions {
        identity_files: vec![sshd.path(name)],
        ..sshd.options()
    }
}

/// The host takes this key and no other.
fn take(sshd: &Sshd, name: &str) {
    fs::copy(
        sshd.path(&format!("{name}.pub")),
        sshd.path("authorized_keys"),
    )
    .unwrap();
}

#[tokio::test]
async fn keys_of_every_type_and_format_log_in() {
    let sshd = sshd!("");
    for (index, (kind, format)) in [
        ("ed25519", "RFC4716"),
        ("rsa", "RFC4716"),
        ("rsa", "PEM"),
        ("ecdsa", "RFC4716"),
        ("ecdsa", "PEM"),
        ("ecdsa", "PKCS8"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("key{index}");
        sshd.keygen(&name, &["-t", kind, "-m", format]);
        take(&sshd, &name);
        // As it comes out of a secret store: the private part alone.
        fs::remove_file(sshd.path(&format!("{name}.pub"))).unwrap();
        let connection = reach(&sshd, &with_key(&sshd, &name)).await;
        let connection = connection.unwrap_or_else(|error| panic!("{kind} {format}: {error}"));
        assert_eq!(connection.carrier, "ssh2");
    }
}

#[tokio::test]
async fn a_passphrase_is_asked_for_once_for_all_hosts_by_each_carrier() {
    let sshd = sshd!("");
    let port = sshd.port;
    let hosts: String = (1..=3)
        .map(|host| format!("Host h{host}\nHostName 127.0.0.1\nPort {port}\nHostKeyAlias gpu\n"))
        .collect();
    for (index, (kind, format)) in [("ed25519", "RFC4716"), ("rsa", "RFC4716"), ("ecdsa", "PEM")]
        .into_iter()
        .enumerate()
    {
        let name = format!("locked{index}");
        sshd.keygen(&name, &["-t", kind, "-m", format, "-N", "it's secret"]);
        take(&sshd, &name);
        let locked = sshd.path(&name).display().to_string();
        sshd.write_client_config(&format!("IdentityFile {locked}\n{hosts}"));
        let key = fs::read_to_string(sshd.path("host_ed25519.pub")).unwrap();
        fs::write(sshd.path("known_hosts"), format!("gpu {key}")).unwrap();
        for program in [None, Some("ssh".to_owned())] {
            let (passphrases, asked) = typing(&["not it", "it's secret"]);
            let options = RemoteOptions {
                passphrases,
                ssh_program: program.clone(),
                ..sshd.options()
            };
            let targets = (1..=3).map(|host| HostTarget::new(format!("h{host}")));
            let results: Vec<_> = connect_all(targets.collect(), CarrierChoice::Auto, options)
                .collect()
                .await;
            for (_, result) in results {
                result.unwrap_or_else(|error| panic!("{kind} {format} {program:?}: {error}"));
            }
            let asked = asked.lock().unwrap().clone();
            assert_eq!(asked.len(), 2, "{asked:?}");
            assert!(
                asked.iter().all(|asked| asked.contains(&locked)),
                "{asked:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_key_that_the_host_would_not_take_is_not_asked_for() {
    let sshd = sshd!("");
    sshd.keygen("locked", &["-t", "ed25519", "-N", "secret"]);
    for program in [None, Some("ssh".to_owned())] {
        let (passphrases, asked) = typing(&[]);
        let options = RemoteOptions {
            passphrases,
            ssh_program: program,
            ..with_key(&sshd, "locked")
        };
        // The configured key is good; then none is.
        take(&sshd, "key");
        reach(&sshd, &options).await.unwrap();
        fs::write(sshd.path("authorized_keys"), "").unwrap();
        reach(&sshd, &options).await.unwrap_err();
        assert!(asked.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn with_nobody_to_ask_an_encrypted_key_is_one_clear_error() {
    let sshd = sshd!("");
    sshd.keygen("locked", &["-t", "ed25519", "-N", "secret"]);
    take(&sshd, "locked");
    for program in [None, Some("ssh".to_owned())] {
        let options = RemoteOptions {
            passphrases: Passphrases::asking(|_| {
                Err(std::io::Error::other("there is no terminal"))
            }),
            ssh_program: program,
            ..with_key(&sshd, "locked")
        };
        let error = reach(&sshd, &options).await.unwrap_err();
        let add = format!("ssh-add {}", sshd.path("locked").display());
        says(&error, &["127.0.0.1", "there is no terminal", &add]);
        assert_eq!(error.to_string().matches("hint:").count(), 1, "{error}");
    }
}

#[tokio::test]
async fn the_agents_keys_log_in_whatever_their_type() {
    let sshd = sshd!("");
    let agent = KeyAgent::start(&sshd);
    sshd.write_client_config(&format!("IdentityAgent {}", agent.socket.display()));
    for (kind, passphrase) in [("ed25519", "secret"), ("rsa", ""), ("ecdsa", "")] {
        sshd.keygen(kind, &["-t", kind, "-N", passphrase]);
        agent.add(&sshd.path(kind));
        take(&sshd, kind);
        // Named and not named; nobody is asked.
        let (passphrases, asked) = typing(&[]);
        let named = RemoteOptions {
            passphrases,
            ..with_key(&sshd, kind)
        };
        reach(&sshd, &named).await.unwrap();
        reach(&sshd, &sshd.options()).await.unwrap();
        assert!(asked.lock().unwrap().is_empty());
    }
    // A key that the agent has with its certificate, and the certificate alone is good.
    certify(&sshd, "ecdsa", &[]);
    agent.forget();
    agent.add(&sshd.path("ecdsa"));
    reach(&sshd, &sshd.options()).await.unwrap();
}

/// Makes a certificate for a key, and has the host take certificates alone.
fn certify(sshd: &Sshd, name: &str, arguments: &[&str]) {
    if !sshd.path("authority").exists() {
        sshd.keygen("authority", &["-t", "ed25519"]);
    }
    let mut sign = Command::new("ssh-keygen");
    sign.args(["-q", "-I", "test"]).args(arguments);
    if !arguments.contains(&"-n") {
        sign.args(["-n", &user()]);
    }
    sign.arg("-s").arg(sshd.path("authority"));
    let signed = sign.arg(sshd.path(&format!("{name}.pub"))).status();
    assert!(signed.unwrap().success());
    let authority = fs::read_to_string(sshd.path("authority.pub")).unwrap();
    let line = format!("cert-authority {authority}");
    fs::write(sshd.path("authorized_keys"), line).unwrap();
}

#[tokio::test]
async fn a_certificate_beside_the_key_is_shown() {
    let sshd = sshd!("");
    for kind in ["ed25519", "rsa", "ecdsa"] {
        sshd.keygen(kind, &["-t", kind]);
        certify(&sshd, kind, &[]);
        reach(&sshd, &with_key(&sshd, kind)).await.unwrap();
    }
    // Of an encrypted key; and elsewhere, named by the configuration.
    sshd.keygen("locked", &["-t", "ed25519", "-N", "secret"]);
    certify(&sshd, "locked", &[]);
    let away = sshd.path("away-cert.pub");
    fs::rename(sshd.path("locked-cert.pub"), &away).unwrap();
    sshd.write_client_config(&format!("CertificateFile {}", away.display()));
    let (passphrases, asked) = typing(&["secret"]);
    let options = RemoteOptions {
        passphrases,
        ..with_key(&sshd, "locked")
    };
    reach(&sshd, &options).await.unwrap();
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_certificate_that_is_no_good_says_why() {
    let sshd = sshd!("");
    for (arguments, said) in [
        (&["-V", "-2h:-1h"][..], "it ended 1 h ago"),
        (&["-V", "+3h:+4h"], "is the clock here off?"),
        (&["-n", "alice,bob"], "it is for alice, bob, not for"),
    ] {
        certify(&sshd, "key", arguments);
        let error = reach(&sshd, &sshd.options()).await.unwrap_err();
        let hint = error.hint().unwrap();
        assert!(
            hint.contains(said) && hint.contains("key-cert.pub"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_key_file_that_others_can_read_is_not_used_and_that_is_said() {
    let sshd = sshd!("");
    let key = sshd.path("key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let error = reach(&sshd, &sshd.options()).await.unwrap_err();
    says(&error, &["0644"]);
    follow(&error, "chmod 600");
    reach(&sshd, &sshd.options()).await.unwrap();
    // One that is no file at all is told as well, not passed over.
    fs::remove_file(&key).unwrap();
    fs::create_dir(&key).unwrap();
    let error = reach(&sshd, &sshd.options()).await.unwrap_err();
    says(&error, &["cannot be read", &key.display().to_string()]);
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
async fn a_host_that_takes_no_keys_is_told_so() {
    let sshd = sshd!("PubkeyAuthentication no\nPasswordAuthentication yes");
    let error = reach(&sshd, &sshd.options()).await.unwrap_err();
    says(&error, &["takes no keys, only: password", "--ssh-program"]);
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

/// As with ssh: the public part says which key, and the agent signs.
#[tokio::test]
async fn a_key_of_which_only_the_public_part_is_here_is_the_agents() {
    let sshd = sshd!("");
    let agent = KeyAgent::start(&sshd);
    agent.add(&sshd.path("key"));
    fs::remove_file(sshd.path("key")).unwrap();
    let only = format!(
        "IdentityAgent {}\nIdentitiesOnly yes",
        agent.socket.display()
    );
    for name in ["key", "key.pub"] {
        for (config, identity) in [("", name), (name, "")] {
            let configured = format!("{only}\nIdentityFile {}", sshd.path(config).display());
            sshd.write_client_config(&configured);
            for program in [None, Some("ssh".to_owned())] {
                let mut options = RemoteOptions {
                    ssh_program: program.clone(),
                    ..sshd.options()
                };
                if !identity.is_empty() {
                    options.identity_files = vec![sshd.path(identity)];
                }
                let reached = reach(&sshd, &options).await;
                reached.unwrap_or_else(|error| panic!("{config}{identity} {program:?}: {error}"));
            }
        }
    }
    agent.forget();
    let error = reach(&sshd, &with_key(&sshd, "key")).await.unwrap_err();
    says(&error, &["only its public part is here", "ssh-add"]);
}
