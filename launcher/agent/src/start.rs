//! `rlaunch agent`: descriptors and keeper before any thread, then the greeting, then gRPC.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use nix::libc;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::{SFlag, fstat};
use rlaunch_wire::handshake::{REFUSAL, greeting};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::cache;
use crate::keeper::{self, Inherited, KeeperEnd};
use crate::limits;
use crate::service::AgentService;
use crate::sys;

/// After the stream's end, what the job's own clean-up may take.
const CLEANUP_MAX: Duration = Duration::from_secs(15);
/// A launcher that never starts a job, though its stream stays open: its host is gone.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// Runs the agent on standard input and output, which must be one socket or two pipes, until the
/// launcher's stream ends. `args` is what follows `rlaunch agent`.
///
/// Must be called while the process has one thread: it forks.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let words = match parse(args) {
        Ok(words) => words,
        Err(error) => {
            sys::say(format_args!(
                "rlaunch agent: {error}\nhint: rlaunch starts it on each host; it is no command for people"
            ));
            return ExitCode::from(2);
        }
    };
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let hint = limits::hint(error.raw_os_error()).unwrap_or_default();
            let colon = if hint.is_empty() { "" } else { ": " };
            sys::say(format_args!("rlaunch agent: {error}{colon}{hint}"));
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Words {
    build: String,
    /// What ranks are to have as their soft limit of open files, where the launcher has raised its own.
    open_files: Option<u64>,
}

fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Words, String> {
    let mut words = Words::default();
    while let Some(word) = args.next() {
        if word == "--build" {
            let id = args.next().ok_or("--build needs an id")?;
            words.build = id
                .into_string()
                .map_err(|id| format!("--build {id:?}: not text"))?;
        } else if word == "--open-files" {
            let number = args.next().and_then(|number| number.to_str()?.parse().ok());
            words.open_files = Some(number.ok_or("--open-files needs a number")?);
        } else {
            return Err(format!("unknown word {word:?}"));
        }
    }
    if words.build.contains(char::is_whitespace) {
        return Err(format!("--build {:?}: holds a blank", words.build));
    }
    Ok(words)
}

fn run(words: &Words) -> io::Result<()> {
    let build = words.build.as_str();
    let stream = Stream::take_standard()?;
    if let Err(error) = cache::check_own_place(build) {
        return stream.write_all(format!("\n{REFUSAL} folder {error}\n").as_bytes());
    }
    // ^C and ^Z at the launcher's terminal are for the launcher to pass on.
    let spared = Some(libc::SIGHUP).filter(|signal| sys::is_ignored(*signal));
    nix::unistd::setsid().ok();
    for signal in [
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGHUP,
        libc::SIGTSTP,
        // A warning that its CPU time runs out ends no agent; ranks hear of their own.
        libc::SIGXCPU,
    ] {
        sys::ignore(signal);
    }
    let is_to_end = |signal: &libc::c_int| sys::is_changed(*signal) && Some(*signal) != spared;
    let inherited = Inherited {
        changed_signals: (1..=libc::SIGRTMAX()).filter(is_to_end).collect(),
        descriptor_limit: {
            let (soft, hard) = raise_descriptor_limit()?;
            (words.open_files.unwrap_or(soft), hard)
        },
    };
    // Should the keeper be killed, what hung below it moves up to here.
    prctl::set_child_subreaper(true)?;
    prctl::set_name(c"rlaunch-agent")?;
    let keeper = keeper::fork(inherited)?;
    stream.write_all(greeting(build).as_bytes())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(stream, keeper));
    // A thread that is stuck in a system call holds nobody up.
    runtime.shutdown_background();
    served
}

async fn serve(stream: Stream, keeper: KeeperEnd) -> io::Result<()> {
    let (read, write) = stream.into_async()?;
    let service = Arc::new(AgentService::new(keeper)?);
    let connection = rlaunch_control::serve(read, write, service.clone());
    tokio::select! {
        // A stream that breaks is the same as one that ends: the launcher is gone.
        _ = connection => {}
        () = service.job_ended() => {}
        () = service.idle_for(IDLE_MAX) => {
            sys::say(format_args!("rlaunch agent: no job came within {} s; ending", IDLE_MAX.as_secs()));
        }
    }
    tokio::time::timeout(CLEANUP_MAX, service.settle())
        .await
        .ok();
    Ok(())
}

