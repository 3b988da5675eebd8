//! Files made from others: `cargo x gen` makes them, `--check` compares.

use crate::{paths, sh};

const GENERATED: &str = "runtime/control/src/generated/rlaunch.v1.rs";

pub fn run(arguments: &[String]) -> Result<(), String> {
    let only_check = match arguments {
        [] => false,
        [word] if word == "--check" => true,
        _ => return Err("usage: cargo x gen [--check]".to_owned()),
    };
    let file = paths::root().join(GENERATED);
    let before = std::fs::read(&file).unwrap_or_default();
    sh::run(&mut sh::cargo([
        "run",
        "--quiet",
        "--package",
        "rlaunch-control-gen",
    ]))?;
    let after = std::fs::read(&file).map_err(|error| format!("{GENERATED}: {error}"))?;
    if only_check && before != after {
        std::fs::write(&file, before).map_err(|error| format!("{GENERATED}: {error}"))?;
        return Err(format!(
            "{GENERATED} does not fit runtime/control/proto: run `cargo x gen`"
        ));
    }
    Ok(())
}
