//! From a name to a session whose host has proven who it is.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::{Duration, Instant};

use ssh2::{ErrorCode, MethodType, Session};

use super::known_hosts::{self, KnownHosts, Verdict};
use super::{Failure, Plan, milliseconds};
use crate::error::ReachCause;
use crate::settings::{Family, Settings, Strict};

/// With several addresses, none may use up the time of the others: a dead IPv6 route must not hide
/// a good IPv4 one.
const ADDRESS_MAX: Duration = Duration::from_secs(5);
/// By what they cost the host's sshd, whose own curve25519 takes 3 ms of a login's 20; of one strength
/// (decision 0021).
const KEX_PREFERRED: [&str; 3] = [
    "ecdh-sha2-nistp256",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
];

/// libssh2's word for it.
const NO_METHOD: i32 = -5;

pub(super) struct Connected {
    pub(super) session: Session,
    pub(super) peer_address: SocketAddr,
    pub(super) local_address: Option<IpAddr>,
    pub(super) notes: Vec<String>,
    /// For error messages.
    pub(super) tried: String,
}

pub(super) fn connect(plan: &Plan, deadline: Instant) -> Result<Connected, Failure> {
    let (stream, peer_address) = connect_tcp(plan, deadline)?;
    let tried = format!("{peer_address} as {}", plan.settings.user);
    let fail = |cause| Failure::new(plan, &tried, cause);

    let settings = &plan.settings;
    let files = settings
        .known_hosts
        .iter()
        .chain(&settings.known_hosts_global);
    let known = KnownHosts::read(files).map_err(|(path, error)| {
        fail(ReachCause::File {
            path,
            reason: error.to_string(),
            option: None,
        })
    })?;
    let (hostname, port) = known_as(settings);
    if known.only_by_authority(hostname, port) {
        let reason = "known_hosts knows it by a certificate authority".to_owned();
        let cause = ReachCause::NeedsProgram {
            reason: reason.clone(),
        };
        return Err(Failure {
            program_may_help: Some(reason),
            ..fail(cause)
        });
    }

    let local_address = stream.local_addr().ok().map(|address| address.ip());
    // Control messages are small and wait for each other.
    let _ = stream.set_nodelay(true);
    let session = shake_hands(plan, stream, &known, deadline)
        .map_err(|error| handshake_failure(plan, &tried, &error))?;
    let note = check_host_key(plan, &session, &known).map_err(fail)?;
    let notes = note.into_iter().collect();
    Ok(Connected {
        session,
        peer_address,
        local_address,
        notes,
        tried,
    })
}

/// Every address of the name in turn, until one answers.
fn connect_tcp(plan: &Plan, deadline: Instant) -> Result<(TcpStream, SocketAddr), Failure> {
    let settings = &plan.settings;
    let name = settings.hostname.as_str();
    let resolved = (name, settings.port).to_socket_addrs().map_err(|error| {
        Failure::new(plan, "", ReachCause::Unresolved(format!("{name}: {error}")))
    })?;
    let addresses: Vec<_> = resolved
        .filter(|address| match settings.family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        })
        .collect();
    let mut errors = Vec::new();
    for address in &addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = if addresses.len() > 1 {
            left.min(ADDRESS_MAX)
        } else {
            left
        };
        // Zero is not a time limit that connect_timeout takes.
        match TcpStream::connect_timeout(address, limit.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok((stream, *address)),
            Err(error) => errors.push(error),
        }
    }
    let shown: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
    let tried = format!("{} as {}", shown.join(", "), settings.user);
    let all = |kind| errors.iter().all(|error: &io::Error| error.kind() == kind);
    let cause = match errors.last() {
        None => ReachCause::Unresolved(format!("{name} has no address of the wanted family")),
        Some(_) if all(io::ErrorKind::ConnectionRefused) => ReachCause::Refused,
        Some(_) if all(io::ErrorKind::TimedOut) => {
            ReachCause::TimedOut(plan.connect_timeout.as_secs())
        }
        Some(error) => ReachCause::Unconnected(error.to_string()),
    };
    Err(Failure::new(plan, &tried, cause))
}

