//! The process that owns a cluster made by hand.
//!
//! A request is one line of words separated by tabs; the answer is `ok` or `error` on a line of
//! its own, then text to the end of the connection.

use crate::ask;
use rlaunch_harness::{Cluster, HarnessError, Nic, Options};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

pub(crate) fn socket(name: &str) -> PathBuf {
    rlaunch_harness::state_folder().join(format!("{name}.socket"))
}

/// What the keeper says.
fn log(name: &str) -> PathBuf {
    socket(name).with_extension("log")
}

/// Starts `hosts keep` as a process of its own and returns when its cluster is up.
pub(crate) fn start_in_background(
    name: &str,
    options: &Options,
    words: &[&str],
) -> Result<ExitCode, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    // Whoever reads our stderr to its end would wait for the hosts' end otherwise.
    let log = log(name);
    let told = |error| format!("{}: {error}", log.display());
    std::fs::create_dir_all(rlaunch_harness::state_folder()).map_err(told)?;
    let stderr = File::create(&log).map_err(told)?;
    let mut keeper = Command::new(program);
    keeper.args(["--name", name, "keep"]).args(words);
    keeper
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .process_group(0);
    let mut keeper = keeper
        .spawn()
        .map_err(|error| format!("start the keeper: {error}"))?;
    let mut line = String::new();
    if let Some(stdout) = keeper.stdout.take() {
        // A failed read is an empty line, which is answered below.
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    if line.is_empty() {
        let _ = keeper.wait();
        let why = std::fs::read_to_string(&log).map_err(told)?;
        let why = why.trim_end();
        return Err(why.strip_prefix("hosts: ").unwrap_or(why).to_owned());
    }
    println!(
        "up: head and {} nodes; try: cargo x hosts exec head -- ssh node1 hostname",
        options.hosts
    );
    Ok(ExitCode::SUCCESS)
}

/// Brings the cluster up, prints the hosts' first processes on one line, and serves until `down`.
pub(crate) fn run(name: &str, options: &Options) -> Result<ExitCode, String> {
    if ask::request(name, &["list"]).is_ok() {
        return Err(format!(
            "hosts named `{name}` are up already\nhint: run `hosts down` first"
        ));
    }
    let cluster = Cluster::up(options).map_err(|error| error.to_string())?;
    let path = socket(name);
    let _ = std::fs::remove_file(&path); // of a keeper that was killed
    let listener =
        UnixListener::bind(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let pids: Result<Vec<String>, HarnessError> = cluster
        .hosts()
        .iter()
        .map(|host| cluster.machine_pid(host).map(|pid| pid.to_string()))
        .collect();
    println!("{}", pids.map_err(|error| error.to_string())?.join(" "));
    for stream in listener.incoming().flatten() {
        if serve(&cluster, stream) {
            break;
        }
    }
    cluster.down();
    let _ = std::fs::remove_file(log(name));
    // Its end is what `down` waits for.
    let _ = std::fs::remove_file(&path);
    Ok(ExitCode::SUCCESS)
}

/// True if that was the last request.
fn serve(cluster: &Cluster, mut stream: UnixStream) -> bool {
    let mut line = String::new();
    if BufReader::new((&mut stream).take(64 * 1024))
        .read_line(&mut line)
        .is_err()
    {
        return false;
    }
    let words: Vec<&str> = line.trim_end().split('\t').collect();
    let answer = match answer(cluster, &words) {
        Ok(text) => format!("ok\n{text}"),
        Err(error) => format!("error\n{error}"),
    };
    // Who asked and went away needs no answer.
    let _ = stream.write_all(answer.as_bytes());
    words == ["down"]
}

fn answer(cluster: &Cluster, words: &[&str]) -> Result<String, HarnessError> {
    match words {
        ["list"] => list(cluster),
        ["pid", host] => cluster.machine_pid(host).map(|pid| pid.to_string()),
        ["fault", fault @ ..] => inflict(cluster, fault).map(|()| String::new()),
        ["down"] => Ok(String::new()),
        other => Err(HarnessError::Options(format!(
            "no request `{}`",
            other.join(" ")
        ))),
    }
}

fn list(cluster: &Cluster) -> Result<String, HarnessError> {
    let mut text = String::new();
    for host in cluster.hosts() {
        let processes = cluster.processes(host)?;
        let state = if processes.is_empty() { "off" } else { "up" };
        // Writing to a string can't fail.
        let _ = writeln!(text, "{host:8} {:14} {state}", cluster.address(host)?);
        for process in processes.iter().filter(|process| process.pid != 1) {
            let _ = writeln!(text, "         {process}");
        }
    }
    Ok(text)
}

fn inflict<'a>(cluster: &Cluster, fault: &[&'a str]) -> Result<(), HarnessError> {
    let group = |hosts: &'a str| -> Vec<&'a str> { hosts.split(',').collect() };
    match fault {
        ["unplug", host, nic] => cluster.unplug(host, nic.parse::<Nic>()?),
        ["plug", host, nic] => cluster.plug(host, nic.parse::<Nic>()?),
        ["black-hole", host] => cluster.black_hole(host),
        ["heal", host] => cluster.heal(host),
        ["kill", host] => cluster.kill(host),
        ["power-off", host] => cluster.power_off(host),
        ["boot", host] => cluster.boot(host),
        ["split", one, other] => cluster.split(&group(one), &group(other)),
        ["join"] => cluster.join(),
        other => Err(HarnessError::Options(format!(
            "no fault `{}`; see `hosts help`",
            other.join(" ")
        ))),
    }
}
