//! `cargo x demo`: the main job, here, with nothing installed by hand and no SSH.

use crate::{paths, python_env, sh, stage, system};
use std::process::Command;

pub fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(word) = arguments.first() {
        return Err(format!("takes no arguments, found `{word}`"));
    }
    system::ensure_build()?;
    sh::run(&mut sh::cargo(["build"]))?;
    stage::stage(&paths::target())?;
    let python = python_env::ensure(&paths::cache())?;
    let mut job = Command::new(paths::built("rlaunch"));
    job.args(["-np", "4", "--oversubscribe", "--python"])
        .arg(&python)
        .arg("examples/train.py")
        .current_dir(paths::root());
    println!(
        "$ {} -np 4 --oversubscribe --python {} examples/train.py",
        paths::built("rlaunch").display(),
        python.display()
    );
    sh::run(&mut job)
}
