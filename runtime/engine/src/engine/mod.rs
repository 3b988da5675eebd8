//! The lock around a job's state, and who of a process's threads drives it.
//!
//! Who finds the lock free drives until its own call is done ([`crate::driver`]). Who finds it taken
//! submits its call and follows: it sleeps until the call is done, or until it is asked to drive
//! because the one who did has left. Started calls are driven by whoever drives; while nobody does, by
//! a thread of the engine, which exists from the first start on and sleeps while nothing is under way.

mod baton;
mod follow;

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rlaunch_transport::shm::{Arena, Doorbell, State};

use baton::{Baton, BatonGuard};

use crate::collective::{CollectiveOperation, begin_near};
use crate::completion::Completion;
use crate::connect::Place;
use crate::core::Core;
use crate::driver::{Own, Turn};
use crate::failure::Logbook;
use crate::failure::fork::Process;
use crate::group::{GroupKey, Groups};
use crate::interrupt::is_interrupted;
use crate::job::{Job, Submission, Work};
use crate::leave::Departure;
use crate::progress::ProgressThread;
use crate::request::Status;
use crate::wait::Operation;
use crate::waker::Waker;
use crate::{Call, Error};

#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) place: Place,
    process: Process,
    pub(crate) logbook: Arc<Logbook>,
    /// `None` once finalized.
    /// Never dropped in a forked child, whose copy must not touch what is shared.
    core: ManuallyDrop<Baton<Option<Core>>>,
    submissions: Mutex<VecDeque<Submission>>,
    /// Their number, to be looked at without the lock.
    pub(crate) submitted: AtomicUsize,
    /// Who would drive, if nobody did; oldest first.
    followers: Mutex<VecDeque<Arc<Completion>>>,
    pub(crate) following: AtomicUsize,
    /// The driving thread sleeps, or is about to.
    pub(crate) is_sleeping: AtomicBool,
    pub(crate) waker: Waker,
    doorbell: Option<(Doorbell, u32)>,
    progress: OnceLock<ProgressThread>,
}

/// A follower with a core of its own looks for its result this often before it sleeps.
const FOLLOWER_SPINS: u32 = 500;
/// Between two questions of a follower whether the program wants to end its wait.
const INTERRUPT_PERIOD: Duration = Duration::from_millis(100);

impl Engine {
    pub(crate) fn new(place: Place, core: Core, waker: Waker) -> Self {
        let local = core.peers[core.rank as usize].local;
        let doorbell = core.neighbours.as_ref().zip(local);
        Self {
            place,
            process: Process::current(),
            logbook: core.logbook.clone(),
            doorbell: doorbell.map(|(neighbours, local)| (neighbours.doorbell.clone(), local)),
            core: ManuallyDrop::new(Baton::new(Some(core))),
            submissions: Mutex::default(),
            submitted: AtomicUsize::new(0),
            followers: Mutex::default(),
            following: AtomicUsize::new(0),
            is_sleeping: AtomicBool::new(false),
            waker,
            progress: OnceLock::new(),
        }
    }

    /// False in a child forked from the process that joined.
    pub(crate) fn is_usable(&self) -> bool {
        self.process.is_current()
    }

    /// The memory shared with this rank's neighbours, and its number there, where there are any.
    pub(crate) fn arena(&self) -> Result<Option<(Arc<Arena>, u32)>, Error> {
        self.process.check()?;
        let Some((doorbell, local_rank)) = &self.doorbell else {
            return Ok(None);
        };
        let arena = doorbell.arena();
        if arena.state(*local_rank) == State::Left {
            return Err(Error::Finalized);
        }
        Ok(Some((arena.clone(), *local_rank)))
    }

    /// Executes a call and waits for it.
    ///
    /// # Safety
    /// As [`crate::Communicator::run`].
    pub(crate) unsafe fn run(&self, key: GroupKey, call: &Call) -> Result<(), Error> {
        self.process.check()?;
        let Some(mut guard) = self.try_lead() else {
            let job = Job {
                key,
                work: Work::Collective(call.clone()),
                timeout: call.timeout,
                completion: Arc::default(),
            };
            return self.follow(job).map(|_| ());
        };
        let core = guard.as_mut().ok_or(Error::Finalized)?;
        // SAFETY: as the caller vouches.
        let result = unsafe { self.run_first(core, key, call) };
        self.hand_over(guard);
        result
    }

