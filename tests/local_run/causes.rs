//! The verdict's first line: what is behind an exit status, with evidence.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use nix::libc;

use super::{Run, finish, ranks, rlaunch};

fn python(script: &str) -> Run {
    finish(rlaunch().args(["-np", "1", "--", "python3", "-c", script]))
}

#[test]
fn pythons_last_line_is_told() {
    let run = python("import sys; print('before'); raise ValueError('the loss is NaN')");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let expected = "failed with exit code 1: ValueError: the loss is NaN\n";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
}

/// All ranks find the same mistake and one tells it: that one is named, not the quickest.
#[test]
fn of_equal_failures_the_one_that_tells_is_named() {
    let script = "if [ $RANK = 0 ]; then sleep 0.05; echo no such file: data >&2; fi; exit 4";
    let run = ranks(3, &[], script);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    let verdict = &run.stderr[run.stderr.find("rlaunch: ").unwrap()..];
    assert!(verdict.starts_with("rlaunch: rank 0 on"), "{verdict}");
    assert!(verdict.contains("| no such file: data"), "{verdict}");
}

#[test]
fn of_several_programs_the_one_is_told() {
    let words = [
        "--oversubscribe",
        "-np",
        "1",
        "sleep",
        "100",
        ":",
        "-np",
        "1",
        "false",
    ];
    let run = finish(rlaunch().args(words));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let words = "after its start; program 1 (false)\n";
    assert!(run.stderr.contains(words), "{}", run.stderr);
}

/// Rank 0's exception came first, but its end takes long; rank 1 fails by that.
#[test]
fn an_error_before_the_first_end_is_told() {
    let script = "\
import os, sys, time, traceback
if os.environ['RANK'] == '0':
    try: raise OSError('disk is gone')
    except OSError: traceback.print_exc()
    time.sleep(100)
time.sleep(0.5)
sys.exit(6)";
    let mut command = rlaunch();
    command.args(["-np", "2", "--oversubscribe", "--", "python3", "-c", script]);
    let run = finish(&mut command);
    assert_eq!(run.code, Some(6), "{}", run.stderr);
    assert!(
        run.stderr.contains("rank 0 on localhost had printed "),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("before: OSError: disk is gone"),
        "{}",
        run.stderr
    );
}

