//! A program as carrier: the system's `ssh`, or another one with rsh's manners.
//!
//! It is given the user, the port, the host and the command line, and carries bytes on its pipes.
//! ssh gets a few options more: no passwords, no pty, none of the configuration's forwardings (two
//! connections would fight for them), no escape character. What it asks, [`Askpass`] answers. It runs in a session of
//! its own: the terminal's ^C must not cut the carrier under a job that is to be ended in order,
//! and it must not find a terminal to ask on. It is killed when the stream is dropped.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;

use crate::bootstrap::Raw;
use crate::diagnostics;
use crate::error::{ReachCause, ReachError};
use crate::held_file::HeldFile;
use crate::passphrase::Passphrase;
use crate::passphrase::askpass::Askpass;
use crate::settings::target_arguments;
use crate::target::{HostTarget, RemoteOptions};
use crate::words;

/// What the ssh program says when an sshd, on the way or at its end, hung up before it said who it
/// is, or said that it has no place at the moment.
const CLOSED_EARLY: [&str; 6] = [
    "kex_exchange_identification",
    "Connection closed by",
    "Connection reset by",
    "banner exchange",
    "MaxStartups",
    "Not allowed at this time",
];
/// What it may say besides, and does not mean anything.
const HARMLESS: [&str; 3] = ["Warning: ", "**", "debug"];

/// Whether it is worth another attempt. A way that is closed for good ends in the same words, but
/// not without others before them.
pub(crate) fn closed_early(error: &ReachError) -> bool {
    let early = |line: &str| CLOSED_EARLY.iter().any(|words| line.contains(words));
    let harmless = |line: &str| HARMLESS.iter().any(|words| line.starts_with(words));
    matches!(*error.cause, ReachCause::ProgramEnded { .. })
        && error.said.iter().any(|line| early(line))
        && error.said.iter().all(|line| early(line) || harmless(line))
}

/// Starts it; whether it reaches the host will show.
pub(crate) fn open(
    target: &HostTarget,
    line: &str,
    command: &str,
    options: &RemoteOptions,
    opened: &HashMap<PathBuf, Passphrase>,
) -> Result<Raw, ReachError> {
    let Some(mut words) = words::split(line) else {
        return Err(ReachError::new(
            target,
            ReachCause::ProgramWords(line.to_owned()),
        ));
    };
    let program = words.remove(0);
    let name = Path::new(&program)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let is_ssh = name == "ssh";
    let local = |error: io::Error| ReachError::new(target, ReachCause::Local(error.to_string()));
    let askpass = is_ssh.then(|| Askpass::new(opened)).transpose();
    let askpass = askpass.map_err(local)?;
    let config = accepting(options).filter(|_| is_ssh);
    let config = config.map(|text| HeldFile::new("rlaunch ssh_config", &text));
    let config = config.transpose().map_err(local)?;
    let with_config = RemoteOptions {
        ssh_config: config
            .as_ref()
            .map(HeldFile::path)
            .or_else(|| options.ssh_config.clone()),
        ..options.clone()
    };
    words.extend(arguments(target, &with_config, is_ssh));
    words.push(command.to_owned());
    let mut child = start(&program, &words, askpass.as_ref()).map_err(|error| {
        let cause = ReachCause::ProgramMissing {
            program,
            reason: error.to_string(),
        };
        ReachError::new(target, cause)
    })?;
    let stdin = child.stdin.take().expect("stdin was asked to be piped");
    let stdout = child.stdout.take().expect("stdout was asked to be piped");
    let stderr = child.stderr.take().expect("stderr was asked to be piped");
    let (give_up, given_up) = oneshot::channel();
    let (ending, ended) = oneshot::channel();
    tokio::spawn(watch(child, (askpass, config), given_up, ending));
    Ok(Raw {
        io: Box::new(ProgramStream {
            stdin: Some(stdin),
            stdout,
            _give_up: give_up,
        }),
        peer_address: None,
        local_address: None,
        carrier: if is_ssh { "ssh" } else { "program" },
        diagnostics: diagnostics::spawn_reader(stderr),
        ending: Some(ended),
        notes: Vec::new(),
        details: Vec::new(),
    })
}

