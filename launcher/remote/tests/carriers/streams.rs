//! Streams to agents: their beginning, their bytes, their end; and what is told where none is.

use super::*;

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
    let options = sshd.options();
    for push in [true, false] {
        let connection = reach(&sshd, &options).await.unwrap();
        let how = connection.details.last().unwrap();
        assert!(how.starts_with("reached by ssh2 at 127.0.0.1"), "{how}");
        let pushed = connection
            .details
            .iter()
            .any(|detail| detail.contains("pushed"));
        assert_eq!(pushed, push, "{:?}", connection.details);
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
    connections[0].end();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(5), connection.io.read_to_end(&mut rest));
    assert_eq!(read.await.expect("within 5 s").unwrap_or(0), 0);
    eventually("the agent ends", || processes_in(&sshd.cache()) == 0);
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
async fn a_crowd_that_sshd_turns_away_gets_in_by_and_by_with_each_carrier() {
    let sshd = sshd!("MaxStartups 3");
    // Of the three places one is left.
    let _mute = [(); 2].map(|()| sshd::mute_connection(sshd.port));
    for program in [None, Some("ssh".to_owned())] {
        let options = RemoteOptions {
            ssh_program: program,
            // On a machine that is busy.
            connect_timeout: Duration::from_secs(60),
            ..sshd.options()
        };
        let targets = vec![sshd.target(); 6];
        let results: Vec<_> = connect_all(targets, CarrierChoice::Auto, options)
            .collect()
            .await;
        for (_, result) in results {
            result.unwrap();
        }
        let log = sshd.log();
        let turned_away = log.iter().any(|line| line.contains("MaxStartups"));
        assert!(turned_away, "nobody was turned away");
    }
}

#[tokio::test]
async fn a_host_that_is_still_coming_up_is_waited_for_if_the_user_says_so() {
    let mut sshd = sshd!("");
    sshd.stop();
    sshd.write_client_config("ConnectionAttempts 30");
    let (options, target) = (sshd.options(), sshd.target());
    let early = tokio::spawn(async move { connect(&target, CarrierChoice::Auto, &options).await });
    // Longer than the attempts of our own.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!early.is_finished());
    sshd.start_again();
    early.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_quiet_connection_is_kept_alive_as_often_as_the_user_says() {
    let sshd = sshd!("LogLevel DEBUG1");
    sshd.write_client_config("ServerAliveInterval 1");
    let connection = reach(&sshd, &sshd.options()).await.unwrap();
    let _connection = converse(connection, 10).await;
    // The connection is moved by a thread of its own.
    sshd.wait_for_log("keepalive@libssh2.org");
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