fn shake_hands(
    plan: &Plan,
    stream: TcpStream,
    known: &KnownHosts,
    deadline: Instant,
) -> Result<Session, ssh2::Error> {
    let mut session = Session::new()?;
    prefer(&session, known, &plan.settings)?;
    session.set_tcp_stream(stream);
    let left = deadline.saturating_duration_since(Instant::now());
    session.set_timeout(milliseconds(left));
    session.handshake()?;
    Ok(session)
}

fn handshake_failure(plan: &Plan, tried: &str, error: &ssh2::Error) -> Failure {
    let broken = || ReachCause::Handshake(error.message().to_owned());
    let (cause, program_may_help) = match error.code() {
        // The peer hung up before or in the exchange: MaxStartups, mostly.
        ErrorCode::Session(-2 | -7 | -13 | -43) => (ReachCause::ClosedEarly { attempts: 1 }, None),
        ErrorCode::Session(-9 | -30 | -37) => {
            (ReachCause::TimedOut(plan.connect_timeout.as_secs()), None)
        }
        // No method in common: the host wants one that libssh2 has not.
        ErrorCode::Session(NO_METHOD | -8 | -51) => (
            broken(),
            Some("libssh2 has no key exchange in common with it".into()),
        ),
        _ => (broken(), None),
    };
    Failure {
        program_may_help,
        ..Failure::new(plan, tried, cause)
    }
}

/// Asks for keys of the types that are known first: else a host that is known by one key would
/// show another, and be taken for an impostor.
fn prefer(session: &Session, known: &KnownHosts, settings: &Settings) -> Result<(), ssh2::Error> {
    let supported = |kind| session.supported_algs(kind).unwrap_or_default();
    let kex = key_exchanges(&supported(MethodType::Kex), &settings.key_exchanges);
    let kex = kex.ok_or_else(|| {
        let code = ErrorCode::Session(NO_METHOD);
        ssh2::Error::new(
            code,
            "the ssh configuration allows no key exchange of libssh2's",
        )
    })?;
    session.method_pref(MethodType::Kex, &kex.join(","))?;

    let (hostname, port) = known_as(settings);
    let mut wanted: Vec<&str> = Vec::new();
    let types = known.key_types(hostname, port);
    for kind in &types {
        match kind.as_str() {
            "ssh-rsa" => wanted.extend(["rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"]),
            other => wanted.push(other),
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let all = supported(MethodType::HostKey);
    wanted.retain(|name| all.contains(name));
    let rest = all
        .into_iter()
        .filter(|name| !wanted.contains(name))
        .collect::<Vec<_>>();
    wanted.extend(rest);
    session.method_pref(MethodType::HostKey, &wanted.join(","))
}

/// Of what libssh2 has the allowed ones (all, if none is named), those that cost least first. None: it has
/// none of them.
fn key_exchanges<'a>(supported: &[&'a str], allowed: &[String]) -> Option<Vec<&'a str>> {
    // Words among the methods that say what the client understands.
    let is_marker = |name: &str| name == "ext-info-c" || name.starts_with("kex-strict-");
    let is_allowed = |name: &str| allowed.is_empty() || allowed.iter().any(|it| it == name);
    let mut methods: Vec<&str> = supported.to_vec();
    methods.retain(|name| is_marker(name) || is_allowed(name));
    let rank = |name: &&str| KEX_PREFERRED.iter().position(|own| own == name);
    methods.sort_by_key(|name| rank(name).unwrap_or(KEX_PREFERRED.len()));
    let any = methods.iter().any(|name| !is_marker(name));
    any.then_some(methods)
}

