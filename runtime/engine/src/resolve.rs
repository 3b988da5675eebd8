//! A host's name as addresses, within a limit: the system's resolver has limits of its own, 5 s and
//! more for each server that does not answer.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use crate::interrupt::is_interrupted;

/// Between two looks for an interrupt.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// At least one address; an error of kind `TimedOut` where the resolver has not answered by then. What
/// is an address already is never looked up.
pub(crate) fn resolve(name: &str, deadline: Instant) -> io::Result<Vec<IpAddr>> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    let (sender, receiver) = sync_channel(1);
    let owned = name.to_owned();
    // A resolver that hangs can't be called back: its thread is left behind, and ends with its answer.
    std::thread::Builder::new()
        .name("rlaunch-resolve".into())
        .stack_size(256 * 1024)
        .spawn(move || {
            let found = (owned.as_str(), 0).to_socket_addrs();
            // Perhaps nobody waits any more.
            let _ = sender.send(found.map(|all| all.map(|one| one.ip()).collect::<Vec<_>>()));
        })?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left.min(LOOK_PERIOD)) {
            Ok(found) => return found.and_then(|found| at_least_one(name, found)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the look-up ended without an answer"));
            }
            Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                let text =
                    format!("the name {name} was not looked up in time; hint: is DNS reachable?");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            Err(RecvTimeoutError::Timeout) if is_interrupted() => {
                return Err(io::ErrorKind::Interrupted.into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn at_least_one(name: &str, mut found: Vec<IpAddr>) -> io::Result<Vec<IpAddr>> {
    found.dedup();
    if found.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("the name {name} has no address"),
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_names_have_addresses() {
        let past = Instant::now();
        assert_eq!(
            resolve("::1", past).unwrap(),
            [IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])]
        );
        let soon = Instant::now() + Duration::from_secs(10);
        assert!(
            resolve("localhost", soon)
                .unwrap()
                .iter()
                .all(IpAddr::is_loopback)
        );
    }

    #[test]
    fn the_limit_holds_whatever_the_resolver_does() {
        let begun = Instant::now();
        let limit = Duration::from_millis(300);
        assert!(resolve("no-such-host.invalid", begun + limit).is_err());
        assert!(begun.elapsed() < limit + Duration::from_millis(300));
    }
}
