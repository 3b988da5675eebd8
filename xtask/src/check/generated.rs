//! Files made from others: `cargo x gen` makes them, `--check` compares.

use crate::{paths, sh};

/// A generator's package, what it makes, and from what.
const GENERATED: [(&str, &str, &str); 2] = [
    (
        "rlaunch-control-gen",
        "runtime/control/src/generated/rlaunch.v1.rs",
        "runtime/control/proto",
    ),
    (
        "rlaunch-c-gen",
        "bindings/c/include/rlaunch.h",
        "bindings/c/src",
    ),
];

pub fn run(arguments: &[String]) -> Result<(), String> {
    let only_check = match arguments {
        [] => false,
        [word] if word == "--check" => true,
        _ => return Err("usage: cargo x gen [--check]".to_owned()),
    };
    for (generator, made, from) in GENERATED {
        let file = paths::root().join(made);
        let before = std::fs::read(&file).unwrap_or_default();
        sh::run(&mut sh::cargo(["run", "--quiet", "--package", generator]))?;
        let after = std::fs::read(&file).map_err(|error| format!("{made}: {error}"))?;
        if only_check && before != after {
            std::fs::write(&file, before).map_err(|error| format!("{made}: {error}"))?;
            return Err(format!("{made} does not fit {from}: run `cargo x gen`"));
        }
    }
    Ok(())
}
