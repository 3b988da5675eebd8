//! Collectives on host memory, by ranks of this machine: ours and the peers in turns, against the
//! goals, beside what the machine allows.

mod cases;
mod contender;
mod options;
mod output;
mod race;

use super::limits::Machine;
use super::peers;
use crate::{paths, python_env, sh, stage, torch};
use cases::{Case, Kind};
use contender::Contender;
use options::Options;
use output::Outcome;

pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    if arguments
        .iter()
        .any(|word| word == "--help" || word == "-h")
    {
        print!("{}", options::help());
        return Ok(());
    }
    let options = Options::parse(arguments)?;
    eprintln!("x bench: building");
    sh::run(&mut sh::cargo(["build"]))?;
    let machine = Machine::ensure()?;
    let mut outcome = Outcome::begin(&machine);
    for case in options.cases() {
        match contenders(case.kind, case.ranks) {
            Ok(contenders) => {
                let results = race::race(case, &options, &contenders, &machine);
                let names = contenders.iter().map(|(contender, ranks)| match case.kind {
                    Kind::HalfTheRanks => format!("{ranks} ranks"),
                    _ => contender.name(),
                });
                outcome.add(case, names.collect(), &results, &machine);
            }
            Err(error) => outcome.skip(case, &error),
        }
    }
    outcome.end(&machine);
    print!("{}", outcome.markdown());
    if let Some(path) = &options.json {
        std::fs::write(path, outcome.json())
            .map_err(|error| format!("{}: {error}", path.display()))?;
        eprintln!("x bench: wrote {}", path.display());
    }
    Ok(())
}

/// Who is timed first, then whom its time is held against; each with its number of ranks.
fn contenders(kind: Kind, ranks: usize) -> Result<Vec<(Contender, usize)>, String> {
    let open_mpi = || Contender::mpi(peers::Kind::OpenMpi);
    let all = match kind {
        Kind::Mpi => vec![
            Contender::Ours,
            open_mpi()?,
            Contender::mpi(peers::Kind::Mpich)?,
        ],
        Kind::OpenMpi => vec![Contender::Ours, open_mpi()?],
        Kind::Gloo => {
            let python = torch::ensure(&paths::cache())?;
            vec![Contender::Ours, Contender::Gloo { python }]
        }
        Kind::Python => {
            let module = stage::stage(&paths::target())?;
            let python = python_env::ensure(&paths::cache())?;
            vec![Contender::Python { python, module }, Contender::Ours]
        }
        Kind::HalfTheRanks => {
            return Ok(vec![(Contender::Ours, ranks), (Contender::Ours, ranks / 2)]);
        }
    };
    Ok(all.into_iter().map(|one| (one, ranks)).collect())
}

impl Case {
    fn has_limit(&self) -> bool {
        self.kind == Kind::Mpi
            && self.ranks == 2
            && self.transport == cases::Transport::SharedMemory
            && self.tests == ["all_reduce"]
    }
}
