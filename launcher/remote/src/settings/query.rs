//! Where the settings come from: `ssh -G`, else `~/.ssh/config` by `ssh2-config`.

use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ssh2_config::{HostParams, ParseRule, SshConfig};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::classes::{Class, Classes};
use super::{Lines, Settings, Whoami};
use crate::error::{ReachCause, ReachError};
use crate::target::{HostTarget, RemoteOptions};

/// `ssh -G` may run a user's `Match exec`.
const QUERY_MAX: Duration = Duration::from_secs(10);

/// Who told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Program,
    /// There is no ssh program on this machine.
    File,
}

/// Asks for one host's settings; a live ControlMaster is found too.
pub(crate) async fn query(
    target: &HostTarget,
    options: &RemoteOptions,
) -> Result<(Settings, Source), ReachError> {
    let me = Whoami::ask();
    let Some(mut lines) = answer(target, options, &me).await? else {
        let lines = from_file(target, options, &me)?;
        return Ok((Settings::from_lines(target, &lines, &me), Source::File));
    };
    let mut settings = Settings::from_lines(target, &lines, &me);
    if settings.needs_program.is_some() || settings.control_path.is_none() {
        return Ok((settings, Source::Program));
    }
    // The path is this host's own, once ssh has put the host's name into it.
    if let Some(text) = ask(target, options, &["-G"]).await? {
        lines = parse(&text);
        settings = Settings::from_lines(target, &lines, &me);
    }
    let control_path = settings.control_path.as_deref();
    let may_be_open = control_path.is_some_and(|path| path.exists() || is_unclear(path));
    if may_be_open && ask(target, options, &["-O", "check"]).await.is_ok() {
        settings.needs_program = Some("a ControlMaster is open to it".into());
    }
    Ok((settings, Source::Program))
}

/// ssh before 8.7 leaves tokens in it.
fn is_unclear(path: &Path) -> bool {
    path.to_string_lossy().contains('%')
}

/// What ssh says of hosts, by what makes them the same to it.
#[derive(Clone, Default)]
pub struct Answers(Arc<Known>);

#[derive(Default)]
struct Known {
    classes: OnceCell<Option<Classes>>,
    answers: Mutex<HashMap<Alike, Arc<OnceCell<Option<Answer>>>>>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Alike {
    class: Class,
    user: Option<String>,
    port: Option<u16>,
}

/// The host that was asked about, and what came back.
struct Answer {
    host: String,
    lines: Lines,
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answers(…)")
    }
}

/// Asks ssh, or remembers what it said of a host like this one. None without an ssh program.
async fn answer(
    target: &HostTarget,
    options: &RemoteOptions,
    me: &Whoami,
) -> Result<Option<Lines>, ReachError> {
    let known = &options.answers.0;
    let read = || async { Classes::read(options.ssh_config.as_deref(), &me.home) };
    let Some(classes) = known.classes.get_or_init(read).await else {
        let text = ask(target, options, &["-G"]).await?;
        return Ok(text.map(|text| parse(&text)));
    };
    let class = classes.class(&target.name);
    let named = class.named;
    let alike = Alike {
        class,
        user: target.user.clone(),
        port: target.port,
    };
    let cell = {
        let mut answers = known.answers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(answers.entry(alike).or_default())
    };
    let ask = || async {
        let text = ask(target, options, &["-G"]).await?;
        Ok(text.map(|text| Answer {
            host: target.name.clone(),
            lines: parse(&text),
        }))
    };
    let Some(answer) = cell.get_or_try_init(ask).await? else {
        return Ok(None);
    };
    let mut lines = answer.lines.clone();
    if !named && answer.host != target.name {
        lines.insert("hostname".into(), vec![target.name.clone()]);
    }
    Ok(Some(lines))
}

/// What ssh prints; none without an ssh program.
async fn ask(
    target: &HostTarget,
    options: &RemoteOptions,
    question: &[&str],
) -> Result<Option<String>, ReachError> {
    let failed = |reason: String| {
        let cause = ReachCause::ProgramEnded {
            program: "ssh".into(),
            status: reason,
        };
        ReachError::new(target, cause).tried(format!("ssh {}", question.join(" ")))
    };
    let mut command = Command::new("ssh");
    command
        .args(question)
        .args(target_arguments(target, options))
        .arg("--")
        .arg(&target.name);
    // The terminal's ^C is the launcher's to handle.
    command
        .stdin(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    let output = match timeout(QUERY_MAX, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(Err(error)) => return Err(failed(error.to_string())),
        Err(_) => {
            return Err(failed(format!(
                "no answer within {} s",
                QUERY_MAX.as_secs()
            )));
        }
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr)
            .lines()
            .map(str::to_owned)
            .collect();
        return Err(ReachError {
            said,
            ..failed(output.status.to_string())
        });
    }
    Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// ssh's own options for what the user gave to the launcher.
pub(crate) fn target_arguments(target: &HostTarget, options: &RemoteOptions) -> Vec<String> {
    let mut arguments = Vec::new();
    if let Some(file) = &options.ssh_config {
        arguments.extend(["-F".into(), file.to_string_lossy().into_owned()]);
    }
    if let Some(port) = target.port {
        arguments.extend(["-p".into(), port.to_string()]);
    }
    if let Some(user) = &target.user {
        arguments.extend(["-l".into(), user.clone()]);
    }
    arguments
}

/// Lines of `keyword value…`.
pub(super) fn parse(text: &str) -> Lines {
    let mut lines = Lines::new();
    for line in text.lines() {
        if let Some((key, value)) = line.trim().split_once(' ') {
            lines
                .entry(key.to_ascii_lowercase())
                .or_default()
                .push(value.trim().to_owned());
        }
    }
    lines
}

fn from_file(
    target: &HostTarget,
    options: &RemoteOptions,
    me: &Whoami,
) -> Result<Lines, ReachError> {
    let default = me.home.join(".ssh/config");
    let path = options.ssh_config.as_deref().unwrap_or(&default);
    let failed = |reason: String| {
        ReachError::new(
            target,
            ReachCause::File {
                path: path.to_owned(),
                reason,
                option: None,
            },
        )
    };
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && options.ssh_config.is_none() => {
            return Ok(lines_of(None, &me.home));
        }
        Err(error) => return Err(failed(error.to_string())),
    };
    let rules = ParseRule::ALLOW_UNKNOWN_FIELDS | ParseRule::ALLOW_UNSUPPORTED_FIELDS;
    let config = SshConfig::default()
        .home_dir(&me.home)
        .parse(&mut text.as_slice(), rules);
    let params = config
        .map_err(|error| failed(error.to_string()))?
        .query(&target.name);
    let mut lines = lines_of(Some(params), &me.home);
    // What stands below a Match would be taken for a part of the Host above it.
    let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
    if let Some(line) = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("match "))
    {
        lines.insert("match".into(), vec![line.trim().to_owned()]);
    }
    Ok(lines)
}

