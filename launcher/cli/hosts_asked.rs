//! The words of commands that ask hosts something, and start no job: `rlaunch reap`, `rlaunch topo`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Command, CommandFactory, Parser};

use super::options::{Options, ReachOptions, Scheduler};
use super::{CliError, Request, defaulting, normalise, one_line, shown};
use crate::knobs::{Loaded, Origins};

/// Which hosts, and how they are reached.
#[derive(Debug, Args)]
pub struct HostsAsked {
    /// File of hosts to look at
    #[arg(long, value_name = "FILE", aliases = ["machinefile", "f"])]
    pub hostfile: Option<PathBuf>,
    /// Hosts to look at: `a,b` [default: those of the scheduler's job, else this machine]
    #[arg(short = 'H', long, value_name = "HOSTS", action = ArgAction::Append, aliases = ["hosts"])]
    pub host: Vec<String>,
    /// Whose hosts: of the `slurm` job that this is inside of, `none` [default: auto]
    #[arg(long, value_name = "WHICH")]
    pub scheduler: Option<Scheduler>,
    /// Say what is done and how long it takes; twice for more
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub verbose: u8,
    #[command(flatten)]
    pub reach: ReachOptions,
    /// Where those values stand that nobody typed.
    #[arg(skip)]
    pub origins: Origins,
}

/// `arguments` are those after the command's name; `asked` makes the request of them.
pub(super) fn parse<O: Parser>(
    name: &'static str,
    arguments: impl Iterator<Item = OsString>,
    defaults: impl FnOnce(&Command) -> Loaded,
    asked: impl FnOnce(O, Origins, Vec<String>) -> Request,
) -> Result<Request, CliError> {
    let mut command = O::command();
    let mut normalised = normalise::normalise(&command, arguments)?;
    let mut origins = Origins::default();
    if !defaulting::only_shows(&normalised.programs) {
        // Most of what can be set is for jobs; who cleans up should not have to mend it first.
        let Loaded { layers, wrong } = defaults(&Options::command());
        let note = wrong.map(|wrong| format!("{wrong}\nhint: {name} takes what is right"));
        normalised.notes.extend(note);
        for words in &mut normalised.programs {
            defaulting::put_in_front_of_hosts_asked(&layers, words, &mut origins);
        }
    }
    let programs = &mut normalised.programs;
    programs.iter_mut().for_each(defaulting::leave_out_off);
    // `:` and further programs end up among the words, and clap refuses them.
    let words = normalised.programs.into_iter().flatten();
    let words = [OsString::from(name)].into_iter().chain(words);
    let matches = match command.try_get_matches_from_mut(words) {
        Ok(matches) => matches,
        Err(error) => return shown(&error, &origins),
    };
    let options = O::from_arg_matches(&matches).map_err(|error| one_line(&error, &origins))?;
    Ok(asked(options, origins, normalised.notes))
}
