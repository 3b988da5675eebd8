//! What a cluster is to look like.

use crate::error::HarnessError;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// More would be possible, but a mistyped number should not fill the machine.
const HOSTS_MAX: u32 = 130;

#[derive(Debug, Clone)]
pub struct Options {
    /// `node1` to `nodeN`; `head` comes besides.
    pub hosts: u32,
    /// docker0 and virbr0 with the same address on every host, and an eth1 that is down.
    pub decoys: bool,
    /// Paths of this machine that hosts see and may write, as over a shared file system.
    pub shares: Vec<Share>,
    /// Folders of this machine that look empty on every host; shares are laid over them.
    pub hidden: Vec<PathBuf>,
    /// The folder with the rlaunch to be tried; head has it as [`Options::RLAUNCH`], nodes have
    /// none.
    pub rlaunch: Option<PathBuf>,
    /// How long one host may take until its sshd listens.
    pub boot_limit: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hosts: 2,
            decoys: true,
            shares: Vec::new(),
            hidden: Vec::new(),
            rlaunch: None,
            boot_limit: Duration::from_secs(30),
        }
    }
}

impl Options {
    /// Where head has the build folder with rlaunch.
    pub const RLAUNCH: &str = "/opt/rlaunch";

    pub fn new(hosts: u32) -> Self {
        Self {
            hosts,
            ..Self::default()
        }
    }

    /// `from` of this machine appears as `to` on every host.
    #[must_use]
    pub fn share(self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Self {
        self.share_on(Where::Everywhere, from, to)
    }

    #[must_use]
    pub fn share_on(mut self, on: Where, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Self {
        let (from, to) = (from.as_ref().to_path_buf(), to.as_ref().to_path_buf());
        self.shares.push(Share { from, to, on });
        self
    }

    /// The build folder `folder` is seen on head, with `rlaunch` on the PATH.
    #[must_use]
    pub fn rlaunch_on_head(mut self, folder: impl AsRef<Path>) -> Self {
        self.rlaunch = Some(folder.as_ref().to_path_buf());
        self.share_on(Where::Head, folder, Self::RLAUNCH)
    }

    #[must_use]
    pub fn hide(mut self, path: impl AsRef<Path>) -> Self {
        self.hidden.push(path.as_ref().to_path_buf());
        self
    }

    pub(crate) fn check(&self) -> Result<(), HarnessError> {
        if !(1..=HOSTS_MAX).contains(&self.hosts) {
            let hosts = self.hosts;
            return Err(HarnessError::Options(format!(
                "{hosts} hosts: 1 to {HOSTS_MAX} can be made"
            )));
        }
        let paths = self
            .shares
            .iter()
            .flat_map(|share| [&share.from, &share.to]);
        if let Some(path) = paths.chain(&self.hidden).find(|path| !path.is_absolute()) {
            return Err(HarnessError::Options(format!(
                "{}: not an absolute path",
                path.display()
            )));
        }
        match self.shares.iter().find(|share| !share.from.exists()) {
            Some(share) => Err(HarnessError::Options(format!(
                "cannot share {}: no such file or folder",
                share.from.display()
            ))),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Share {
    pub from: PathBuf,
    pub to: PathBuf,
    pub on: Where,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    Everywhere,
    Head,
    Nodes,
}

impl Where {
    /// Host 0 is head.
    pub(crate) fn covers(self, host: usize) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Head => host == 0,
            Self::Nodes => host > 0,
        }
    }
}
