//! `--output-dir`: a file for each stream of each rank, on the launcher's machine.
//!
//! ```text
//! DIR/rank00.stdout  DIR/rank00.stderr  DIR/rank01.stdout …
//! ```
//! Numbers have as many digits as the largest one, so that names sort. Files hold what the rank
//! wrote, byte for byte, also what `--only` does not show; no tags, since the name says whose it is;
//! a time before each line with `--timestamp`. They are made at the start, empty, in place of those
//! of an earlier job ([`super::listing`]), and written as output arrives: partial lines too. A restart
//! has them in `DIR/restart-1`, …: what the failed attempt printed is to be read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::lines::Chunk;
use super::tags::{Due, Style};
use super::target::{Reports, Target};
use super::{Source, Stream, listing};

/// Files held open at a time; the others are opened for each write. A process may often have no
/// more than 1024.
const OPEN_MAX: usize = 256;

#[derive(Debug)]
pub struct Files {
    directory: PathBuf,
    digits: usize,
    style: Style,
    written: BTreeMap<Source, Written>,
    open: BTreeMap<Source, File>,
}

#[derive(Debug)]
struct Written {
    target: Target,
    due: Due,
}

/// The directory or a file in it cannot be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "--output-dir: {}: {error}\nhint: name a directory that can be made or written on this machine",
    path.display()
)]
pub struct FilesError {
    path: PathBuf,
    error: io::Error,
}

impl FilesError {
    pub(super) fn at(path: PathBuf) -> impl FnOnce(io::Error) -> Self {
        |error| Self { path, error }
    }
}

impl Files {
    /// Makes the directory with those above it, if need be.
    pub fn make_directory(path: &Path) -> Result<(), FilesError> {
        std::fs::create_dir_all(path)
            .map_err(|error| match error.kind() {
                // A file of that name is there.
                io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
                _ => error,
            })
            .map_err(FilesError::at(path.to_owned()))
    }

    /// Makes all files of a world, empty; only stdout's if stderr goes there too. Of the job's first
    /// attempt (`restart` 0) those of an earlier job are removed.
    pub fn create(
        directory: &Path,
        restart: u32,
        world: u32,
        merges_stderr: bool,
        timestamp: bool,
    ) -> Result<Self, FilesError> {
        let folder = listing::folder(restart);
        let files = Self {
            directory: directory.join(&folder),
            digits: world.saturating_sub(1).to_string().len(),
            style: Style {
                tag: false,
                timestamp,
            },
            written: BTreeMap::new(),
            open: BTreeMap::new(),
        };
        Self::make_directory(directory)?;
        let streams = [Stream::Stdout, Stream::Stderr];
        let sources = streams[..if merges_stderr { 1 } else { 2 }]
            .iter()
            .flat_map(|&stream| (0..world).map(move |rank| Source { rank, stream }));
        let sources: Vec<Source> = sources.collect();
        let names = sources.iter().map(|it| folder.clone() + &files.name(*it));
        let names: BTreeSet<String> = names.collect();
        match restart {
            0 => listing::begin(directory, &names)?,
            _ => listing::go_on(directory, &names)?,
        }
        Self::make_directory(&files.directory)?;
        for source in sources {
            let path = files.path(source);
            if let Err(error) = File::create(&path) {
                return Err(FilesError { path, error });
            }
        }
        Ok(files)
    }

