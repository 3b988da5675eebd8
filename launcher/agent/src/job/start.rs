//! From a Launch to processes: descriptors, environment and program of each rank, handed to the
//! keeper.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::libc;
use nix::pty::openpty;
use nix::sys::termios::{LocalFlags, OutputFlags, SetArg, tcgetattr, tcsetattr};
use nix::unistd::pipe2;
use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::{Launch, LaunchFailed, OutputStream, Program, RankSpec, WindowSize};
use rlaunch_wire::limits::OUTPUT_CREDIT_BYTES;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::environment::{self, Common, Environment, PATH_DEFAULT};
use super::keeper_link::KeeperLink;
use super::outgoing::Outgoing;
use super::output::{Capture, Command};
use super::pipe::AsyncPipe;
use super::spill_room::Room;
use super::stdin::{self, StdinSender};
use crate::keeper::messages::Plan;
use crate::{program, sys};

/// Where the launcher has no terminal.
const TERMINAL_SIZE: WindowSize = WindowSize {
    rows: 24,
    columns: 80,
};

/// The agent's ends of one rank.
#[derive(Default)]
pub(crate) struct RankIo {
    /// By stream; none where both are one.
    pub(crate) captures: [Option<mpsc::UnboundedSender<Command>>; 2],
    pub(crate) stdin: Option<StdinSender>,
    /// Our side of its terminal, if it has one.
    pub(crate) terminal: Option<OwnedFd>,
}

/// What starting needs of the job.
pub(crate) struct Starter<'a> {
    pub(crate) launch: &'a Launch,
    pub(crate) socket: &'a str,
    pub(crate) bundle: Option<PathBuf>,
    pub(crate) keeper: &'a KeeperLink,
    pub(crate) outgoing: &'a Outgoing,
    pub(crate) tasks: &'a mut JoinSet<()>,
    /// For output that waits.
    pub(crate) room: Room,
    pub(crate) shares_session: bool,
}

/// Ranks beyond these share cores. The scheduler gives each session its due (autogroups), and a rank
/// that yields its core to a neighbour of another session may get it back at once: those that share
/// cores share a session, where each yield is a turn of another. Ranks that don't keep one each, so that
/// each has its due beside programs of other sessions.
pub(crate) fn share_session(launch: &Launch) -> bool {
    // It reads files; one rank never has to share.
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    launch.ranks.len() > 1 && launch.ranks.len() > cores()
}

impl Starter<'_> {
    /// Hands every rank to the keeper; those that cannot even get there are told as failed and
    /// absent from the answer.
    pub(crate) async fn start_all(&mut self) -> Vec<(u32, RankIo)> {
        let launch = self.launch;
        let bundle = self.bundle.take();
        let login = login();
        let programs = launch.programs.iter();
        let ready: Vec<_> = programs
            .map(|program| {
                let common = Common {
                    login: if program.clear_environment {
                        Environment::new()
                    } else {
                        login.clone()
                    },
                    launcher: &program.environment,
                    bundle: bundle.as_deref(),
                    socket: self.socket,
                    directory: &program.directory,
                };
                (program, common)
            })
            .collect();
        let mut started = Vec::new();
        for spec in &launch.ranks {
            let began = match ready.get(spec.program as usize) {
                None => Err(failed(spec, "program", b"", libc::EINVAL)),
                Some((program, common)) => {
                    let environment = environment::of_rank(common, &spec.environment);
                    self.start(spec, program, environment).await
                }
            };
            match began {
                Ok(io) => started.push((spec.rank, io)),
                Err(failed) => self.outgoing.control(Message::LaunchFailed(failed)),
            }
        }
        started
    }

    async fn start(
        &mut self,
        spec: &RankSpec,
        program: &Program,
        environment: Environment,
    ) -> Result<RankIo, LaunchFailed> {
        let plan = self.plan(spec, program, &environment)?;
        let setup = |error: io::Error| {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            failed(spec, "fork", &plan.argv[0], errno)
        };
        let ends = Ends::open(self.launch, spec.stdin).map_err(setup)?;
        let terminal = self.launch.pty;
        self.keeper
            .spawn(spec.rank, &plan, &ends.theirs)
            .await
            .map_err(setup)?;
        drop(ends.theirs);
        let mut io = RankIo {
            terminal: ends.terminal,
            ..RankIo::default()
        };
        for (slot, (stream, fd)) in [OutputStream::Stdout, OutputStream::Stderr]
            .into_iter()
            .zip(ends.outputs)
            .enumerate()
        {
            if let Some(fd) = fd {
                io.captures[slot] = Some(self.capture(spec.rank, stream, fd).map_err(setup)?);
            }
        }
        if let Some(fd) = ends.input {
            let pipe = AsyncPipe::new(fd).map_err(setup)?;
            io.stdin = Some(stdin::start(
                spec.rank,
                pipe,
                terminal,
                self.outgoing.clone(),
            ));
        }
        Ok(io)
    }

    fn capture(
        &mut self,
        rank: u32,
        stream: OutputStream,
        fd: OwnedFd,
    ) -> io::Result<mpsc::UnboundedSender<Command>> {
        let credit = match self.launch.output_credit {
            0 => OUTPUT_CREDIT_BYTES,
            credit => credit,
        };
        let pipe = AsyncPipe::new(fd)?;
        let capture = Capture::new((rank, stream), pipe, credit, self.room.another());
        let (sender, commands) = mpsc::unbounded_channel();
        self.tasks
            .spawn(capture.run(commands, self.outgoing.clone()));
        Ok(sender)
    }

    fn plan(
        &self,
        spec: &RankSpec,
        ran: &Program,
        environment: &Environment,
    ) -> Result<Plan, LaunchFailed> {
        let path = environment
            .get(b"PATH".as_slice())
            .map_or(PATH_DEFAULT, Vec::as_slice);
        let absent = |what: &str, path: &[u8]| failed(spec, what, path, libc::ENOENT);
        let mut argv: Vec<Vec<u8>> = ran.argv.iter().map(|word| word.to_vec()).collect();
        if let Some(python) = &ran.python {
            if let Some(script) = absent_script(&ran.directory, &argv) {
                return Err(absent("program", script));
            }
            let found = program::python(&python.interpreter, python.required, path);
            let named = if python.interpreter.is_empty() {
                "python3"
            } else {
                &python.interpreter
            };
            let found = found.ok_or_else(|| absent("interpreter", named.as_bytes()))?;
            argv.insert(0, found.into_os_string().into_encoded_bytes());
        }
        let Some(word) = argv.first() else {
            return Err(absent("program", b""));
        };
        Ok(Plan {
            candidates: program::candidates(word, path),
            argv,
            environment: environment::to_strings(environment),
            directory: ran.directory.to_vec(),
            terminal: self.launch.pty,
            cpus: spec.cpus.clone(),
            reports_cpus: self.launch.report_bindings,
            shares_session: self.shares_session,
        })
    }
}

