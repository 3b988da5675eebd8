//! What ranks find: variables, arguments, directory, input.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;

use super::{finish, ranks, rlaunch};

#[test]
fn ranks_know_who_they_are() {
    let script = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $GROUP_RANK \
                  $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE $MPI_LOCALRANKID $MASTER_ADDR";
    let run = ranks(2, &[], script);
    let mut lines: Vec<&str> = run.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["0 2 0 2 0 0 0 2 0 127.0.0.1", "1 2 1 2 0 0 1 2 1 127.0.0.1"],
        "{}",
        run.stderr
    );
}

/// torch's store must be able to bind it, with SO_REUSEADDR, and no other job gets it.
#[test]
fn the_master_port_is_free_for_rank_0() {
    let run = ranks(1, &[], "echo $MASTER_PORT");
    let port: u16 = run.stdout.trim().parse().unwrap();
    assert!(port > 0);
}

#[test]
fn variables_arrive_byte_for_byte() {
    let value = OsString::from_vec(b"a\nb 'c' \"d\" $HOME `e` \xff\xc3\xa9 =".to_vec());
    let mut command = rlaunch();
    command
        .env("ODD_VALUE", &value)
        .env("RANK", "77")
        .env("SLURM_PROCID", "5");
    let run = finish(command.args(["-np", "1", "-x", "GIVEN=x=y", "--", "sh", "-c",
        "printf %s \"$ODD_VALUE\" | od -An -tx1 | tr -d ' \\n'; echo; echo $GIVEN $RANK ${SLURM_PROCID-none}"]));
    let hex: String = value
        .into_vec()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(run.stdout, format!("{hex}\nx=y 0 none\n"), "{}", run.stderr);
}

#[test]
fn env_none_passes_only_what_is_asked_for() {
    let mut command = rlaunch();
    command.env("SECRET_THING", "1").env("WANTED", "2");
    let run = finish(command.args([
        "-np",
        "1",
        "--env",
        "none",
        "-x",
        "WANTED",
        "--",
        "/bin/sh",
        "-c",
        "echo ${SECRET_THING-none} $WANTED $RANK",
    ]));
    assert_eq!(run.stdout, "none 2 0\n", "{}", run.stderr);
}

#[test]
fn arguments_arrive_byte_for_byte() {
    let odd: [&[u8]; 7] = [b"a b", b"it's", b"$HOME", b"", b"x\ny", b"\xff\xfe", b"*"];
    let odd = odd.map(|bytes| OsString::from_vec(bytes.to_vec()));
    let mut command = rlaunch();
    command.args([
        "-np",
        "1",
        "--",
        "sh",
        "-c",
        "for a; do printf '<%s>' \"$a\" | od -An -c | tr -d ' \\n'; echo; done",
        "sh",
    ]);
    let run = finish(command.args(&odd));
    let expected = "<ab>\n<it's>\n<$HOME>\n<>\n<x\\ny>\n<377376>\n<*>\n";
    assert_eq!(run.stdout, expected, "{}", run.stderr);
}

#[test]
fn the_directory_is_this_one_or_wdir() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let expected = format!("{}\n", path.display());
    let mut command = rlaunch();
    let run = finish(command.current_dir(&path).args(["-np", "1", "pwd"]));
    assert_eq!(run.stdout, expected, "{}", run.stderr);
    let run = finish(rlaunch().args(["-np", "1", "-wdir"]).arg(&path).arg("pwd"));
    assert_eq!(run.stdout, expected, "{}", run.stderr);
}

