//! `rperf plot a.json b.json -o out.svg`, and `--plot`: time and bandwidth over size, several runs
//! in one picture.

mod curves;
mod draw;

use crate::Failure;
use crate::report::document::SavedRun;
use clap::Parser;
use curves::{Curve, curves};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Parser)]
#[command(
    name = "rperf plot",
    version,
    about = "Draws time and bandwidth of saved runs (rperf … -J FILE.json) in one picture"
)]
struct PlotArguments {
    /// Results of rperf; LABEL=FILE names a run in the legend
    #[arg(value_name = "[LABEL=]FILE.json", required = true)]
    files: Vec<String>,
    /// The picture; .svg or .png
    #[arg(short = 'o', long = "output", value_name = "OUT.svg|png")]
    output: PathBuf,
    /// Draws times in place, where a test has them, instead of out of place
    #[arg(long)]
    in_place: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum PlotError {
    #[error("{}: {source}", .path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "{label} holds no results of rperf: {source}; hint: save them with rperf … -J FILE.json"
    )]
    Document {
        label: String,
        source: serde_json::Error,
    },
    #[error("nothing to draw: no result has a size and a time above 0")]
    Empty,
    #[error("can't draw {}: {reason}", .path.display())]
    Draw { path: PathBuf, reason: String },
}

/// Reads the command line behind `rperf plot`.
pub(crate) fn run() -> Result<(), Failure> {
    // So that usage and errors say how it is called.
    let words = std::iter::once("rperf plot".into()).chain(std::env::args_os().skip(2));
    let arguments = PlotArguments::parse_from(words);
    check_name(&arguments.output).map_err(Failure::Argument)?;
    let mut documents = Vec::new();
    for file in &arguments.files {
        documents.push(read(file)?);
    }
    draw(&documents, arguments.in_place, &arguments.output)?;
    Ok(())
}

/// Draws documents that are given as text, each with its name in the legend.
pub(crate) fn draw_documents(
    documents: &[(String, String)],
    output: &Path,
) -> Result<(), PlotError> {
    draw(documents, false, output)
}

pub(crate) fn check_name(output: &Path) -> Result<(), String> {
    match output.extension().and_then(|ending| ending.to_str()) {
        Some("svg" | "png") => Ok(()),
        _ => Err(format!(
            "{}: pictures end in .svg or .png",
            output.display()
        )),
    }
}

fn read(word: &str) -> Result<(String, String), PlotError> {
    // A file may have `=` in its name; a label only counts where that file does not exist.
    let (label, path) = match word.split_once('=') {
        Some((label, path)) if !Path::new(word).exists() => (label.to_owned(), Path::new(path)),
        _ => {
            let path = Path::new(word);
            let stem = path.file_stem().unwrap_or(path.as_os_str());
            (stem.to_string_lossy().into_owned(), path)
        }
    };
    let text = std::fs::read_to_string(path).map_err(|source| PlotError::File {
        path: path.to_owned(),
        source,
    })?;
    Ok((label, text))
}

fn draw(documents: &[(String, String)], in_place: bool, output: &Path) -> Result<(), PlotError> {
    let mut all: Vec<Curve> = Vec::new();
    for (label, text) in documents {
        let run: SavedRun = serde_json::from_str(text).map_err(|source| PlotError::Document {
            label: label.clone(),
            source,
        })?;
        all.extend(curves(label, &run, in_place));
    }
    if all.is_empty() {
        return Err(PlotError::Empty);
    }
    draw::draw(&all, output)
}

#[cfg(test)]
mod tests;
