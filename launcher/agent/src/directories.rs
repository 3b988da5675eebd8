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
        let why = match errno {
            Some(Errno::EEXIST) => "a file of that name is there".to_owned(),
            Some(errno) => errno.desc().to_lowercase(),
            None => error.to_string(),
        };
        Some(NotMade { path, why })
    });
    MakeDirectoriesReply {
        not_made: not_made.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_way_is_named() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        let path = |path: &Path| path.as_os_str().as_bytes().to_vec().into();
        let (made, below) = (place.path().join("a/b"), file.join("below"));
        let paths = vec![path(&made), path(&file), path(&below)];
        let reply = make(MakeDirectoriesRequest { paths });
        let why: Vec<&str> = reply.not_made.iter().map(|it| it.why.as_str()).collect();
        assert_eq!(why, ["a file of that name is there", "not a directory"]);
        assert!(made.is_dir());
    }
}