/// To what is allowed: two pipes and a socket for each rank. Gives what it was.
fn raise_descriptor_limit() -> io::Result<(u64, u64)> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    // Where it fails, starting a rank too many says so.
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).ok();
    Ok((soft, hard))
}

/// The launcher's byte stream.
enum Stream {
    Socket(OwnedFd),
    Pipes(OwnedFd, OwnedFd),
    Sockets(OwnedFd, OwnedFd),
}

type Read = Pin<Box<dyn AsyncRead + Send>>;
type Write_ = Pin<Box<dyn AsyncWrite + Send>>;

impl Stream {
    /// Moves 0 and 1 out of the way of careless prints and of the ranks: both name /dev/null from
    /// here on. 2 stays, for diagnostics.
    fn take_standard() -> io::Result<Self> {
        let (input, output) = (sys::duplicate_high(0)?, sys::duplicate_high(1)?);
        let kind = |fd: &OwnedFd| -> io::Result<_> {
            let found = fstat(fd)?;
            let kind = SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT;
            Ok((kind, found.st_dev, found.st_ino))
        };
        let (first, second) = (kind(&input)?, kind(&output)?);
        let stream = match (first.0, second.0) {
            (SFlag::S_IFSOCK, SFlag::S_IFSOCK) if first == second => Self::Socket(input),
            (SFlag::S_IFSOCK, SFlag::S_IFSOCK) => Self::Sockets(input, output),
            (SFlag::S_IFIFO, SFlag::S_IFIFO) => Self::Pipes(input, output),
            _ => {
                return Err(io::Error::other(
                    "standard input and output are neither pipes nor sockets: rlaunch starts the \
                     agent on each host; it is no command for people",
                ));
            }
        };
        let null: OwnedFd = File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?
            .into();
        sys::replace_standard(&null, 0)?;
        sys::replace_standard(&null, 1)?;
        Ok(stream)
    }

    fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let (Self::Socket(output) | Self::Pipes(_, output) | Self::Sockets(_, output)) = self;
        File::from(output.try_clone()?).write_all(bytes)
    }

    fn into_async(self) -> io::Result<(Read, Write_)> {
        match self {
            Self::Socket(socket) => {
                let (read, write) = socket_stream(socket)?.into_split();
                Ok((Box::pin(read), Box::pin(write)))
            }
            Self::Sockets(input, output) => {
                let (input, output) = (socket_stream(input)?, socket_stream(output)?);
                Ok((Box::pin(input), Box::pin(output)))
            }
            Self::Pipes(input, output) => {
                let input = pipe::Receiver::from_owned_fd(input)?;
                let output = pipe::Sender::from_owned_fd(output)?;
                Ok((Box::pin(input), Box::pin(output)))
            }
        }
    }
}

fn socket_stream(socket: OwnedFd) -> io::Result<UnixStream> {
    let stream = StdUnixStream::from(socket);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<Words, String> {
        parse(words.iter().map(OsString::from))
    }

    #[test]
    fn words_are_few() {
        let expected = |build: &str, open_files| {
            let build = build.to_owned();
            Ok(Words { build, open_files })
        };
        let given = words(&["--build", "0.1.0-ab12"]);
        assert_eq!(given, expected("0.1.0-ab12", None));
        let given = words(&["--build", "x", "--open-files", "1024"]);
        assert_eq!(given, expected("x", Some(1024)));
        assert_eq!(words(&[]), expected("", None));
        assert!(
            words(&["--open-files", "x"])
                .unwrap_err()
                .contains("number")
        );
        assert!(words(&["--build"]).unwrap_err().contains("needs an id"));
        assert!(words(&["--bulid", "x"]).unwrap_err().contains("--bulid"));
        assert!(words(&["--build", "a b"]).unwrap_err().contains("blank"));
    }
}
