//! `--wdir`: directories that are made before any rank starts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use rlaunch_control::v1::{MakeDirectoriesReply, MakeDirectoriesRequest, NotMade};

/// Makes them with their parents; what can't be made is told with its reason.
pub(crate) fn make(request: MakeDirectoriesRequest) -> MakeDirectoriesReply {
    let not_made = request.paths.into_iter().filter_map(|path| {
        let error = std::fs::create_dir_all(Path::new(OsStr::from_bytes(&path))).err()?;
        let errno = error.raw_os_error().map(Errno::from_raw);
        let why = errno.map_or_else(|| error.to_string(), |errno| errno.desc().to_lowercase());
        Some(NotMade { path, why })
    });
    MakeDirectoriesReply {
        not_made: not_made.collect(),
    }
}
