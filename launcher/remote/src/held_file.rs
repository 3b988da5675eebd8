//! A file for programs that this process starts, in its memory alone.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use nix::sys::memfd::{MFdFlags, memfd_create};

/// The file, while it lives.
#[derive(Debug)]
pub(crate) struct HeldFile(File);

impl HeldFile {
    /// `name` is for whoever looks at this process's descriptors.
    pub(crate) fn new(name: &str, text: &str) -> io::Result<Self> {
        let descriptor = memfd_create(name, MFdFlags::MFD_CLOEXEC)?;
        let mut file = File::from(descriptor);
        file.write_all(text.as_bytes())?;
        Ok(Self(file))
    }

    /// Where other processes of this user find it.
    pub(crate) fn path(&self) -> PathBuf {
        let descriptor = self.0.as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{descriptor}", std::process::id()))
    }
}
