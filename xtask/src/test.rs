//! `cargo x test`: sets up what the tests need, runs them all, and says which could not run here.
//!
//! ```text
//! check       format, clippy, layers, tidy
//! rust        cargo test of the whole workspace; host tests need root (namespaces)
//! python      bindings/python/tests, with the staged module
//! ```
//! The last line counts suites: `N passed, N failed`.

use crate::{check, paths, python_env, sh, stage, system, torch};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

type Step<'a> = (&'a str, Box<dyn FnOnce() -> Result<(), String> + 'a>);

pub fn run(arguments: &[String]) -> Result<(), String> {
    system::ensure_build()?;
    system::ensure_hosts()?;
    let python = python_env::ensure(&paths::cache())?;
    python_env::add(&python, &[("ml_dtypes", "ml_dtypes"), ("mypy", "mypy")]);
    let torch = torch::ensure(&paths::cache());
    if let Err(reason) = &torch {
        eprintln!("x test: SKIPPED what needs torch: {reason}");
    }
    let torch = torch.ok();
    sh::run(&mut sh::cargo(["build", "--workspace", "--all-targets"]))?;
    stage::stage(&paths::target())?;

    let steps: Vec<Step<'_>> = vec![
        ("check", Box::new(|| check::run(&[]))),
        (
            "rust",
            Box::new(|| rust_tests(&python, torch.as_deref(), arguments)),
        ),
        (
            "python",
            Box::new(|| python_tests(&python, torch.as_deref())),
        ),
    ];
    report(steps)
}

/// Runs all steps, also after one has failed, so that one run shows everything.
fn report(steps: Vec<Step<'_>>) -> Result<(), String> {
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, step) in steps {
        let start = Instant::now();
        match step() {
            Ok(()) => {
                eprintln!(
                    "x test: {name} passed in {:.0} s",
                    start.elapsed().as_secs_f64()
                );
                passed += 1;
            }
            Err(error) => {
                eprintln!("x test: {name} FAILED: {error}");
                failed.push(name);
            }
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

fn rust_tests(python: &Path, torch: Option<&Path>, filter: &[String]) -> Result<(), String> {
    let mut tests = sh::cargo(["test", "--workspace", "--no-fail-fast"]);
    tests.arg("--").args(filter);
    sh::run(with_pythons(&mut tests, python, torch))
}

fn python_tests(python: &Path, torch: Option<&Path>) -> Result<(), String> {
    let tests = paths::root().join("bindings/python/tests");
    let mut runner = Command::new(python);
    runner
        .args(["-m", "unittest", "discover", "--start-directory"])
        .arg(&tests)
        .env("PYTHONPATH", module_path())
        .env("RLAUNCH", paths::built("rlaunch"))
        .current_dir(paths::root());
    sh::run(with_pythons(&mut runner, python, torch))
}

/// Where the tests find a python with numpy, and one with torch.
fn with_pythons<'c>(
    command: &'c mut Command,
    python: &Path,
    torch: Option<&Path>,
) -> &'c mut Command {
    command.env("RLAUNCH_TEST_PYTHON", python);
    if let Some(torch) = torch {
        command.env("RLAUNCH_TEST_TORCH", torch);
    }
    command
}

fn module_path() -> PathBuf {
    paths::built("python")
}
