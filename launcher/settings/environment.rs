//! The launcher's environment as the hosts get it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rlaunch_plan::environment::{
    self, DropReason, EnvironmentPolicy, Export, ExportError, Overlay,
};
use rlaunch_plan::slurm::is_set_for_each_rank;
use rlaunch_wire::limits::ENV_FILE_MAX_BYTES;
use rlaunch_wire::setting::misspelt;

use super::SettingsError;
use crate::cli::{Inherit, Options, ProgramOptions};
use crate::files;

pub(super) fn overlay(
    options: &Options,
    inside_slurm: bool,
    notes: &mut Vec<String>,
) -> Result<Overlay, SettingsError> {
    let exports = exports(&options.program, inside_slurm)?;
    let policy = match options.program.env {
        None => EnvironmentPolicy::Portable,
        Some(Inherit::All) => EnvironmentPolicy::All,
        Some(Inherit::None) => EnvironmentPolicy::None,
    };
    let bytes = |text: OsString| text.into_vec();
    let own: Vec<_> = std::env::vars_os()
        .map(|(name, value)| (bytes(name), bytes(value)))
        .collect();
    let mut overlay = environment::overlay(&own, policy, &exports);
    if inside_slurm {
        // What is said of the batch script's one task is said anew of each rank.
        overlay.dropped.retain(|dropped| {
            !(dropped.reason == DropReason::Task && dropped.name.starts_with("SLURM"))
        });
    }
    for name in &overlay.missing {
        notes.push(format!(
            "-x {name}: there is no such variable here; nothing is passed"
        ));
    }
    for (name, _) in &own {
        let is_dropped = overlay
            .dropped
            .iter()
            .any(|one| one.name.as_bytes() == name);
        if let Some(text) = misspelt(name).filter(|_| is_dropped) {
            notes.push(format!("not passed to the ranks: {text}"));
        }
    }
    let by_others = |reason| matches!(reason, DropReason::Rank | DropReason::Task);
    if let Some(names) = dropped_names(&overlay, by_others) {
        notes.push(format!(
            "not passed to the ranks, for they tell of another job: {names}"
        ));
    }
    Ok(overlay)
}

/// What `--env-file` and `-x` say, in the order in which they count.
fn exports(program: &ProgramOptions, inside_slurm: bool) -> Result<Vec<Export>, SettingsError> {
    let mut exports = Vec::new();
    let mut add = |given: &OsStr, more: Vec<Export>| {
        let set_for_each = |export: &&Export| inside_slurm && is_set_for_each_rank(&export.name);
        if let Some(export) = more.iter().find(set_for_each) {
            return Err(SettingsError::Export {
                given: given.to_owned(),
                error: ExportError::SetByLauncher {
                    name: String::from_utf8_lossy(&export.name).into_owned(),
                    hint: "leave it out".to_owned(),
                },
            });
        }
        exports.extend(more);
        Ok(())
    };
    for path in &program.env_file {
        add(path.as_os_str(), read(path)?)?;
    }
    for word in &program.export {
        let export = Export::parse(word.as_bytes()).map_err(|error| SettingsError::Export {
            given: word.clone(),
            error,
        })?;
        add(word, vec![export])?;
    }
    Ok(exports)
}

/// The variables of an `--env-file`.
fn read(path: &Path) -> Result<Vec<Export>, SettingsError> {
    use std::io::Read;
    let unreadable = |error| SettingsError::EnvFileUnreadable {
        path: path.to_owned(),
        error: files::why(path, error),
    };
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(ENV_FILE_MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > ENV_FILE_MAX_BYTES {
        return Err(unreadable(std::io::Error::other("too long for variables")));
    }
    environment::parse_file(&path.to_string_lossy(), &bytes).map_err(|error| {
        SettingsError::EnvFile {
            path: path.to_owned(),
            error,
        }
    })
}

/// Names shown; inside a scheduler's job there are dozens.
const DROPPED_SHOWN_MAX: usize = 6;

/// What was left out of the environment for such a reason, as text.
pub(crate) fn dropped_names(
    overlay: &Overlay,
    concerned: impl Fn(DropReason) -> bool,
) -> Option<String> {
    let names: Vec<&str> = overlay
        .dropped
        .iter()
        .filter(|dropped| concerned(dropped.reason))
        .map(|dropped| dropped.name.as_str())
        .collect();
    let shown = names[..names.len().min(DROPPED_SHOWN_MAX)].join(" ");
    match names.len().saturating_sub(DROPPED_SHOWN_MAX) {
        0 if names.is_empty() => None,
        0 => Some(shown),
        more => Some(format!("{shown} and {more} more")),
    }
}
