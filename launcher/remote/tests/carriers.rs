//! The carriers against a real sshd, with the smallest agent in the place of the real one.
#![allow(clippy::unwrap_used, reason = "a test ends by a panic")]

mod sshd;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use rlaunch_remote::{
    CarrierChoice, Connection, HostTarget, ReachCause, ReachError, RemoteOptions, connect,
    connect_all,
};
use sshd::{Sshd, echo_agent, eventually, free_port};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The sshd, or the end of the test with a visible word.
macro_rules! sshd {
    ($settings:expr) => {
        match Sshd::start($settings) {
            Some(sshd) => sshd,
            None => return,
        }
    };
}

async fn reach(sshd: &Sshd, options: &RemoteOptions) -> Result<Connection, ReachError> {
    connect(&sshd.target(), CarrierChoice::Auto, options).await
}

/// What the agent sent together with its greeting comes first; then all bytes come back.
async fn converse(connection: Connection, bytes: usize) -> Connection {
    let Connection { mut io, .. } = connection;
    let mut first = [0; 6];
    io.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"hello\n");
    let payload: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
    let (mut read, mut write) = tokio::io::split(io);
    let sent = payload.clone();
    let writer = tokio::spawn(async move {
        write.write_all(&sent).await.unwrap();
        write.flush().await.unwrap();
        write
    });
    let mut back = vec![0; payload.len()];
    read.read_exact(&mut back).await.unwrap();
    assert!(back == payload);
    let io = Box::new(read.unsplit(writer.await.unwrap()));
    Connection { io, ..connection }
}

fn processes_in(folder: &Path) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let executables = entries.filter_map(|entry| fs::read_link(entry.path().join("exe")).ok());
    executables.filter(|path| path.starts_with(folder)).count()
}

/// Runs the command that an error's hint gives.
fn follow(error: &ReachError, program: &str) {
    let hint = error.hint().unwrap();
    let start = hint
        .find(program)
        .unwrap_or_else(|| panic!("{program} in {hint}"));
    let command = hint[start..].lines().next().unwrap();
    let status = Command::new("sh")
        .args(["-c", command])
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "{command}");
}

fn says(error: &ReachError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} in: {text}");
    }
}

#[test]
fn an_agent_of_this_machine_is_the_own_executable_and_ends_with_the_stream() {
    let output = Command::new(echo_agent()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        said, "local \"hello\\nand back\" the launcher has gone\n",
        "{output:?}"
    );
}

#[tokio::test]
async fn an_executable_that_is_no_agent_is_an_error_with_its_words() {
    // This test's own executable takes the agent's words for wrong options.
    let options = RemoteOptions::default();
    let error = connect(&HostTarget::new("localhost"), CarrierChoice::Auto, &options).await;
    says(&error.unwrap_err(), &["cannot reach localhost", "build"]);
}

#[tokio::test]
async fn the_agent_is_pushed_once_and_ends_with_the_stream() {
    let sshd = sshd!("");
    for push in [true, false] {
        let connection = reach(&sshd, &sshd.options()).await.unwrap();
        let pushed = connection.notes.iter().any(|note| note.contains("pushed"));
        assert_eq!(pushed, push, "{:?}", connection.notes);
        assert_eq!(connection.carrier, "ssh2");
        assert_eq!(connection.peer_address.unwrap().to_string(), "127.0.0.1");
        assert_eq!(connection.build.len(), 32);
        let connection = converse(connection, 3_000_000).await;
        assert_eq!(processes_in(&sshd.cache()), 1);
        drop(connection);
        eventually("the agent ends", || processes_in(&sshd.cache()) == 0);
    }
}

