//! What no compiler looks at: file sizes, words, the thresholds that a crate's clippy.toml repeats.

use crate::{paths, sh};
use std::process::Command;

/// A file longer than this is read by nobody at a sitting.
const FILE_MAX_LINES: usize = 450;

/// Built at run time, so that this file does not hold them.
fn banned() -> Vec<(String, &'static str)> {
    vec![
        (format!("/{}/", "work"), "a path of one machine"),
        (format!("/{}/.", "root"), "a path of one machine"),
        (
            format!("{}.io/", "crates"),
            "a registry's host; name the package instead",
        ),
        (
            format!("{}.org/", "pypi"),
            "a registry's host; name the package instead",
        ),
        (
            format!("dbg{}", "!("),
            "left over from a search for a fault",
        ),
        ("<".repeat(7), "what a merge left"),
        (">".repeat(7), "what a merge left"),
        (format!("todo{}", "!("), "a stub"),
        (format!("unimplemented{}", "!("), "a stub"),
    ]
}

pub fn check() -> Result<(), String> {
    let mut wrong = Vec::new();
    let banned = banned();
    for file in tracked()? {
        let Ok(text) = std::fs::read_to_string(paths::root().join(&file)) else {
            continue; // not text, or removed and not yet committed
        };
        if file.ends_with(".lock") || file.contains("/generated/") {
            continue;
        }
        if file.ends_with(".rs") && text.lines().count() > FILE_MAX_LINES {
            wrong.push(format!("{file}: over {FILE_MAX_LINES} lines"));
        }
        for (word, why) in &banned {
            if let Some(at) = text.lines().position(|line| line.contains(word.as_str())) {
                wrong.push(format!("{file}:{}: `{word}`: {why}", at + 1));
            }
        }
        if file.ends_with("clippy.toml") && !text.contains("too-many-lines-threshold = 70") {
            wrong.push(format!(
                "{file}: lacks the root's thresholds, which it replaces"
            ));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("tidy:\n  {}", wrong.join("\n  ")))
    }
}

fn tracked() -> Result<Vec<String>, String> {
    let list = sh::output(
        Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(paths::root()),
    )?;
    Ok(list.lines().map(str::to_owned).collect())
}
