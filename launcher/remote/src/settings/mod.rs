//! What the user's ssh configuration says of a host, and whether libssh2 can do it.
//!
//! ssh itself is asked (`ssh -G`), for only it reads its files in full (Match, Include, tokens);
//! `ssh2-config` reads `~/.ssh/config` where there is no ssh program. Both give lines of keyword
//! and value, from which [`Settings::from_lines`] makes what the carriers use: pure, apart from the
//! user's name and home.

mod classes;
mod query;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::target::HostTarget;

pub use query::Answers;
pub(crate) use query::{Source, query, target_arguments};

/// Keywords in lower case, each with its values in order.
pub(crate) type Lines = HashMap<String, Vec<String>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The name or address to connect to.
    pub(crate) hostname: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    /// In the order of the configuration; files that do not exist are among them.
    pub(crate) identity_files: Vec<PathBuf>,
    pub(crate) certificate_files: Vec<PathBuf>,
    /// Only the agent's keys that are also among the identity files are shown to the host.
    pub(crate) identities_only: bool,
    pub(crate) identity_agent: IdentityAgent,
    /// New keys go into the first of them.
    pub(crate) known_hosts: Vec<PathBuf>,
    pub(crate) known_hosts_global: Vec<PathBuf>,
    pub(crate) hash_known_hosts: bool,
    /// The name that known_hosts has for this host, without `[…]:port`.
    pub(crate) host_key_alias: Option<String>,
    pub(crate) strict: Strict,
    pub(crate) family: Family,
    /// The key exchanges that it allows; none named: all.
    pub(crate) key_exchanges: Vec<String>,
    /// Ways to log in that ssh has and libssh2 has not, and that are switched on.
    pub(crate) gssapi: bool,
    pub(crate) host_based: bool,
    /// Why libssh2 can't serve; none if it can.
    pub(crate) needs_program: Option<String>,
    pub(crate) connect_timeout: Option<Duration>,
    /// 1 unless the user wants more.
    pub(crate) connection_attempts: u32,
    /// Seconds between signs of life on a quiet connection, if the user wants some.
    pub(crate) alive_interval: Option<u32>,
    /// A ControlMaster may be running; only ssh can tell.
    pub(crate) control_path: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdentityAgent {
    /// SSH_AUTH_SOCK.
    Environment,
    Path(PathBuf),
    None,
}

/// StrictHostKeyChecking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strict {
    /// `yes` and `ask`: there is nobody to be asked.
    Yes,
    AcceptNew,
    /// The user's own choice in the configuration; never made here.
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Any,
    V4,
    V6,
}

/// Of this machine's user.
#[derive(Debug, Clone)]
pub(crate) struct Whoami {
    pub(crate) name: String,
    pub(crate) home: PathBuf,
}

impl Whoami {
    /// As ssh does it: from the user database, not from the environment.
    pub(crate) fn ask() -> Self {
        let user = nix::unistd::User::from_uid(nix::unistd::getuid())
            .ok()
            .flatten();
        let environment = |name: &str| std::env::var(name).unwrap_or_default();
        match user {
            Some(user) => Self {
                name: user.name,
                home: user.dir,
            },
            None => Self {
                name: environment("USER"),
                home: environment("HOME").into(),
            },
        }
    }
}

impl Settings {
    pub(crate) fn from_lines(target: &HostTarget, lines: &Lines, me: &Whoami) -> Self {
        let one = |key: &str| {
            lines
                .get(key)
                .and_then(|values| values.first())
                .map(String::as_str)
        };
        let number = |key: &str| one(key).and_then(|text| text.parse::<u32>().ok());
        let yes = |key: &str| matches!(one(key), Some("yes" | "true"));
        let hostname = one("hostname").unwrap_or(&target.name).to_owned();
        let port = one("port").and_then(|port| port.parse().ok());
        let port = port.filter(|port| *port > 0);
        let user = target
            .user
            .as_deref()
            .or(one("user"))
            .unwrap_or(&me.name)
            .to_owned();
        let port = target.port.or(port).unwrap_or(22);
        let paths = Paths {
            me,
            user: &user,
            hostname: &hostname,
            port,
        };
        let known_hosts = paths.all(lines, "userknownhostsfile", true);
        let identity_files = paths.all(lines, "identityfile", false);
        let needs_program = needs_program(lines).or_else(|| {
            paths
                .unclear(&identity_files)
                .or_else(|| paths.unclear(&known_hosts))
        });
        Self {
            port,
            identity_files,
            certificate_files: paths.all(lines, "certificatefile", false),
            identities_only: yes("identitiesonly"),
            identity_agent: paths.agent(one("identityagent")),
            known_hosts,
            known_hosts_global: paths.all(lines, "globalknownhostsfile", true),
            hash_known_hosts: yes("hashknownhosts"),
            host_key_alias: one("hostkeyalias").map(str::to_owned),
            strict: match one("stricthostkeychecking") {
                Some("accept-new") => Strict::AcceptNew,
                Some("no" | "off" | "false") => Strict::Off,
                _ => Strict::Yes,
            },
            family: match one("addressfamily") {
                Some("inet") => Family::V4,
                Some("inet6") => Family::V6,
                _ => Family::Any,
            },
            key_exchanges: key_exchanges(one("kexalgorithms")),
            gssapi: yes("gssapiauthentication"),
            host_based: yes("hostbasedauthentication"),
            needs_program,
            connect_timeout: number("connecttimeout")
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(seconds.into())),
            connection_attempts: number("connectionattempts").unwrap_or(1),
            alive_interval: number("serveraliveinterval").filter(|seconds| *seconds > 0),
            control_path: one("controlpath")
                .filter(|path| *path != "none")
                .map(PathBuf::from),
            hostname,
            user,
        }
    }
}

