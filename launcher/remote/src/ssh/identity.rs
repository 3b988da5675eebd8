//! Private keys in files, with what stands beside them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Plan;
use super::certificate;
use super::keyfile::{self, KeyFile};
use super::known_hosts::key_type;
use crate::error::ReachCause;
use crate::passphrase::Passphrase;

/// A private key file that is there, or at least its public part.
pub(super) struct Identity {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) file: KeyFile,
    /// Certificates made for it.
    pub(super) certificates: Vec<Shown>,
    /// Named by `-i`.
    pub(super) named: bool,
    /// There is no private key here: only the agent can sign.
    pub(super) is_public_only: bool,
    pub(super) passphrase: Option<Passphrase>,
    /// Why it is not used, and what to do.
    pub(super) unusable: Option<Unusable>,
}

pub(super) struct Unusable {
    pub(super) why: String,
    pub(super) advice: String,
}

/// A public part, as a line of text.
pub(super) struct Shown {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// Why a host would not take it.
    pub(super) trouble: Option<String>,
}

impl Identity {
    /// It is encrypted, and its passphrase not known yet.
    pub(super) fn is_locked(&self) -> bool {
        self.file.encrypted && self.passphrase.is_none()
    }
}

/// Files named by `-i` must be there, or their public part; those of the configuration may be absent.
pub(super) fn find(plan: &Plan) -> Result<Vec<Identity>, ReachCause> {
    let mut identities: Vec<Identity> = Vec::new();
    let named = plan.identity_files.iter().map(|path| (path, true));
    let configured = plan.settings.identity_files.iter();
    for (path, named) in named.chain(configured.map(|path| (path, false))) {
        if identities.iter().any(|identity| identity.path == *path) {
            continue;
        }
        match fs::read(path) {
            Ok(text) => identities.push(identity(plan, path, named, &text)),
            // The agent may have the private part, as with ssh.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && has_public(path) => {
                identities.push(Identity {
                    is_public_only: true,
                    ..identity(plan, path, named, b"")
                });
            }
            Err(error) if named => {
                return Err(ReachCause::File {
                    path: path.clone(),
                    reason: error.to_string(),
                    option: Some("identity"),
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => identities.push(Identity {
                unusable: Some(Unusable {
                    why: error.to_string(),
                    advice: format!("the key {} cannot be read: {error}", path.display()),
                }),
                ..identity(plan, path, named, b"")
            }),
        }
    }
    Ok(identities)
}

fn identity(plan: &Plan, path: &Path, named: bool, text: &[u8]) -> Identity {
    let text = String::from_utf8_lossy(text).into_owned();
    let mut file = keyfile::parse(&text);
    // `-i FILE.pub` means the same key.
    let shown = public_key(&text);
    let is_public_only = shown.is_some();
    file.public = file.public.or(shown);
    if file.public.is_none() {
        let text = fs::read_to_string(beside(path, ".pub"));
        file.public = text.ok().and_then(|text| keyfile::parse_public(&text));
    }
    let certificates = std::iter::once(beside(path, "-cert.pub"))
        .chain(plan.settings.certificate_files.iter().cloned())
        .filter_map(|path| certificate_for(path, file.public.as_deref(), &plan.settings.user))
        .collect();
    Identity {
        path: path.to_owned(),
        text,
        file,
        certificates,
        named,
        is_public_only,
        passphrase: plan.passphrases.get(path).cloned(),
        unusable: open_to_others(path).filter(|_| !is_public_only),
    }
}

/// Whether the public part of `path` stands beside it.
pub fn has_public(path: &Path) -> bool {
    let text = fs::read_to_string(beside(path, ".pub"));
    text.is_ok_and(|text| public_key(&text).is_some())
}

fn public_key(text: &str) -> Option<Vec<u8>> {
    keyfile::parse_public(text).filter(|blob| key_type(blob).is_some())
}

/// As ssh has it: a private key of ours that others can read is private no more. The same for both
/// carriers, or it would depend on the host whether a key works.
fn open_to_others(path: &Path) -> Option<Unusable> {
    let data = fs::metadata(path).ok()?;
    let mode = data.mode() & 0o7777;
    if data.uid() != nix::unistd::getuid().as_raw() || mode & 0o077 == 0 {
        return None;
    }
    let path = path.display();
    Some(Unusable {
        why: format!("its mode {mode:04o} lets others at it"),
        advice: format!(
            "the key {path} is not used, for others can read it (mode {mode:04o}): chmod 600 {path}"
        ),
    })
}

/// If it was made for the key: then it has the key's own bytes in it.
fn certificate_for(path: PathBuf, public: Option<&[u8]>, user: &str) -> Option<Shown> {
    let text = fs::read_to_string(&path).ok()?;
    let blob = keyfile::parse_public(&text)?;
    // Behind the type, the key's own fields stand in the certificate as they are in the key.
    let fields = public.and_then(|public| public.get(4 + key_type(public)?.len()..));
    let fits = |fields: &[u8]| {
        !fields.is_empty() && blob.windows(fields.len()).any(|window| window == fields)
    };
    if !fields.is_none_or(fits) {
        return None;
    }
    let parsed = certificate::parse(&blob);
    let trouble = parsed.and_then(|parsed| parsed.trouble(user, SystemTime::now()));
    Some(Shown {
        path,
        text,
        trouble,
    })
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
