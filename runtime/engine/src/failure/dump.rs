//! Printing the flight recorder: when asked by a signal, and after an error.
//!
//! The signal's handler only posts a semaphore; a thread that sleeps on it does the rest, so that a
//! process which hangs in a call, or computes outside of any, prints all the same. The handler is
//! installed where nothing else has claimed the signal, and the thread started with it, once in a
//! process. In a forked child there is no such thread and the signal does nothing.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

use rlaunch_wire::CommunicatorName;

use super::Shared;
use super::recorder::OperationRecord;
use crate::{Error, Rank};

/// Where and when to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderSettings {
    /// Prints to the file, or else to stderr.
    pub signal: Option<libc::c_int>,
    /// After an error too. `{rank}` stands for the rank.
    pub file: Option<String>,
}

/// What the flight recorder holds, at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FlightRecorder {
    pub rank: Rank,
    pub world_size: u32,
    /// The age of the world; operations are dated by it.
    pub age: Duration,
    pub communicators: Vec<CommunicatorRecord>,
}

/// One communicator's last operations, oldest first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommunicatorRecord {
    pub id: u32,
    /// `init` of the world, else the call: `split`, `duplicate`, `from_ranks`, `shrink`.
    pub made_by: &'static str,
    pub operations: Vec<OperationRecord>,
}

/// A world's communicators, for whoever prints.
#[derive(Debug)]
pub(crate) struct Logbook {
    rank: Rank,
    world_size: u32,
    pub(crate) epoch: Instant,
    file: Option<String>,
    communicators: Mutex<Vec<Weak<Shared>>>,
}

static LOGBOOKS: Mutex<Vec<Weak<Logbook>>> = Mutex::new(Vec::new());
static WAKE: AtomicPtr<libc::sem_t> = AtomicPtr::new(std::ptr::null_mut());
static INSTALL: Once = Once::new();

impl Default for RecorderSettings {
    fn default() -> Self {
        Self {
            signal: Some(libc::SIGUSR2),
            file: None,
        }
    }
}

impl RecorderSettings {
    /// `signal`: `SIGUSR1`, `USR2`, a number, or `none`.
    pub(crate) fn parse(signal: Option<&str>, file: Option<String>) -> Result<Self, Error> {
        let signal = match signal.map(str::trim) {
            None => Self::default().signal,
            Some("none" | "0") => None,
            Some(text) => Some(signal_number(text)?),
        };
        Ok(Self { signal, file })
    }
}

fn signal_number(text: &str) -> Result<libc::c_int, Error> {
    let names = [
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("HUP", libc::SIGHUP),
        ("QUIT", libc::SIGQUIT),
        ("WINCH", libc::SIGWINCH),
    ];
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let named = names.iter().find(|(known, _)| *known == name);
    let number = named.map(|(_, number)| *number).or(text.parse().ok());
    number.filter(|number| (1..=64).contains(number)).ok_or_else(|| {
        Error::Init(format!(
            "RLAUNCH_RECORDER_SIGNAL={text:?} is no signal; there are SIGUSR1, SIGUSR2, numbers, \
             and none"
        ))
    })
}

impl Logbook {
    /// Has the world print when the signal comes. Its communicators are added one by one.
    pub(crate) fn open(
        rank: Rank,
        world_size: u32,
        epoch: Instant,
        settings: &RecorderSettings,
    ) -> Arc<Self> {
        let file = settings
            .file
            .as_ref()
            .map(|name| name.replace("{rank}", &rank.rank.to_string()));
        let logbook = Arc::new(Self {
            rank,
            world_size,
            epoch,
            file,
            communicators: Mutex::new(Vec::new()),
        });
        let mut logbooks = lock(&LOGBOOKS);
        logbooks.retain(|logbook| logbook.strong_count() > 0);
        logbooks.push(Arc::downgrade(&logbook));
        drop(logbooks);
        if let Some(signal) = settings.signal {
            INSTALL.call_once(|| install(signal));
        }
        logbook
    }

    pub(crate) fn add(&self, communicator: &Arc<Shared>) {
        let mut communicators = lock(&self.communicators);
        communicators.retain(|communicator| communicator.strong_count() > 0);
        communicators.push(Arc::downgrade(communicator));
    }

    pub(crate) fn read(&self) -> FlightRecorder {
        let alive: Vec<Arc<Shared>> = lock(&self.communicators)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let record = |shared: &Arc<Shared>| CommunicatorRecord {
            id: shared.id,
            made_by: shared.made_by,
            operations: shared.recorder.records(),
        };
        FlightRecorder {
            rank: self.rank.clone(),
            world_size: self.world_size,
            age: self.epoch.elapsed(),
            communicators: alive.iter().map(record).collect(),
        }
    }

    /// After an error: only where a file was named, since the error itself says what matters.
    pub(crate) fn print_after(&self, error: &Error) {
        if self.file.is_some() {
            self.print(&error.to_string());
        }
    }