/// ssh prints what comes out of `+`, `-` and `^`; where they stand as they are, nothing can be told.
fn key_exchanges(list: Option<&str>) -> Vec<String> {
    let list = list.filter(|list| !list.starts_with(['+', '-', '^']));
    let names = list.into_iter().flat_map(|list| list.split(','));
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// The first setting that ssh understands and libssh2, or this program, does not.
fn needs_program(lines: &Lines) -> Option<String> {
    /// Keyword, and the values that mean that it is not in use.
    const PROGRAM_ONLY: [(&str, &[&str]); 11] = [
        ("proxyjump", &["none"]),
        ("proxycommand", &["none"]),
        ("knownhostscommand", &["none"]),
        ("revokedhostkeys", &["none"]),
        ("verifyhostkeydns", &["no", "false"]),
        ("nohostauthenticationforlocalhost", &["no", "false"]),
        ("pkcs11provider", &["none"]),
        ("bindaddress", &["none"]),
        ("bindinterface", &["none"]),
        (
            "pubkeyauthentication",
            &["yes", "true", "unbound", "host-bound"],
        ),
        ("match", &[]),
    ];
    PROGRAM_ONLY.iter().find_map(|(key, unused)| {
        let value = lines.get(*key)?.first()?;
        let in_use = !unused.contains(&value.as_str());
        in_use.then(|| format!("its ssh configuration says `{key} {value}`"))
    })
}

/// Expansion of `~` and of the tokens that paths may have.
struct Paths<'a> {
    me: &'a Whoami,
    user: &'a str,
    hostname: &'a str,
    port: u16,
}

impl Paths<'_> {
    /// `many`: several in one line, separated by blanks.
    fn all(&self, lines: &Lines, key: &str, many: bool) -> Vec<PathBuf> {
        let values = lines.get(key).into_iter().flatten();
        let words = values.flat_map(|value| {
            let words: Vec<&str> = if many {
                value.split_ascii_whitespace().collect()
            } else {
                vec![value.trim()]
            };
            words
        });
        words
            .filter(|word| *word != "none")
            .map(|word| self.expand(word))
            .collect()
    }

    fn agent(&self, value: Option<&str>) -> IdentityAgent {
        match value {
            None | Some("SSH_AUTH_SOCK") => IdentityAgent::Environment,
            Some("none") => IdentityAgent::None,
            Some(path) => match path.strip_prefix('$') {
                Some(variable) => std::env::var_os(variable)
                    .map_or(IdentityAgent::None, |path| IdentityAgent::Path(path.into())),
                None => IdentityAgent::Path(self.expand(path)),
            },
        }
    }

    fn expand(&self, word: &str) -> PathBuf {
        let word = word.trim_matches('"');
        let home = self.me.home.to_string_lossy();
        let mut path = String::new();
        let rest = match word.strip_prefix("~/") {
            Some(rest) => {
                path.push_str(&home);
                path.push('/');
                rest
            }
            None => word,
        };
        let mut characters = rest.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                path.push(character);
                continue;
            }
            match characters.next() {
                Some('d') => path.push_str(&home),
                Some('h') => path.push_str(self.hostname),
                Some('r') => path.push_str(self.user),
                Some('u') => path.push_str(&self.me.name),
                Some('p') => path.push_str(&self.port.to_string()),
                Some('%') => path.push('%'),
                other => path.extend(['\0', '%'].into_iter().chain(other)),
            }
        }
        PathBuf::from(path)
    }

    /// A token that only ssh can expand was marked by a NUL, which no path has.
    fn unclear(&self, paths: &[PathBuf]) -> Option<String> {
        let path = paths
            .iter()
            .map(|path| path.to_string_lossy())
            .find(|path| path.contains('\0'))?;
        Some(format!(
            "its ssh configuration names the path {}",
            path.replace('\0', "")
        ))
    }
}