fn failed(spec: &RankSpec, what: &str, path: &[u8], errno: i32) -> LaunchFailed {
    LaunchFailed {
        rank: spec.rank,
        what: what.to_owned(),
        path: path.to_vec().into(),
        errno,
    }
}

/// The script that Python would not find: told here, where the host and a remedy can be named.
/// An absent directory is the keeper's to tell.
fn absent_script<'a>(directory: &[u8], argv: &'a [Vec<u8>]) -> Option<&'a [u8]> {
    let script = argv.first().filter(|word| !word.starts_with(b"-"))?;
    let directory = Path::new(OsStr::from_bytes(directory));
    let path = directory.join(OsStr::from_bytes(script));
    let absent = path
        .metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    (absent && directory.is_dir()).then_some(script.as_slice())
}

fn login() -> Environment {
    let all = std::env::vars_os()
        .map(|(name, value)| (name.into_encoded_bytes(), value.into_encoded_bytes()));
    environment::login(all)
}

/// Both sides of a rank's standard streams.
struct Ends {
    /// What becomes the rank's 0, 1 and 2.
    theirs: [OwnedFd; 3],
    /// Stdout and stderr, or only the first: a terminal, or stderr merged into it.
    outputs: [Option<OwnedFd>; 2],
    input: Option<OwnedFd>,
    terminal: Option<OwnedFd>,
}

impl Ends {
    fn open(launch: &Launch, stdin: bool) -> io::Result<Self> {
        if launch.pty {
            return Self::open_terminal(launch, stdin);
        }
        let (stdout, their_stdout) = pipe2(OFlag::O_CLOEXEC)?;
        let (stderr, their_stderr) = if launch.merge_stderr {
            // One pipe, so that what a rank writes to both keeps its order.
            (None, their_stdout.try_clone()?)
        } else {
            let (stderr, their_stderr) = pipe2(OFlag::O_CLOEXEC)?;
            (Some(stderr), their_stderr)
        };
        let (their_stdin, input) = if stdin {
            let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
            (read, Some(write))
        } else {
            (File::open("/dev/null")?.into(), None)
        };
        Ok(Self {
            theirs: [their_stdin, their_stdout, their_stderr],
            outputs: [Some(stdout), stderr],
            input,
            terminal: None,
        })
    }

    /// One terminal: its output as written (no CR before newlines). It shows what is typed only if
    /// the launcher's own terminal does not.
    fn open_terminal(launch: &Launch, stdin: bool) -> io::Result<Self> {
        let pair = openpty(None, None)?;
        let (master, slave) = (close_on_exec(&pair.master)?, close_on_exec(&pair.slave)?);
        drop(pair);
        let mut modes = tcgetattr(&slave)?;
        modes.output_flags.remove(OutputFlags::OPOST);
        modes.local_flags.set(LocalFlags::ECHO, launch.pty_echo);
        tcsetattr(&slave, SetArg::TCSANOW, &modes)?;
        resize(&master, launch.window_size.unwrap_or(TERMINAL_SIZE));
        let their_stdin = if stdin {
            slave.try_clone()?
        } else {
            File::open("/dev/null")?.into()
        };
        let input = if stdin {
            Some(master.try_clone()?)
        } else {
            None
        };
        let theirs = [their_stdin, slave.try_clone()?, slave];
        Ok(Self {
            theirs,
            terminal: Some(master.try_clone()?),
            outputs: [Some(master), None],
            input,
        })
    }
}

/// Programs draw by it, and the foreground of the terminal gets SIGWINCH.
pub(super) fn resize(terminal: &OwnedFd, size: WindowSize) {
    let clip = |cells: u32| u16::try_from(cells).unwrap_or(u16::MAX);
    sys::set_window_size(terminal, clip(size.rows), clip(size.columns));
}

/// openpty makes descriptors that exec keeps; their copies are closed by it.
fn close_on_exec(fd: &OwnedFd) -> io::Result<OwnedFd> {
    fd.try_clone()
}
