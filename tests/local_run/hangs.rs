//! A program on a file system that does not answer.
//!
//! It is one of FUSE whose server never says a word: whoever looks for a name there waits, until the server
//! is gone. Only the launcher and what it starts see it, so that nothing of it is left.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::{finish, rlaunch};

/// In a fresh child: this folder, for it and its children, is of such a file system.
fn freeze(options: &str, folder: &Path) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let (none, private) = (None::<&Path>, MsFlags::MS_REC | MsFlags::MS_PRIVATE);
    mount(none, "/", none, private, none)?;
    let kind = Some(Path::new("fuse"));
    mount(kind, folder, kind, MsFlags::empty(), Some(options))?;
    Ok(())
}

/// Neither launcher and heartbeats nor the other ranks, nor the end of all of them.
#[test]
fn an_exec_that_hangs_holds_nobody_else_up() {
    let serve = || File::options().read(true).write(true).open("/dev/fuse");
    if !nix::unistd::geteuid().is_root() || serve().is_err() {
        eprintln!("SKIPPED: needs root and /dev/fuse");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let frozen = place.path().join("frozen");
    fs::create_dir(&frozen).unwrap();
    let script = place.path().join("script");
    fs::write(&script, format!("#!{}/sh\n", frozen.display())).unwrap();
    Command::new("chmod")
        .arg("+x")
        .arg(&script)
        .status()
        .unwrap();
    for program in [frozen.join("program"), script] {
        let mut command = rlaunch();
        command
            .args([
                "--start-timeout",
                "5",
                "--host-timeout",
                "3",
                "--kill-after",
                "1",
            ])
            .args(["-np", "2", "--oversubscribe", "sh", "-c"])
            .arg("echo rank $RANK runs; sleep 100")
            .args([":", "-np", "1"])
            .arg(&program);
        let (server, folder) = (serve().unwrap(), frozen.clone());
        let fd = server.as_raw_fd();
        let options = format!("fd={fd},rootmode=40000,user_id=0,group_id=0");
        // SAFETY: system calls on what was made before; nothing is allocated.
        unsafe { command.pre_exec(move || freeze(&options, &folder)) };
        let run = finish(&mut command);
        let shown = program.display();
        assert_eq!(run.code, Some(125), "{shown}: {}", run.stderr);
        let told = "rank 2 was not started within 5 s (--start-timeout): localhost\n";
        assert!(run.stderr.contains(told), "{shown}: {}", run.stderr);
        for rank in ["rank 0 runs\n", "rank 1 runs\n"] {
            assert!(run.stdout.contains(rank), "{shown}: {}", run.stdout);
        }
        assert!(
            run.took < Duration::from_secs(20),
            "{shown}: {:?}",
            run.took
        );
    }
}