/// As `ssh -G` would say it, with ssh's defaults.
fn lines_of(params: Option<HostParams>, home: &Path) -> Lines {
    const KEYS: [&str; 3] = ["id_rsa", "id_ecdsa", "id_ed25519"];
    let mut lines = Lines::new();
    let in_home = |name: &str| home.join(".ssh").join(name).to_string_lossy().into_owned();
    if let Some(params) = params {
        for (key, values) in params
            .ignored_fields
            .iter()
            .chain(&params.unsupported_fields)
        {
            lines.insert(key.to_ascii_lowercase(), vec![values.join(" ")]);
        }
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let files = params.identity_file.unwrap_or_default();
        let known = [
            ("hostname", params.host_name.into_iter().collect()),
            ("user", params.user.into_iter().collect()),
            (
                "port",
                params
                    .port
                    .map(|port| port.to_string())
                    .into_iter()
                    .collect(),
            ),
            (
                "proxyjump",
                params
                    .proxy_jump
                    .map(|jumps| jumps.join(","))
                    .into_iter()
                    .collect(),
            ),
            ("bindaddress", params.bind_address.into_iter().collect()),
            ("bindinterface", params.bind_interface.into_iter().collect()),
            (
                "identityfile",
                files.iter().map(|file| text(file)).collect(),
            ),
            (
                "certificatefile",
                params
                    .certificate_file
                    .iter()
                    .map(|file| text(file))
                    .collect(),
            ),
        ];
        let given = known
            .into_iter()
            .filter(|(_, values): &(&str, Vec<String>)| !values.is_empty());
        lines.extend(given.map(|(key, values)| (key.to_owned(), values)));
    }
    let mut default = |key: &str, values: Vec<String>| {
        lines.entry(key.to_owned()).or_insert(values);
    };
    default("identityfile", KEYS.map(in_home).to_vec());
    default(
        "userknownhostsfile",
        vec![in_home("known_hosts"), in_home("known_hosts2")],
    );
    default(
        "globalknownhostsfile",
        vec!["/etc/ssh/ssh_known_hosts".into()],
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_file_is_read_without_ssh() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = "Host gpu*\n  HostName 10.0.0.9\n  Port 2022\n  User bob\n  IdentityFile ~/k\n\
            \x20 StrictHostKeyChecking accept-new\n  UserKnownHostsFile /kh\nHost far\n  \
            ProxyCommand nc %h %p\n";
        std::fs::write(&path, text).unwrap();
        let me = Whoami {
            name: "alice".into(),
            home: folder.path().to_owned(),
        };
        let options = RemoteOptions {
            ssh_config: Some(path),
            ..RemoteOptions::default()
        };
        let settings = |name: &str| {
            let target = HostTarget::new(name);
            let lines = from_file(&target, &options, &me).unwrap();
            Settings::from_lines(&target, &lines, &me)
        };
        let gpu = settings("gpu7");
        assert_eq!(
            (gpu.hostname.as_str(), gpu.port, gpu.user.as_str()),
            ("10.0.0.9", 2022, "bob")
        );
        assert_eq!(gpu.identity_files, [folder.path().join("k")]);
        assert_eq!(gpu.known_hosts, [Path::new("/kh")]);
        assert_eq!(gpu.strict, super::super::Strict::AcceptNew);
        assert_eq!(gpu.needs_program, None);
        let reason = settings("far").needs_program.unwrap();
        assert!(reason.contains("proxycommand nc %h %p"), "{reason}");
        let other = settings("other");
        assert_eq!((other.hostname.as_str(), other.port), ("other", 22));
        assert_eq!(other.identity_files.len(), 3);
        std::fs::write(
            options.ssh_config.as_ref().unwrap(),
            "Match host gpu*\n  User eve\n",
        )
        .unwrap();
        let reason = settings("gpu7").needs_program.unwrap();
        assert!(reason.contains("match host gpu*"), "{reason}");
    }
}
