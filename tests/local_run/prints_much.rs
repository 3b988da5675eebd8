//! Much output: all of it arrives, through readers that stop, in little memory.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{rlaunch, wait_until};

/// Neither launcher nor agent may have more, in KiB, however much is printed.
const MEMORY_MAX_KIB: u64 = 100 * 1024;

/// `-np RANKS sh -c SCRIPT`, its stdout to be read.
fn start(ranks: u32, script: &str) -> Child {
    rlaunch()
        .args([
            "--oversubscribe",
            "-np",
            &ranks.to_string(),
            "--",
            "sh",
            "-c",
            script,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The most memory that the process and its children of this program ever had.
fn peak_kib(pid: u32) -> u64 {
    let text = |pid: u32, name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
    let children = text(pid, &format!("task/{pid}/children")).unwrap_or_default();
    let ours = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .filter(|child| text(*child, "comm").is_ok_and(|name| name.starts_with("rlaunch")));
    let peak = |pid: u32| {
        let status = text(pid, "status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
    };
    let all = std::iter::once(pid).chain(ours);
    all.filter_map(peak).max().unwrap_or(0)
}

/// A reader that takes nothing for a while: ranks print into credit and spill, and the memory is
/// bounded all the same. `RLAUNCH_TEST_OUTPUT_MB` for more a rank than in everyday tests.
#[test]
fn much_output_takes_little_memory() {
    const RANKS: u32 = 8;
    let megabytes = std::env::var("RLAUNCH_TEST_OUTPUT_MB");
    let megabytes: u64 = megabytes.map_or(6, |text| text.parse().unwrap());
    let line = "0123456789".repeat(9) + "123456789";
    let bytes = megabytes * 1_000_000;
    let mut child = start(RANKS, &format!("yes {line} | head -c {bytes}"));
    let pid = child.id();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let watch = std::thread::spawn(move || {
        let mut peak = 0;
        while !is_over.load(Ordering::Relaxed) {
            peak = peak.max(peak_kib(pid));
            std::thread::sleep(Duration::from_millis(20));
        }
        peak
    });
    std::thread::sleep(Duration::from_millis(700));
    let begin = Instant::now();
    let (mut stdout, mut buffer, mut count) = (child.stdout.take().unwrap(), vec![0; 1 << 20], 0);
    let expected = line + "\n";
    let mut carry = Vec::new();
    loop {
        let read = stdout.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        count += read as u64;
        carry.extend_from_slice(&buffer[..read]);
        let whole = carry.len() / 100 * 100;
        assert!(
            carry[..whole]
                .chunks(100)
                .all(|line| line == expected.as_bytes())
        );
        carry.drain(..whole);
    }
    let took = begin.elapsed().as_secs_f64();
    assert!(child.wait().unwrap().success());
    over.store(true, Ordering::Relaxed);
    let peak = watch.join().unwrap();
    assert_eq!(count, u64::from(RANKS) * bytes);
    let speed = count as f64 / took / 1e6;
    eprintln!("{count} bytes at {speed:.0} MB/s, at most {peak} KiB of memory");
    assert!(peak > 0 && peak < MEMORY_MAX_KIB, "{peak} KiB");
}

/// A rank whose output nobody takes waits, and no other one does.
#[test]
fn a_stalled_reader_stops_only_who_prints() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let script = format!(
        "cd {}; if [ $RANK = 0 ]; then yes | head -c 90000000; touch printed; \
         else i=0; while [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); echo $i > steps; done; touch went-on; \
         while [ ! -e printed ]; do sleep 0.05; done; fi",
        directory.path().display()
    );
    let mut child = start(2, &script);
    wait_until("the end of rank 1's work", || file("went-on").exists());
    assert!(!file("printed").exists(), "rank 0 did not have to wait");
    let mut stdout = child.stdout.take().unwrap();
    let count = std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success() && count == 90_000_000);
    assert!(Path::new(&file("printed")).exists());
}

/// `| less` that shows stdout and takes no more of it: stderr is seen all the same.
#[test]
fn a_stalled_stdout_does_not_hold_stderr() {
    let script = "if [ $RANK = 0 ]; then yes | head -c 3000000; else sleep 0.5; echo seen >&2; fi";
    let mut child = rlaunch()
        .args(["--oversubscribe", "-np", "2", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = [0; 5];
    child.stderr.take().unwrap().read_exact(&mut text).unwrap();
    assert_eq!(&text, b"seen\n");
    let mut stdout = child.stdout.take().unwrap();
    let count = std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success() && count == 3_000_000);
}

/// A full disk: what is printed waits for room, and nothing is lost once there is some.
#[test]
fn a_full_disk_is_waited_for() {
    use nix::mount::{MsFlags, mount, umount};
    let directory = tempfile::tempdir().unwrap();
    let options = Some("size=1m");
    let small = mount(
        Some("tmpfs"),
        directory.path(),
        Some("tmpfs"),
        MsFlags::empty(),
        options,
    );
    if let Err(error) = small {
        return eprintln!("SKIPPED: no small file system can be made: {error}");
    }
    let (ballast, log) = (
        directory.path().join("ballast"),
        directory.path().join("log"),
    );
    std::fs::write(&ballast, vec![0; 900 * 1024]).unwrap();
    let mut child = rlaunch()
        .args(["-np", "1", "--", "sh", "-c", "seq 1 100000"])
        .stdout(std::fs::File::create(&log).unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut expected = String::new();
    for number in 1..=100_000 {
        expected.push_str(&format!("{number}\n"));
    }
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut stderr = String::new();
    while !stderr.contains("waits for room") && told.read_line(&mut stderr).unwrap() > 0 {}
    std::fs::remove_file(&ballast).unwrap();
    let status = child.wait().unwrap();
    told.read_to_string(&mut stderr).unwrap();
    let written = std::fs::read_to_string(&log).unwrap();
    umount(directory.path()).unwrap();
    assert!(status.success() && written == expected, "{stderr}");
    assert!(
        stderr.contains("stdout: No space left on device"),
        "{stderr}"
    );
    assert!(stderr.contains("waits for room"), "{stderr}");
}
