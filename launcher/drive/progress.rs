//! What a job that has not started yet waits for, so that `--start-timeout` can tell.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use super::DriveError;

/// Shared by what prepares the job and by who watches the clock; one thread.
#[derive(Debug)]
pub(super) struct Progress {
    state: RefCell<State>,
    began: Instant,
    /// Time that does not count: files of any size are on their way.
    uncounted: Cell<Duration>,
    /// Since when it does not count.
    pausing: Cell<Option<Instant>>,
}

#[derive(Debug, Default)]
struct State {
    step: &'static str,
    hosts: Vec<String>,
}

/// How often it is looked whether the time counts again.
const LOOK_PERIOD: Duration = Duration::from_millis(500);

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            state: RefCell::default(),
            began: Instant::now(),
            uncounted: Cell::default(),
            pausing: Cell::default(),
        }
    }

    /// The time of this step does not count.
    pub(super) async fn uncounted<T>(&self, step: impl Future<Output = T>) -> T {
        let began = Instant::now();
        self.pausing.set(Some(began));
        let done = step.await;
        self.pausing.set(None);
        self.uncounted.set(self.uncounted.get() + began.elapsed());
        done
    }

    /// What is left of the limit.
    pub(super) fn left(&self, limit: Duration) -> Duration {
        let counted = self.began.elapsed().saturating_sub(self.uncounted.get());
        limit.saturating_sub(counted)
    }

    /// When the limit has run out; without one never.
    pub(super) async fn run_out(&self, limit: Option<Duration>) {
        let Some(limit) = limit else {
            return std::future::pending().await;
        };
        loop {
            let left = match self.pausing.get() {
                Some(_) => LOOK_PERIOD,
                None => self.left(limit),
            };
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// `step`: what the hosts have not done yet, as in "node7 was not …".
    pub(super) fn begin(&self, step: &'static str, hosts: impl IntoIterator<Item = String>) {
        *self.state.borrow_mut() = State {
            step,
            hosts: hosts.into_iter().collect(),
        };
    }

    pub(super) fn done(&self, host: &str) {
        let hosts = &mut self.state.borrow_mut().hosts;
        if let Some(at) = hosts.iter().position(|name| name == host) {
            hosts.remove(at);
        }
    }

    pub(super) fn overdue(&self, timeout: Duration) -> DriveError {
        let state = self.state.borrow();
        DriveError::StartTimeout {
            hosts: named(&state.hosts),
            step: state.step,
            timeout,
        }
    }
}

/// Hosts named when many are missing.
const NAMED_MAX: usize = 16;

fn named(hosts: &[String]) -> String {
    match hosts.len() {
        0 => "the job".to_owned(),
        1..=NAMED_MAX => hosts.join(", "),
        many => {
            let shown = hosts[..NAMED_MAX].join(", ");
            format!("{shown} and {} more", many - NAMED_MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_not_done_are_named() {
        let progress = Progress::new();
        progress.begin("reached", ["a", "b", "c"].map(str::to_owned));
        progress.done("b");
        let text = progress.overdue(Duration::from_secs(3)).to_string();
        assert!(text.starts_with("a, c: not reached within 3 s"), "{text}");
    }

    #[tokio::test]
    async fn what_takes_as_long_as_it_takes_does_not_count() {
        let progress = Progress::new();
        let step = tokio::time::sleep(Duration::from_millis(80));
        let limit = Some(Duration::from_millis(40));
        tokio::select! {
            () = progress.run_out(limit) => panic!("it does not count"),
            () = progress.uncounted(step) => {}
        }
        progress.run_out(limit).await;
        assert!(progress.began.elapsed() >= Duration::from_millis(120));
    }
}
