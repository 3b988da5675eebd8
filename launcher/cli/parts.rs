//! The parts of rlaunch that a first word names, as completions and man pages know them.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, CommandFactory, value_parser};
use clap_complete::Shell;

use super::{Options, ReapOptions, TopoOptions};

type MakeCommand = fn() -> Command;

/// By their first word.
pub(super) const PARTS: [(&str, MakeCommand); 5] = [
    ("reap", ReapOptions::command),
    ("topo", TopoOptions::command),
    ("settings", settings),
    ("man", man),
    ("completions", completions),
];

pub(super) fn command(part: &str) -> Option<Command> {
    let (_, command) = PARTS.iter().find(|(name, _)| *name == part)?;
    Some(command().name(part.to_owned()))
}

pub(super) fn all() -> impl Iterator<Item = Command> {
    PARTS.iter().filter_map(|(name, _)| command(name))
}

/// rlaunch's options with all its parts, for shells. It has no word for a program, since they would
/// expect the part behind that. Nothing is parsed by it: a first word that is no part is a program.
pub(super) fn whole() -> Command {
    let options = Options::command();
    let named = options.get_arguments().filter(|it| !it.is_positional());
    let named: Vec<Arg> = named.cloned().collect();
    Command::new("rlaunch")
        .version(options.get_version().unwrap_or_default().to_owned())
        .disable_help_subcommand(true)
        .args(named)
        .subcommands(all())
}

fn settings() -> Command {
    let made = |name: &'static str| {
        let argument = Arg::new(name).long(name).action(ArgAction::SetTrue);
        argument.hide(true)
    };
    Command::new("settings")
        .about("Show every setting, its value, and where that was set")
        .args([made("markdown"), made("names")])
}

fn man() -> Command {
    let parts = PossibleValuesParser::new(PARTS.map(|(name, _)| name));
    let part = Arg::new("PART").value_parser(parts);
    Command::new("man")
        .about("Print the man page, of rlaunch or of one part; for `man -l -`")
        .arg(part.help("Part of rlaunch"))
}

fn completions() -> Command {
    let shell = Arg::new("SHELL").value_parser(value_parser!(Shell));
    Command::new("completions")
        .about("Print what a shell sources to complete words")
        .arg(shell.required(true).help("Shell to write it for"))
}

#[cfg(test)]
mod tests {
    use super::super::{Loaded, Request, parse};
    use super::*;

    /// None of them is taken for a program.
    #[test]
    fn each_part_shows_its_help() {
        for (name, _) in PARTS {
            let words = [name, "--help"].map(Into::into);
            let request = parse(words, |_| Loaded::default()).unwrap();
            let Request::Show(text) = request else {
                panic!("{name} is a program")
            };
            assert!(text.contains(&format!("Usage: rlaunch {name}")), "{text}");
        }
    }
}
