//! Logging in with keys: those named by `-i`, the agent's, the configured files.
//!
//! A passphrase is never asked for, and a password never tried: a launch must not stop at a
//! prompt that nobody sees, times the number of hosts. A key that is encrypted works through the
//! agent. sshd hangs up after a few keys (MaxAuthTries, 6), so keys that are most likely right come
//! first, and each only once.

use std::fs;
use std::path::{Path, PathBuf};

use ssh2::{Agent, ErrorCode, PublicKey, Session};

use super::keyfile::{self, KeyFile};
use super::known_hosts::{fingerprint, key_type};
use super::{Failure, Plan};
use crate::error::ReachCause;
use crate::settings::IdentityAgent;

/// A private key file that is there.
struct Identity {
    path: PathBuf,
    file: KeyFile,
    /// Certificates made for it.
    certificates: Vec<PathBuf>,
    /// Named by `-i`.
    named: bool,
}

/// What was tried, for the error.
#[derive(Default)]
struct Record {
    keys: Vec<String>,
    encrypted: Vec<PathBuf>,
    in_hardware: bool,
    hung_up: bool,
}

pub(super) fn login(plan: &Plan, session: &Session, tried: &str) -> Result<(), Failure> {
    let user = &plan.settings.user;
    let fail = |cause| Failure::new(plan, tried, cause);
    // Asking what is offered is itself an attempt without a key, which some hosts take.
    let offered = match session.auth_methods(user) {
        Ok(offered) => offered.to_owned(),
        Err(error) => return Err(fail(ReachCause::Handshake(error.message().to_owned()))),
    };
    if session.authenticated() {
        return Ok(());
    }
    let identities = identities(plan).map_err(fail)?;
    let mut record = Record::default();
    if offered.split(',').any(|method| method == "publickey")
        && try_keys(plan, session, &identities, &mut record)
    {
        return Ok(());
    }
    record.in_hardware = identities
        .iter()
        .any(|identity| identity.file.in_hardware());
    let program_may_help = program_may_help(plan, &offered, &record);
    if record.hung_up {
        record
            .keys
            .push("then the host hung up: too many keys? Name the right one with -i".into());
    }
    let Record {
        keys, encrypted, ..
    } = record;
    let cause = ReachCause::LoginRefused {
        user: user.clone(),
        keys,
        encrypted,
        offered,
    };
    Err(Failure {
        program_may_help,
        ..fail(cause)
    })
}

/// In the order: `-i`, the agent, files. True once the host takes one.
fn try_keys(plan: &Plan, session: &Session, identities: &[Identity], record: &mut Record) -> bool {
    let agent = connect_agent(plan, session);
    let held = agent
        .as_ref()
        .and_then(|agent| agent.identities().ok())
        .unwrap_or_default();
    let mut shown: Vec<Vec<u8>> = Vec::new();

    for identity in identities.iter().filter(|identity| identity.named) {
        if try_identity(
            plan,
            session,
            identity,
            agent.as_ref(),
            &held,
            &mut shown,
            record,
        ) {
            return true;
        }
    }
    let is_configured = |key: &PublicKey| {
        identities
            .iter()
            .any(|identity| identity.file.public.as_deref() == Some(key.blob()))
    };
    let (first, rest): (Vec<_>, Vec<_>) = held.iter().partition(|key| is_configured(key));
    let rest = rest.into_iter().filter(|_| !plan.settings.identities_only);
    if let Some(agent) = &agent {
        for key in first.into_iter().chain(rest) {
            if try_agent_key(plan, agent, key, &mut shown, record) {
                return true;
            }
            if record.hung_up {
                return false;
            }
        }
    }
    identities
        .iter()
        .filter(|identity| !identity.named)
        .any(|identity| {
            try_identity(
                plan,
                session,
                identity,
                agent.as_ref(),
                &held,
                &mut shown,
                record,
            )
        })
}

fn connect_agent(plan: &Plan, session: &Session) -> Option<Agent> {
    let mut agent = match &plan.settings.identity_agent {
        IdentityAgent::None => return None,
        IdentityAgent::Environment => {
            std::env::var_os("SSH_AUTH_SOCK").filter(|path| !path.is_empty())?;
            session.agent().ok()?
        }
        IdentityAgent::Path(path) => {
            let mut agent = session.agent().ok()?;
            agent.set_identity_path(path).ok()?;
            agent
        }
    };
    agent.connect().ok()?;
    agent.list_identities().ok()?;
    Some(agent)
}

