//! What a hostfile says of a host besides who it is and how many ranks it takes.

use serde::Serialize;

/// Absent and empty mean: as everywhere else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HostDetails {
    /// `gpus=`: the ones that the job may use there, by index or UUID. An empty list is `gpus=none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Vec<String>>,
    /// `nics=`: interfaces or devices for data between hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<String>,
    /// `python=`: the interpreter there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// `workdir=`: where ranks start there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// `[host.env]` of a TOML hostfile, in order of the names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<(String, String)>,
}

impl HostDetails {
    /// The same host again: lists grow, what there can be one of must be the same. `Err` names what
    /// is not.
    pub(crate) fn add(&mut self, other: &Self) -> Result<(), &'static str> {
        if let Some(gpus) = &other.gpus {
            grow(self.gpus.get_or_insert_default(), gpus);
        }
        grow(&mut self.nics, &other.nics);
        same(&mut self.python, &other.python, "python=")?;
        same(&mut self.directory, &other.directory, "workdir=")?;
        for (name, value) in &other.variables {
            match self.variables.iter().find(|(known, _)| known == name) {
                Some((_, known)) if known != value => return Err("env"),
                Some(_) => {}
                None => self.variables.push((name.clone(), value.clone())),
            }
        }
        self.variables.sort();
        Ok(())
    }
}

fn grow(list: &mut Vec<String>, more: &[String]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

fn same(
    known: &mut Option<String>,
    other: &Option<String>,
    what: &'static str,
) -> Result<(), &'static str> {
    match (&known, other) {
        (Some(known), Some(other)) if known != other => Err(what),
        (None, Some(other)) => {
            *known = Some(other.clone());
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(gpus: &[&str], python: Option<&str>) -> HostDetails {
        HostDetails {
            gpus: Some(gpus.iter().map(ToString::to_string).collect()),
            python: python.map(str::to_owned),
            ..HostDetails::default()
        }
    }

    #[test]
    fn lists_grow_and_the_rest_must_agree() {
        let mut sum = details(&["0", "1"], None);
        sum.add(&details(&["1", "2"], Some("py"))).unwrap();
        assert_eq!(sum, details(&["0", "1", "2"], Some("py")));
        sum.add(&HostDetails::default()).unwrap();
        assert_eq!(sum.add(&details(&[], Some("other"))), Err("python="));
    }
}
