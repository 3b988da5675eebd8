//! What a user wants of the choice: the grammar of `RLAUNCH_ALGO`, which is NCCL's.
//!
//! ```text
//! ring                                  for every collective that a ring serves
//! all_reduce:ring,tree;broadcast:^chain one of two; any but one
//! ^linear;all_reduce:tree               a list without a name holds for the collectives not named
//! ```

use crate::Algorithm;
use rlaunch_wire::Collective;
use std::str::FromStr;

/// Which algorithms may run. Everything, by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preference {
    general: Option<List>,
    named: Vec<(Collective, List)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct List {
    algorithms: Vec<Algorithm>,
    is_exclusion: bool,
}

/// Why a text is no preference. The hint lists what would be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PreferenceError {
    #[error("`{name}` is no algorithm; known are {}", names(Algorithm::ALL.iter().copied()))]
    UnknownAlgorithm { name: String },
    #[error("`{name}` is no collective with a choice; known are {}", collectives())]
    UnknownCollective { name: String },
    #[error(
        "{algorithm} does not serve {collective}; those that do are {}",
        names(Algorithm::serving(*collective))
    )]
    DoesNotServe {
        collective: Collective,
        algorithm: Algorithm,
    },
    #[error("{collective} is left without an algorithm; {} serve it", names(Algorithm::serving(*collective)))]
    NothingLeft { collective: Collective },
    #[error(
        "{what} is named twice; put all its algorithms in one list, as in all_reduce:ring,tree"
    )]
    Twice { what: String },
    #[error("an empty list; write for example all_reduce:ring,tree;broadcast:^chain")]
    Empty,
}

impl Preference {
    /// Whether `algorithm`, which serves the collective, may run it. A list without a name is without
    /// effect on collectives that none of it serves.
    pub fn allows(&self, collective: Collective, algorithm: Algorithm) -> bool {
        let named = self.named.iter().find(|(name, _)| *name == collective);
        if let Some((_, list)) = named {
            return list.allows(algorithm);
        }
        let Some(list) = &self.general else {
            return true;
        };
        let is_of_effect = Algorithm::serving(collective).any(|one| list.allows(one));
        list.allows(algorithm) || !is_of_effect
    }

    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl List {
    fn allows(&self, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm) != self.is_exclusion
    }
}

impl FromStr for Preference {
    type Err = PreferenceError;

    fn from_str(text: &str) -> Result<Self, PreferenceError> {
        let mut preference = Self::default();
        for part in text.split(';').map(str::trim) {
            let Some((name, list)) = part.split_once(':') else {
                let list = part.parse()?;
                if preference.general.replace(list).is_some() {
                    let what = "the list for all collectives".into();
                    return Err(PreferenceError::Twice { what });
                }
                continue;
            };
            let collective = collective(name.trim())?;
            let list: List = list.parse()?;
            if preference
                .named
                .iter()
                .any(|(other, _)| *other == collective)
            {
                let what = collective.to_string();
                return Err(PreferenceError::Twice { what });
            }
            let stranger = list.algorithms.iter().find(|one| !one.serves(collective));
            if let Some(&algorithm) = stranger.filter(|_| !list.is_exclusion) {
                return Err(PreferenceError::DoesNotServe {
                    collective,
                    algorithm,
                });
            }
            if !Algorithm::serving(collective).any(|one| list.allows(one)) {
                return Err(PreferenceError::NothingLeft { collective });
            }
            preference.named.push((collective, list));
        }
        Ok(preference)
    }
}

impl FromStr for List {
    type Err = PreferenceError;

    fn from_str(text: &str) -> Result<Self, PreferenceError> {
        let text = text.trim();
        let (is_exclusion, names) = match text.strip_prefix('^') {
            Some(names) => (true, names),
            None => (false, text),
        };
        if names.trim().is_empty() {
            return Err(PreferenceError::Empty);
        }
        let algorithm = |name: &str| {
            let name = name.trim();
            name.parse::<Algorithm>()
                .map_err(|error| PreferenceError::UnknownAlgorithm { name: error.name })
        };
        let algorithms = names.split(',').map(algorithm).collect::<Result<_, _>>()?;
        Ok(Self {
            algorithms,
            is_exclusion,
        })
    }
}

/// A collective that algorithms serve, by its name.
pub(super) fn collective(name: &str) -> Result<Collective, PreferenceError> {
    let mut all = Collective::ALL
        .iter()
        .copied()
        .filter(|one| has_choice(*one));
    all.find(|one| one.name() == name)
        .ok_or_else(|| PreferenceError::UnknownCollective { name: name.into() })
}

fn has_choice(collective: Collective) -> bool {
    Algorithm::serving(collective).next().is_some()
}

fn names(algorithms: impl Iterator<Item = Algorithm>) -> String {
    let names: Vec<_> = algorithms.map(Algorithm::name).collect();
    names.join(", ")
}

fn collectives() -> String {
    let all = Collective::ALL.iter().filter(|one| has_choice(**one));
    let names: Vec<_> = all.map(|one| one.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(text: &str, collective: Collective) -> Vec<Algorithm> {
        let preference: Preference = text.parse().unwrap();
        Algorithm::serving(collective)
            .filter(|one| preference.allows(collective, *one))
            .collect()
    }

    fn refusal(text: &str) -> String {
        text.parse::<Preference>().unwrap_err().to_string()
    }

    /// One name alone holds where it serves, and is without effect elsewhere.
    #[test]
    fn a_list_without_a_name_holds_where_it_serves() {
        assert_eq!(allowed("ring", Collective::AllReduce), [Algorithm::Ring]);
        assert!(allowed("ring", Collective::Broadcast).len() > 2);
        assert!(!allowed("^ring", Collective::AllReduce).contains(&Algorithm::Ring));
        let both = allowed("ring;all_reduce:tree", Collective::AllReduce);
        assert_eq!(both, [Algorithm::Tree]);
    }

    #[test]
    fn lists_allow_and_forbid() {
        let text = " all_reduce : ring , tree ; broadcast:^chain";
        let all_reduce = allowed(text, Collective::AllReduce);
        assert_eq!(all_reduce, [Algorithm::Ring, Algorithm::Tree]);
        assert!(!allowed(text, Collective::Broadcast).contains(&Algorithm::Chain));
        assert!(allowed(text, Collective::Broadcast).contains(&Algorithm::Tree));
    }

    #[test]
    fn wrong_words_are_named_with_the_right_ones() {
        let unknown = refusal("all_reduce:rings");
        assert!(
            unknown.contains("`rings`") && unknown.contains("recursive_doubling"),
            "{unknown}"
        );
        let unknown = refusal("allreduce:ring");
        assert!(
            unknown.contains("`allreduce`") && unknown.contains("all_reduce"),
            "{unknown}"
        );
        let stranger = refusal("all_reduce:bruck");
        assert!(
            stranger.contains("bruck does not serve all_reduce"),
            "{stranger}"
        );
        assert!(stranger.contains("halving_doubling"), "{stranger}");
        assert!(refusal("barrier:^dissemination").contains("without an algorithm"));
        assert!(refusal("all_reduce:ring;all_reduce:tree").contains("twice"));
        for empty in ["", "all_reduce:", "ring;", "^"] {
            assert_eq!(empty.parse::<Preference>(), Err(PreferenceError::Empty));
        }
    }
}
