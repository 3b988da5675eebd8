//! What this machine is, for the launcher's plan. Reads files and tables; runs a program only to
//! ask an interpreter of unusual name for its version.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::utsname::uname;
use nix::unistd::getuid;
use rlaunch_control::v1::{Interface, ProgramAsked, ProgramFound, SurveyReply, SurveyRequest};
use tonic::Status;

use crate::job::PATH_DEFAULT;
use crate::{cache, clock, program};

/// A Python that takes longer to tell its version stays unknown.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn answer(request: SurveyRequest) -> Result<SurveyReply, Status> {
    let machine = rlaunch_topo::survey::this_machine();
    let system = uname().map_err(io::Error::from)?;
    let text = |text: &OsStr| text.to_string_lossy().into_owned();
    let mut programs = Vec::with_capacity(request.programs.len());
    for asked in &request.programs {
        programs.push(found(asked).await);
    }
    Ok(SurveyReply {
        hostname: text(system.nodename()),
        boot_id: boot_id(),
        kernel: text(system.release()),
        machine: text(system.machine()),
        uid: getuid().as_raw(),
        usable_cores: machine.usable_cores,
        gpus: machine.gpus,
        interfaces: machine.interfaces.into_iter().map(interface).collect(),
        host_time_us: clock::now_us(),
        bundle_path: path_text(cache::find(&request.bundle_id)),
        programs,
        home: cache::home()
            .unwrap_or_default()
            .into_os_string()
            .into_encoded_bytes()
            .into(),
    })
}

async fn found(asked: &ProgramAsked) -> ProgramFound {
    let (python, python_version) = python(&asked.python).await;
    ProgramFound {
        python: path_text(python),
        python_version,
        directory_exists: Path::new(OsStr::from_bytes(&asked.directory)).is_dir(),
    }
}

fn interface(found: rlaunch_topo::survey::Interface) -> Interface {
    Interface {
        name: found.name,
        up: found.up,
        loopback: found.loopback,
        addresses: found.addresses.iter().map(ToString::to_string).collect(),
    }
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

fn path_text(path: Option<PathBuf>) -> String {
    path.map(|path| path.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The interpreter that ranks would get, and its version as `3.11`. Nothing if not asked.
async fn python(named: &str) -> (Option<PathBuf>, String) {
    if named.is_empty() {
        return (None, String::new());
    }
    let path = std::env::var_os("PATH").map(std::ffi::OsString::into_encoded_bytes);
    let path = path.unwrap_or_else(|| PATH_DEFAULT.to_vec());
    let Some(python) = program::python(named, false, &path) else {
        return (None, String::new());
    };
    let version = match version_in_name(&python) {
        Some(version) => version,
        None => ask_version(&python).await.unwrap_or_default(),
    };
    (Some(python), version)
}

/// `/usr/bin/python3` is a link to `python3.11`, in virtual environments too: no need to start it,
/// which takes longer than all the rest.
fn version_in_name(python: &Path) -> Option<String> {
    let real = python.canonicalize().ok()?;
    let version = real.file_name()?.to_str()?.strip_prefix("python")?;
    let (major, minor) = version.split_once('.')?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (number(major) && number(minor)).then(|| version.to_owned())
}

async fn ask_version(python: &Path) -> Option<String> {
    let run = tokio::process::Command::new(python)
        .args([
            "-I",
            "-S",
            "-c",
            "import sys; print('%d.%d' % sys.version_info[:2])",
        ])
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(VERSION_TIMEOUT, run)
        .await
        .ok()?
        .ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_the_name_where_it_stands_there() {
        let folder = std::env::temp_dir().join(format!("rlaunch-survey-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, version) in [
            ("python3.11", Some("3.11")),
            ("python3", None),
            ("python3.11-config", None),
            ("pypy3.10", None),
        ] {
            std::fs::write(folder.join(name), "").unwrap();
            let link = folder.join(format!("link-{name}"));
            std::os::unix::fs::symlink(folder.join(name), &link).unwrap();
            assert_eq!(version_in_name(&link).as_deref(), version, "{name}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
