//! What the ranks run: the job's one program, or several.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rlaunch_plan::environment::Overlay;
use rlaunch_plan::placement::{MapWish, PlacementRequest, RankBy};

use super::value::whole;
use super::{Program, SettingsError, directory, environment};
use crate::cli::Options;

/// One program, as its ranks start it.
#[derive(Debug)]
pub struct ProgramSettings {
    pub program: Program,
    /// The launcher's environment as its ranks get it.
    pub overlay: Overlay,
    /// Absolute.
    pub directory: PathBuf,
    /// `--wdir`, which is made where it is absent; the launcher's own directory is not.
    pub create_directory: bool,
}

/// Notes that hold for several programs are told once.
pub(super) fn program(
    options: &Options,
    inside_slurm: bool,
    notes: &mut Vec<String>,
) -> Result<ProgramSettings, SettingsError> {
    let own = &options.program;
    if word(options).is_some_and(OsStr::is_empty) {
        return Err(SettingsError::NoProgram);
    }
    let mut told = Vec::new();
    let overlay = environment::overlay(options, inside_slurm, &mut told)?;
    for note in told {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Ok(ProgramSettings {
        program: Program::new(own.module.clone(), own.command.clone(), own.python.clone()),
        overlay,
        directory: directory::directory(own.wdir.as_deref())?,
        create_directory: own.wdir.is_some(),
    })
}

/// How many ranks and how they are dealt; `oversubscribe` is the job's.
pub(super) fn placement(
    options: &Options,
    oversubscribe: bool,
) -> Result<PlacementRequest, SettingsError> {
    let map = options.place.map_by.as_deref().map(MapWish::parse);
    let map = map.transpose()?.unwrap_or_default();
    let rank_by = options.place.rank_by.as_deref().map(RankBy::parse);
    let per_host = whole(
        "--nproc-per-node",
        per_node(options.hosts.nproc_per_node.as_deref()),
    )?;
    Ok(PlacementRequest {
        ranks: whole("-np", options.hosts.np.as_deref())?,
        per_host: per_host.or(map.per_host),
        oversubscribe: map.oversubscribe.unwrap_or(oversubscribe),
        map_by: map.by,
        rank_by: rank_by.transpose()?,
        hosts: None,
        label: None,
    })
}

/// `program 1 (train.py)`: how messages call one of several programs.
pub(crate) fn label(number: usize, options: &Options) -> String {
    let name = word(options).map(|word| Path::new(word).file_name().unwrap_or(word));
    let name = name.map(|name| name.to_string_lossy());
    format!("program {number} ({})", name.unwrap_or_default())
}

fn word(options: &Options) -> Option<&OsStr> {
    let own = &options.program;
    let word = own.module.as_ref().or(own.command.first());
    word.map(|word| word.as_os_str())
}

/// torchrun's words for "as many as the host has".
fn per_node(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !["auto", "gpu", "cpu"].contains(text))
}
