//! Edges between crates go only down the list below: a newcomer can read from the bottom up.

use crate::paths;
use std::path::Path;

/// From the top to the bottom. A crate may use only those that stand below it.
const LAYERS: &[(&str, &str)] = &[
    ("xtask", "xtask"),
    (".", "rlaunch"),
    ("tests/harness", "rlaunch-harness"),
    ("bindings/python", "rlaunch-python"),
    ("bindings/c", "rlaunch-c"),
    ("bindings/c/gen", "rlaunch-c-gen"),
    ("runtime/perf", "rperf"),
    ("runtime/engine", "rlaunch-runtime"),
    ("launcher/agent", "rlaunch-agent"),
    ("launcher/remote", "rlaunch-remote"),
    ("launcher/plan", "rlaunch-plan"),
    ("runtime/sim", "rlaunch-sim"),
    ("runtime/transport", "rlaunch-transport"),
    ("runtime/device", "rlaunch-device"),
    ("runtime/schedule", "rlaunch-schedule"),
    ("runtime/topo", "rlaunch-topo"),
    ("runtime/control/gen", "rlaunch-control-gen"),
    ("runtime/control", "rlaunch-control"),
    ("runtime/wire", "rlaunch-wire"),
];

/// What a training process loads: none of these may lead to the launcher's dependencies.
const IN_A_RANK: &[&str] = &[
    "rlaunch-runtime",
    "rlaunch-transport",
    "rlaunch-device",
    "rlaunch-schedule",
    "rlaunch-wire",
];
const NOT_IN_A_RANK: &[&str] = &["tokio", "tonic", "hyper-util", "ssh2"];

pub fn check() -> Result<(), String> {
    let mut wrong = Vec::new();
    for (level, (folder, name)) in LAYERS.iter().enumerate() {
        let manifest = paths::root().join(folder).join("Cargo.toml");
        for dependency in dependencies(&manifest)? {
            if let Some(other) = LAYERS.iter().position(|(_, name)| *name == dependency)
                && other <= level
            {
                wrong.push(format!("{name} uses {dependency}, which stands above it"));
            }
            if IN_A_RANK.contains(name) && NOT_IN_A_RANK.contains(&dependency.as_str()) {
                wrong.push(format!(
                    "{name} uses {dependency}, which no training process loads"
                ));
            }
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("layers:\n  {}", wrong.join("\n  ")))
    }
}

/// Names under `[dependencies]`; tests may use what they like.
fn dependencies(manifest: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(manifest)
        .map_err(|error| format!("{}: {error}", manifest.display()))?;
    let mut inside = false;
    let mut names = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
        } else if inside && let Some((left, _)) = line.split_once('=') {
            let name = left.trim().trim_end_matches(".workspace");
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