fn with_input(options: &[&str], input: &[u8]) -> String {
    let mut command = rlaunch();
    command.args(["-np", "2", "--oversubscribe"]).args(options);
    command
        .args(["--", "sh", "-c", "cksum"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || pipe.write_all(&input).ok());
    let output = child.wait_with_output().unwrap();
    drop(writer.join());
    String::from_utf8(output.stdout).unwrap()
}

/// A `while read` loop around rlaunch keeps its input.
#[test]
fn input_is_not_read_unless_asked_for() {
    assert_eq!(with_input(&[], b"x\n"), "4294967295 0\n4294967295 0\n");
    let mut command = std::process::Command::new("sh");
    command.args([
        "-c",
        "printf '1\\n2\\n3\\n' | while read n; do \"$0\" -np 1 echo $n; done",
    ]);
    let run = finish(command.arg(env!("CARGO_BIN_EXE_rlaunch")));
    assert_eq!(run.stdout, "1\n2\n3\n", "{}", run.stderr);
}

/// More than may be under way at once, to the one rank that was named.
#[test]
fn input_reaches_its_rank_whole() {
    let input: Vec<u8> = (0..5_000_000u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let mut lines: Vec<String> = with_input(&["--stdin", "1"], &input)
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(lines.len(), 2);
    assert!(lines.contains(&"4294967295 0".to_owned()), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.ends_with(" 5000000")),
        "{lines:?}"
    );
}

#[test]
fn a_python_script_runs_under_python() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("hello.py");
    std::fs::write(
        &script,
        "import os, sys\nprint(os.environ['RANK'], sys.argv[1:])\n",
    )
    .unwrap();
    let run = finish(
        rlaunch()
            .args(["-np", "1"])
            .arg(&script)
            .args(["-x", "a b"]),
    );
    assert_eq!(run.stdout, "0 ['-x', 'a b']\n", "{}", run.stderr);
    let run = finish(
        rlaunch()
            .current_dir(directory.path())
            .args(["-np", "1", "-m", "hello", "y"]),
    );
    assert_eq!(run.stdout, "0 ['y']\n", "{}", run.stderr);
}

/// A rank's own terminal echoes, ours then does not; afterwards it does again.
#[test]
fn a_terminal_serves_a_rank_with_a_terminal() {
    use nix::sys::termios::{LocalFlags, tcgetattr};
    let pty = nix::pty::openpty(None, None).unwrap();
    let echoes = || {
        tcgetattr(&pty.slave)
            .unwrap()
            .local_flags
            .contains(LocalFlags::ECHO)
    };
    assert!(echoes());
    let mut child = rlaunch()
        .args(["-np", "1", "--stdin", "0", "--pty", "--", "sh", "-c"])
        .arg("printf 'ready? '; read x; echo \"got $x\"")
        .stdin(pty.slave.try_clone().unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut prompt = [0; 7];
    std::io::Read::read_exact(&mut output, &mut prompt).unwrap();
    assert!(!echoes());
    nix::unistd::write(&pty.master, b"abc\n").unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut output, &mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(rest.replace('\r', ""), "abc\ngot abc\n");
    assert!(echoes());
}

/// `--env-file`, patterns and `-x`: what is nearer to the person who types wins, byte for byte.
#[test]
fn variables_come_from_a_file_and_by_patterns() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("train.env");
    let text = b"A=file\nB='as it $is'\nexport C=\"two\\nlines\"\nBYTES=\xff\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let run = |options: &[&str]| {
        let mut command = rlaunch();
        command
            .env("NCCL_DEBUG", "INFO")
            .env("OTHER_THING", "1")
            .args(options);
        finish(command.args([
            "-np",
            "1",
            "sh",
            "-c",
            "printf %s \"$A|$B|$C|$NCCL_DEBUG|$OTHER_THING\"",
        ]))
    };
    let options = [
        "--env",
        "none",
        "-x",
        "NCCL_*",
        "-x",
        "A=typed",
        "--env-file",
        file,
    ];
    let found = run(&options);
    assert_eq!(
        found.stdout, "typed|as it $is|two\nlines|INFO|",
        "{}",
        found.stderr
    );
    let found = run(&["--env", "none", "-x", "NOBODY_*"]);
    assert!(
        found
            .stderr
            .contains("-x NOBODY_*: there is no such variable here")
    );
    std::fs::write(directory.path().join("bad"), "MASTER_ADDR=1\nA B\n").unwrap();
    let bad = directory.path().join("bad");
    let found = run(&["--env-file", bad.to_str().unwrap()]);
    assert_eq!(found.code, Some(2));
    assert!(
        found.stderr.contains("bad:1: MASTER_ADDR: rlaunch sets"),
        "{}",
        found.stderr
    );
    assert!(
        found.stderr.contains("bad:2: A B: `A B` is no name"),
        "{}",
        found.stderr
    );
}
