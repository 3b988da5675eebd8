//! Commands that talk to the process that owns the cluster.

use crate::keep;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const DOWN_LIMIT: Duration = Duration::from_secs(20);

/// The answer's text; an answer that is an error, or none, is an error.
pub(crate) fn request(name: &str, words: &[&str]) -> Result<String, String> {
    let mut stream = UnixStream::connect(keep::socket(name))
        .map_err(|_| format!("no hosts named `{name}` are up\nhint: run `hosts up 4` first"))?;
    let lost = |error: std::io::Error| format!("the hosts' owner went away: {error}");
    stream
        .write_all(format!("{}\n", words.join("\t")).as_bytes())
        .map_err(lost)?;
    stream.shutdown(Shutdown::Write).map_err(lost)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(lost)?;
    match answer.split_once('\n') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("error", text)) => Err(text.to_owned()),
        _ => Err(format!("the hosts' owner answered `{answer}`")),
    }
}

pub(crate) fn show(name: &str, words: &[&str]) -> Result<ExitCode, String> {
    print!("{}", request(name, words)?);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn exec(name: &str, host: &str, command: &[&str]) -> Result<ExitCode, String> {
    let [program, arguments @ ..] = command else {
        return Err("no command was given".to_owned());
    };
    let pid = request(name, &["pid", host])?;
    let pid = pid
        .parse()
        .map_err(|_| format!("`{pid}` is no process id"))?;
    let mut command =
        rlaunch_harness::command_here(pid, program).map_err(|error| error.to_string())?;
    let status = command.args(arguments).status();
    let status = status.map_err(|error| format!("{host}: cannot run {program}: {error}"))?;
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    let code = status
        .code()
        .or(signal.map(|signal| 128 + signal))
        .unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

pub(crate) fn down(name: &str) -> Result<ExitCode, String> {
    request(name, &["down"])?;
    let start = Instant::now();
    while keep::socket(name).exists() && start.elapsed() < DOWN_LIMIT {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(ExitCode::SUCCESS)
}
