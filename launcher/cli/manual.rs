//! What is made of clap's tables for shells and readers: completions and man pages.

use std::ffi::OsString;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::parts;
use super::{CliError, Options, Request};
use crate::knobs::Format;

/// First words that show something of rlaunch itself; only as the very first argument.
pub(super) fn request(arguments: &[OsString]) -> Option<Result<Request, CliError>> {
    let words: Vec<&str> = arguments
        .iter()
        .map(|word| word.to_str().unwrap_or_default())
        .collect();
    let (first, rest) = words.split_first()?;
    let show: fn(&[&str]) -> Result<Request, CliError> = match *first {
        "completions" => completions,
        "man" => man,
        "settings" => settings,
        _ => return None,
    };
    Some(match rest {
        ["--help" | "-h"] => Ok(Request::Show(help(first))),
        rest => show(rest),
    })
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
    clap_complete::generate(shell, &mut parts::whole(), "rlaunch", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Ok(Request::Show(match shell {
        Shell::Zsh => with_programs(&script),
        _ => script,
    }))
}

/// In zsh a first word could only be a part of rlaunch, and nothing could follow another one. The
/// others look for files where they know no word.
fn with_programs(zsh: &str) -> String {
    let parts = parts::PARTS.map(|(name, _)| name).join(" ");
    let of_a_program =
        format!("(rlaunch)\n        [[ ' {parts} ' == *\" $line[1] \"* ]] || _default\n");
    zsh.replacen("(rlaunch)\n", &of_a_program, 1).replacen(
        "'rlaunch commands' commands \"$@\"\n",
        "'rlaunch commands' commands \"$@\"\n    _default\n",
        1,
    )
}

fn man(rest: &[&str]) -> Result<Request, CliError> {
    let command = match rest {
        [] => Some(Options::command().subcommands(parts::all())),
        [part] => parts::command(part).map(|command| command.name(format!("rlaunch-{part}"))),
        _ => None,
    };
    let command = command.ok_or(CliError::Form {
        form: "rlaunch man [PART]",
    })?;
    Ok(Request::Show(page(command)))
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

fn help(part: &str) -> String {
    let command = parts::command(part).expect("each first word is one of the parts");
    let mut command = command.bin_name(format!("rlaunch {part}"));
    command.render_help().to_string()
}

fn page(command: Command) -> String {
    let mut page = Vec::new();
    // Into memory, where nothing can fail.
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.expect("memory takes what is written");
    String::from_utf8_lossy(&page).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// clap_complete's text is as [`with_programs`] expects it.
    #[test]
    fn zsh_looks_for_files_too() {
        let Ok(Request::Show(script)) = completions(&["zsh"]) else {
            panic!("no script")
        };
        let lines: Vec<&str> = script.lines().collect();
        let at = |line: &str| lines.iter().position(|it| it.trim() == line).unwrap();
        assert!(lines[at("(rlaunch)") + 1].ends_with("|| _default"));
        let described = at("_describe -t commands 'rlaunch commands' commands \"$@\"");
        assert_eq!(lines[described + 1].trim(), "_default");
    }
}
