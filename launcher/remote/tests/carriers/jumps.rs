//! Hosts that are reached through others, and where on such a way it fails.

use super::*;

/// `target`, behind `hops` jump hosts that are all this one sshd under other names.
fn behind(sshd: &Sshd, hops: &str, more: &str) {
    let port = sshd.port;
    sshd.write_client_config(&format!(
        "{more}\nHost target\nProxyJump {hops}\nHost target gate1 gate2 gate3\n\
         HostName 127.0.0.1\nPort {port}\n"
    ));
}

async fn to(
    name: &str,
    choice: CarrierChoice,
    options: &RemoteOptions,
) -> Result<Connection, ReachError> {
    connect(&HostTarget::new(name), choice, options).await
}

async fn target(options: &RemoteOptions) -> Result<Connection, ReachError> {
    to("target", CarrierChoice::Auto, options).await
}

#[tokio::test]
async fn one_jump_host_or_several_are_passed() {
    let sshd = sshd!("");
    for hops in ["gate1", "gate1,gate2,gate3"] {
        behind(&sshd, hops, "");
        let connection = target(&sshd.options()).await.unwrap();
        assert_eq!(connection.carrier, "ssh");
        let why = format!("proxyjump {hops}");
        assert!(
            connection.details.iter().any(|it| it.contains(&why)),
            "{:?}",
            connection.details
        );
        converse(connection, 100_000).await;
    }
    // The jump alone is no reason to carry the jump host itself by the program.
    let gate = to("gate1", CarrierChoice::Auto, &sshd.options()).await;
    assert_eq!(gate.unwrap().carrier, "ssh2");
    let error = to("target", CarrierChoice::Ssh2, &sshd.options()).await;
    says(&error.unwrap_err(), &["proxyjump gate1,gate2,gate3"]);
}

#[tokio::test]
async fn an_encrypted_key_is_asked_for_once_for_all_hops() {
    let sshd = sshd!("");
    sshd.keygen("locked", &["-t", "ed25519", "-N", "secret"]);
    fs::copy(sshd.path("locked.pub"), sshd.path("authorized_keys")).unwrap();
    let locked = sshd.path("locked").display().to_string();
    behind(&sshd, "gate1,gate2", &format!("IdentityFile {locked}"));
    let (passphrases, asked) = typing(&["secret"]);
    let options = RemoteOptions {
        passphrases,
        ..sshd.options()
    };
    converse(target(&options).await.unwrap(), 1000).await;
    assert_eq!(asked.lock().unwrap().len(), 1);
}

/// As for the target itself; a key that has changed is refused on the way, too.
#[tokio::test]
async fn new_keys_of_jump_hosts_are_accepted_if_asked_for() {
    let sshd = sshd!("");
    let known = sshd.path("known_of_gates");
    let settings = format!("Host gate1 gate2\nUserKnownHostsFile {}\n", known.display());
    behind(&sshd, "gate1,gate2", &settings);
    let options = RemoteOptions {
        accept_new: true,
        ..sshd.options()
    };
    says(
        &target(&sshd.options()).await.unwrap_err(),
        &["--ssh-accept-new"],
    );
    converse(target(&options).await.unwrap(), 1000).await;
    let learnt = fs::read_to_string(&known).unwrap();
    let line = learnt.lines().next().unwrap();
    // Another key of the same kind under the same name.
    sshd.keygen("other", &["-t", "ed25519", "-N", ""]);
    let other = fs::read_to_string(sshd.path("other.pub")).unwrap();
    let (name, _) = line.split_once(' ').unwrap();
    fs::write(&known, format!("{name} {other}")).unwrap();
    says(
        &target(&options).await.unwrap_err(),
        &["has changed", "hint: only if you know why"],
    );
}

#[tokio::test]
async fn what_fails_on_the_way_is_told_at_once_with_what_to_do() {
    let sshd = sshd!("");
    let (port, dead) = (sshd.port, free_port());
    for (settings, parts) in [
        // The jump host has no sshd.
        (
            format!("Host gate1\nHostName 127.0.0.1\nPort {dead}\n"),
            &["Connection refused", "ssh"][..],
        ),
        // The jump host is there, and does not reach the target.
        (
            format!("Host target\nHostName 127.0.0.1\nPort {dead}\n"),
            &["stdio forwarding failed", "does not reach target"],
        ),
        // The jump host is not known.
        (
            format!("Host gate1\nHostName 127.0.0.1\nPort {port}\nUserKnownHostsFile /dev/null\n"),
            &["Host key verification failed", "--ssh-accept-new"],
        ),
        // The jump host takes no key of ours.
        (
            format!("Host gate1\nHostName 127.0.0.1\nPort {port}\nUser no-such-user\n"),
            &["Permission denied", "no-such-user"],
        ),
    ] {
        behind(&sshd, "gate1", &settings);
        let start = Instant::now();
        let error = target(&sshd.options()).await.unwrap_err();
        says(&error, parts);
        says(&error, &["cannot reach target", "hint:"]);
        // Not tried again and again, as it would be if it had been turned away for a moment.
        assert!(start.elapsed() < Duration::from_secs(4), "{error}");
    }
}

#[tokio::test]
async fn a_jump_host_that_turns_some_away_lets_all_pass_in_the_end() {
    let sshd = sshd!("MaxStartups 4:80:8");
    behind(&sshd, "gate1", "");
    let targets = vec![HostTarget::new("target"); 8];
    let results: Vec<_> = connect_all(targets, CarrierChoice::Auto, sshd.options())
        .collect()
        .await;
    for (_, result) in results {
        result.unwrap();
    }
}
