//! Hosts by hand: `cargo x hosts up 4`, then `cargo x hosts exec head -- rlaunch …`.
//!
//! `up` leaves a process behind that owns the cluster and listens on a socket; the other commands
//! ask it. It ends at `down`.

mod ask;
mod keep;
mod launch;
mod link;

use rlaunch_harness::{Options, Where};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
hosts [--name NAME] <command>

  up N [--share FROM[:TO]]… [--hide FOLDER]… [--no-decoys]
                    head and node1 to nodeN; the current folder is /job on all of them,
                    and head has this build's rlaunch
  exec HOST [--] COMMAND…
                    on this terminal, as root, in the home folder
  list              hosts, addresses, and what runs there
  fault unplug|plug HOST NIC | black-hole|heal|kill|power-off|boot HOST
        split HOST,… HOST,… | join
  down              all of it gone
  keep N …          as up, but stays in the foreground
  launch [N] [--rounds R] [--mpirun PATH]
                    time until a program has run on N new hosts, against mpirun and ssh
  link [--rounds R] what rperf moves between two hosts over links of 1 and 5 Gb/s, and over two
                    links, against iperf3

--name: several clusters at a time; they may have the same addresses. Default: hand.
";

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let name = match words.iter().position(|word| word == "--name") {
        Some(0) if words.len() > 1 => {
            let name = words.remove(1);
            words.remove(0);
            name
        }
        _ => "hand".to_owned(),
    };
    match run(&name, &words) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("hosts: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(name: &str, words: &[String]) -> Result<ExitCode, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["up", rest @ ..] => keep::start_in_background(name, &options(rest)?, rest),
        ["keep", rest @ ..] => keep::run(name, &options(rest)?),
        ["exec", host, "--", command @ ..] | ["exec", host, command @ ..] => {
            ask::exec(name, host, command)
        }
        ["launch", rest @ ..] => launch::Launch::parse(rest)?.run(),
        ["link", rest @ ..] => link::Link::parse(rest)?.run(),
        ["list"] => ask::show(name, &["list"]),
        ["fault", fault @ ..] if !fault.is_empty() => {
            let request: Vec<&str> = std::iter::once("fault")
                .chain(fault.iter().copied())
                .collect();
            ask::show(name, &request)
        }
        ["down"] => ask::down(name),
        [] | ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!(
            "cannot make sense of `{}`\n\n{HELP}",
            other.join(" ")
        )),
    }
}

fn options(words: &[&str]) -> Result<Options, String> {
    let [count, rest @ ..] = words else {
        return Err(format!("how many hosts?\n\n{HELP}"));
    };
    let count = count
        .parse()
        .map_err(|_| format!("`{count}` is no number of hosts"))?;
    let here = std::env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut options = Options::new(count).share(here, "/job");
    let build = program.parent().map(PathBuf::from).unwrap_or_default();
    if build.join("rlaunch").exists() {
        options = options.rlaunch_on_head(build);
    }
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{word} needs a value"));
        match *word {
            "--share" => {
                let value = value()?;
                let (from, to) = value.split_once(':').unwrap_or((value, value));
                options = options.share_on(Where::Everywhere, from, to);
            }
            "--hide" => options = options.hide(value()?),
            "--no-decoys" => options.decoys = false,
            other => return Err(format!("no option `{other}`\n\n{HELP}")),
        }
    }
    Ok(options)
}