fn try_agent_key(
    plan: &Plan,
    agent: &Agent,
    key: &PublicKey,
    shown: &mut Vec<Vec<u8>>,
    record: &mut Record,
) -> bool {
    if record.hung_up || shown.iter().any(|blob| blob == key.blob()) {
        return false;
    }
    shown.push(key.blob().to_vec());
    let kind = key_type(key.blob()).unwrap_or("unknown type");
    record.in_hardware |= kind.starts_with("sk-");
    let name = format!(
        "agent's {kind} {} {}",
        key.comment(),
        fingerprint(key.blob())
    );
    note(agent.userauth(&plan.settings.user, key), name, record)
}

/// A file's key: by the agent if it holds it, else with each certificate, else plain.
fn try_identity(
    plan: &Plan,
    session: &Session,
    identity: &Identity,
    agent: Option<&Agent>,
    held: &[PublicKey],
    shown: &mut Vec<Vec<u8>>,
    record: &mut Record,
) -> bool {
    let public = identity.file.public.as_deref();
    let in_agent = held.iter().find(|key| Some(key.blob()) == public);
    let user = &plan.settings.user;
    let path = &identity.path;
    if !identity.file.encrypted {
        for certificate in &identity.certificates {
            if record.hung_up {
                return false;
            }
            let name = format!("{} with {}", path.display(), certificate.display());
            let result = session.userauth_pubkey_file(user, Some(certificate), path, None);
            if note(result, name, record) {
                return true;
            }
        }
    }
    if let (Some(agent), Some(key)) = (agent, in_agent) {
        return try_agent_key(plan, agent, key, shown, record);
    }
    if identity.file.encrypted {
        record.encrypted.push(path.clone());
        return false;
    }
    if record.hung_up || identity.file.in_hardware() {
        return false;
    }
    if let Some(public) = public {
        if shown.iter().any(|blob| blob == public) {
            return false;
        }
        shown.push(public.to_vec());
    }
    let result = session.userauth_pubkey_file(user, None, path, None);
    note(result, path.display().to_string(), record)
}

/// Records a refusal; true for success.
fn note(result: Result<(), ssh2::Error>, name: String, record: &mut Record) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => {
            record.hung_up |= matches!(error.code(), ErrorCode::Session(-7 | -13 | -43));
            record.keys.push(match error.code() {
                ErrorCode::Session(-18 | -19) => name,
                _ => format!("{name}: {}", error.message()),
            });
            false
        }
    }
}

/// Files named by `-i` must be there; those of the configuration may be absent.
fn identities(plan: &Plan) -> Result<Vec<Identity>, ReachCause> {
    let settings = &plan.settings;
    let mut identities: Vec<Identity> = Vec::new();
    let named = plan.identity_files.iter().map(|path| (path, true));
    for (path, named) in named.chain(settings.identity_files.iter().map(|path| (path, false))) {
        if identities.iter().any(|identity| identity.path == *path) {
            continue;
        }
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if named => {
                return Err(ReachCause::File {
                    path: path.clone(),
                    reason: error.to_string(),
                });
            }
            Err(_) => continue,
        };
        let mut file = keyfile::parse(&String::from_utf8_lossy(&text));
        if file.public.is_none() {
            let text = fs::read_to_string(beside(path, ".pub"));
            file.public = text.ok().and_then(|text| keyfile::parse_public(&text));
        }
        let certificates = std::iter::once(beside(path, "-cert.pub"))
            .chain(settings.certificate_files.iter().cloned())
            .filter(|certificate| fits(certificate, file.public.as_deref()))
            .collect();
        identities.push(Identity {
            path: path.clone(),
            file,
            certificates,
            named,
        });
    }
    Ok(identities)
}

/// Whether a certificate was made for a key: it has the key's own bytes in it.
fn fits(certificate: &Path, public: Option<&[u8]>) -> bool {
    let text = fs::read_to_string(certificate).ok();
    let Some(certificate) = text.and_then(|text| keyfile::parse_public(&text)) else {
        return false;
    };
    // Behind the type, the key's own fields stand in the certificate as they are in the key.
    let Some(fields) = public.and_then(|public| Some(&public[4 + key_type(public)?.len()..]))
    else {
        return true;
    };
    certificate
        .windows(fields.len())
        .any(|window| window == fields)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Ways that the host offers, the user has switched on, and libssh2 has not.
fn program_may_help(plan: &Plan, offered: &str, record: &Record) -> Option<String> {
    let offers = |method: &str| offered.split(',').any(|word| word.starts_with(method));
    if plan.settings.gssapi && offers("gssapi") {
        return Some("the host takes Kerberos tickets".into());
    }
    if plan.settings.host_based && offers("hostbased") {
        return Some("the host takes host-based logins".into());
    }
    record
        .in_hardware
        .then(|| "one of its keys lives in a security key".into())
}
