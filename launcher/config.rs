//! `~/.config/rlaunch/config.toml`: defaults for options that a person wants every time.
//!
//! ```toml
//! hostfile = "/home/me/hosts"     # used where neither -hostfile nor -H is given
//! tag-output = true
//! kill-after = "30"
//! ```
//! The command line wins. A word that is not known, or of the wrong type, is an error that names
//! file and line: a setting that is silently not followed is worse than none.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// As written in the file; the names are those of the long options.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    pub hostfile: Option<PathBuf>,
    pub tag_output: Option<bool>,
    pub timestamp: Option<bool>,
    pub kill_after: Option<String>,
    pub host_timeout: Option<String>,
    pub python: Option<String>,
    pub identity: Vec<PathBuf>,
    pub ssh_program: Option<String>,
    pub ssh_port: Option<u16>,
    pub ssh_accept_new: Option<bool>,
    pub agent: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    #[error("{}: {error}", path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        path: PathBuf,
        line: usize,
        problem: String,
    },
}

/// Reads the user's file; none is an empty one.
pub fn load() -> Result<Config, ConfigError> {
    match path() {
        Some(path) => load_from(&path),
        None => Ok(Config::default()),
    }
}

fn path() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(base.join("rlaunch/config.toml"))
}

fn load_from(path: &Path) -> Result<Config, ConfigError> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(path, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(Config::default()),
        Err(error) => Err(ConfigError::Unreadable {
            path: path.to_owned(),
            error,
        }),
    }
}

fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        ConfigError::Line {
            path: path.to_owned(),
            line: text.as_bytes()[..start]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1,
            problem: error.message().replace('\n', ", "),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse(Path::new("config.toml"), text)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn settings_are_read() {
        let config = parse(Path::new("c"), "tag-output = true\nssh-port = 2222\n").unwrap();
        assert_eq!(
            (config.tag_output, config.ssh_port),
            (Some(true), Some(2222))
        );
        assert_eq!(parse(Path::new("c"), "").unwrap(), Config::default());
    }

    #[test]
    fn mistakes_name_the_line() {
        let unknown = problem("\ntag-output = true\ntagoutput = true\n");
        assert!(
            unknown.starts_with("config.toml:3: unknown field `tagoutput`"),
            "{unknown}"
        );
        let wrong = problem("kill-after = 3\n");
        assert!(
            wrong.starts_with("config.toml:1: invalid type: integer"),
            "{wrong}"
        );
        assert!(problem("a = = b\n").starts_with("config.toml:1: "));
    }

    #[test]
    fn no_file_is_no_mistake() {
        assert_eq!(
            load_from(Path::new("/nonexistent/config.toml")).unwrap(),
            Config::default()
        );
        assert_eq!(
            load_from(Path::new("/dev/null/config.toml")).unwrap(),
            Config::default()
        );
    }
}
