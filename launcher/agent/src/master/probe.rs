//! The probe's two sides; see the parent's words on proof.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::NONCE_BYTES;

const HALF_BYTES: usize = NONCE_BYTES / 2;
/// Connections at a time; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 256;
/// For one connection to say what it has to say.
const CONNECTION_MAX: Duration = Duration::from_secs(2);

/// Answers until dropped.
pub(super) async fn answer(listener: TcpListener, nonce: [u8; NONCE_BYTES]) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(tokio::time::timeout(CONNECTION_MAX, one(stream, nonce)));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// The second half, to who knows the first; nothing to anybody else.
async fn one(mut stream: TcpStream, nonce: [u8; NONCE_BYTES]) {
    let mut said = [0; HALF_BYTES];
    if stream.read_exact(&mut said).await.is_ok() && said == nonce[..HALF_BYTES] {
        stream.write_all(&nonce[HALF_BYTES..]).await.ok();
        stream.shutdown().await.ok();
    }
}

/// Is that agent behind this address? Else why not, in words for people.
pub(super) async fn ask(address: &str, port: u32, nonce: &[u8]) -> Result<(), String> {
    let ip: IpAddr = address
        .parse()
        .map_err(|_| "not a numeric address".to_owned())?;
    let port = u16::try_from(port).map_err(|_| format!("{port} is no port"))?;
    if nonce.len() != NONCE_BYTES {
        return Err("the launcher's nonce has a wrong length".to_owned());
    }
    let mut stream = TcpStream::connect(SocketAddr::new(ip, port))
        .await
        .map_err(words)?;
    stream
        .write_all(&nonce[..HALF_BYTES])
        .await
        .map_err(words)?;
    let mut answer = [0; HALF_BYTES];
    match stream.read_exact(&mut answer).await {
        Ok(_) if answer == nonce[HALF_BYTES..] => Ok(()),
        // What was connected says something else, or nothing: this host itself, most often.
        _ => Err("answered by another host".to_owned()),
    }
}

/// The reason alone, without the number.
fn words(error: std::io::Error) -> String {
    let reason = error.raw_os_error().map(nix::errno::Errno::from_raw);
    reason.map_or_else(|| error.to_string(), |errno| errno.desc().to_lowercase())
}

#[cfg(test)]
mod tests {
    use rlaunch_control::v1::{OpenMasterRequest, ProveMasterRequest};

    use crate::master::{Master, prove};

    fn open() -> (Master, rlaunch_control::v1::OpenMasterReply) {
        Master::open(&OpenMasterRequest {
            port: 0,
            hold: true,
            addresses: Vec::new(),
        })
        .unwrap()
    }

    #[tokio::test]
    async fn only_that_agent_proves_an_address() {
        let (_first, mine) = open();
        let (_second, other) = open();
        let addresses = ["127.0.0.1", "127.0.0.2", "::1", "host", "127.0.0.1"];
        let addresses: Vec<String> = addresses.map(str::to_owned).to_vec();
        let request = |probe_port, nonce: &prost::bytes::Bytes| ProveMasterRequest {
            addresses: addresses.clone(),
            probe_port,
            nonce: nonce.clone(),
            timeout_ms: 1000,
        };
        let proofs = prove(request(mine.probe_port, &mine.nonce)).await.proofs;
        let said: Vec<&str> = proofs.iter().map(|proof| proof.address.as_str()).collect();
        assert_eq!(said, addresses, "in the order asked");
        assert!(
            proofs[0].proven && proofs[1].proven && proofs[4].proven,
            "{proofs:?}"
        );
        assert_eq!(proofs[3].why_not, "not a numeric address");
        // The same port number on another host: another agent, which has another nonce.
        let proofs = prove(request(other.probe_port, &mine.nonce)).await.proofs;
        assert_eq!(
            (proofs[0].proven, proofs[0].why_not.as_str()),
            (false, "answered by another host")
        );
        let proofs = prove(request(1, &mine.nonce)).await.proofs;
        assert_eq!(proofs[0].why_not, "connection refused");
    }

    /// Hundreds of hosts at once must not wait for a second try.
    #[tokio::test]
    async fn the_queue_is_long() {
        let (_master, reply) = open();
        let address = ([127, 0, 0, 1], u16::try_from(reply.probe_port).unwrap()).into();
        let wait = std::time::Duration::from_millis(500);
        let connect = |_| std::net::TcpStream::connect_timeout(&address, wait).unwrap();
        // Nobody is taken off the queue meanwhile: this test's thread is the agent's.
        let _connections: Vec<_> = (0..400).map(connect).collect();
    }

    #[tokio::test]
    async fn who_does_not_ask_properly_learns_nothing() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (_master, reply) = open();
        let port = u16::try_from(reply.probe_port).unwrap();
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.ok();
        assert!(said.is_empty());
    }
}
