//! Logging in with keys: those named by `-i`, the agent's, the configured files.
//!
//! A password is never tried. Nor is a passphrase asked for here, for a host's patience with a
//! login is short: an encrypted key is shown to the host, and if the host would take it, that is
//! part of the refusal; the caller asks, and comes again. sshd hangs up after a few keys
//! (MaxAuthTries, 6), so keys that are most likely right come first, and each only once.

use std::path::PathBuf;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ssh2::{Agent, ErrorCode, PublicKey, Session};

use super::identity::{self, Identity, Unusable};
use super::known_hosts::{fingerprint, key_type};
use super::{Failure, Plan};
use crate::error::ReachCause;
use crate::settings::IdentityAgent;

/// libssh2's words for: the host does not take this key, and: it does, but the key can't sign.
const NOT_TAKEN: ErrorCode = ErrorCode::Session(-18);
const NOT_SIGNED: ErrorCode = ErrorCode::Session(-19);

/// What was tried, for the error.
#[derive(Default)]
struct Record {
    keys: Vec<String>,
    /// Encrypted keys that the host would take, or might.
    locked: Vec<PathBuf>,
    /// What to do, by the first key that has something wrong with it.
    advice: Option<String>,
    in_hardware: bool,
    hung_up: bool,
}

/// A session that logs in, and what has come of it.
struct Login<'a> {
    plan: &'a Plan,
    session: &'a Session,
    agent: Option<Agent>,
    /// The agent's keys.
    held: Vec<Rc<PublicKey>>,
    shown: Vec<Vec<u8>>,
    record: Record,
}

pub(super) fn login(plan: &Plan, session: &Session, tried: &str) -> Result<(), Failure> {
    let user = &plan.settings.user;
    let fail = |cause| Failure::new(plan, tried, cause);
    // Asking what is offered is itself an attempt without a key, which some hosts take.
    let offered = match session.auth_methods(user) {
        Ok(offered) => offered.to_owned(),
        Err(_) if session.authenticated() => return Ok(()),
        Err(error) => return Err(fail(ReachCause::Handshake(error.message().to_owned()))),
    };
    if session.authenticated() {
        return Ok(());
    }
    let identities = identity::find(plan).map_err(fail)?;
    let mut login = Login::new(plan, session);
    if offered.split(',').any(|method| method == "publickey") && login.try_keys(&identities) {
        return Ok(());
    }
    let mut record = login.record;
    record.in_hardware |= identities
        .iter()
        .any(|identity| identity.file.in_hardware());
    let program_may_help = program_may_help(plan, &offered, &record);
    if record.hung_up {
        record
            .keys
            .push("then the host hung up: too many keys? Name the right one with -i".into());
    }
    let cause = ReachCause::LoginRefused {
        user: user.clone(),
        keys: record.keys,
        offered,
    };
    let mut failure = fail(cause);
    failure.error.advice = record.advice;
    Err(Failure {
        program_may_help,
        locked: record.locked,
        ..failure
    })
}

impl<'a> Login<'a> {
    fn new(plan: &'a Plan, session: &'a Session) -> Self {
        let agent = connect_agent(plan, session);
        let held = agent.as_ref().and_then(|agent| agent.identities().ok());
        Self {
            plan,
            session,
            held: held.unwrap_or_default().into_iter().map(Rc::new).collect(),
            agent,
            shown: Vec::new(),
            record: Record::default(),
        }
    }

    /// In the order: `-i`, the agent, files. True once the host takes one.
    fn try_keys(&mut self, identities: &[Identity]) -> bool {
        let (named, configured): (Vec<_>, Vec<_>) =
            identities.iter().partition(|identity| identity.named);
        if named
            .into_iter()
            .any(|identity| self.try_identity(identity))
        {
            return true;
        }
        let is_configured = |key: &Rc<PublicKey>| {
            identities.iter().any(|identity| {
                let public = identity.file.public.as_deref();
                public.is_some_and(|public| public == key.blob())
            })
        };
        let held = self.held.clone();
        let (first, rest): (Vec<_>, Vec<_>) = held.into_iter().partition(|key| is_configured(key));
        let rest = rest
            .into_iter()
            .filter(|_| !self.plan.settings.identities_only)
            .collect::<Vec<_>>();
        first
            .into_iter()
            .chain(rest)
            .any(|key| self.try_agent_key(&key))
            || configured
                .into_iter()
                .any(|identity| self.try_identity(identity))
    }