    fn print(&self, why: &str) {
        let text = format!("flight recorder: {why}\n{}", self.read());
        let Some(name) = &self.file else {
            return rlaunch_transport::say(format_args!("{}", text.trim_end()));
        };
        let written = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(name)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            rlaunch_transport::say(format_args!(
                "rlaunch: RLAUNCH_RECORDER_FILE={name}: {error}"
            ));
        }
    }
}

/// One paragraph for each communicator.
impl fmt::Display for FlightRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = self.age.as_secs_f64();
        writeln!(f, "{} of {}, {age:.6} s old", self.rank, self.world_size)?;
        for communicator in &self.communicators {
            let (name, made_by) = (CommunicatorName(communicator.id), communicator.made_by);
            let count = communicator.operations.len();
            writeln!(
                f,
                "  {name}, made by {made_by}: the last {count} operations"
            )?;
            for operation in &communicator.operations {
                writeln!(f, "    {operation}")?;
            }
        }
        Ok(())
    }
}

/// Only where the program has not claimed the signal.
fn install(signal: libc::c_int) {
    // SAFETY: zero is a valid sigaction: default disposition, empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes the present action.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    if result != 0 || action.sa_sigaction != libc::SIG_DFL {
        return;
    }
    // SAFETY: zero is as good a content as any for what sem_init writes.
    let semaphore = Box::leak(Box::new(unsafe { std::mem::zeroed::<libc::sem_t>() }));
    // SAFETY: the semaphore is ours, leaked, and used by this process alone.
    if unsafe { libc::sem_init(semaphore, 0, 0) } != 0 {
        return;
    }
    WAKE.store(semaphore, Ordering::Release);
    let printer = std::thread::Builder::new()
        .name("rlaunch-recorder".into())
        .stack_size(128 * 1024);
    if printer.spawn(print_when_asked).is_err() {
        return;
    }
    let handler: extern "C" fn(libc::c_int) = ask;
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler is async-signal-safe and lives as long as the program.
    unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
}

extern "C" fn ask(_signal: libc::c_int) {
    let semaphore = WAKE.load(Ordering::Acquire);
    if !semaphore.is_null() {
        // SAFETY: it was made before the handler was installed and is never freed; posting is
        // async-signal-safe. It fails only at 2^31 posts.
        unsafe { libc::sem_post(semaphore) };
    }
}

fn print_when_asked() {
    // The program's signals are for its own threads.
    // SAFETY: an empty set is written, filled, and read; the mask is this thread's.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
    let semaphore = WAKE.load(Ordering::Acquire);
    loop {
        // SAFETY: as in `ask`. No signal reaches this thread; what interrupts it else, is tried
        // again.
        if unsafe { libc::sem_wait(semaphore) } != 0 {
            continue;
        }
        let logbooks: Vec<_> = lock(&LOGBOOKS).iter().filter_map(Weak::upgrade).collect();
        for logbook in logbooks {
            logbook.print("asked for by a signal");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A list of weak pointers is sound whatever a panic interrupted.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rlaunch_wire::{Collective, DType, Descriptor};

    use super::super::recorder::About;
    use super::*;

    fn me() -> Rank {
        Rank {
            rank: 3,
            host: "node1".into(),
            pid: 77,
        }
    }

    #[test]
    fn what_is_printed_names_rank_communicator_and_operation() {
        let file =
            std::env::temp_dir().join(format!("rlaunch-dump-{}-{{rank}}", std::process::id()));
        let settings = RecorderSettings {
            signal: None,
            file: Some(file.to_str().unwrap().into()),
        };
        let logbook = Logbook::open(me(), 4, Instant::now(), &settings);
        let shared = Arc::new(Shared::new(5, "split", logbook.epoch));
        logbook.add(&shared);
        let call = Descriptor {
            communicator: 5,
            sequence: 9,
            collective: Collective::Barrier,
            dtype: DType::I32,
            op: None,
            root: 0,
            digest: 0,
            count: 0,
        };
        shared.recorder.begin(&call, About::default());
        logbook.print_after(&Error::Finalized);
        let name = file.to_str().unwrap().replace("{rank}", "3");
        let text = std::fs::read_to_string(&name).unwrap();
        std::fs::remove_file(&name).unwrap();
        assert!(text.contains("rank 3 (host node1, pid 77) of 4"), "{text}");
        assert!(
            text.contains("communicator 5, made by split: the last 1 operations"),
            "{text}"
        );
        assert!(
            text.contains("running") && text.contains("barrier #9"),
            "{text}"
        );
        drop(shared);
        assert!(logbook.read().communicators.is_empty());
    }

    #[test]
    fn signals_are_read_as_they_are_written() {
        let parse = |text| RecorderSettings::parse(Some(text), None).map(|got| got.signal);
        assert_eq!(parse("SIGUSR1").unwrap(), Some(libc::SIGUSR1));
        assert_eq!(parse("USR2").unwrap(), Some(libc::SIGUSR2));
        assert_eq!(parse("12").unwrap(), Some(12));
        assert_eq!(parse("none").unwrap(), None);
        assert!(parse("SIGFOO").is_err() && parse("99").is_err());
    }
}