/// Gives a note if the key was added, or if the user's own settings let it pass.
fn check_host_key(
    plan: &Plan,
    session: &Session,
    known: &KnownHosts,
) -> Result<Option<String>, ReachCause> {
    let settings = &plan.settings;
    let (key, _) = session
        .host_key()
        .ok_or_else(|| ReachCause::Handshake("the host showed no key".into()))?;
    let (hostname, port) = known_as(settings);
    let key_type = known_hosts::key_type(key)
        .unwrap_or("unknown type")
        .to_owned();
    let fingerprint = known_hosts::fingerprint(key);
    match known.check(hostname, port, key) {
        Verdict::Known => Ok(None),
        Verdict::Revoked { place } => Err(ReachCause::HostKeyRevoked {
            key_type,
            fingerprint,
            place,
        }),
        Verdict::Changed { .. } if settings.strict == Strict::Off => Ok(Some(format!(
            "its key has changed; StrictHostKeyChecking is off ({fingerprint})"
        ))),
        Verdict::Changed { place, file } => {
            let name = known_hosts::name_of(hostname, port);
            let forget = format!("ssh-keygen -f {} -R '{name}'", file.display());
            Err(ReachCause::HostKeyChanged {
                key_type,
                fingerprint,
                place,
                forget,
            })
        }
        Verdict::Unknown if plan.accept_new || settings.strict != Strict::Yes => {
            Ok(learn(settings, key, &format!("{key_type} {fingerprint}")))
        }
        Verdict::Unknown => {
            let learn = keyscan(settings, &key_type);
            Err(ReachCause::HostKeyUnknown {
                key_type,
                fingerprint,
                learn,
            })
        }
    }
}

/// Adds the key; where that fails the host is still the one that was to be accepted, as ssh sees
/// it. No note if the user's settings keep no record.
fn learn(settings: &Settings, key: &[u8], shown: &str) -> Option<String> {
    let file = settings
        .known_hosts
        .first()
        .filter(|file| *file != Path::new("/dev/null"))?;
    let (hostname, port) = known_as(settings);
    let name = known_hosts::name_of(hostname, port);
    Some(
        match known_hosts::add(file, &name, key, settings.hash_known_hosts) {
            Ok(()) => format!("key {shown} added to {}", file.display()),
            Err(error) => format!(
                "key {shown} accepted, but not added to {}: {error}",
                file.display()
            ),
        },
    )
}

/// The line that adds the key.
fn keyscan(settings: &Settings, key_type: &str) -> String {
    let kind = key_type.strip_prefix("ssh-").unwrap_or(key_type);
    let kind = if kind.starts_with("ecdsa") {
        "ecdsa"
    } else {
        kind
    };
    let port = if settings.port == 22 {
        String::new()
    } else {
        format!(" -p {}", settings.port)
    };
    let file = settings
        .known_hosts
        .first()
        .map(|file| file.display().to_string());
    let file = file.unwrap_or_else(|| "~/.ssh/known_hosts".into());
    let rename = match &settings.host_key_alias {
        Some(alias) => format!(" | sed 's/^[^ ]*/{alias}/'"),
        None => String::new(),
    };
    format!(
        "ssh-keyscan -t {kind}{port} {}{rename} >> {file}",
        settings.hostname
    )
}

/// An alias stands without a port.
fn known_as(settings: &Settings) -> (&str, u16) {
    match &settings.host_key_alias {
        Some(alias) => (alias, 22),
        None => (&settings.hostname, settings.port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_that_costs_least_is_asked_for_first_among_those_allowed() {
        const ALL: [&str; 5] = [
            "curve25519-sha256",
            "ecdh-sha2-nistp521",
            "ecdh-sha2-nistp256",
            "ext-info-c",
            "kex-strict-c-v00@openssh.com",
        ];
        let chosen = |allowed: &[&str]| {
            let allowed: Vec<String> = allowed.iter().map(|&name| name.to_owned()).collect();
            key_exchanges(&ALL, &allowed).map(|methods| methods.join(","))
        };
        let markers = "ext-info-c,kex-strict-c-v00@openssh.com";
        let every = "ecdh-sha2-nistp256,curve25519-sha256,ecdh-sha2-nistp521";
        assert_eq!(chosen(&[]), Some(format!("{every},{markers}")));
        let some = [
            "sntrup761x25519-sha512",
            "ecdh-sha2-nistp521",
            "curve25519-sha256",
        ];
        let expected = format!("curve25519-sha256,ecdh-sha2-nistp521,{markers}");
        assert_eq!(chosen(&some), Some(expected));
        assert_eq!(chosen(&["sntrup761x25519-sha512"]), None);
    }
}
