//! Before the job: survey, the Python module's installation, the proven address and held port.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use common::{Agent, launch, sh};
use flate2::Compression;
use flate2::write::GzEncoder;
use rlaunch_control::v1::{
    InstallChunk, OpenMasterRequest, ProgramAsked, ProveMasterRequest, SurveyRequest,
};
use tonic::Code;

#[tokio::test]
async fn a_survey_says_what_the_machine_is() {
    let mut agent = Agent::start().await;
    let folder = tempfile::tempdir().unwrap();
    let request = SurveyRequest {
        bundle_id: "no-such-bundle".to_owned(),
        programs: vec![ProgramAsked {
            python: "/no/such/python3.99".to_owned(),
            directory: folder.path().as_os_str().as_encoded_bytes().to_vec().into(),
        }],
    };
    let reply = agent
        .client
        .survey(request.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        reply.hostname,
        nix::unistd::gethostname().unwrap().to_string_lossy()
    );
    assert!(reply.usable_cores >= 1 && reply.bundle_path.is_empty());
    let found = &reply.programs[0];
    assert!(found.directory_exists);
    assert!(found.python.ends_with("python3"), "{}", found.python);
    let run = std::process::Command::new("python3")
        .args([
            "-c",
            "import sys; print('%d.%d' % sys.version_info[:2], end='')",
        ])
        .output()
        .unwrap();
    assert_eq!(found.python_version.as_bytes(), run.stdout);
    let loopback = reply
        .interfaces
        .iter()
        .find(|found| found.loopback)
        .unwrap();
    assert!(
        loopback.addresses.contains(&"127.0.0.1".to_owned()),
        "{loopback:?}"
    );
    std::fs::remove_dir(folder.path()).unwrap();
    let reply = agent.client.survey(request).await.unwrap().into_inner();
    assert!(!reply.programs[0].directory_exists);
}

#[tokio::test]
async fn a_bundle_is_installed_found_again_and_offered_to_ranks() {
    let home = tempfile::tempdir().unwrap();
    let id = "test-bundle-1";
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    let data = b"where = 'bundle'\n";
    header.set_size(data.len() as u64);
    header.set_mode(0o644);
    archive
        .append_data(&mut header, "rlaunch_test_module.py", &data[..])
        .unwrap();
    let mut gzip = archive.into_inner().unwrap();
    gzip.flush().unwrap();
    let packed = gzip.finish().unwrap();

    let mut agent = Agent::start_at_home(home.path()).await;
    let chunks: Vec<InstallChunk> = packed
        .chunks(50)
        .map(|bytes| InstallChunk {
            bundle_id: id.to_owned(),
            tar_gz: bytes.to_vec().into(),
        })
        .collect();
    let reply = agent
        .client
        .install(tokio_stream::iter(chunks))
        .await
        .unwrap()
        .into_inner();
    let place = home.path().join(".cache/rlaunch/bundle").join(id);
    assert_eq!(reply.bundle_path, place.to_string_lossy());
    let mut module = launch(
        1,
        &[
            "python3",
            "-c",
            "import rlaunch_test_module as m; print(m.where)",
        ],
    );
    module.bundle = true;
    let mut job = agent.run(module).await;
    job.finish().await;
    assert_eq!(job.stdout(), "bundle\n");

    let mut agent = Agent::start_at_home(home.path()).await;
    let request = SurveyRequest {
        bundle_id: id.to_owned(),
        ..SurveyRequest::default()
    };
    let reply = agent
        .client
        .survey(request.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(reply.bundle_path, place.to_string_lossy());
    // Whoever can write there can make ranks run their code.
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o777)).unwrap();
    let reply = agent.client.survey(request).await.unwrap().into_inner();
    assert_eq!(reply.bundle_path, "");
}

#[tokio::test]
async fn the_master_port_is_held_through_the_job_and_proven_before() {
    let mut agents = [Agent::start().await, Agent::start().await];
    let open = OpenMasterRequest {
        hold: true,
        ..OpenMasterRequest::default()
    };
    let opened = agents[0]
        .client
        .open_master(open)
        .await
        .unwrap()
        .into_inner();
    let prove = ProveMasterRequest {
        addresses: vec!["127.0.0.1".to_owned(), "192.0.2.1".to_owned()],
        probe_port: opened.probe_port,
        nonce: opened.nonce,
        timeout_ms: 300,
    };
    let proofs = agents[1]
        .client
        .prove_master(prove)
        .await
        .unwrap()
        .into_inner()
        .proofs;
    assert!(proofs[0].proven, "{proofs:?}");
    assert!(
        !proofs[1].proven && !proofs[1].why_not.is_empty(),
        "{proofs:?}"
    );
    let port = u16::try_from(opened.master_port).unwrap();
    TcpStream::connect(("127.0.0.1", port)).expect_err("nobody listens yet");
    let [mut first, mut second] = agents;
    // Taken for everybody else, for a named port of another job too.
    let named = OpenMasterRequest {
        port: port.into(),
        hold: true,
        ..Default::default()
    };
    let refused = second.client.open_master(named.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert!(
        refused
            .message()
            .contains(&format!("port {port} is in use")),
        "{refused}"
    );
    // A rank, as torch's store does it.
    let store = "import socket, sys; s = socket.socket(socket.AF_INET6); \
                 s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); \
                 s.bind(('::', int(sys.argv[1]))); s.listen(); print('listens', flush=True); \
                 s.accept()[0].sendall(b'store')";
    let mut job = first
        .run(launch(1, &["python3", "-c", store, &port.to_string()]))
        .await;
    job.output_with("listens").await;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut stream, &mut said).unwrap();
    assert_eq!(said, "store");
    job.finish().await;
    first.leave(job).await;
    drop(stream);
    second.client.open_master(named).await.expect("free again");
}

#[tokio::test]
async fn one_agent_has_one_job() {
    let mut agent = Agent::start().await;
    let mut job = agent.run(sh(1, "exit 0")).await;
    job.finish().await;
    let (_sender, receiver) = tokio::sync::mpsc::channel(1);
    let again = agent
        .client
        .run(tokio_stream::wrappers::ReceiverStream::new(receiver))
        .await;
    assert_eq!(again.unwrap_err().code(), Code::FailedPrecondition);
}

/// Not a benchmark: fails only if something slow got into the way of every launch.
#[tokio::test]
async fn starting_is_quick() {
    let mut best = std::time::Duration::MAX;
    for _ in 0..20 {
        let start = Instant::now();
        let mut agent = Agent::start().await;
        agent.client.survey(SurveyRequest::default()).await.unwrap();
        let mut job = agent.run(launch(2, &["true"])).await;
        job.finish().await;
        best = best.min(start.elapsed());
        agent.leave(job).await;
    }
    println!("best of 20: {best:?}");
    assert!(best < std::time::Duration::from_millis(100), "{best:?}");
}
