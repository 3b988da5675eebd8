//! Whether a passphrase opens a key file, found out without any host.

use std::io::Read;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use ssh2::{ErrorCode, Session};

use crate::passphrase::Passphrase;

/// libssh2's word for a message that it could not send.
const NOT_SENT: ErrorCode = ErrorCode::Session(-7);

/// The answer is libssh2's own, which will use the key: it opens the key, computes the public one
/// from it, and only then fails to tell a host that has hung up already.
pub(crate) fn opens(path: &Path, passphrase: &Passphrase) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else {
        return false;
    };
    let Some(session) = nobody() else {
        return false;
    };
    let result = session.userauth_pubkey_memory("", None, &text, Some(passphrase.reveal()));
    result.is_err_and(|error| error.code() == NOT_SENT)
}

/// A session with a socket whose other end is closed.
fn nobody() -> Option<Session> {
    let (here, mut there) = UnixStream::pair().ok()?;
    there.shutdown(Shutdown::Both).ok()?;
    let mut session = Session::new().ok()?;
    session.set_tcp_stream(here);
    // Fails, and has taken the socket.
    session.handshake().err()?;
    // Whatever was said to the closed end is not kept for it.
    let _ = there.read(&mut [0]);
    Some(session)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_right_passphrase_opens_keys_of_all_types_and_formats() {
        let folder = tempfile::tempdir().unwrap();
        for (kind, format) in [
            ("ed25519", "RFC4716"),
            ("rsa", "RFC4716"),
            ("ecdsa", "RFC4716"),
            ("rsa", "PEM"),
            ("ecdsa", "PEM"),
            ("ecdsa", "PKCS8"),
        ] {
            let path = folder.path().join(format!("{kind}-{format}"));
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", kind, "-m", format, "-N", "it is `right`", "-f"]);
            assert!(command.arg(&path).status().unwrap().success());
            for (typed, right) in [("it is `right`", true), ("wrong", false)] {
                assert_eq!(
                    opens(&path, &Passphrase::new(typed)),
                    right,
                    "{kind} {format} {typed}"
                );
            }
        }
        assert!(!opens(Path::new("/nonexistent"), &Passphrase::new("x")));
    }
}
