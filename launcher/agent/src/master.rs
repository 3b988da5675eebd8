//! MASTER_ADDR and MASTER_PORT: an address that every host has proven, a port that is held.
//!
//! *Proof.* Rank 0's agent listens on one port of every address. A prover connects to a candidate
//! address and sends the first half of a nonce that only this job knows; the listener answers
//! with the second half, and only to that. So a connection counts only if *that* agent was at the
//! other end: on an address that every host has (docker0's, say) one reaches oneself.
//!
//! *Hold.* The port is bound without SO_REUSEADDR, so that it is free of anybody else; then the
//! option is set and the socket is kept, never listening (`hold` says how a named port that was
//! just in use is told from one that is). torch's store sets the option and can
//! therefore bind and listen; an ephemeral port of another program can't fall on it; who connects
//! too early is refused, and tries again.

mod hold;
mod probe;

use std::net::TcpListener as StdListener;
use std::time::Duration;

use nix::sys::socket::Backlog;
use rlaunch_control::v1::{
    OpenMasterReply, OpenMasterRequest, Proof, ProveMasterReply, ProveMasterRequest,
};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tonic::Status;

pub(crate) use hold::HoldError;

/// Bytes of the nonce: each half cannot be guessed.
const NONCE_BYTES: usize = 32;
/// Planning a job of many hosts; then nobody asks any more.
const LISTEN_MAX: Duration = Duration::from_secs(120);
/// After the job's start, for a host that is late.
const LISTEN_AFTER_START: Duration = Duration::from_secs(5);
/// For one address, where the request says nothing.
const PROVE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(2);
/// Candidate addresses of one host.
const ADDRESSES_MAX: usize = 256;

/// Kept to the end of the job.
pub(crate) struct Master {
    /// None if the user wants none held.
    _held: Option<hold::Held>,
    listener: AbortHandle,
}

impl Drop for Master {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Master {
    /// Inside the runtime.
    pub(crate) fn open(request: &OpenMasterRequest) -> Result<(Self, OpenMasterReply), HoldError> {
        let held = hold::hold(request.port)?;
        let master_port = held.port();
        let (listener, probe_port) = listen().map_err(HoldError::Probe)?;
        let nonce: [u8; NONCE_BYTES] = crate::random::bytes();
        let answering = async move {
            tokio::time::timeout(LISTEN_MAX, probe::answer(listener, nonce))
                .await
                .ok();
        };
        let listener = tokio::spawn(answering).abort_handle();
        let master = Self {
            _held: request.hold.then_some(held),
            listener,
        };
        let reply = OpenMasterReply {
            master_port: master_port.into(),
            probe_port: probe_port.into(),
            nonce: nonce.to_vec().into(),
        };
        Ok((master, reply))
    }

    /// The job starts: the probe closes soon, the port stays held.
    pub(crate) fn planning_is_over(&mut self) {
        let listener = self.listener.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LISTEN_AFTER_START).await;
            listener.abort();
        });
    }
}

/// Tries every address at once.
pub(crate) async fn prove(request: ProveMasterRequest) -> ProveMasterReply {
    let timeout = match request.timeout_ms {
        0 => PROVE_TIMEOUT_DEFAULT,
        ms => Duration::from_millis(ms.into()),
    };
    let mut tries = JoinSet::new();
    for (index, address) in request
        .addresses
        .into_iter()
        .take(ADDRESSES_MAX)
        .enumerate()
    {
        let nonce = request.nonce.clone();
        let port = request.probe_port;
        tries.spawn(async move {
            let tried = tokio::time::timeout(timeout, probe::ask(&address, port, &nonce)).await;
            let why_not = match tried {
                Ok(Ok(())) => String::new(),
                Ok(Err(why)) => why,
                Err(_) => format!("no answer within {:.1} s", timeout.as_secs_f64()),
            };
            (
                index,
                Proof {
                    address,
                    proven: why_not.is_empty(),
                    why_not,
                },
            )
        });
    }
    let mut proofs = tries.join_all().await;
    proofs.sort_by_key(|(index, _)| *index);
    ProveMasterReply {
        proofs: proofs.into_iter().map(|(_, proof)| proof).collect(),
    }
}

/// One port of every address, of both families where there are two.
fn listen() -> std::io::Result<(TcpListener, u16)> {
    let listener = StdListener::bind(("::", 0)).or_else(|_| StdListener::bind(("0.0.0.0", 0)))?;
    // All hosts come at once, by every address. Whom a full queue drops tries again after a second.
    nix::sys::socket::listen(&listener, Backlog::MAXCONN)?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    Ok((TcpListener::from_std(listener)?, port))
}

impl HoldError {
    pub(crate) fn into_status(self) -> Status {
        let text = self.to_string();
        match self {
            Self::InUse { .. } => Status::already_exists(text),
            Self::NoPort(_) => Status::invalid_argument(text),
            _ => Status::internal(text),
        }
    }
}
