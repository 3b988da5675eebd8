//! librlaunch.so as a C program sees it: what it exports, what the header says, and programs built
//! with cc.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use rlaunch_wire::{DType, Op};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const HEADER: &str = include_str!("../include/rlaunch.h");

/// Cargo's folder of this build, where the library lies beside the test programs.
fn folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_path_buf()
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// Compiles a C program as strictly as a user might.
fn compile(program: &str, name: &str) -> PathBuf {
    let executable = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    output(
        Command::new("cc")
            .args([
                "-std=c11",
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                "-I",
            ])
            .args([source("include"), source(program)])
            .arg("-L")
            .arg(folder())
            .args(["-lrlaunch", "-o"])
            .arg(&executable),
    );
    executable
}

fn start(executable: &Path, rank: u32, size: u32, port: u16) -> Child {
    Command::new(executable)
        .env_clear()
        .env("LD_LIBRARY_PATH", folder())
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", size.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
        .env("RLAUNCH_TIMEOUT", "30")
        .env("RLAUNCH_INIT_TIMEOUT", "30")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Both of the runtime's timeouts bound this.
fn run(executable: &Path, size: u32) -> Vec<Output> {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let ranks: Vec<Child> = (0..size)
        .map(|rank| start(executable, rank, size, port))
        .collect();
    ranks
        .into_iter()
        .map(|rank| rank.wait_with_output().unwrap())
        .collect()
}

/// Function names that the header declares.
fn declared() -> BTreeSet<&'static str> {
    let calls = HEADER
        .lines()
        .filter(|line| !line.trim_start().starts_with(['/', '*', ' ']));
    calls
        .filter_map(|line| {
            let (before, _) = line.split_once('(')?;
            Some(before.rsplit([' ', '*']).next().unwrap())
        })
        .collect()
}

#[test]
fn exports_are_what_the_header_declares() {
    let library = folder().join("librlaunch.so");
    let symbols = output(
        Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(library),
    );
    let exported: BTreeSet<&str> = symbols
        .lines()
        .map(|line| line.split(' ').next_back().unwrap())
        .collect();
    assert!(
        exported.iter().all(|name| name.starts_with("rl_")),
        "{exported:?}"
    );
    assert_eq!(exported, declared());
}

#[test]
fn codes_of_the_header_are_the_wires() {
    let has = |name: &str, code: u8| {
        let words = format!("RL_{} = {code}", name.to_uppercase());
        assert!(HEADER.contains(&words), "{words}");
    };
    DType::ALL
        .iter()
        .for_each(|dtype| has(dtype.name(), dtype.code()));
    Op::ALL.iter().for_each(|op| has(op.name(), op.code()));
}

/// tokio and tonic belong to the launcher; a training process loads neither.
#[test]
fn no_launcher_code_is_inside() {
    let library = std::fs::read(folder().join("librlaunch.so")).unwrap();
    for word in ["tokio", "tonic", "hyper", "libssh2"] {
        let found = library
            .windows(word.len())
            .any(|bytes| bytes == word.as_bytes());
        assert!(!found, "{word} in librlaunch.so");
    }
}

#[test]
fn every_call_works_from_c() {
    let executable = compile("tests/calls.c", "calls");
    for size in [1, 2, 3] {
        for (rank, output) in run(&executable, size).iter().enumerate() {
            assert!(
                output.status.success(),
                "rank {rank} of {size}: {}",
                text(output)
            );
            assert!(text(output).contains("all well"), "{}", text(output));
        }
    }
}

#[test]
fn the_example_runs() {
    let executable = compile("examples/hello.c", "hello");
    let outputs = run(&executable, 2);
    assert!(text(&outputs[1]).contains("hello from rank 1 of 2 (local rank 1 of 2)"));
    assert!(
        text(&outputs[0]).contains("the sum over all ranks: 3 3 3 3"),
        "{}",
        text(&outputs[0])
    );
}

#[test]
fn the_header_is_fine_in_cplusplus() {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no c++ here");
        return;
    }
    output(
        Command::new("c++")
            .args(["-fsyntax-only", "-Wall", "-Werror", "-x", "c++"])
            .arg(source("include/rlaunch.h")),
    );
}
