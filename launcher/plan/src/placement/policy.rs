//! `--map-by` and `--rank-by`, in Open MPI's words.

use thiserror::Error;

use crate::text::show;

/// How the ranks of one program are dealt to the hosts, and on a host to its NUMA nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MapBy {
    /// Each host is filled before the next; where ranks are bound, its NUMA nodes get even blocks
    /// of consecutive ranks.
    #[default]
    Slot,
    /// One rank on each host in turn.
    Node,
    /// Hosts as by slot; where ranks are bound, one on each NUMA node in turn.
    Numa,
}

/// How ranks are numbered once it is known how many are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankBy {
    /// Host by host.
    Slot,
    /// One on each host in turn.
    Node,
}

/// What one `--map-by` asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MapWish {
    pub by: MapBy,
    /// `ppr:N:node`
    pub per_host: Option<u32>,
    /// `:OVERSUBSCRIBE`, `:NOOVERSUBSCRIBE`
    pub oversubscribe: Option<bool>,
    /// `:PE=N`
    pub cores_per_rank: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{option} {value}: {problem}\nhint: {hint}")]
pub struct PolicyError {
    pub option: &'static str,
    pub value: String,
    pub problem: String,
    pub hint: &'static str,
}

const MAP_BY: &str = "--map-by";
const MAP_BY_HINT: &str = "slot, node, numa or ppr:N:node, with :PE=N for N cores a rank";
const RANK_BY_HINT: &str = "slot (host by host) or node (one on each host in turn)";

impl MapWish {
    /// Parses what stands behind `--map-by`.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let lower = text.to_ascii_lowercase();
        let mut words = lower.split(':');
        let mut wish = Self::default();
        match words.next().unwrap_or_default() {
            "slot" | "" => {}
            "node" => wish.by = MapBy::Node,
            "numa" | "socket" | "package" => wish.by = MapBy::Numa,
            "ppr" => {
                let number = words.next().and_then(|word| word.parse().ok());
                let (Some(number), Some(unit)) = (number, words.next()) else {
                    return Err(map_error(text, "expected ppr:N:node".to_owned()));
                };
                if unit != "node" {
                    let problem = format!("ranks can be counted by node, not by `{}`", show(unit));
                    return Err(map_error(text, problem));
                }
                wish.per_host = Some(number);
            }
            other => {
                let problem = format!("there is no mapping by `{}`", show(other));
                return Err(map_error(text, problem));
            }
        }
        for modifier in words.flat_map(|words| words.split(',')) {
            match modifier.split_once('=') {
                None if modifier == "oversubscribe" => wish.oversubscribe = Some(true),
                None if modifier == "nooversubscribe" => wish.oversubscribe = Some(false),
                Some(("pe", number)) if number.parse().is_ok_and(|number: u32| number > 0) => {
                    wish.cores_per_rank = number.parse().ok();
                }
                _ => {
                    let problem = format!("`{}` is no part of a mapping", show(modifier));
                    return Err(map_error(text, problem));
                }
            }
        }
        Ok(wish)
    }
}

impl RankBy {
    /// Parses what stands behind `--rank-by`.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        match text.to_ascii_lowercase().as_str() {
            "slot" | "fill" => Ok(Self::Slot),
            "node" | "span" => Ok(Self::Node),
            _ => Err(PolicyError {
                option: "--rank-by",
                value: show(text),
                problem: "ranks are not numbered by that".to_owned(),
                hint: RANK_BY_HINT,
            }),
        }
    }
}

fn map_error(text: &str, problem: String) -> PolicyError {
    PolicyError {
        option: MAP_BY,
        value: show(text),
        problem,
        hint: MAP_BY_HINT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_and_what_may_follow_them() {
        let plain = MapWish::default();
        assert_eq!(MapWish::parse("slot").unwrap(), plain);
        assert_eq!(MapWish::parse("NUMA").unwrap().by, MapBy::Numa);
        let wish = MapWish::parse("ppr:2:node:PE=4:OVERSUBSCRIBE").unwrap();
        assert_eq!((wish.per_host, wish.cores_per_rank), (Some(2), Some(4)));
        assert_eq!(wish.oversubscribe, Some(true));
        let wish = MapWish::parse("node:pe=2,nooversubscribe").unwrap();
        assert_eq!((wish.by, wish.oversubscribe), (MapBy::Node, Some(false)));
        assert_eq!(MapWish::parse(":PE=2").unwrap().cores_per_rank, Some(2));
    }

    #[test]
    fn what_is_no_mapping_is_named() {
        for (text, problem) in [
            ("core", "there is no mapping by `core`"),
            ("ppr:2", "expected ppr:N:node"),
            ("ppr:x:node", "expected ppr:N:node"),
            ("ppr:2:core", "ranks can be counted by node, not by `core`"),
            ("slot:PE=0", "`pe=0` is no part of a mapping"),
            ("slot:span", "`span` is no part of a mapping"),
        ] {
            let error = MapWish::parse(text).unwrap_err().to_string();
            let expected = format!("--map-by {text}: {problem}\nhint: {MAP_BY_HINT}");
            assert_eq!(error, expected);
        }
        assert_eq!(RankBy::parse("node"), Ok(RankBy::Node));
        let error = RankBy::parse("core").unwrap_err().to_string();
        assert!(error.starts_with("--rank-by core: "), "{error}");
    }
}
