//! The runtime's errors as the exceptions of `rlaunch/errors.py`.

use crate::signals;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlaunch_runtime::{Error, Others, Rank};

/// `rank` is this process's; `None` where it has none yet.
pub(crate) fn to_python(py: Python<'_>, error: &Error, rank: Option<u32>) -> PyErr {
    let (class, peer) = match error {
        // What the handler raised is what the user wants to see: KeyboardInterrupt.
        Error::Interrupted { .. } => match signals::take_raised() {
            Some(raised) => return raised,
            None => ("InterruptedError", None),
        },
        Error::Allocation { .. } => return PyMemoryError::new_err(error.to_string()),
        // A wrong argument is wrong before anything was sent, as any Python function's.
        Error::Argument(text) => return PyValueError::new_err(text.clone()),
        Error::Mismatch {
            left_rank,
            right_rank,
            ..
        } => {
            let left_is_this = rank == Some(left_rank.rank);
            (
                "MismatchError",
                Some(if left_is_this { right_rank } else { left_rank }),
            )
        }
        Error::MessageMismatch {
            sender, receiver, ..
        } => {
            let sender_is_this = rank == Some(sender.rank);
            (
                "MismatchError",
                Some(if sender_is_this { receiver } else { sender }),
            )
        }
        Error::PeerFailed { peer, .. } => ("PeerFailedError", Some(peer)),
        Error::PeerLeft { peer, .. } => ("PeerLeftError", Some(peer)),
        Error::Timeout { by, missing, .. } => {
            // Told by a rank that waited for this one, it is about that rank.
            let is_other = |one: &&Rank| rank != Some(one.rank);
            let peer = missing.iter().find(is_other);
            ("TimeoutError", peer.or(Some(by).filter(is_other)))
        }
        Error::Init(_) => ("InitError", None),
        Error::Connection { peer, .. } => ("ConnectionError", Some(peer)),
        Error::Aborted { by, .. } => ("AbortedError", Some(by)),
        Error::Excluded { by } => ("ExcludedError", Some(by)),
        Error::Forked => ("ForkedError", None),
        Error::Finalized => ("FinalizedError", None),
        Error::Cancelled => ("CancelledError", None),
        _ => ("Error", None),
    };
    new(py, class, &error.to_string(), rank, (peer, error.others()))
}

/// An exception that only the binding raises.
pub(crate) fn plain(py: Python<'_>, class: &str, text: &str) -> PyErr {
    new(py, class, text, None, (None, None))
}

fn new(
    py: Python<'_>,
    class: &str,
    text: &str,
    rank: Option<u32>,
    (peer, others): (Option<&Rank>, Option<&Others>),
) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let details = PyDict::new(py);
        details.set_item("rank", rank)?;
        if let Some(peer) = peer {
            details.set_item("peer", peer.rank)?;
            details.set_item("host", &peer.host)?;
            details.set_item("pid", peer.pid)?;
        }
        if let Some(others) = others {
            let doing = PyDict::new(py);
            for seen in others.seen.iter() {
                doing.set_item(seen.rank.rank, seen.doing.to_string())?;
            }
            details.set_item("others", doing)?;
        }
        let class = py.import("rlaunch.errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call((text,), Some(&details))?))
    };
    // What can fail here (memory, a damaged package) is an exception itself.
    make().unwrap_or_else(|error| error)
}
