//! Which files rlaunch has made in an `--output-dir`: so a job there takes away what is left of an
//! earlier, larger one, and nothing else.
//!
//! ```text
//! DIR/.rlaunch-files      rank0.stdout
//!                         restart-1/rank0.stdout
//! ```
//! Removed is what is listed, has such a name, and is a file in that very directory: no link, no
//! folder. A folder of a restart goes with its last file.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::Stream;
use super::files::FilesError;

const NAME: &str = ".rlaunch-files";
/// Put in place of the other when it is whole.
const NEW: &str = ".rlaunch-files.new";

/// The folder of a restart, in front of a file's name.
pub(super) fn folder(restart: u32) -> String {
    match restart {
        0 => String::new(),
        _ => format!("restart-{restart}/"),
    }
}

/// Before a job's first files are made: removes those of an earlier job that are not `names`, and
/// lists `names`.
pub(super) fn begin(directory: &Path, names: &BTreeSet<String>) -> Result<(), FilesError> {
    let earlier = read(directory)?;
    let left: Vec<&String> = earlier.difference(names).filter(|it| is_ours(it)).collect();
    for name in &left {
        remove(directory, name).map_err(FilesError::at(directory.join(name)))?;
    }
    let folders: BTreeSet<&str> = left
        .iter()
        .filter_map(|name| Some(name.split_once('/')?.0))
        .collect();
    for folder in folders {
        // What others have put there keeps it.
        fs::remove_dir(directory.join(folder)).ok();
    }
    write(directory, names)
}

/// Before the files of a restart are made: lists them, too.
pub(super) fn go_on(directory: &Path, names: &BTreeSet<String>) -> Result<(), FilesError> {
    let listed = read(directory)?;
    write(directory, &listed.union(names).cloned().collect())
}

fn read(directory: &Path) -> Result<BTreeSet<String>, FilesError> {
    let path = directory.join(NAME);
    match fs::read(&path) {
        Ok(text) => {
            let text = String::from_utf8_lossy(&text);
            Ok(text.lines().map(str::to_owned).collect())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(FilesError::at(path)(error)),
    }
}

fn write(directory: &Path, names: &BTreeSet<String>) -> Result<(), FilesError> {
    let (path, new) = (directory.join(NAME), directory.join(NEW));
    let text: String = names.iter().map(|name| format!("{name}\n")).collect();
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, &path))
        .map_err(FilesError::at(path))
}

/// `rank0.stdout`, `restart-1/rank07.stderr`.
fn is_ours(name: &str) -> bool {
    let file = match name.split_once('/') {
        Some((folder, file)) => match folder.strip_prefix("restart-") {
            Some(number) if is_number(number) => file,
            _ => return false,
        },
        None => name,
    };
    let parts = file.strip_prefix("rank").and_then(|it| it.split_once('.'));
    let streams = [Stream::Stdout, Stream::Stderr].map(Stream::name);
    parts.is_some_and(|(rank, stream)| is_number(rank) && streams.contains(&stream))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn remove(directory: &Path, name: &str) -> io::Result<()> {
    let kind = |path: &Path| fs::symlink_metadata(path).map(|found| found.file_type());
    let inside = |folder: &str| kind(&directory.join(folder)).is_ok_and(|it| it.is_dir());
    if name
        .split_once('/')
        .is_some_and(|(folder, _)| !inside(folder))
    {
        return Ok(());
    }
    let path = directory.join(name);
    match kind(&path) {
        Ok(kind) if kind.is_file() => fs::remove_file(path),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::files::Files;
    use super::*;

    fn found(directory: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => names.extend(found(&entry.path()).iter().map(|it| format!("{name}/{it}"))),
                false => names.push(name),
            }
        }
        names.sort();
        names
    }

    /// More ranks, more digits, stderr apart, a restart: all of an earlier job's goes.
    #[test]
    fn a_larger_job_leaves_nothing_in_a_smaller_ones_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        Files::create(path, 0, 12, false, false).unwrap();
        Files::create(path, 1, 12, false, false).unwrap();
        assert_eq!(found(path).len(), 1 + 24 + 24);
        assert!(path.join("restart-1/rank11.stderr").exists());
        Files::create(path, 0, 2, true, false).unwrap();
        let names = [NAME, "rank0.stdout", "rank1.stdout"];
        assert_eq!(found(path), names);
        assert!(!path.join("restart-1").exists());
        let listed = fs::read_to_string(path.join(NAME)).unwrap();
        assert_eq!(listed, "rank0.stdout\nrank1.stdout\n");
    }

    /// What is not listed, not named like that, or no file, is not rlaunch's.
    #[test]
    fn nothing_else_is_removed() {
        let outside = tempfile::tempdir().unwrap();
        let kept = outside.path().join("rank3.stdout");
        fs::write(&kept, "").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("logs");
        Files::create(&path, 1, 1, true, false).unwrap();
        let own = ["rank9.stdout", "train.py", "restart-1/notes"];
        for name in own {
            fs::write(path.join(name), "").unwrap();
        }
        symlink(&kept, path.join("rank4.stdout")).unwrap();
        symlink(outside.path(), path.join("restart-2")).unwrap();
        fs::create_dir(path.join("rank5.stdout")).unwrap();
        let above = directory.path().join("rank6.stdout");
        fs::write(&above, "").unwrap();
        let listed = format!(
            "{}\n../rank6.stdout\nrank4.stdout\nrank5.stdout\ntrain.py\nrestart-1/rank0.stdout\n\
             restart-2/rank3.stdout\nrestart-1/../rank9.stdout\nrestart-1/notes\n\n",
            kept.display()
        );
        fs::write(path.join(NAME), listed).unwrap();
        Files::create(&path, 0, 1, true, false).unwrap();
        assert!(kept.exists() && above.exists());
        for name in own
            .iter()
            .chain(&["rank4.stdout", "restart-2", "rank5.stdout"])
        {
            assert!(fs::symlink_metadata(path.join(name)).is_ok(), "{name}");
        }
        assert!(!path.join("restart-1/rank0.stdout").exists());
    }
}