/// Whatever ssh or its files say: a host has a name and a port, and its class is its own doing.
#[cfg(any(test, fuzzing))]
pub(crate) fn take_garbage(text: &str) {
    let me = Whoami {
        name: "alice".into(),
        home: "/nonexistent".into(),
    };
    let target = HostTarget::new("gpu1");
    let settings = Settings::from_lines(&target, &query::parse(text), &me);
    assert!(!settings.hostname.is_empty() && !settings.user.is_empty() && settings.port > 0);
    assert_eq!(
        settings,
        Settings::from_lines(&target, &query::parse(text), &me)
    );
    let given = HostTarget {
        user: Some("bob".into()),
        port: Some(7),
        ..target
    };
    let settings = Settings::from_lines(&given, &query::parse(text), &me);
    assert_eq!((settings.user.as_str(), settings.port), ("bob", 7));
    if let Some(classes) = classes::Classes::of_text(text, &me.home) {
        assert_eq!(classes.class("gpu1"), classes.class("gpu1"));
    }
}

/// The folder of a path, made for this user alone if it is absent.
pub(crate) fn make_parent(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Whoami {
        Whoami {
            name: "alice".into(),
            home: "/home/alice".into(),
        }
    }

    fn lines(text: &str) -> Lines {
        query::parse(text)
    }

    #[test]
    fn what_ssh_says_is_understood() {
        let text = "host gpu1\nuser bob\nhostname 10.0.0.7\nport 2222\nidentitiesonly yes\n\
            identityfile ~/.ssh/id_%r\nidentityfile /keys/100%%\nidentityagent /run/agent\n\
            userknownhostsfile ~/.ssh/known_hosts /known 2\nglobalknownhostsfile none\n\
            hashknownhosts yes\nstricthostkeychecking accept-new\naddressfamily inet6\n\
            gssapiauthentication yes\nconnecttimeout 7\nconnectionattempts 10\n\
            serveraliveinterval 30\ncontrolpath ~/.ssh/%C\ncertificatefile ~/c-cert.pub\n\
            proxycommand none\n";
        let settings = Settings::from_lines(&HostTarget::new("gpu1"), &lines(text), &me());
        assert_eq!(
            (settings.hostname.as_str(), settings.port),
            ("10.0.0.7", 2222)
        );
        assert_eq!(settings.user, "bob");
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            settings.identity_files,
            paths(&["/home/alice/.ssh/id_bob", "/keys/100%"])
        );
        assert_eq!(
            settings.known_hosts,
            paths(&["/home/alice/.ssh/known_hosts", "/known", "2"])
        );
        assert_eq!(
            settings.certificate_files,
            paths(&["/home/alice/c-cert.pub"])
        );
        assert!(settings.known_hosts_global.is_empty());
        assert_eq!(
            settings.identity_agent,
            IdentityAgent::Path("/run/agent".into())
        );
        assert_eq!(
            (settings.strict, settings.family),
            (Strict::AcceptNew, Family::V6)
        );
        assert!(settings.identities_only && settings.hash_known_hosts && settings.gssapi);
        assert_eq!(settings.control_path, Some("~/.ssh/%C".into()));
        assert!(!settings.host_based);
        assert_eq!(settings.connect_timeout, Some(Duration::from_secs(7)));
        assert_eq!(settings.connection_attempts, 10);
        assert_eq!(settings.alive_interval, Some(30));
        assert_eq!(settings.needs_program, None);
    }

    #[test]
    fn what_the_user_wrote_beside_the_name_wins() {
        let target = HostTarget {
            name: "h".into(),
            user: Some("carol".into()),
            port: Some(7),
        };
        let settings = Settings::from_lines(&target, &lines("user bob\nport 8\n"), &me());
        assert_eq!((settings.user.as_str(), settings.port), ("carol", 7));
        let settings = Settings::from_lines(&HostTarget::new("h"), &Lines::new(), &me());
        assert_eq!((settings.user.as_str(), settings.port), ("alice", 22));
        assert_eq!(
            (settings.hostname.as_str(), settings.strict),
            ("h", Strict::Yes)
        );
    }

    #[test]
    fn what_libssh2_cannot_do_is_said_with_its_reason() {
        for (text, reason) in [
            ("proxyjump gate", Some("proxyjump gate")),
            ("proxycommand nc %h %p", Some("proxycommand nc %h %p")),
            ("proxycommand none", None),
            ("knownhostscommand /x", Some("knownhostscommand")),
            ("verifyhostkeydns false", None),
            ("verifyhostkeydns ask", Some("verifyhostkeydns")),
            ("pkcs11provider /lib/p11.so", Some("pkcs11provider")),
            ("pubkeyauthentication true", None),
            ("identityfile ~/.ssh/%C", Some("%C")),
            ("gssapiauthentication yes", None),
        ] {
            let settings = Settings::from_lines(&HostTarget::new("h"), &lines(text), &me());
            match (reason, settings.needs_program) {
                (None, None) => {}
                (Some(reason), Some(given)) => assert!(given.contains(reason), "{given}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
