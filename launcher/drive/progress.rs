//! What a job that has not started yet waits for, so that `--start-timeout` can tell.

use std::cell::RefCell;
use std::time::Duration;

use super::DriveError;

/// Shared by what prepares the job and by who watches the clock; one thread.
#[derive(Debug, Default)]
pub(super) struct Progress(RefCell<State>);

#[derive(Debug, Default)]
struct State {
    step: &'static str,
    hosts: Vec<String>,
}

impl Progress {
    /// `step`: what the hosts have not done yet, as in "node7 was not …".
    pub(super) fn begin(&self, step: &'static str, hosts: impl IntoIterator<Item = String>) {
        *self.0.borrow_mut() = State {
            step,
            hosts: hosts.into_iter().collect(),
        };
    }

    pub(super) fn done(&self, host: &str) {
        let hosts = &mut self.0.borrow_mut().hosts;
        if let Some(at) = hosts.iter().position(|name| name == host) {
            hosts.remove(at);
        }
    }

    pub(super) fn overdue(&self, timeout: Duration) -> DriveError {
        let state = self.0.borrow();
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
        let progress = Progress::default();
        progress.begin("reached", ["a", "b", "c"].map(str::to_owned));
        progress.done("b");
        let text = progress.overdue(Duration::from_secs(3)).to_string();
        assert!(text.starts_with("a, c: not reached within 3 s"), "{text}");
    }
}