fn program(directory: &Path, bytes: &[u8]) -> String {
    let path = directory.join("program");
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The kernel says "no such file" of a file that is there.
#[test]
fn what_a_program_needs_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut other_machine = std::fs::read("/bin/true").unwrap();
    other_machine[18..20].copy_from_slice(&[40, 0]);
    let mut other_library = std::fs::read("/bin/true").unwrap();
    let loader = b"/lib64/ld-linux-x86-64.so.2";
    let at = other_library
        .windows(loader.len())
        .position(|window| window == loader);
    if let Some(at) = at {
        other_library[at + 5] = b'X';
    }
    let cases: [(&[u8], i32, &str); 6] = [
        (b"#!/no/such/sh -e\n", 127, "script's interpreter /no/such/sh: No such file"),
        (b"#!/bin/sh\r\necho\r\n", 127, "script's interpreter /bin/sh\\u{d}: No such file"),
        (b"#!/usr/bin/env python-9\n", 127, "failed with exit code 127: no interpreter python-9"),
        (&other_machine, 126, "program for another machine"),
        (&other_library, 127, "program's loader /lib6X"),
        (
            b"#!/bin/sh\necho $0: error while loading shared libraries: libx.so.1: cannot open >&2; exit 127",
            127,
            "failed with exit code 127: no shared library libx.so.1 there",
        ),
    ];
    for (bytes, code, words) in cases {
        if words.contains("loader") && at.is_none() {
            continue;
        }
        let path = program(directory.path(), bytes);
        let run = finish(rlaunch().args(["-np", "1", &path]));
        assert_eq!(run.code, Some(code), "{words}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
}

/// A memory group of its own with this limit; None where none can be made here.
struct MemoryGroup(std::path::PathBuf);

impl MemoryGroup {
    fn new(limit_bytes: u32) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
        let mounted = |kind: &str, option: &str| {
            let mut lines = mounts
                .lines()
                .map(|line| line.split(' ').collect::<Vec<_>>());
            let line = lines.find(|line| {
                line[2] == kind && (option.is_empty() || line[3].split(',').any(|it| it == option))
            });
            line.map(|line| line[1].to_owned())
        };
        let (root, file) = match (mounted("cgroup", "memory"), mounted("cgroup2", "")) {
            (Some(root), _) => (root, "memory.limit_in_bytes"),
            (None, Some(root)) => (root, "memory.max"),
            (None, None) => return None,
        };
        let folder = Path::new(&root).join(format!("rlaunch-test-{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        std::fs::write(group.0.join(file), limit_bytes.to_string()).ok()?;
        // Else the system pages instead.
        for file in ["memory.swap.max", "memory.memsw.limit_in_bytes"] {
            std::fs::write(
                group.0.join(file),
                if file.contains("swap") { "0" } else { "" },
            )
            .ok();
        }
        Some(group)
    }

    /// rlaunch inside it.
    fn rlaunch(&self) -> Command {
        let mut command = Command::new("sh");
        let script = "echo $$ > \"$0/cgroup.procs\"; exec \"$@\"";
        command
            .args(["-c", script])
            .arg(&self.0)
            .arg(env!("CARGO_BIN_EXE_rlaunch"));
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        command
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Its last process may be a moment from gone.
        for _ in 0..200 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// By the real killer of the kernel, of a rank and of a rank's child.
#[test]
fn the_out_of_memory_killer_is_named() {
    let Some(group) = MemoryGroup::new(60_000_000) else {
        eprintln!("SKIPPED: no memory control group can be made here");
        return;
    };
    let eat = "x = bytearray(200_000_000)";
    let run = finish(
        group
            .rlaunch()
            .args(["-np", "1", "--", "python3", "-c", eat]),
    );
    assert_eq!(run.code, Some(137), "{}", run.stderr);
    let words = "was ended by SIGKILL: out of memory, by the kernel (limit of its control group: \
                 57.2 MiB)";
    assert!(run.stderr.contains(words), "{}", run.stderr);
    let script = format!("python3 -c '{eat}'; exit 5");
    let run = finish(
        group
            .rlaunch()
            .args(["-np", "1", "--", "sh", "-c", &script]),
    );
    assert_eq!(run.code, Some(5), "{}", run.stderr);
    let words = "the kernel killed a process of the job there, out of memory (57.2 MiB)";
    assert!(run.stderr.contains(words), "{}", run.stderr);
    // Killed by somebody else there: nothing of memory is claimed.
    drop(group);
    let run = ranks(1, &[], "kill -9 $$");
    assert!(!run.stderr.contains("by the kernel"), "{}", run.stderr);
}

#[test]
fn a_full_shared_memory_is_named() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED: mounting a small /dev/shm takes root");
        return;
    }
    let write = "\
import mmap
f = open('/dev/shm/x', 'w+b')
f.truncate(1 << 22)
mmap.mmap(f.fileno(), 1 << 22).write(b'x' * (1 << 22))";
    let mut command = Command::new("unshare");
    let mount = "mount -t tmpfs -o size=1m none /dev/shm && exec \"$@\"";
    command.args(["-m", "sh", "-c", mount, "sh", env!("CARGO_BIN_EXE_rlaunch")]);
    let run = finish(command.args(["-np", "1", "--", "python3", "-c", write]));
    assert_eq!(run.code, Some(128 + libc::SIGBUS), "{}", run.stderr);
    let words = "was ended by SIGBUS: /dev/shm (1 MiB) was full";
    assert!(run.stderr.contains(words), "{}", run.stderr);
}

#[test]
fn a_core_is_told_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = rlaunch();
    command.current_dir(directory.path());
    let run = finish(command.args([
        "-np",
        "1",
        "--",
        "sh",
        "-c",
        "ulimit -c unlimited; kill -SEGV $$",
    ]));
    assert_eq!(run.code, Some(139), "{}", run.stderr);
    assert!(
        run.stderr.contains("was ended by SIGSEGV"),
        "{}",
        run.stderr
    );
    if run.stderr.contains("and dumped core") {
        assert!(run.stderr.contains("its core "), "{}", run.stderr);
    }
}
