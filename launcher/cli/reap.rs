//! The words of `rlaunch reap`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Command, CommandFactory, FromArgMatches, Parser};

use super::options::{Options, ReachOptions, Scheduler};
use super::{CliError, Request, defaulting, normalise, one_line, shown};
use crate::knobs::{KnobError, Layers, Origins};

/// Find what ended jobs have left on hosts, and end it.
///
/// A process counts as left only if the job's record on its host says so: its number and start time,
/// the session of a rank, or a parent that does. What only its environment points to is shown, and
/// ended with --hinted. Nothing is ever ended by name.
#[derive(Debug, Parser)]
#[command(
    name = "rlaunch reap",
    override_usage = "rlaunch reap [options]",
    after_help = AFTER,
    max_term_width = 100,
    args_override_self = true
)]
pub struct ReapOptions {
    /// File of hosts to look at
    #[arg(long, value_name = "FILE", aliases = ["machinefile", "f"])]
    pub hostfile: Option<PathBuf>,
    /// Hosts to look at: `a,b` [default: those of the scheduler's job, else this machine]
    #[arg(short = 'H', long, value_name = "HOSTS", action = ArgAction::Append, aliases = ["hosts"])]
    pub host: Vec<String>,
    /// Whose hosts: of the `slurm` job that this is inside of, `none` [default: auto]
    #[arg(long, value_name = "WHICH")]
    pub scheduler: Option<Scheduler>,
    /// Only this job: the first digits of its id. With --end it is ended even if it still runs
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// End what is found: TERM, then KILL
    #[arg(long)]
    pub end: bool,
    /// With --end: also what only its environment points to
    #[arg(long)]
    pub hinted: bool,
    /// Between TERM and KILL [default: 2]
    #[arg(long, value_name = "TIME")]
    pub kill_after: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Say what is done and how long it takes; twice for more
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub verbose: u8,
    #[command(flatten)]
    pub reach: ReachOptions,
    /// Where those values stand that nobody typed.
    #[arg(skip)]
    pub origins: Origins,
}

const AFTER: &str = "\
Examples:
  rlaunch reap -hostfile hosts               what is left there
  rlaunch reap -hostfile hosts --end         ends it
  rlaunch reap -H node7 --job 3fa1b2c4 --end ends that job on node7, running or not

Exit code: 0 if nothing is left, 1 if something is, 125 if a host could not be asked.";

/// `arguments` are those after `reap`.
pub(super) fn parse(
    arguments: impl Iterator<Item = OsString>,
    defaults: impl FnOnce(&Command) -> Result<Layers, KnobError>,
) -> Result<Request, CliError> {
    let mut command = ReapOptions::command();
    let mut normalised = normalise::normalise(&command, arguments)?;
    let mut origins = Origins::default();
    if !defaulting::only_shows(&normalised.programs) {
        let layers = defaults(&Options::command())?;
        for words in &mut normalised.programs {
            defaulting::put_in_front_of_reap(&layers, words, &mut origins);
        }
    }
    // `:` and further programs end up among the words, and clap refuses them.
    let words = normalised.programs.into_iter().flatten();
    let words = [OsString::from("rlaunch reap")].into_iter().chain(words);
    let matches = match command.try_get_matches_from_mut(words) {
        Ok(matches) => matches,
        Err(error) => return shown(&error, &origins),
    };
    let mut options =
        ReapOptions::from_arg_matches(&matches).map_err(|error| one_line(&error, &origins))?;
    options.origins = origins;
    Ok(Request::Reap {
        options: Box::new(options),
        notes: normalised.notes,
    })
}
