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

/// What the launcher itself prints of its options, by the words after `rlaunch settings`.
const PRINTED: [(&str, &str); 2] = [
    ("--names", "runtime/wire/src/setting/launcher.rs"),
    ("--markdown", "docs/guide/options.md"),
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
    for (word, made) in PRINTED {
        let file = paths::root().join(made);
        let mut print = sh::cargo(["run", "--quiet", "--package", "rlaunch", "--bin", "rlaunch"]);
        let text = sh::output(print.args(["--", "settings", word]))?;
        let text = format!("{}\n", text.trim_end());
        if std::fs::read_to_string(&file).is_ok_and(|before| before == text) {
            continue;
        }
        if only_check {
            return Err(format!(
                "{made} does not fit the options: run `cargo x gen`"
            ));
        }
        std::fs::write(&file, text).map_err(|error| format!("{made}: {error}"))?;
    }
    Ok(())
}
