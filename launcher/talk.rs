//! What the launcher itself says, on stderr.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rlaunch_agent::Standard;
use rlaunch_plan::exit_code;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// One message; its first line says whose it is. That nobody listens is no failure.
pub(crate) fn say(text: &str) {
    show(&format!("rlaunch: {text}"));
}

/// As [`say`], without our name before it.
pub(crate) fn show(text: &str) {
    let mut text = text.to_owned();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    io::stderr().write_all(text.as_bytes()).ok();
}

/// What was asked for, on stdout; the exit code. A reader that has seen enough is no failure, but text
/// that a full disk or the like swallowed was not shown.
pub(crate) fn print(text: &str) -> u8 {
    match write_out(text) {
        Err(error) => {
            say(&format!("stdout: {error}"));
            exit_code::LAUNCHER
        }
        Ok(()) => exit_code::SUCCESS,
    }
}

/// As [`print`], for who tells the mistake.
pub(crate) fn write_out(text: &str) -> io::Result<()> {
    if rlaunch_agent::was_closed(Standard::Stdout) {
        return Err(plain(nix::errno::Errno::EBADF.into()));
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(plain(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Without the system's number of it.
pub(crate) fn plain(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::other(nix::errno::Errno::from_raw(number).desc()),
        None => error,
    }
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// `--quiet`, for the whole process: from here on [`note`] says nothing.
pub(crate) fn leave_out_notes() {
    QUIET.store(true, Ordering::Relaxed);
}

/// What may interest the user, and is no reason to stop.
pub(crate) fn note(text: &str) {
    if notes() {
        say(text);
    }
}

/// Whether notes and warnings are said.
pub(crate) fn notes() -> bool {
    !QUIET.load(Ordering::Relaxed)
}

/// `--verbose`: each step with the time since the start. Without it nothing is set up.
pub(crate) fn start_tracing(verbose: u8, start: Instant) {
    let level = match verbose {
        0 => return,
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let ours = [
        "launcher",
        "rlaunch_plan",
        "rlaunch_remote",
        "rlaunch_control",
    ];
    let filter = ours.map(|name| format!("{name}={level}")).join(",");
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_timer(SinceStart(start))
        .with_target(verbose > 1)
        .with_ansi(false)
        .with_writer(|| Stderr)
        .log_internal_errors(false)
        .init();
}

/// stderr, where that nobody reads, or that its disk is full, is no failure.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(bytes).ok();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct SinceStart(Instant);

impl FormatTime for SinceStart {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(
            writer,
            "rlaunch: {:9.3} ms",
            self.0.elapsed().as_secs_f64() * 1e3
        )
    }
}
