//! The making of a host's file system as data.
//!
//! Steps are made while there is time to allocate and are performed by a process that was just
//! cloned from a program with threads: there, only system calls are allowed. So a step holds all
//! its strings ready, and [`Step::perform`] neither allocates nor locks nor panics.

use nix::libc::{self, c_int, c_ulong};
use std::ffi::{CStr, CString, OsStr};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) enum Step {
    HostName(CString),
    /// An existing folder is fine and keeps its mode.
    Folder {
        path: CString,
        mode: u32,
    },
    /// Made or replaced, with exactly these bytes and this mode.
    File {
        path: CString,
        bytes: Vec<u8>,
        mode: u32,
    },
    Link {
        to: CString,
        path: CString,
    },
    Mount(Mount),
    /// The last one: this folder becomes `/`, and the old root goes out of sight.
    Enter(CString),
}

pub(crate) struct Mount {
    pub(crate) source: CString,
    pub(crate) target: CString,
    pub(crate) kind: Option<CString>,
    pub(crate) flags: c_ulong,
    pub(crate) data: Option<CString>,
    /// Where the target is not there, there is nothing to do.
    pub(crate) optional: bool,
}

impl Step {
    pub(crate) fn folder(path: &Path, mode: u32) -> Self {
        Self::Folder {
            path: text(path),
            mode,
        }
    }

    pub(crate) fn file(path: &Path, bytes: impl Into<Vec<u8>>, mode: u32) -> Self {
        Self::File {
            path: text(path),
            bytes: bytes.into(),
            mode,
        }
    }

    pub(crate) fn link(to: &str, path: &Path) -> Self {
        Self::Link {
            to: text(to),
            path: text(path),
        }
    }

    /// A file system without a device behind it.
    pub(crate) fn mount(kind: &str, target: &Path, data: &str) -> Self {
        Self::Mount(Mount {
            source: text(kind),
            target: text(target),
            kind: Some(text(kind)),
            flags: 0,
            data: (!data.is_empty()).then(|| text(data)),
            optional: false,
        })
    }

    /// An empty folder over `target`, where there is one.
    pub(crate) fn hide(target: &Path) -> Self {
        Self::Mount(Mount {
            source: text("hidden"),
            target: text(target),
            kind: Some(text("tmpfs")),
            flags: 0,
            data: Some(text("mode=755")),
            optional: true,
        })
    }

    /// `source` with all that is mounted below it, seen at `target` too.
    pub(crate) fn bind(source: &Path, target: &Path) -> Self {
        Self::Mount(Mount {
            source: text(source),
            target: text(target),
            kind: None,
            flags: libc::MS_BIND | libc::MS_REC,
            data: None,
            optional: false,
        })
    }

    /// Nothing that is mounted from here on is seen outside.
    pub(crate) fn keep_mounts_private() -> Self {
        Self::Mount(Mount {
            source: text("none"),
            target: text("/"),
            kind: None,
            flags: libc::MS_PRIVATE | libc::MS_REC,
            data: None,
            optional: false,
        })
    }

    /// 0, or the error number.
    pub(crate) fn perform(&self) -> c_int {
        let result = match self {
            // SAFETY: the pointer and length are those of a string that lives on.
            Self::HostName(name) => unsafe {
                libc::sethostname(name.as_ptr(), name.as_bytes().len())
            },
            // SAFETY: a terminated string that lives on.
            Self::Folder { path, mode } => match unsafe { libc::mkdir(path.as_ptr(), *mode) } {
                -1 if errno() == libc::EEXIST => 0,
                result => result,
            },
            Self::File { path, bytes, mode } => write_file(path, bytes, *mode),
            // SAFETY: two terminated strings that live on. What stood there goes first, if it can.
            Self::Link { to, path } => unsafe {
                libc::unlink(path.as_ptr());
                libc::symlink(to.as_ptr(), path.as_ptr())
            },
            Self::Mount(mount) => mount.perform(),
            Self::Enter(root) => enter(root),
        };
        if result == -1 { errno() } else { 0 }
    }
}

impl Mount {
    fn perform(&self) -> c_int {
        let pointer =
            |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
        // SAFETY: every pointer is null, where mount(2) allows it, or a string that lives on.
        let result = unsafe {
            libc::mount(
                self.source.as_ptr(),
                self.target.as_ptr(),
                pointer(&self.kind),
                self.flags,
                pointer(&self.data).cast(),
            )
        };
        if result == -1 && self.optional && errno() == libc::ENOENT {
            0
        } else {
            result
        }
    }
}

fn write_file(path: &CStr, bytes: &[u8], mode: u32) -> c_int {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
    // SAFETY: a terminated string that lives on.
    let file = unsafe { libc::open(path.as_ptr(), flags, mode) };
    if file == -1 {
        return -1;
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the pointer and length are those of one slice.
        let written = unsafe { libc::write(file, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(count) => rest = &rest[count.min(rest.len())..],
            Err(_) => return -1,
        }
    }
    // SAFETY: the descriptor is ours. Its mode is set here too as an existing file keeps its own.
    unsafe { libc::fchmod(file, mode) };
    // SAFETY: the descriptor is ours and used no more.
    unsafe { libc::close(file) }
}

fn enter(root: &CStr) -> c_int {
    // SAFETY: a terminated string that lives on.
    if unsafe { libc::chdir(root.as_ptr()) } == -1 {
        return -1;
    }
    // Both names the same: the old root lies over the new one and can be taken off at once.
    // SAFETY: terminated strings; the call touches no memory of ours.
    if unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) } == -1 {
        return -1;
    }
    // SAFETY: a terminated string.
    if unsafe { libc::umount2(c".".as_ptr(), libc::MNT_DETACH) } == -1 {
        return -1;
    }
    // SAFETY: a terminated string.
    unsafe { libc::chdir(c"/".as_ptr()) }
}

pub(crate) fn errno() -> c_int {
    // SAFETY: the calling thread's own variable, always there.
    unsafe { *libc::__errno_location() }
}

/// A string for system calls. A zero byte can't be in a path that came from the kernel or from
/// this crate; one in an option ends the name there, and the step fails by name.
pub(crate) fn text(value: impl AsRef<OsStr>) -> CString {
    let bytes = value.as_ref().as_bytes();
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    CString::new(&bytes[..end]).expect("it was cut before the first zero byte")
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostName(name) => write!(out, "set the host name {}", name.to_string_lossy()),
            Self::Folder { path, .. } => write!(out, "make the folder {}", path.to_string_lossy()),
            Self::File { path, .. } => write!(out, "write {}", path.to_string_lossy()),
            Self::Link { path, .. } => write!(out, "make the link {}", path.to_string_lossy()),
            Self::Mount(mount) => write!(
                out,
                "mount {} on {}",
                mount.source.to_string_lossy(),
                mount.target.to_string_lossy()
            ),
            Self::Enter(root) => write!(out, "make {} the root", root.to_string_lossy()),
        }
    }
}
