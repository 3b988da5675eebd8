//! Which algorithms run over connections: settings, predictions, and what measures them.

use rlaunch_schedule::{Prediction, Preference, Question, Selector, Tuning};
use rlaunch_wire::{Collective, DType, Op};

use crate::communicator::Communicator;
use crate::{Config, Error};

/// Reads what `RLAUNCH_ALGO` and `RLAUNCH_TUNE_FILE` say; with what is asked of the numbers.
pub(crate) fn selector(config: &Config) -> Result<Selector, Error> {
    let preference = match &config.algorithm {
        Some(text) => text
            .parse()
            .map_err(|error| Error::Init(format!("RLAUNCH_ALGO={text}: {error}")))?,
        None => Preference::default(),
    };
    let tuning = match &config.tune_file {
        Some(path) => {
            let failed = |error: &dyn std::fmt::Display| {
                Error::Init(format!("RLAUNCH_TUNE_FILE={}: {error}", path.display()))
            };
            let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
            Tuning::from_text(&text).map_err(|error| failed(&error))?
        }
        None => Tuning::default(),
    };
    Ok(Selector::new(tuning, preference).with_numbers(config.numbers))
}

impl Communicator {
    /// What the choice of an algorithm for such a call depends on. `bytes` are those of the vector, or of
    /// the blocks of all ranks together; `reduction` counts where the collective reduces.
    pub fn question(
        &self,
        collective: Collective,
        bytes: usize,
        reduction: Option<(DType, Op)>,
    ) -> Result<Question, Error> {
        let key = self.key();
        self.engine().with(move |core| {
            let shape = core.group(key).shape();
            let reduction = reduction.filter(|_| collective.reduces());
            let selector = &core.selector;
            Ok(selector.question(collective, bytes, shape, reduction, true))
        })
    }

    /// The algorithms that could run such a call over connections, with the times that the model
    /// predicts, the shortest first. Where all ranks share memory none of them runs. None for what
    /// has no algorithms.
    pub fn explain(&self, question: Question) -> Result<Vec<Prediction>, Error> {
        self.engine()
            .with(move |core| Ok(core.selector.explain(question)))
    }

    /// The constants and measured choices in use.
    pub fn tuning(&self) -> Result<Tuning, Error> {
        self.engine()
            .with(|core| Ok(core.selector.tuning().clone()))
    }
}
