//! What is made of clap's table for shells and readers: completions and the man page.

use std::ffi::OsString;

use clap::CommandFactory;
use clap_complete::Shell;

use super::{CliError, Options, Request};
use crate::knobs::Format;

/// First words that show something of rlaunch itself; only as the very first argument.
pub(super) fn request(arguments: &[OsString]) -> Option<Result<Request, CliError>> {
    let words: Vec<&str> = arguments
        .iter()
        .map(|word| word.to_str().unwrap_or_default())
        .collect();
    let (first, rest) = words.split_first()?;
    match *first {
        "completions" => Some(completions(rest)),
        "man" => Some(no_more(rest, "rlaunch man").map(|()| Request::Show(man()))),
        "settings" => Some(settings(rest)),
        _ => None,
    }
}

fn completions(rest: &[&str]) -> Result<Request, CliError> {
    let shell = match rest {
        [name] => name.parse::<Shell>().ok(),
        _ => None,
    };
    let shell = shell.ok_or(CliError::Form {
        form: "rlaunch completions bash|zsh|fish|elvish|powershell",
    })?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), "rlaunch", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Ok(Request::Show(script))
}

fn settings(rest: &[&str]) -> Result<Request, CliError> {
    let format = match rest {
        [] => Format::Here,
        ["--markdown"] => Format::Markdown,
        ["--names"] => Format::Names,
        _ => {
            return Err(CliError::Form {
                form: "rlaunch settings",
            });
        }
    };
    Ok(Request::Settings(format))
}

fn no_more(rest: &[&str], form: &'static str) -> Result<(), CliError> {
    match rest {
        [] => Ok(()),
        _ => Err(CliError::Form { form }),
    }
}

fn man() -> String {
    let mut page = Vec::new();
    // Into memory, where nothing can fail.
    let rendered = clap_mangen::Man::new(Options::command()).render(&mut page);
    rendered.expect("memory takes what is written");
    String::from_utf8_lossy(&page).into_owned()
}