    /// # Safety
    /// As [`crate::Communicator::run`].
    #[inline]
    unsafe fn run_first(&self, core: &mut Core, key: GroupKey, call: &Call) -> Result<(), Error> {
        if self.submitted.load(Ordering::Relaxed) > 0 {
            self.take_submissions(core);
        }
        if core.group(key).is_busy {
            let completion = Arc::<Completion>::default();
            core.begin_job(Job {
                key,
                work: Work::Collective(call.clone()),
                timeout: call.timeout,
                completion: completion.clone(),
            });
            return self.drive_for(core, key, &completion).map(|_| ());
        }
        if core.group(key).is_near {
            // SAFETY: as the caller vouches.
            let begun = unsafe { begin_near(core, key, call) };
            self.run_begun(core, key, call.timeout, begun)
        } else {
            // SAFETY: as the caller vouches.
            let begun = unsafe { CollectiveOperation::begin(core, key, call) };
            self.run_begun(core, key, call.timeout, begun)
        }
    }

    #[inline]
    fn run_begun<O: Operation>(
        &self,
        core: &mut Core,
        key: GroupKey,
        timeout: Option<Duration>,
        mut begun: Result<O, Error>,
    ) -> Result<(), Error> {
        // Driven where it lies: it is long.
        let operation = match &mut begun {
            Ok(operation) => operation,
            Err(error) => return Err(core.failure_of(key, error.clone())),
        };
        let mut own = Own {
            key,
            operation,
            timeout,
        };
        let result = self.drive_own(core, &mut own);
        if let Some(group) = core.groups.get_mut(key) {
            group.is_busy = false;
            if !group.queue.is_empty() {
                core.begin_next(key);
            }
        }
        result
    }