#[tokio::test]
async fn a_killed_connection_is_an_end_of_the_stream() {
    let sshd = sshd!("");
    let connection = reach(&sshd, &sshd.options()).await.unwrap();
    let mut connection = converse(connection, 10).await;
    let connections = sshd.connections();
    assert_eq!(connections.len(), 1);
    let pid = nix::unistd::Pid::from_raw(connections[0]);
    nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL).unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(5), connection.io.read_to_end(&mut rest));
    assert_eq!(read.await.expect("within 5 s").unwrap_or(0), 0);
    eventually("the agent ends", || processes_in(&sshd.cache()) == 0);
}

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
async fn a_port_without_sshd_is_refused_soon() {
    let sshd = sshd!("");
    let port = free_port();
    let target = HostTarget {
        port: Some(port),
        ..sshd.target()
    };
    let start = Instant::now();
    let error = connect(&target, CarrierChoice::Auto, &sshd.options())
        .await
        .unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5));
    says(
        &error,
        &[&format!("127.0.0.1:{port}"), "refused", "is sshd running"],
    );
}

#[tokio::test]
async fn a_port_that_says_nothing_is_a_timeout_and_a_name_that_is_none_an_error() {
    let sshd = sshd!("");
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = HostTarget {
        port: Some(mute.local_addr().unwrap().port()),
        ..sshd.target()
    };
    let options = RemoteOptions {
        connect_timeout: Duration::from_secs(1),
        ..sshd.options()
    };
    let error = connect(&target, CarrierChoice::Auto, &options)
        .await
        .unwrap_err();
    assert!(matches!(*error.cause, ReachCause::TimedOut(1)), "{error}");
    for name in ["no-such-host.invalid", "-oProxyCommand=true", ""] {
        let error = connect(&HostTarget::new(name), CarrierChoice::Auto, &sshd.options()).await;
        assert!(
            matches!(*error.unwrap_err().cause, ReachCause::Unresolved(_)),
            "{name}"
        );
    }
}

#[tokio::test]
async fn noise_of_start_up_files_is_dropped() {
    let sshd = sshd!("");
    let noise = "echo hello; printf 'no end of line'; echo oops >&2\n";
    fs::write(sshd.path("home/.bashrc"), noise).unwrap();
    for program in [None, Some("ssh".to_owned())] {
        let options = RemoteOptions {
            ssh_program: program,
            ..sshd.options()
        };
        converse(reach(&sshd, &options).await.unwrap(), 1000).await;
    }
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

#[tokio::test]
async fn connections_that_sshd_turns_away_are_tried_again() {
    let sshd = sshd!("MaxStartups 1");
    let mute = sshd::mute_connection(sshd.port);
    let options = sshd.options();
    let target = sshd.target();
    let early = tokio::spawn(async move { connect(&target, CarrierChoice::Auto, &options).await });
    let turned_away = tokio::task::spawn_blocking(move || {
        sshd.wait_for_log("MaxStartups");
        sshd
    });
    let sshd = turned_away.await.unwrap();
    drop(mute);
    early.await.unwrap().unwrap();
    drop(sshd);
}

#[tokio::test]
async fn many_hosts_are_reached_a_few_at_a_time_each_with_its_own_result() {
    let sshd = sshd!("MaxStartups 30");
    let mut targets = vec![sshd.target(); 9];
    targets[4].port = Some(free_port());
    let options = RemoteOptions {
        connects_max: 3,
        ..sshd.options()
    };
    let mut results: Vec<_> = connect_all(targets, CarrierChoice::Auto, options)
        .collect()
        .await;
    results.sort_by_key(|(index, _)| *index);
    assert_eq!(results.len(), 9);
    for (index, result) in results {
        assert_eq!(result.is_err(), index == 4, "{index}: {:?}", result.err());
    }
    assert_eq!(fs::read_dir(sshd.cache()).unwrap().count(), 1);
    let accepted = sshd
        .log()
        .iter()
        .filter(|line| line.contains("Accepted publickey"))
        .count();
    assert_eq!(accepted, 8);
}

#[tokio::test]
async fn a_connect_that_is_given_up_leaves_nothing() {
    let sshd = sshd!("");
    fs::write(sshd.path("home/.bashrc"), "sleep 5\n").unwrap();
    let options = sshd.options();
    {
        let connecting = reach(&sshd, &options);
        tokio::pin!(connecting);
        let log = async {
            loop {
                if sshd
                    .log()
                    .iter()
                    .any(|line| line.contains("Starting session: command"))
                {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            result = &mut connecting => panic!("{result:?}"),
            () = log => {}
        }
    }
    eventually("the connection ends", || sshd.connections().is_empty());
}
