//! librlaunch.so as a C program sees it: what it exports, what the header says, and programs built
//! with cc.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use rlaunch_wire::{DType, Op};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

const HEADER: &str = include_str!("../include/rlaunch.h");
const VERSION: &str = env!("CARGO_PKG_VERSION");
const MAJOR: &str = env!("CARGO_PKG_VERSION_MAJOR");

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

/// The library under the names that the linker and the loader look for, with its pkg-config file.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefix");
        let _ = std::fs::remove_dir_all(&prefix);
        std::fs::create_dir_all(prefix.join("lib/pkgconfig")).unwrap();
        let link = |from: PathBuf, to: &str| symlink(from, prefix.join(to)).unwrap();
        link(source("include"), "include");
        let library = folder().join("librlaunch.so");
        link(library.clone(), "lib/librlaunch.so");
        link(library, &format!("lib/librlaunch.so.{MAJOR}"));
        let description = include_str!("../rlaunch.pc.in").replace("@VERSION@", VERSION);
        std::fs::write(prefix.join("lib/pkgconfig/rlaunch.pc"), description).unwrap();
        prefix
    })
}

/// What pkg-config tells a compiler.
fn flags() -> Vec<String> {
    let told = output(
        Command::new("pkg-config")
            .args(["--cflags", "--libs", "rlaunch"])
            .env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")),
    );
    told.split_whitespace().map(str::to_owned).collect()
}

/// Compiles a C program as strictly as a user might.
fn compile(program: &str, name: &str) -> PathBuf {
    let executable = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    output(
        Command::new("cc")
            .args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra"])
            .args(["-Wpedantic", "-Werror", "-pthread"])
            .arg(source(program))
            .args(flags())
            .args(["-lm", "-o"])
            .arg(&executable),
    );
    executable
}

fn start(executable: &Path, rank: u32, size: u32, port: u16) -> Child {
    Command::new(executable)
        .env_clear()
        .env("LD_LIBRARY_PATH", prefix().join("lib"))
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
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    calls
        .filter(|line| !line.starts_with("typedef"))
        .filter_map(|line| {
            let (before, _) = line.split_once('(')?;
            Some(before.rsplit([' ', '*']).next().unwrap())
        })
        .collect()
}

/// The program says "all well" on each of so many ranks.
fn all_well(program: &str, sizes: &[u32]) {
    let executable = compile(&format!("tests/{program}.c"), program);
    for size in sizes {
        for (rank, output) in run(&executable, *size).iter().enumerate() {
            let said = text(output);
            let well = output.status.success() && said.contains("all well");
            assert!(well, "{program}, rank {rank} of {size}: {said}");
        }
    }
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
fn the_loader_finds_it_by_its_major_version() {
    let library = folder().join("librlaunch.so");
    let listed = output(Command::new("readelf").arg("-d").arg(library));
    let name = format!("Library soname: [librlaunch.so.{MAJOR}]");
    assert!(listed.contains(&name), "{listed}");
}

#[test]
fn codes_of_the_header_are_the_wires() {
    let has = |name: &str, code: u8| {
        let words = format!("RL_{} = {code},", name.to_uppercase());
        assert!(HEADER.contains(&words), "{words}");
    };
    DType::ALL
        .iter()
        .for_each(|dtype| has(dtype.name(), dtype.code()));
    // The two others are made by functions.
    let named = Op::ALL
        .iter()
        .filter(|op| !matches!(op, Op::PremulSum | Op::User));
    named.for_each(|op| has(op.name(), op.code()));
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
fn collectives() {
    all_well("collectives", &[1, 2, 3]);
}

#[test]
fn operations() {
    all_well("operations", &[1, 2, 3]);
}

#[test]
fn refusals() {
    all_well("refusals", &[1, 2]);
}

#[test]
fn mismatch() {
    all_well("mismatch", &[2, 3]);
}

#[test]
fn point_to_point() {
    all_well("point", &[1, 2, 3]);
}

#[test]
fn buffers() {
    all_well("buffers", &[1, 2, 3]);
}

#[test]
fn communicators() {
    all_well("communicators", &[1, 2, 3]);
}

#[test]
fn abort() {
    all_well("abort", &[1, 2, 3]);
}

/// What rank 0, or the rank given, prints in an example.
fn example(name: &str, size: u32, expected: &[(usize, &str)]) {
    let outputs = run(&compile(&format!("examples/{name}.c"), name), size);
    for (rank, words) in expected {
        let said = text(&outputs[*rank]);
        assert!(said.contains(words), "{name}, rank {rank}: {said}");
    }
}

#[test]
fn example_hello() {
    let greeting = "hello from rank 1 of 2 (local rank 1 of 2)";
    let sum = "the sum over all ranks: 3 3 3 3";
    example("hello", 2, &[(1, greeting), (0, sum)]);
}

#[test]
fn example_allreduce() {
    example("allreduce", 3, &[(0, "the average of ranks 0 to 2 is 1")]);
}

#[test]
fn example_ring() {
    example("ring", 4, &[(0, "rank 3 brought 6")]);
}

#[test]
fn example_shrink() {
    let first = "rank 0 of 3 is now rank 0 of 2";
    example(
        "shrink",
        3,
        &[(0, first), (1, "rank 1 of 3 is now rank 1 of 2")],
    );
}

#[test]
fn example_overlap() {
    example("overlap", 2, &[(0, "layer 0: 1\n"), (0, "layer 3: 7\n")]);
}

/// Every program of docs/guide/c.md, as it stands.
#[test]
fn programs_of_the_guide() {
    let guide = include_str!("../../../docs/guide/c.md");
    let programs: Vec<&str> = guide.split("```c\n").skip(1).collect();
    assert!(programs.len() >= 5);
    for (number, rest) in programs.iter().enumerate() {
        let (program, _) = rest.split_once("```").unwrap();
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guide{number}.c"));
        std::fs::write(&path, program).unwrap();
        let executable = compile(path.to_str().unwrap(), &format!("guide{number}"));
        for (rank, output) in run(&executable, 2).iter().enumerate() {
            let said = text(output);
            assert!(output.status.success(), "rank {rank}: {said}\n{program}");
        }
    }
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