    /// Executes an operation that is not ordered with collectives, and waits for it.
    pub(crate) fn run_operation<O: Operation + 'static>(
        &self,
        key: GroupKey,
        timeout: Option<Duration>,
        begin: impl FnOnce(&mut Core) -> Result<O, Error> + Send + 'static,
    ) -> Result<Status, Error> {
        self.process.check()?;
        let Some(mut guard) = self.try_lead() else {
            let boxed = |core: &mut Core| Ok(Box::new(begin(core)?) as Box<dyn Operation>);
            return self.follow(Job {
                key,
                work: Work::Other(Box::new(boxed)),
                timeout,
                completion: Arc::default(),
            });
        };
        let core = guard.as_mut().ok_or(Error::Finalized)?;
        if self.submitted.load(Ordering::Relaxed) > 0 {
            self.take_submissions(core);
        }
        let result = match core.check(key).and_then(|()| begin(core)) {
            Ok(mut operation) => {
                let mut own = Own {
                    key,
                    operation: &mut operation,
                    timeout,
                };
                self.drive_own(core, &mut own).map(|()| operation.status())
            }
            Err(error) => Err(core.failure_of(key, error)),
        };
        self.hand_over(guard);
        result
    }

    /// Starts a call; the completion tells its end.
    pub(crate) fn start(self: &Arc<Self>, job: Job) -> Result<(), Error> {
        self.process.check()?;
        let progress = self.progress_thread()?;
        match self.try_lead() {
            Some(mut guard) => {
                let core = guard.as_mut().ok_or(Error::Finalized)?;
                self.take_submissions(core);
                core.begin_job(job);
                core.drive();
                self.hand_over(guard);
            }
            None => {
                self.submit(Submission::Job(job));
                progress.wake();
            }
        }
        Ok(())
    }

    /// Starts what is not ordered with collectives, and tells its end by itself.
    pub(crate) fn start_operation(
        self: &Arc<Self>,
        key: GroupKey,
        start: impl FnOnce(&mut Core) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        self.process.check()?;
        self.progress_thread()?;
        self.with(move |core| {
            core.check(key)?;
            start(core).map_err(|error| core.failure_of(key, error))
        })
    }

    fn progress_thread(self: &Arc<Self>) -> Result<&ProgressThread, Error> {
        if let Some(progress) = self.progress.get() {
            return Ok(progress);
        }
        let thread = ProgressThread::start(self)?;
        Ok(self.progress.get_or_init(|| thread))
    }

    /// Drives a little; what has become of the operation shows in its completion.
    pub(crate) fn test(&self) -> Result<(), Error> {
        self.process.check()?;
        if let Some(mut guard) = self.try_lead() {
            if let Some(core) = guard.as_mut() {
                self.drive_others(core);
            }
            self.hand_over(guard);
        }
        Ok(())
    }

    /// Reads or changes the state, between polls of whoever drives.
    pub(crate) fn with<R: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Core) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        self.process.check()?;
        if let Some(mut guard) = self.try_lead() {
            let result = guard.as_mut().ok_or(Error::Finalized).and_then(change);
            self.hand_over(guard);
            return result;
        }
        let answer = Arc::new(OnceLock::new());
        let completion = Arc::<Completion>::default();
        let (to, done) = (answer.clone(), completion.clone());
        self.submit(Submission::Change(Box::new(move |core| {
            // Set once: this is its only writer.
            let _ = to.set(Mutex::new(Some(change(core))));
            done.complete(Ok(Status::default()));
        })));
        self.wait(Groups::WORLD, &completion, None)?;
        let result = answer.get().and_then(|result| lock(result).take());
        result.unwrap_or(Err(Error::Finalized))
    }

    /// The communicator was aborted: the others are told, whether or not this rank calls again.
    pub(crate) fn note_abort(&self, key: GroupKey) {
        self.soon(move |core| core.note_abort(key));
    }

    /// The last handle of a communicator is gone.
    pub(crate) fn free(&self, key: GroupKey) {
        self.soon(move |core| core.free(key));
    }

    /// Changes the state now, or has whoever drives do so; waits for nobody.
    fn soon(&self, change: impl FnOnce(&mut Core) + Send + 'static) {
        if !self.is_usable() {
            return;
        }
        match self.try_lead() {
            Some(mut guard) => {
                if let Some(core) = guard.as_mut() {
                    change(core);
                }
                self.hand_over(guard);
            }
            None => self.submit(Submission::Change(Box::new(change))),
        }
    }

    pub(crate) fn leave(&self) -> Departure {
        if !self.is_usable() {
            return Departure::default();
        }
        let mut guard = self.lead();
        let core = guard.take();
        drop(guard);
        if let Some(progress) = self.progress.get() {
            progress.stop();
        }
        let departure = core.map_or_else(Departure::default, Core::leave);
        self.end_followers();
        departure
    }

    /// Has the driving thread look at the submissions, if it sleeps.
    pub(crate) fn wake(&self) {
        if self.is_sleeping.swap(false, Ordering::SeqCst) {
            self.waker.wake();
            if let Some((doorbell, local)) = &self.doorbell {
                doorbell.ring(*local);
            }
        }
    }

    fn submit(&self, submission: Submission) {
        self.submissions().push_back(submission);
        self.submitted.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn take_submissions(&self, core: &mut Core) {
        loop {
            let next = self.submissions().pop_front();
            let Some(submission) = next else {
                return;
            };
            self.submitted.fetch_sub(1, Ordering::SeqCst);
            match submission {
                Submission::Job(job) => core.begin_job(job),
                Submission::Change(change) => change(core),
            }
        }
    }

    fn follow(&self, job: Job) -> Result<Status, Error> {
        let (key, completion) = (job.key, job.completion.clone());
        self.submit(Submission::Job(job));
        self.wait(key, &completion, None)?;
        completion.result().unwrap_or(Err(Error::Finalized))
    }

    fn drive_for(
        &self,
        core: &mut Core,
        key: GroupKey,
        completion: &Arc<Completion>,
    ) -> Result<Status, Error> {
        self.drive_towards(core, key, completion, None)?;
        completion.result().unwrap_or(Err(Error::Finalized))
    }

    /// Drives until that operation is complete, in slices so that the program may interrupt.
    fn drive_towards(
        &self,
        core: &mut Core,
        key: GroupKey,
        completion: &Completion,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        let mut turn = Turn::default();
        let mut next_interrupt = None;
        let mut polls = 0u32;
        let mut is_interrupted_now = false;
        self.drive_until(core, &mut turn, |_| {
            polls += 1;
            if completion.is_done() {
                return true;
            }
            if !polls.is_multiple_of(64) {
                return false;
            }
            let now = Instant::now();
            let at = next_interrupt.get_or_insert(now + INTERRUPT_PERIOD);
            if now >= *at {
                *at = now + INTERRUPT_PERIOD;
                is_interrupted_now = is_interrupted();
            }
            is_interrupted_now || deadline.is_some_and(|deadline| now >= deadline)
        })?;
        if is_interrupted_now && !completion.is_done() {
            let during = core.group(key).during();
            return Err(core.fail(key, Error::Interrupted { during }));
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn try_lead(&self) -> Option<BatonGuard<'_, Option<Core>>> {
        self.core.try_take()
    }

    fn submissions(&self) -> MutexGuard<'_, VecDeque<Submission>> {
        lock(&self.submissions)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.is_usable() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.core) };
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing inside can panic halfway; the state stays sound.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