    pub(super) fn write(&mut self, chunk: &Chunk, reports: &Reports) {
        let source = chunk.source;
        let path = self.path(source);
        let written = self.written.entry(source).or_insert_with(|| Written {
            target: Target::new(path.display().to_string(), None),
            due: Due::Tag,
        });
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&source) {
            self.open.clear();
        }
        let file = match self.open.entry(source) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                match File::options().append(true).create(true).open(&path) {
                    Ok(file) => entry.insert(file),
                    Err(error) => {
                        let error = Errno::from_raw(error.raw_os_error().unwrap_or(0));
                        return written.target.fail(error, &chunk.data, reports);
                    }
                }
            }
        };
        if self.style.is_plain() {
            return written.target.write(file.as_fd(), &chunk.data, reports);
        }
        let mut text = Vec::with_capacity(2 * chunk.data.len());
        written.due = self.style.append(
            &mut text,
            &chunk.data,
            source,
            chunk.host_time_us,
            written.due,
        );
        written.target.write(file.as_fd(), &text, reports);
    }

    pub(super) fn conclude(self, reports: &Reports) {
        for written in self.written.into_values() {
            written.target.conclude(reports);
        }
    }

    fn path(&self, source: Source) -> PathBuf {
        self.directory.join(self.name(source))
    }

    fn name(&self, source: Source) -> String {
        let Source { rank, stream } = source;
        format!("rank{rank:0width$}.{}", stream.name(), width = self.digits)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use tokio::sync::mpsc;

    use super::super::printer::Printed;
    use super::*;

    fn reports() -> (Reports, mpsc::UnboundedReceiver<Printed>) {
        let (printed, receiver) = mpsc::unbounded_channel();
        let closing = Arc::new(AtomicBool::new(true));
        (Reports { printed, closing }, receiver)
    }

    fn chunk(rank: u32, text: &str) -> Chunk {
        Chunk {
            source: Source {
                rank,
                stream: Stream::Stdout,
            },
            data: text.to_owned().into(),
            host_time_us: 0,
            partial: false,
        }
    }

    #[test]
    fn more_ranks_than_open_files_have_theirs() {
        let directory = tempfile::tempdir().unwrap();
        let world = u32::try_from(OPEN_MAX).unwrap() + 10;
        let path = directory.path().join("new/below");
        let mut files = Files::create(&path, 0, world, true, false).unwrap();
        let (reports, mut receiver) = reports();
        for line in ["one\n", "two\n"] {
            for rank in 0..world {
                files.write(&chunk(rank, line), &reports);
                assert!(files.open.len() <= OPEN_MAX);
            }
        }
        files.conclude(&reports);
        for name in ["rank000.stdout", "rank009.stdout", "rank265.stdout"] {
            let text = std::fs::read_to_string(path.join(name)).unwrap();
            assert_eq!(text, "one\ntwo\n", "{name}");
        }
        let count = std::fs::read_dir(&path).unwrap().count();
        assert_eq!(
            count,
            world as usize + 1,
            "their list, and no files for stderr"
        );
        assert!(receiver.try_recv().is_err());
    }

    /// Made anew for each job, with times if asked for.
    #[test]
    fn an_earlier_job_is_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rank0.stdout");
        std::fs::write(&path, "of an earlier job").unwrap();
        let mut files = Files::create(directory.path(), 0, 1, false, true).unwrap();
        let (reports, _receiver) = reports();
        for text in ["a", "b\n", "c\n"] {
            files.write(&chunk(0, text), &reports);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let stamp = "1970-01-01T00:00:00.000Z";
        assert_eq!(text, format!("{stamp} ab\n{stamp} c\n"));
        let stderr = directory.path().join("rank0.stderr");
        assert_eq!(std::fs::read_to_string(stderr).unwrap(), "");
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "").unwrap();
        let error = Files::create(&path.join("below"), 0, 1, false, false).unwrap_err();
        assert!(error.to_string().contains("file/below: Not a directory"));
        let error = Files::create(&path, 0, 1, false, false).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("--output-dir: ") && text.contains("/file: not a directory\n"),
            "{text}"
        );
    }

    /// What cannot be written is told once, and counted.
    #[test]
    fn a_file_that_cannot_be_written_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = Files::create(directory.path(), 0, 1, true, false).unwrap();
        let path = directory.path().join("rank0.stdout");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let (reports, mut receiver) = reports();
        files.write(&chunk(0, "12345\n"), &reports);
        files.write(&chunk(0, "6789\n"), &reports);
        files.conclude(&reports);
        let Printed::Failed(text) = receiver.try_recv().unwrap() else {
            panic!("not told")
        };
        assert!(
            text.contains("rank0.stdout: No space left on device"),
            "{text}"
        );
        let Printed::Lost(text) = receiver.try_recv().unwrap() else {
            panic!("not counted")
        };
        assert!(text.contains("11 bytes"), "{text}");
        assert!(receiver.try_recv().is_err());
    }
}
