//! The bootstrap under real shells, with a shell script in the agent's place.

mod folders;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command as StdCommand, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::{Raw, greet, script, start};
use crate::diagnostics;
use crate::error::{ReachCause, ReachError};
use crate::executable::{Agent, Agents};
use crate::target::{Connection, HostTarget};

const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Greets, says which umask and which of our variables it inherited, and then echoes.
fn script_agent(mark: &str) -> Agent {
    let text = format!(
        "#!/bin/sh\n# {mark:>80}\nprintf '\\n@rlaunch-agent %s\\n' \"$3\"\n\
         echo \"$(umask) $(env | grep -c '^_[a-z]=') $0\"; exec cat\n"
    );
    let machine = std::env::consts::ARCH;
    Agent::from_parts(machine, text.into_bytes(), None)
}

struct Host {
    folder: tempfile::TempDir,
    /// Words before `-c COMMAND`.
    login_shell: Vec<String>,
    inner_shell: &'static str,
    path: String,
}

impl Host {
    fn new(login_shell: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "tmp", "var"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let login_shell = login_shell.split(' ').map(String::from).collect();
        let path = String::from("/usr/bin:/bin:/usr/sbin:/sbin");
        Self {
            folder,
            login_shell,
            inner_shell: "/bin/sh",
            path,
        }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("home/.cache/rlaunch")
    }

    fn tmp(&self) -> PathBuf {
        self.outside("tmp")
    }

    fn outside(&self, name: &str) -> PathBuf {
        let own = format!("rlaunch-{}", nix::unistd::getuid());
        self.folder.path().join(name).join(own)
    }

    fn command(&self, agents: &Agents) -> String {
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        script::command_with(agents, [&at("tmp"), &at("var")]).replace("/bin/sh", self.inner_shell)
    }

