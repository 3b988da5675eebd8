//! What was found out for a call is kept for the next one of the kind: programs make few kinds, often.

use std::sync::Arc;

use rlaunch_schedule::{Choice, Question, Spec};
use rustc_hash::FxHashMap;

use crate::core::Core;
use crate::interpret::Plan;

/// Kept of each; then they are made anew.
const KEPT_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Known {
    plans: FxHashMap<(Spec, u32), Arc<Plan>>,
    choices: FxHashMap<Question, Choice>,
}

impl Core {
    /// The steps of this rank in such a call.
    pub(crate) fn plan(&mut self, spec: Spec, rank: u32) -> Arc<Plan> {
        let plans = &mut self.known.plans;
        let key = (spec, rank);
        if let Some(plan) = plans.get(&key) {
            return Arc::clone(plan);
        }
        if plans.len() >= KEPT_MAX {
            plans.clear();
        }
        let plan = Arc::new(Plan::new(&key.0, rank));
        plans.insert(key, Arc::clone(&plan));
        plan
    }

    /// The way that such a call goes, as on all ranks.
    pub(crate) fn choose(&mut self, question: Question) -> Choice {
        let choices = &mut self.known.choices;
        if let Some(choice) = choices.get(&question) {
            return *choice;
        }
        if choices.len() >= KEPT_MAX {
            choices.clear();
        }
        let choice = self.selector.select(question);
        choices.insert(question, choice);
        choice
    }
}
