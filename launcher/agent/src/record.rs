//! What is written down on a host while a job runs on it, for `rlaunch reap` to find what is left.
//!
//! Agent and keeper end everything by themselves. Only when both were killed at once may processes
//! outlive a job; then nothing but this file tells which they are. It is in a folder of this host
//! and this user alone, it is made before the first rank, the keeper writes each rank down as soon
//! as it is forked, and whoever sees that no process is left removes it.
//!
//! ```text
//! rlaunch-record 1
//! seen 00000000000123456         the last time its agent was well, in clock ticks after boot
//! job 0f3a…                      32 digits
//! boot 3c1d…                     of the machine: numbers mean nothing after another
//! space pid:[4026531836]         the process namespace that the numbers are of
//! started 1767225600000000       µs after 1970
//! host node1                     as the launcher calls it
//! program train.py --lr 0.1
//! agent 4711 123400              number and start time, in clock ticks after boot
//! keeper 4712 123401
//! rank 0 4713 123410 own         or `shared`: in the keeper's session
//! end 0 123456                   rank 0 was reaped then
//! reaped 123460                  `rlaunch reap --end` ends the job, by its user's will
//! ```
//! A line that is cut off, as by a full disk, counts for nothing.

mod folder;
mod parse;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::time::{ClockId, clock_gettime};
use prost::bytes::Bytes;

use crate::clock::now_us;
use crate::processes::Process;

pub(crate) use folder::all;
pub(crate) use parse::{Id, RankLine, Record};

const FIRST_LINE: &str = "rlaunch-record 1\n";
const REAPED: &str = "reaped ";
/// Wide enough for any number of ticks, so that it can be written over in place.
const SEEN_DIGITS: usize = 20;
/// Of the program, as people read it.
const PROGRAM_MAX_CHARS: usize = 200;

/// The agent's hold of it.
pub(crate) struct Writer {
    path: PathBuf,
    file: File,
}

/// What is known before the first rank.
pub(crate) struct Facts<'a> {
    pub(crate) job_id: &'a [u8],
    pub(crate) host: &'a str,
    /// Of each program, its words.
    pub(crate) programs: Vec<&'a [Bytes]>,
    pub(crate) keeper: i32,
}

impl Writer {
    /// Makes the record of a job that begins.
    pub(crate) fn create(facts: &Facts<'_>) -> io::Result<Self> {
        let agent = nix::unistd::getpid().as_raw();
        let job: String = facts
            .job_id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        // The same job may have two agents on one machine that has two names.
        let path = folder::prepare()?.join(format!("{job}-{agent}"));
        let file = open(&path, true)?;
        let writer = Self { path, file };
        match writer.write_head(facts, &job, agent) {
            Ok(()) => Ok(writer),
            Err(error) => {
                writer.remove();
                Err(error)
            }
        }
    }

    fn write_head(&self, facts: &Facts<'_>, job: &str, agent: i32) -> io::Result<()> {
        let id = |pid| {
            let process = Process::read(pid).ok_or(io::ErrorKind::NotFound)?;
            io::Result::Ok(format!("{pid} {}", process.start_time))
        };
        let words = |argv: &&[Bytes]| {
            let words: Vec<_> = argv
                .iter()
                .map(|word| String::from_utf8_lossy(word))
                .collect();
            words.join(" ")
        };
        let programs: Vec<String> = facts.programs.iter().map(words).collect();
        let text = format!(
            "{FIRST_LINE}seen {:0SEEN_DIGITS$}\njob {job}\nboot {}\nspace {}\nstarted {}\nhost {}\n\
             program {}\nagent {}\nkeeper {}\n",
            now_ticks(),
            boot_id(),
            process_space(),
            now_us(),
            one_line(facts.host),
            one_line(&programs.join(" : ")),
            id(agent)?,
            id(facts.keeper)?,
        );
        (&self.file).write_all(text.as_bytes())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// For the keeper, which writes behind what is there.
    pub(crate) fn for_keeper(&self) -> io::Result<OwnedFd> {
        Ok(append(&self.path)?.into())
    }

    /// The job is well now. A failure is not worth a word: the time before stays.
    pub(crate) fn seen(&self) {
        let text = format!("seen {:0SEEN_DIGITS$}", now_ticks());
        self.file
            .write_all_at(text.as_bytes(), FIRST_LINE.len() as u64)
            .ok();
    }

    /// Whether [`note_reaped`] was here; also when the keeper has removed the file since.
    pub(crate) fn is_reaped(&self) -> bool {
        let mut text = Vec::new();
        let mut at = FIRST_LINE.len() as u64;
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = self.file.read_at(&mut part, at) {
            text.extend_from_slice(&part[..read]);
            at += read as u64;
        }
        text.split(|byte| *byte == b'\n')
            .any(|line| line.starts_with(REAPED.as_bytes()))
    }

    pub(crate) fn remove(self) {
        std::fs::remove_file(&self.path).ok();
    }
}

/// Before the job's keeper is told to end all: its agent tells the launcher who it was.
pub(crate) fn note_reaped(path: &Path) {
    let line = format!("{REAPED}{}\n", now_ticks());
    let file = append(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .ok();
}

/// The keeper's hold of it. Writing never fails for the caller: a job is not ended for a record.
pub(crate) struct KeeperLines {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl KeeperLines {
    pub(crate) fn forked(&self, rank: u32, pid: i32, shares_session: bool) {
        let Some(process) = Process::read(pid) else {
            return;
        };
        let session = if shares_session { "shared" } else { "own" };
        self.line(&format!(
            "rank {rank} {pid} {} {session}\n",
            process.start_time
        ));
    }

    pub(crate) fn reaped(&self, rank: u32) {
        self.line(&format!("end {rank} {}\n", now_ticks()));
    }

    pub(crate) fn remove(&self) {
        std::fs::remove_file(&self.path).ok();
    }

    fn line(&self, line: &str) {
        (&self.file).write_all(line.as_bytes()).ok();
    }
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).custom_flags(nix::libc::O_NOFOLLOW);
    options.open(path)
}

fn open(path: &Path, new: bool) -> io::Result<File> {
    let mut options = File::options();
    options
        .read(true)
        .write(true)
        .create_new(new)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW);
    options.open(path)
}

fn one_line(text: &str) -> String {
    let shown = text.chars().take(PROGRAM_MAX_CHARS);
    shown
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// As /proc counts start times: in hundredths of a second, whatever the kernel's own tick is.
pub(crate) fn now_ticks() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME);
    now.map_or(0, |now| {
        let hundredths = now.tv_sec() * 100 + now.tv_nsec() / 10_000_000;
        hundredths.unsigned_abs()
    })
}

pub(crate) fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

pub(crate) fn process_space() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}
