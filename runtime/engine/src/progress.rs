//! The thread that drives started operations while no call does.
//!
//! It makes room for every thread that wants to drive for itself, and sleeps while nothing is under
//! way. It holds the engine only weakly, so that it ends with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Thread;

use crate::Error;
use crate::driver::Turn;
use crate::engine::Engine;

#[derive(Debug)]
pub(crate) struct ProgressThread {
    thread: Thread,
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Signal {
    is_wanted: AtomicBool,
    has_ended: AtomicBool,
}

impl ProgressThread {
    pub(crate) fn start(engine: &Arc<Engine>) -> Result<Self, Error> {
        let signal = Arc::<Signal>::default();
        let (engine, seen) = (Arc::downgrade(engine), signal.clone());
        let thread = std::thread::Builder::new()
            .name("rlaunch-progress".into())
            .spawn(move || run(&engine, &seen))
            .map_err(|error| Error::Memory(format!("no thread for started calls: {error}")))?;
        let thread = thread.thread().clone();
        Ok(Self { thread, signal })
    }

    pub(crate) fn wake(&self) {
        if !self.signal.is_wanted.swap(true, Ordering::SeqCst) {
            self.thread.unpark();
        }
    }

    pub(crate) fn stop(&self) {
        self.signal.has_ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(engine: &Weak<Engine>, signal: &Signal) {
    block_signals();
    while !signal.has_ended.load(Ordering::SeqCst) {
        if !signal.is_wanted.swap(false, Ordering::SeqCst) {
            std::thread::park();
            continue;
        }
        let Some(engine) = engine.upgrade() else {
            return;
        };
        drive(&engine);
    }
}

fn drive(engine: &Engine) {
    let Some(mut guard) = engine.try_lead() else {
        // Who drives now wakes this thread when it leaves something behind.
        return;
    };
    if let Some(core) = guard.as_mut() {
        let mut turn = Turn::background();
        let is_over = |core: &crate::core::Core| {
            engine.following.load(Ordering::Relaxed) > 0 || core.is_quiet()
        };
        // Only a thread's own operation can fail the drive.
        let _ = engine.drive_until(core, &mut turn, is_over);
    }
    engine.hand_over(guard);
}

/// Signals are for the program's own threads.
fn block_signals() {
    // SAFETY: the set is ours and initialised before use; only this thread's mask changes.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}
