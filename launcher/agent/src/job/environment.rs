//! What a rank finds in its environment: pure.
//!
//! The host's login environment (or nothing), overlaid by the launcher's, then by the rank's own
//! variables, then by what only the agent knows. Names and values are bytes.

use std::collections::BTreeMap;
use std::path::Path;

use rlaunch_control::v1::EnvVar;
use rlaunch_wire::environment::RLAUNCH_AGENT;
use rlaunch_wire::owner::owner;

pub(crate) type Environment = BTreeMap<Vec<u8>, Vec<u8>>;

/// Searched where the environment has no PATH.
pub(crate) const PATH_DEFAULT: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// What all ranks of this host have in common.
pub(crate) struct Common<'a> {
    /// The agent's own environment; empty for `--env none`.
    pub(crate) login: Environment,
    pub(crate) launcher: &'a [EnvVar],
    /// Directory of the Python module, if it is offered.
    pub(crate) bundle: Option<&'a Path>,
    /// Name of the socket that serves the ranks.
    pub(crate) socket: &'a str,
    pub(crate) directory: &'a [u8],
}

/// The login environment without what tells how the agent was reached, and without another launcher's
/// word on which task this is.
pub(crate) fn login(all: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Environment {
    let is_the_logins_own = |name: &[u8]| {
        matches!(name, b"_" | b"OLDPWD") || name.starts_with(b"SSH_") || owner(name).is_some()
    };
    all.filter(|(name, _)| !is_the_logins_own(name)).collect()
}

pub(crate) fn of_rank(common: &Common<'_>, own: &[EnvVar]) -> Environment {
    let mut environment = common.login.clone();
    for variable in common.launcher {
        let value = if variable.name == "PATH".as_bytes() {
            merged_path(&variable.value, environment.get(b"PATH".as_slice()))
        } else {
            variable.value.to_vec()
        };
        environment.insert(variable.name.to_vec(), value);
    }
    for variable in own {
        environment.insert(variable.name.to_vec(), variable.value.to_vec());
    }
    // With pipes Python holds its output back, and a crash would lose the last lines.
    environment
        .entry(b"PYTHONUNBUFFERED".to_vec())
        .or_insert_with(|| b"1".to_vec());
    if let Some(bundle) = common.bundle {
        let path = environment.entry(b"PYTHONPATH".to_vec()).or_default();
        if !path.is_empty() {
            path.push(b':');
        }
        path.extend_from_slice(bundle.as_os_str().as_encoded_bytes());
    }
    environment.insert(b"PWD".to_vec(), common.directory.to_vec());
    environment.insert(RLAUNCH_AGENT.into(), common.socket.into());
    environment
}

/// As exec takes it.
pub(crate) fn to_strings(environment: &Environment) -> Vec<Vec<u8>> {
    environment
        .iter()
        .map(|(name, value)| [name, b"=".as_slice(), value].concat())
        .collect()
}

/// The launcher's folders first, then what only the host's login has: its compilers and modules.
fn merged_path(launcher: &[u8], login: Option<&Vec<u8>>) -> Vec<u8> {
    let mut folders: Vec<&[u8]> = launcher.split(|byte| *byte == b':').collect();
    let own = login.map(Vec::as_slice).unwrap_or_default();
    for folder in own
        .split(|byte| *byte == b':')
        .filter(|folder| !folder.is_empty())
    {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.join(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<EnvVar> {
        pairs
            .iter()
            .map(|(name, value)| EnvVar {
                name: (*name).to_owned().into(),
                value: (*value).to_owned().into(),
            })
            .collect()
    }

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    fn common(launcher: &[EnvVar]) -> Common<'_> {
        Common {
            login: Environment::new(),
            launcher,
            bundle: None,
            socket: "s",
            directory: b"/d",
        }
    }

    #[test]
    fn another_launchers_task_and_the_ssh_session_are_not_passed_on() {
        let all = [
            ("SSH_CONNECTION", ""),
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("RANK", "3"),
            ("RANKING", "x"),
            ("PATH", "/bin"),
            ("RLAUNCH_ALGO", "ring"),
            ("SLURM_PROCID", "0"),
            ("SLURM_JOB_ID", "7"),
        ];
        let kept = login(environment(&all).into_iter());
        let names: Vec<&[u8]> = kept.keys().map(Vec::as_slice).collect();
        let expected: [&[u8]; 4] = [b"PATH", b"RANKING", b"RLAUNCH_ALGO", b"SLURM_JOB_ID"];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_rank_wins_over_the_launcher_and_the_launcher_over_the_login() {
        let launcher = variables(&[("A", "launcher"), ("B", "launcher")]);
        let mut common = common(&launcher);
        common.login = environment(&[("A", "login"), ("C", "login")]);
        let result = of_rank(&common, &variables(&[("B", "rank")]));
        let value = |name: &str| result[name.as_bytes()].as_slice();
        assert_eq!(
            (value("A"), value("B"), value("C")),
            (&b"launcher"[..], &b"rank"[..], &b"login"[..])
        );
        assert_eq!(
            (value("PWD"), value("RLAUNCH_AGENT")),
            (&b"/d"[..], &b"s"[..])
        );
    }

    #[test]
    fn the_hosts_own_path_comes_after_the_launchers() {
        let launcher = variables(&[("PATH", "/venv/bin:/usr/bin")]);
        let mut common = common(&launcher);
        common.login = environment(&[("PATH", "/opt/site/bin:/usr/bin")]);
        assert_eq!(
            of_rank(&common, &[])[b"PATH".as_slice()],
            b"/venv/bin:/usr/bin:/opt/site/bin"
        );
    }

    #[test]
    fn python_is_unbuffered_unless_said_and_finds_the_module_last() {
        let launcher = variables(&[("PYTHONPATH", "/mine"), ("PYTHONUNBUFFERED", "")]);
        let mut with = common(&launcher);
        with.bundle = Some(Path::new("/cache/b"));
        let result = of_rank(&with, &[]);
        assert_eq!(result[b"PYTHONPATH".as_slice()], b"/mine:/cache/b");
        assert_eq!(result[b"PYTHONUNBUFFERED".as_slice()], b"");
        let mut without = common(&[]);
        without.bundle = Some(Path::new("/cache/b"));
        let result = of_rank(&without, &[]);
        assert_eq!(result[b"PYTHONPATH".as_slice()], b"/cache/b");
        assert_eq!(result[b"PYTHONUNBUFFERED".as_slice()], b"1");
        assert!(!of_rank(&common(&[]), &[]).contains_key(b"PYTHONPATH".as_slice()));
    }

    #[test]
    fn values_are_bytes() {
        let odd = EnvVar {
            name: "X".as_bytes().to_vec().into(),
            value: b"a\n'\"$HOME`\xff".to_vec().into(),
        };
        let strings = to_strings(&of_rank(&common(&[odd]), &[]));
        assert!(strings.contains(&b"X=a\n'\"$HOME`\xff".to_vec()));
    }
}
