//! rperf as ranks of a job without a launcher: what it prints, refuses, and exits with.

use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the kernel's own range, and apart for each test of this process.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = (std::process::id() % 300) as u16 * 40;
    20_000 + own + NEXT.fetch_add(20, Ordering::Relaxed)
}

fn rperf(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rperf"));
    command.args(words);
    // What a launcher above this test set would make it a rank of that job.
    for (name, _) in std::env::vars() {
        let foreign = ["OMPI_", "PMI", "SLURM_", "RLAUNCH_", "NCCL_TESTS_"];
        if foreign.iter().any(|start| name.starts_with(start)) {
            command.env_remove(name);
        }
    }
    command
}

fn start(ranks: u32, words: &[&str], more: &[(&str, &str)]) -> Vec<Child> {
    let port = free_port();
    let rank = |rank: u32| {
        rperf(words)
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", port.to_string())
            .env("WORLD_SIZE", ranks.to_string())
            .env("RANK", rank.to_string())
            .env("RLAUNCH_INIT_TIMEOUT", "30")
            .envs(more.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("rperf starts")
    };
    (0..ranks).map(rank).collect()
}

fn run(ranks: u32, words: &[&str], more: &[(&str, &str)]) -> Vec<Output> {
    let children = start(ranks, words, more);
    let outputs = children.into_iter().map(|child| child.wait_with_output());
    outputs.map(|output| output.expect("rperf ends")).collect()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn rank_0_prints_a_table_that_is_right() {
    let words = ["all_reduce", "-b", "8", "-e", "64K", "-f", "32", "-n", "3"];
    let outputs = run(2, &words, &[]);
    for output in &outputs {
        assert!(output.status.success(), "{}", error(output));
    }
    let text = out(&outputs[0]);
    let sizes: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(sizes, ["8", "256", "8192"]);
    assert!(text.contains("# Out of bounds values : 0 OK"), "{text}");
    assert_eq!(out(&outputs[1]), "", "only rank 0 speaks");
}

#[test]
fn every_type_and_test_of_moved_data_is_right() {
    for test in ["all_gather", "sendrecv", "latency", "hypercube", "barrier"] {
        let words = [test, "-b", "1K", "-e", "1K", "-n", "2", "-d", "all"];
        let outputs = run(2, &words, &[]);
        assert!(
            outputs[0].status.success(),
            "{test}: {}",
            error(&outputs[0])
        );
    }
}

#[test]
fn json_is_one_honest_document() {
    let words = [
        "all_reduce",
        "-b",
        "64",
        "-e",
        "64",
        "-n",
        "5",
        "-I",
        "--json",
    ];
    let outputs = run(2, &words, &[("SOME_SECRET", "x1y2z3")]);
    let text = out(&outputs[0]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["world"], 2);
    assert_eq!(document["correct"], true);
    let result = &document["results"][0];
    assert_eq!(result["in_place"]["wrong"], 0);
    assert!(result["out_of_place"]["time_us"].as_f64().unwrap() > 0.0);
    assert!(result["out_of_place"]["spread"]["p99_us"].is_f64());
    assert!(!text.contains("x1y2z3") && !text.contains("SOME_SECRET"));
}

#[test]
fn exit_codes_are_those_of_nccl_tests() {
    let words = ["all_reduce", "-b", "8", "-e", "8", "-n", "2"];
    let slow = run(2, &words, &[("NCCL_TESTS_MIN_BW", "100000")]);
    for output in &slow {
        assert_eq!(output.status.code(), Some(7), "{}", error(output));
    }
    let wrong = rperf(&["all_reduce", "-b", "x"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let root = run(2, &["broadcast", "-b", "8", "-e", "8", "-r", "5"], &[]);
    assert_eq!(root[0].status.code(), Some(1));
    assert!(error(&root[0]).contains("-r takes 0 to 1"));
}

#[test]
fn ranks_that_did_not_find_each_other_print_no_numbers() {
    // As a job whose launcher gave each rank a world of its own.
    let alone = rperf(&["all_reduce", "-b", "8", "-e", "8"])
        .env("RANK", "0")
        .env("WORLD_SIZE", "1")
        .env("OMPI_COMM_WORLD_SIZE", "2")
        .output()
        .unwrap();
    assert_eq!(alone.status.code(), Some(1));
    assert_eq!(out(&alone), "");
    let words = error(&alone);
    assert!(words.contains("did not find each other"), "{words}");
}

#[test]
fn mpirun_and_srun_need_no_other_variables() {
    let launched = |names: [&'static str; 3], more: &'static [(&'static str, &'static str)]| {
        let rank = |rank: u32| {
            rperf(&["all_reduce", "-b", "8", "-e", "8", "-n", "2"])
                .env(names[0], rank.to_string())
                .env(names[1], "2")
                .env(names[2], "2")
                .envs(more.iter().copied())
                .env("PMIX_NAMESPACE", format!("test-{}", std::process::id()))
                .env("RLAUNCH_INIT_TIMEOUT", "30")
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let children: Vec<_> = (0..2).map(rank).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{names:?}");
        }
    };
    let open_mpi = [
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ];
    launched(open_mpi, &[]);
    let slurm = ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"];
    launched(slurm, &[("SLURM_STEP_NUM_NODES", "1")]);
}

#[test]
fn saved_runs_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (json, svg, png) = (path("run.json"), path("a.svg"), path("b.png"));
    let words = [
        "all_reduce",
        "-b",
        "8",
        "-e",
        "8K",
        "-f",
        "4",
        "-n",
        "2",
        "-c",
        "0",
        "-J",
        &json,
        "--plot",
        &png,
    ];
    let outputs = run(2, &words, &[]);
    assert!(outputs[0].status.success(), "{}", error(&outputs[0]));
    assert!(std::fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    let drawn = rperf(&["plot", &format!("mine={json}"), "-o", &svg])
        .output()
        .unwrap();
    assert!(drawn.status.success(), "{}", error(&drawn));
    let text = std::fs::read_to_string(svg).unwrap();
    assert!(text.contains("mine: all_reduce, 2 ranks"), "{text}");
}

/// A mistake is told once, by rank 0, and before anything is measured.
#[test]
fn a_file_that_cannot_be_written_is_refused_at_once() {
    for flag in ["-J", "--plot"] {
        let name = match flag {
            "-J" => "/nowhere/out.json",
            _ => "/nowhere/out.svg",
        };
        let words = ["all_reduce", "-b", "8", "-e", "8", "-n", "2", flag, name];
        let outputs = run(2, &words, &[]);
        let text = error(&outputs[0]);
        assert!(
            text.contains("/nowhere/out") && text.contains("No such file"),
            "{text}"
        );
        for output in &outputs {
            assert_eq!(output.status.code(), Some(1));
        }
        let table = out(&outputs[0]);
        assert!(!table.contains("Out of bounds"), "{table}");
        assert_eq!(error(&outputs[1]), "", "only rank 0 speaks");
    }
}

#[test]
fn a_wrong_command_line_is_told_once() {
    for (words, wrong) in [
        (["all_reduce", "-b", "-8"], "'-8'"),
        (["all_reduce", "-q", "1"], "'-q'"),
    ] {
        let outputs = run(2, &words, &[]);
        for output in &outputs {
            assert_eq!(output.status.code(), Some(2));
        }
        let text = error(&outputs[0]);
        assert!(text.contains(wrong), "{text}");
        assert_eq!(error(&outputs[1]), "", "only rank 0 speaks");
    }
    let text = error(&run(1, &["all_reduce", "-b", "-8"], &[])[0]);
    assert!(text.contains("`-8` is no size"), "{text}");
}
