//! What the ranks read and print.

use super::SettingsError;
use crate::cli::Options;
use crate::config::Config;
use crate::output::Style;

#[derive(Debug, Clone)]
pub struct Streams {
    pub stdin_rank: Option<u32>,
    pub pty: bool,
    pub style: Style,
}

pub(super) fn streams(
    options: &Options,
    config: &Config,
    ranks: Option<u32>,
) -> Result<Streams, SettingsError> {
    Ok(Streams {
        stdin_rank: stdin_rank(options.program.stdin.as_deref(), ranks)?,
        pty: options.program.pty,
        style: Style {
            tag: options.output.tag_output || config.tag_output == Some(true),
            timestamp: options.output.timestamp_output || config.timestamp_output == Some(true),
        },
    })
}

fn stdin_rank(text: Option<&str>, ranks: Option<u32>) -> Result<Option<u32>, SettingsError> {
    let Some(text) = text.filter(|text| *text != "none") else {
        return Ok(None);
    };
    let problem = match (text.parse::<u32>(), ranks) {
        (Err(_), _) => "expected a rank, or `none`",
        (Ok(rank), Some(ranks)) if rank >= ranks => "there is no such rank",
        (Ok(rank), _) => return Ok(Some(rank)),
    };
    Err(SettingsError::Value {
        option: "--stdin",
        value: text.to_owned(),
        problem,
    })
}