fn start(program: &str, arguments: &[String], askpass: Option<&Askpass>) -> io::Result<Child> {
    let mut command = Command::new(program);
    if let Some(askpass) = askpass {
        // ssh before 8.4 looks for DISPLAY instead of REQUIRE; it has no use for the display here.
        command
            .env("SSH_ASKPASS", askpass.path())
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env(
                "DISPLAY",
                std::env::var_os("DISPLAY").unwrap_or("none".into()),
            );
    }
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    // SAFETY: setsid is async-signal-safe, and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            Ok(())
        });
    }
    command.spawn()
}

/// For `--ssh-accept-new` a configuration in front of the user's. The ssh that ssh starts for a jump
/// host gets nothing of its command line but the configuration's path; so it accepts new keys too.
fn accepting(options: &RemoteOptions) -> Option<String> {
    if !options.accept_new {
        return None;
    }
    let files = match &options.ssh_config {
        Some(file) => vec![file.to_str()?.to_owned()],
        None => vec!["~/.ssh/config".to_owned(), "/etc/ssh/ssh_config".to_owned()],
    };
    // What can't stand in quotes stays as it was, with jump hosts that have to be known.
    if files.iter().any(|file| file.contains(['"', '\n'])) {
        return None;
    }
    let mut text = "StrictHostKeyChecking accept-new\n".to_owned();
    for file in files {
        text.push_str(&format!("Include \"{file}\"\n"));
    }
    Some(text)
}

/// rsh's words, and for ssh those that make it fit for a machine.
fn arguments(target: &HostTarget, options: &RemoteOptions, is_ssh: bool) -> Vec<String> {
    let mut arguments = Vec::new();
    if is_ssh {
        let seconds = options.connect_timeout.as_secs().max(1);
        arguments.extend(["-T", "-x", "-e", "none"].map(String::from));
        let mut settings = vec![
            // Only for passphrases, which it is given, whatever the configuration says.
            "BatchMode=no".to_owned(),
            "PasswordAuthentication=no".to_owned(),
            "KbdInteractiveAuthentication=no".to_owned(),
            "NumberOfPasswordPrompts=1".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            "RemoteCommand=none".to_owned(),
            format!("ConnectTimeout={seconds}"),
        ];
        if options.accept_new {
            settings.push("StrictHostKeyChecking=accept-new".to_owned());
        }
        arguments.extend(
            settings
                .into_iter()
                .flat_map(|setting| ["-o".to_owned(), setting]),
        );
    }
    for file in &options.identity_files {
        arguments.extend(["-i".to_owned(), file.to_string_lossy().into_owned()]);
    }
    arguments.extend(target_arguments(target, options));
    if is_ssh {
        arguments.push("--".to_owned());
    }
    arguments.push(target.name.clone());
    arguments
}

/// Reaps the child; kills it once the stream is dropped.
/// What it reads of ours is there as long as it may.
async fn watch(
    mut child: Child,
    held: (Option<Askpass>, Option<HeldFile>),
    given_up: oneshot::Receiver<()>,
    ending: oneshot::Sender<String>,
) {
    let status = tokio::select! {
        status = child.wait() => status,
        _ = given_up => {
            let _ = child.start_kill();
            child.wait().await
        }
    };
    drop(held);
    let text = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    let _ = ending.send(text);
}

struct ProgramStream {
    /// Closed by a shutdown.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Dropped with the stream.
    _give_up: oneshot::Sender<()>,
}

impl AsyncRead for ProgramStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdout).poll_read(context, buffer)
    }
}

impl AsyncWrite for ProgramStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stdin {
            Some(stdin) => Pin::new(stdin).poll_write(context, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stdin {
            Some(stdin) => Pin::new(stdin).poll_flush(context),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stdin = None;
        Poll::Ready(Ok(()))
    }
}
