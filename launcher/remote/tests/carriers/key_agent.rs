//! An ssh-agent of a test's own, ended when the value is dropped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Sshd, eventually};

pub(crate) struct KeyAgent {
    process: Child,
    pub(crate) socket: PathBuf,
    askpass: PathBuf,
}

impl KeyAgent {
    pub(crate) fn start(sshd: &Sshd) -> Self {
        let socket = sshd.path("agent");
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(&socket);
        let process = command.stdout(Stdio::null()).spawn().unwrap();
        let askpass = sshd.path("askpass");
        fs::write(&askpass, "#!/bin/sh\necho secret\n").unwrap();
        fs::set_permissions(&askpass, fs::Permissions::from_mode(0o700)).unwrap();
        let agent = Self {
            process,
            socket,
            askpass,
        };
        eventually("ssh-agent listens", || agent.socket.exists());
        agent
    }

    pub(crate) fn add(&self, key: &Path) {
        self.tell(&[key.to_str().unwrap()]);
    }

    pub(crate) fn forget(&self) {
        self.tell(&["-D"]);
    }

    fn tell(&self, words: &[&str]) {
        let told = Command::new("ssh-add")
            .args(words)
            .env("SSH_AUTH_SOCK", &self.socket)
            .env("SSH_ASKPASS", &self.askpass)
            .env("SSH_ASKPASS_REQUIRE", "force")
            .stderr(Stdio::null())
            .status();
        assert!(told.unwrap().success(), "{words:?}");
    }
}

impl Drop for KeyAgent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
