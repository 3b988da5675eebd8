//! Programs that are waited for, with their output, within a limit.

use crate::error::{HarnessError, failed};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A program on a host. Dropping it kills it.
pub struct Running {
    child: Child,
    name: String,
    start: Instant,
    stdout: Collected,
    stderr: Collected,
}

/// How a program ended and what it said.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
}

impl Finished {
    /// As a shell would show it: 128 + signal for one that was killed.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// Everything, for the message of an assertion.
    pub fn report(&self) -> String {
        format!(
            "ended with {} after {:.2} s\n-- stdout --\n{}\n-- stderr --\n{}",
            self.status,
            self.elapsed.as_secs_f64(),
            self.stdout,
            self.stderr
        )
    }
}

impl Running {
    /// Takes over stdout and stderr; stdin is empty unless the command says otherwise.
    pub fn start(mut command: Command) -> Result<Self, HarnessError> {
        let name = command.get_program().to_string_lossy().into_owned();
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .stdin(Stdio::null());
        let start = Instant::now();
        let mut child = command.spawn().map_err(failed(format!("start {name}")))?;
        let stdout = Collected::from(child.stdout.take());
        let stderr = Collected::from(child.stderr.take());
        Ok(Self {
            child,
            name,
            start,
            stdout,
            stderr,
        })
    }

    /// The program's process as this machine numbers it; none when it has ended.
    pub fn machine_pid(&self) -> Option<i32> {
        let helper = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{helper}/task/{helper}/children"));
        children.ok()?.split_ascii_whitespace().next()?.parse().ok()
    }

    /// To the program itself.
    pub fn signal(&self, signal: Signal) -> Result<(), HarnessError> {
        let gone = || std::io::Error::from_raw_os_error(libc::ESRCH);
        let Some(pid) = self.machine_pid() else {
            return Err(failed(format!("signal {}", self.name))(gone()));
        };
        kill(Pid::from_raw(pid), signal).map_err(failed(format!("signal {}", self.name)))
    }

    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits until `enough` likes what was printed so far on stdout.
    pub fn await_stdout(
        &self,
        limit: Duration,
        enough: impl Fn(&str) -> bool,
    ) -> Result<Duration, HarnessError> {
        self.await_text(&self.stdout, limit, enough)
    }

    pub fn await_stderr(
        &self,
        limit: Duration,
        enough: impl Fn(&str) -> bool,
    ) -> Result<Duration, HarnessError> {
        self.await_text(&self.stderr, limit, enough)
    }

    /// How it ended, if it does within `limit`.
    pub fn ends_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The program has to end within `limit` (counted from this call), else it is killed.
    pub fn wait(mut self, limit: Duration) -> Result<Finished, HarnessError> {
        let deadline = Instant::now() + limit;
        let Some(status) = self.ends_within(limit) else {
            return Err(self.late(limit));
        };
        let elapsed = self.start.elapsed();
        // Both streams end with it, or later if it left somebody behind who holds them.
        if !(self.stdout.ended_by(deadline) && self.stderr.ended_by(deadline)) {
            return Err(self.late(limit));
        }
        Ok(Finished {
            status,
            stdout: self.stdout(),
            stderr: self.stderr(),
            elapsed,
        })
    }

    fn await_text(
        &self,
        stream: &Collected,
        limit: Duration,
        enough: impl Fn(&str) -> bool,
    ) -> Result<Duration, HarnessError> {
        let start = Instant::now();
        let mut inner = stream.lock();
        loop {
            if enough(&String::from_utf8_lossy(&inner.bytes)) {
                return Ok(start.elapsed());
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() || inner.ended {
                drop(inner);
                return Err(self.late(limit));
            }
            let changed = stream.shared.changed.wait_timeout(inner, left);
            inner = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn late(&self, limit: Duration) -> HarnessError {
        HarnessError::TooLong {
            what: format!("`{}` (or what was expected of it)", self.name),
            limit,
            detail: format!(
                "\n-- stdout --\n{}\n-- stderr --\n{}",
                self.stdout(),
                self.stderr()
            ),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only on one that has ended and was reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a stream has brought so far, read by a thread of its own.
struct Collected {
    shared: Arc<Shared>,
    _reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    bytes: Vec<u8>,
    ended: bool,
}

impl Collected {
    fn from(stream: Option<impl Read + Send + 'static>) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let reader = stream.map(|stream| std::thread::spawn(move || theirs.collect(stream)));
        Self {
            shared,
            _reader: reader,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    fn ended_by(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self
            .shared
            .changed
            .wait_timeout_while(self.lock(), left, |inner| !inner.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }
}

impl Shared {
    fn collect(&self, mut stream: impl Read) {
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = stream.read(&mut buffer).unwrap_or(0);
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.bytes.extend_from_slice(&buffer[..count]);
            inner.ended = count == 0;
            self.changed.notify_all();
            if inner.ended {
                return;
            }
        }
    }
}