    fn try_agent_key(&mut self, key: &PublicKey) -> bool {
        let Some(agent) = &self.agent else {
            return false;
        };
        if self.record.hung_up || self.shown.iter().any(|blob| blob == key.blob()) {
            return false;
        }
        self.shown.push(key.blob().to_vec());
        let kind = key_type(key.blob()).unwrap_or("unknown type");
        self.record.in_hardware |= kind.starts_with("sk-");
        let name = format!(
            "agent's {kind} {} {}",
            key.comment(),
            fingerprint(key.blob())
        );
        let result = agent.userauth(&self.plan.settings.user, key);
        self.note(result, name)
    }

    /// A file's key: with each certificate, by the agent if it holds it, else plain.
    fn try_identity(&mut self, identity: &Identity) -> bool {
        let path = identity.path.display();
        if let Some(Unusable { why, advice }) = &identity.unusable {
            self.record.keys.push(format!("{path}: {why}"));
            self.advise(advice);
            return false;
        }
        if identity.file.in_hardware() {
            return false;
        }
        if identity.is_public_only {
            return self.try_public_only(identity);
        }
        for certificate in &identity.certificates {
            let shown = certificate.path.display();
            let name = match &certificate.trouble {
                None => format!("{path} with {shown}"),
                Some(trouble) => format!("{path} with {shown}: {trouble}"),
            };
            if self.try_file(identity, Some(&certificate.text), name) {
                return true;
            }
            if let Some(trouble) = &certificate.trouble {
                self.advise(&format!("the certificate {shown} is no good: {trouble}"));
            }
        }
        let public = identity.file.public.as_deref();
        let in_agent = self.held.iter().find(|key| Some(key.blob()) == public);
        if let Some(key) = in_agent.cloned() {
            return self.try_agent_key(&key);
        }
        let Some(public) = public else {
            return self.try_file(identity, None, path.to_string());
        };
        if self.shown.iter().any(|blob| blob == public) {
            return false;
        }
        self.shown.push(public.to_vec());
        let kind = key_type(public).unwrap_or_default();
        let text = format!("{kind} {}", STANDARD.encode(public));
        self.try_file(identity, Some(&text), path.to_string())
    }

    /// The agent signs, or nobody can.
    fn try_public_only(&mut self, identity: &Identity) -> bool {
        let public = identity.file.public.as_deref();
        let in_agent = self.held.iter().find(|key| Some(key.blob()) == public);
        if let Some(key) = in_agent.cloned() {
            return self.try_agent_key(&key);
        }
        if identity.named {
            let path = identity.path.display();
            let why = "only its public part is here, and the agent does not have it";
            self.record.keys.push(format!("{path}: {why}"));
            self.advise(&format!(
                "`ssh-add` the key of {path}.pub, or name another with -i"
            ));
        }
        false
    }

    /// `public`: the key or a certificate of it; computed from the private one if it is not known.
    fn try_file(&mut self, identity: &Identity, public: Option<&str>, name: String) -> bool {
        if self.record.hung_up {
            return false;
        }
        let locked = identity.is_locked();
        if locked && public.is_none() {
            // There is nothing to ask the host about.
            self.lock(identity);
            return false;
        }
        let result = self.session.userauth_pubkey_memory(
            &self.plan.settings.user,
            public,
            &identity.text,
            identity.passphrase.as_ref().map(|phrase| phrase.reveal()),
        );
        match result {
            Err(error) if locked && error.code() == NOT_SIGNED && !hung_up(&error) => {
                self.lock(identity);
                false
            }
            result => self.note(result, name),
        }
    }

    fn lock(&mut self, identity: &Identity) {
        if !self.record.locked.contains(&identity.path) {
            self.record.locked.push(identity.path.clone());
            let path = identity.path.display();
            self.record.keys.push(format!("{path}: encrypted"));
        }
    }

    fn advise(&mut self, advice: &str) {
        self.record.advice.get_or_insert_with(|| advice.to_owned());
    }

    /// Records a refusal; true for success.
    fn note(&mut self, result: Result<(), ssh2::Error>, name: String) -> bool {
        let Err(error) = result else { return true };
        self.record.hung_up |= hung_up(&error);
        self.record.keys.push(match error.code() {
            code if code == NOT_TAKEN || code == NOT_SIGNED => name,
            _ => format!("{name}: {}", error.message()),
        });
        false
    }
}

fn hung_up(error: &ssh2::Error) -> bool {
    matches!(error.code(), ErrorCode::Session(-7 | -13 | -43))
        || error.message().contains("Waiting for")
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
