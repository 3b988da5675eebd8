//! Whose key is taken, and whose is not.

use super::*;

#[tokio::test]
async fn an_unknown_key_is_refused_with_the_line_to_run() {
    let sshd = sshd!("");
    fs::remove_file(sshd.path("known_hosts")).unwrap();
    let error = reach(&sshd, &sshd.options()).await.unwrap_err();
    says(
        &error,
        &[
            "127.0.0.1",
            "not known",
            "ssh-ed25519 SHA256:",
            "--ssh-accept-new",
        ],
    );
    assert!(!sshd.path("known_hosts").exists());
    follow(&error, "ssh-keyscan");
    reach(&sshd, &sshd.options()).await.unwrap();
}

#[tokio::test]
async fn a_changed_key_is_refused_whatever_the_options() {
    let sshd = sshd!("");
    sshd.know("key.pub");
    let options = RemoteOptions {
        accept_new: true,
        ..sshd.options()
    };
    let error = reach(&sshd, &options).await.unwrap_err();
    let place = format!("{}:1", sshd.path("known_hosts").display());
    says(&error, &["HAS CHANGED", "SHA256:", &place]);
    follow(&error, "ssh-keygen");
    let error = reach(&sshd, &sshd.options()).await.unwrap_err();
    assert!(
        matches!(*error.cause, ReachCause::HostKeyUnknown { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn accept_new_adds_the_key_also_hashed() {
    for hashed in ["no", "yes"] {
        let sshd = sshd!("");
        fs::remove_file(sshd.path("known_hosts")).unwrap();
        sshd.write_client_config(&format!("HashKnownHosts {hashed}"));
        let options = RemoteOptions {
            accept_new: true,
            ..sshd.options()
        };
        let connection = reach(&sshd, &options).await.unwrap();
        assert!(
            connection
                .notes
                .iter()
                .any(|note| note.contains("added to"))
        );
        let text = fs::read_to_string(sshd.path("known_hosts")).unwrap();
        assert_eq!(text.contains("127.0.0.1"), hashed == "no", "{text}");
        // Now known, and to ssh too.
        reach(&sshd, &sshd.options()).await.unwrap();
        let options = RemoteOptions {
            ssh_program: Some("ssh".into()),
            ..sshd.options()
        };
        reach(&sshd, &options).await.unwrap();
        assert_eq!(fs::read_to_string(sshd.path("known_hosts")).unwrap(), text);
    }
}

#[tokio::test]
async fn a_host_known_by_another_type_of_key_is_asked_for_that_one() {
    let Some(sshd) = Sshd::start_with("", &["ed25519", "ecdsa", "rsa"]) else {
        return;
    };
    for kind in ["ecdsa", "rsa"] {
        sshd.know(&format!("host_{kind}.pub"));
        reach(&sshd, &sshd.options()).await.unwrap();
    }
}
