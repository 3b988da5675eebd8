//! Programs that are given a limited time.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a whole run may take; beyond it something hangs.
const LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_micros(500);

/// Stdout of a command that has to succeed in time. Its stderr is shown only if it fails.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    outputs(std::slice::from_mut(command))
}

/// Starts all of the commands at once; stdout of the first. What they print has to fit a pipe.
pub(super) fn outputs(commands: &mut [Command]) -> Result<String, String> {
    let mut children = Vec::new();
    for command in commands.iter_mut() {
        let spawned = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        match spawned.spawn() {
            Ok(child) => children.push(child),
            Err(error) => {
                end(&mut children);
                return Err(format!("cannot start {command:?}: {error}"));
            }
        }
    }
    let start = Instant::now();
    let mut statuses = vec![None; children.len()];
    while statuses.iter().any(Option::is_none) {
        for (child, status) in children.iter_mut().zip(&mut statuses) {
            if status.is_none() {
                *status = child
                    .try_wait()
                    .map_err(|error| format!("waiting: {error}"))?;
            }
        }
        if start.elapsed() > LIMIT {
            end(&mut children);
            return Err(format!("{:?} did not end within {LIMIT:?}", commands[0]));
        }
        std::thread::sleep(POLL);
    }
    let mut first = String::new();
    for (index, (child, status)) in children.iter_mut().zip(statuses).enumerate() {
        let out = read(child.stdout.take());
        if !status.is_some_and(|status| status.success()) {
            let error = read(child.stderr.take());
            return Err(format!(
                "{:?} failed:\n{}{}",
                commands[index],
                out,
                error.trim_end()
            ));
        }
        if index == 0 {
            first = out;
        }
    }
    Ok(first)
}

fn read(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // What could not be read is missing from the message, nothing else.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn end(children: &mut [std::process::Child]) {
    for child in children {
        let _ = child.kill(); // it may have ended by itself
        let _ = child.wait();
    }
}
