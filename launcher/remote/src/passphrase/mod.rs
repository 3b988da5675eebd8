//! Passphrases of encrypted keys: each asked for once, whatever the number of hosts.
//!
//! A key's passphrase is asked for only when a host has said that it would take that key, and is
//! tried on the key file here, before any host sees what comes of it. Who comes second waits for
//! the first one's answer. Passphrases are kept in this process's memory, and go nowhere but into
//! libssh2 and, as the answer to its question, into the ssh program ([`askpass`]).

pub(crate) mod askpass;
mod terminal;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// As many as ssh allows.
const ATTEMPTS_MAX: u32 = 3;

/// What was typed; never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Passphrase(Arc<str>);

impl Passphrase {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}

/// Shared by all that reach hosts for one job; a clone asks no second time.
#[derive(Clone)]
pub struct Passphrases(Arc<Shared>);

type Ask = Box<dyn Fn(&str) -> io::Result<String> + Send + Sync>;

struct Shared {
    ask: Ask,
    /// By key file; or why there is none, for those that come later.
    answers: Mutex<HashMap<PathBuf, Result<Passphrase, String>>>,
    /// Held while somebody is asked.
    turn: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Passphrases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrases(…)")
    }
}

impl Default for Passphrases {
    /// Asks on the terminal that this process was started from; without one, or in the background
    /// of it, nobody is asked and that is said.
    fn default() -> Self {
        Self::asking(terminal::ask)
    }
}

impl Passphrases {
    /// `ask` shows its argument and returns what was typed. It may block.
    pub fn asking(ask: impl Fn(&str) -> io::Result<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            ask: Box::new(ask),
            answers: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }))
    }

    /// Those that are known by now.
    pub(crate) fn opened(&self) -> HashMap<PathBuf, Passphrase> {
        let answers = self.answers();
        let opened = answers.iter().filter_map(|(path, answer)| {
            let passphrase = answer.as_ref().ok()?;
            Some((path.clone(), passphrase.clone()))
        });
        opened.collect()
    }

    /// The key's passphrase, asked for if need be; `opens` tells whether one is right. The error
    /// is a whole sentence for the user.
    pub(crate) async fn unlock(
        &self,
        path: &Path,
        opens: impl Fn(&Passphrase) -> bool + Send + 'static,
    ) -> Result<Passphrase, String> {
        let _turn = self.0.turn.lock().await;
        if let Some(answer) = self.answers().get(path) {
            return answer.clone();
        }
        let (own, shown) = (self.clone(), path.to_owned());
        let asked = tokio::task::spawn_blocking(move || own.ask(&shown, opens));
        let answer = asked.await.unwrap_or_else(|error| Err(error.to_string()));
        self.answers().insert(path.to_owned(), answer.clone());
        answer
    }

    fn ask(&self, path: &Path, opens: impl Fn(&Passphrase) -> bool) -> Result<Passphrase, String> {
        let path = path.display();
        for attempt in 1..=ATTEMPTS_MAX {
            let again = if attempt > 1 { "That is not it. " } else { "" };
            let prompt = format!("{again}Passphrase of the key {path}, for all hosts: ");
            let typed = (self.0.ask)(&prompt).map_err(|error| {
                format!(
                    "the key {path} is protected by a passphrase, and there is nobody to ask: \
                     {error}; load it into the agent: ssh-add {path}"
                )
            })?;
            if typed.is_empty() {
                return Err(format!(
                    "no passphrase was given for the key {path}; `ssh-add {path}` loads it into \
                     the agent"
                ));
            }
            let passphrase = Passphrase::new(&typed);
            if opens(&passphrase) {
                return Ok(passphrase);
            }
        }
        Err(format!(
            "none of {ATTEMPTS_MAX} passphrases opened the key {path}; `ssh-keygen -y -f {path}` \
             tries one without a host"
        ))
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Result<Passphrase, String>>> {
        self.0
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Types these one after the other, and counts.
    fn typing(words: &'static [&'static str]) -> (Passphrases, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let passphrases = Passphrases::asking(move |_| {
            let index = counted.fetch_add(1, Ordering::Relaxed);
            Ok((*words.get(index).expect("asked too often")).to_owned())
        });
        (passphrases, count)
    }

    #[tokio::test]
    async fn many_that_need_the_same_key_ask_once() {
        let (passphrases, count) = typing(&["wrong", "right"]);
        let path = Path::new("/k");
        let all = (0..50)
            .map(|_| passphrases.unlock(path, |typed: &Passphrase| typed.reveal() == "right"));
        for answer in futures_util::future::join_all(all).await {
            assert_eq!(answer.unwrap().reveal(), "right");
        }
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert_eq!(passphrases.opened().len(), 1);
    }

    #[tokio::test]
    async fn who_types_nothing_or_wrong_words_is_not_asked_for_ever() {
        for (words, said) in [
            (&["a", "b", "c"][..], "none of 3 passphrases opened"),
            (&[""], "no passphrase was given"),
        ] {
            let (passphrases, count) = typing(words);
            for _ in 0..2 {
                let reason = passphrases
                    .unlock(Path::new("/k"), |_: &Passphrase| false)
                    .await
                    .unwrap_err();
                assert!(reason.contains(said) && reason.contains("/k"), "{reason}");
            }
            assert_eq!(count.load(Ordering::Relaxed), words.len());
            assert!(passphrases.opened().is_empty());
        }
        let nobody = Passphrases::asking(|_| Err(io::Error::other("there is no terminal")));
        let reason = nobody.unlock(Path::new("/k"), |_: &Passphrase| true).await;
        let reason = reason.unwrap_err();
        for part in ["/k", "there is no terminal", "ssh-add /k"] {
            assert!(reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn a_passphrase_is_not_shown() {
        assert!(!format!("{:?}", Passphrase::new("secret")).contains("secret"));
    }
}