    fn run(&self, command: &str) -> Raw {
        let mut child = Command::new(&self.login_shell[0])
            .args(&self.login_shell[1..])
            .args(["-c", command])
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.folder.path().join("home"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let diagnostics = diagnostics::spawn_reader(child.stderr.take().unwrap());
        let io = tokio::io::join(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        Raw {
            io: Box::new(io),
            peer_address: None,
            local_address: None,
            carrier: "ssh2",
            diagnostics,
            ending: None,
            notes: Vec::new(),
            details: Vec::new(),
        }
    }

    async fn start(&self, agents: &Agents) -> Result<Connection, ReachError> {
        let raw = self.run(&self.command(agents));
        start(&HostTarget::new("testhost"), raw, agents, SILENCE_MAX).await
    }
}

fn agents(agents: impl IntoIterator<Item = Agent>) -> Agents {
    Agents::from_parts(agents.into_iter().map(Arc::new).collect())
}

/// What the agent says of itself; then that the stream carries all bytes, and nothing else.
async fn converse(mut connection: Connection) -> String {
    let payload: Vec<u8> = (0..200_000u32).map(|index| (index % 251) as u8).collect();
    let mut first_line = Vec::new();
    loop {
        match connection.io.read_u8().await.unwrap() {
            b'\n' => break,
            byte => first_line.push(byte),
        }
    }
    let (mut read, mut write) = tokio::io::split(connection.io);
    let sent = payload.clone();
    let writer = tokio::spawn(async move { write.write_all(&sent).await });
    let mut back = vec![0; payload.len()];
    read.read_exact(&mut back).await.unwrap();
    writer.await.unwrap().unwrap();
    assert!(back == payload);
    String::from_utf8(first_line).unwrap()
}

fn is_there(program: &str) -> bool {
    let found = StdCommand::new(program)
        .args(["-c", "true"])
        .output()
        .is_ok();
    if !found {
        eprintln!("SKIPPED for {program}: not installed");
    }
    found
}

#[tokio::test]
async fn every_login_shell_passes_the_command_on() {
    for shell in ["dash", "bash", "tcsh", "fish", "zsh", "busybox sh"] {
        if !is_there(shell.split(' ').next().unwrap()) {
            continue;
        }
        let host = Host::new(shell);
        let agents = agents([script_agent(shell)]);
        let connection = host
            .start(&agents)
            .await
            .unwrap_or_else(|error| panic!("{shell}: {error}"));
        assert!(
            connection
                .details
                .iter()
                .any(|detail| detail.contains("pushed")),
            "{shell}"
        );
        let said = converse(connection).await;
        let path = host
            .cache()
            .join(&agents.iter().next().unwrap().build)
            .join("rlaunch");
        assert!(
            said.ends_with(&format!(" 0 {}", path.display())),
            "{shell}: {said}"
        );
    }
}

#[tokio::test]
async fn every_posix_shell_runs_it_pushes_once_and_keeps_the_umask() {
    for shell in ["/usr/bin/dash", "/bin/bash --posix", "/bin/busybox sh"] {
        if !is_there(shell.split(' ').next().unwrap()) {
            continue;
        }
        let host = Host {
            inner_shell: shell,
            ..Host::new("/bin/sh")
        };
        let agents = agents([script_agent("same")]);
        for push in [true, false] {
            let raw = host.run(&format!("umask 027; {}", host.command(&agents)));
            let connection = start(&HostTarget::new("h"), raw, &agents, SILENCE_MAX).await;
            let connection = connection.unwrap_or_else(|error| panic!("{shell}: {error}"));
            assert_eq!(
                !connection.details.is_empty(),
                push,
                "{shell}: {:?}",
                connection.details
            );
            assert!(converse(connection).await.starts_with("0027 0 "), "{shell}");
        }
        let file = host
            .cache()
            .join(&agents.iter().next().unwrap().build)
            .join("rlaunch");
        assert_eq!(
            fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o700
        );
    }
}

/// A PATH with the system's programs except some.
fn path_without(folder: &Path, missing: &[&str]) -> String {
    fs::create_dir(folder).unwrap();
    for entry in fs::read_dir("/usr/bin").unwrap().flatten() {
        if !missing.contains(&entry.file_name().to_str().unwrap()) {
            std::os::unix::fs::symlink(entry.path(), folder.join(entry.file_name())).unwrap();
        }
    }
    folder.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_host_without_gzip_and_sha256sum_gets_it_as_it_is() {
    let mut host = Host::new("/bin/sh");
    host.path = path_without(&host.folder.path().join("bin"), &["gzip", "sha256sum"]);
    let agents = agents([script_agent("plain")]);
    converse(host.start(&agents).await.unwrap()).await;
    assert!(host.start(&agents).await.unwrap().details.is_empty());
}

#[tokio::test]
async fn the_launchers_own_path_counts_only_if_it_is_the_same_build() {
    let host = Host::new("/bin/sh");
    let path = host.folder.path().join("shared file");
    for (there, same) in [("own", true), ("other", false)] {
        let mut file = script_agent(there).bytes.to_vec();
        // What a stripped copy does not have.
        file.extend_from_slice(b"# symbols\n");
        fs::write(&path, file).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let agent = Agent {
            path: Some(path.clone()),
            ..script_agent("own")
        };
        let connection = host.start(&agents([agent])).await.unwrap();
        assert_eq!(
            connection.details.is_empty(),
            same,
            "{:?}",
            connection.details
        );
        let said = converse(connection).await;
        assert_eq!(said.ends_with(path.to_str().unwrap()), same, "{said}");
    }
}

#[tokio::test]
async fn another_machine_is_refused_naming_both() {
    let host = Host::new("/bin/sh");
    let error = host
        .start(&agents([Agent {
            machine: "vax",
            ..script_agent("")
        }]))
        .await
        .unwrap_err();
    for part in [std::env::consts::ARCH, "only vax", "--agent PATH"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_push_that_arrives_changed_is_refused_and_leaves_nothing() {
    let host = Host::new("/bin/sh");
    let agent = Agent {
        build: "0123456789abcdef".into(),
        ..script_agent("")
    };
    let error = host.start(&agents([agent])).await.unwrap_err();
    assert!(matches!(*error.cause, ReachCause::Push(_)), "{error}");
    let left = fs::read_dir(host.cache().join("0123456789abcdef"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_copy_that_was_cut_or_changed_is_replaced() {
    let host = Host::new("/bin/sh");
    let agents = agents([script_agent("cut")]);
    converse(host.start(&agents).await.unwrap()).await;
    let build = &agents.iter().next().unwrap().build;
    let folder = host.cache().join(build);
    // Also where there is no word that it was found whole.
    for marked in [true, false] {
        let file = fs::File::options().write(true).open(folder.join("rlaunch"));
        file.unwrap().set_len(20).unwrap();
        if !marked {
            fs::remove_file(folder.join("ok")).unwrap();
        }
        let connection = host.start(&agents).await.unwrap();
        assert!(
            connection
                .details
                .iter()
                .any(|note| note.contains("pushed")),
            "{marked}"
        );
        converse(connection).await;
        assert!(host.start(&agents).await.unwrap().details.is_empty());
    }
}

/// On every host of every job: nothing but the shell.
#[tokio::test]
async fn what_is_cached_is_run_without_any_other_program() {
    for shell in ["/usr/bin/dash", "/bin/bash --posix", "/bin/busybox sh"] {
        if !is_there(shell.split(' ').next().unwrap()) {
            continue;
        }
        let mut host = Host {
            inner_shell: shell,
            ..Host::new("/bin/sh")
        };
        for folder in ["home", "tmp"] {
            let agents = agents([script_agent(&format!("{shell} {folder}"))]);
            if folder == "tmp" {
                fs::set_permissions(host.cache(), fs::Permissions::from_mode(0o777)).unwrap();
            }
            converse(host.start(&agents).await.unwrap()).await;
            let path = std::mem::replace(&mut host.path, "/nonexistent".into());
            let connection = host.start(&agents).await;
            let mut connection = connection.unwrap_or_else(|error| panic!("{shell}: {error}"));
            assert!(connection.details.is_empty());
            // The script in the agent's place has no `env` and no `cat` now, but it ran.
            let mut said = String::new();
            connection.io.read_to_string(&mut said).await.unwrap();
            assert!(said.contains(&format!("/{folder}/")), "{shell}: {said}");
            host.path = path;
        }
    }
}

#[tokio::test]
async fn old_builds_are_dropped_by_a_push() {
    let host = Host::new("/bin/sh");
    for index in 0..7 {
        let agents = agents([script_agent(&format!("build {index}"))]);
        converse(host.start(&agents).await.unwrap()).await;
    }
    assert_eq!(fs::read_dir(host.cache()).unwrap().count(), 4);
}

#[tokio::test]
async fn noise_is_dropped_up_to_its_bound() {
    let host = Host::new("/bin/sh");
    let agents = agents([script_agent("noise")]);
    for (bytes, passes) in [(60_000, true), (70_000, false)] {
        let noise = format!("yes 'hello from your .bashrc' | head -c {bytes}");
        let raw = host.run(&format!("{noise}; {}", host.command(&agents)));
        let result = start(&HostTarget::new("h"), raw, &agents, SILENCE_MAX).await;
        match result {
            Ok(connection) if passes => drop(converse(connection).await),
            Err(error) if !passes => {
                assert!(
                    matches!(*error.cause, ReachCause::TooMuchNoise(64)),
                    "{error}"
                );
            }
            other => panic!("{bytes}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_last_words_of_a_host_are_shown() {
    let cases = [
        (
            "echo This account is currently not available.; exit 1",
            "not available",
            "/bin/sh -c date",
        ),
        (
            "echo 'sh: quota exceeded' >&2; exit 1",
            "quota exceeded",
            "testhost",
        ),
        (
            "echo \"rlaunch: /lib/libc.so.6: version \\`GLIBC_2.34' not found\" >&2; exit 1",
            "C library is too old",
            "--agent PATH",
        ),
        (
            "exec /nonexistent/rlaunch agent",
            "no glibc",
            "--agent PATH",
        ),
    ];
    for (command, first, second) in cases {
        let host = Host::new("/bin/sh");
        let raw = host.run(command);
        let error = greet(&HostTarget::new("testhost"), raw, "b", SILENCE_MAX)
            .await
            .unwrap_err();
        for part in [first, second] {
            assert!(error.to_string().contains(part), "{part} in {error}");
        }
    }
}

#[tokio::test]
async fn another_build_and_silence_are_errors() {
    let host = Host::new("/bin/sh");
    let raw = host.run("printf '\\n@rlaunch-agent old\\n'; exec cat");
    let error = greet(&HostTarget::new("h"), raw, "new", SILENCE_MAX)
        .await
        .unwrap_err();
    assert!(
        matches!(*error.cause, ReachCause::OtherBuild { .. }),
        "{error}"
    );
    let raw = host.run("exec cat");
    let error = greet(&HostTarget::new("h"), raw, "b", Duration::from_millis(50))
        .await
        .unwrap_err();
    assert!(matches!(*error.cause, ReachCause::Silent(_)), "{error}");
}
