//! One rank's connection: hello, join, broadcasts, leave.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::errno::Errno;
use prost::Message;
use prost::bytes::{Buf, Bytes, BytesMut};
use rlaunch_control::v1;
use rlaunch_control::v1::from_agent::Message as FromAgentMessage;
use rlaunch_wire::PROTOCOL;
use rlaunch_wire::limits::{CARD_MAX_BYTES, RANK_MESSAGE_MAX_BYTES};
use rlaunch_wire::notice::Notice;
use rlaunch_wire::rank::{
    Broadcast, Hello, Refused, ToAgent, ToAgentMessage, ToRank, ToRankMessage, Welcome,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::outgoing::Outgoing;
use super::ranks::{Connected, Facts, RankEvent, Ranks};

/// Between connecting and saying hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// A message with its length before it.
pub(crate) fn frame(message: &ToRankMessage) -> Bytes {
    let message = ToRank {
        message: Some(message.clone()),
    };
    let len = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(4 + len);
    // Larger than u32 can say is larger than any limit; the rank refuses it by its length.
    bytes.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
    message.encode(&mut bytes).expect("BytesMut grows");
    bytes.freeze()
}

/// From hello to the end of the stream.
pub(crate) async fn run(
    stream: UnixStream,
    ranks: Ranks,
    facts: Facts,
    events: mpsc::Sender<RankEvent>,
    outgoing: Outgoing,
) {
    let own = nix::unistd::getuid().as_raw();
    if stream.peer_cred().map_or(true, |peer| peer.uid() != own) {
        return;
    }
    let (read, mut write) = stream.into_split();
    let mut reader = Reader {
        read,
        buffer: BytesMut::new(),
    };
    let said = tokio::time::timeout(HELLO_TIMEOUT, reader.message()).await;
    let Ok(Ok(Some(ToAgentMessage::Hello(hello)))) = said else {
        return;
    };
    let (queue, queued) = mpsc::unbounded_channel();
    let (drain, drains) = mpsc::unbounded_channel();
    let queued_bytes = Arc::new(Mutex::new(0));
    let connected = Connected {
        queue,
        queued_bytes: queued_bytes.clone(),
        drain,
    };
    connected.queue(&frame(&welcome(&facts)));
    if let Err(reason) = accept(&hello, &ranks, connected) {
        write
            .write_all(&frame(&ToRankMessage::Refused(Refused { reason })))
            .await
            .ok();
        return;
    }
    let session = Session {
        rank: hello.rank,
        ranks: ranks.clone(),
        events,
        outgoing,
    };
    tokio::select! {
        _ = session.read(reader, drains) => {}
        _ = write_queue(write, queued, queued_bytes) => {}
    }
    ranks.disconnect(hello.rank);
}

fn welcome(facts: &Facts) -> ToRankMessage {
    let Facts {
        job_id,
        secret,
        world_size,
        host,
    } = facts.clone();
    ToRankMessage::Welcome(Welcome {
        job_id,
        secret,
        world_size,
        host,
    })
}

fn accept(hello: &Hello, ranks: &Ranks, connected: Connected) -> Result<(), String> {
    if hello.protocol != PROTOCOL {
        return Err(format!(
            "librlaunch speaks protocol {}, the launcher {PROTOCOL}: use the module that came with \
             this rlaunch",
            hello.protocol
        ));
    }
    ranks.enter(hello.rank, hello.pid, connected)
}

/// Ends when the queue does: the rank was cut off.
async fn write_queue(
    mut write: OwnedWriteHalf,
    mut queue: mpsc::UnboundedReceiver<Bytes>,
    queued_bytes: Arc<Mutex<usize>>,
) -> io::Result<()> {
    while let Some(frame) = queue.recv().await {
        write.write_all(&frame).await?;
        *queued_bytes
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) -= frame.len();
    }
    Ok(())
}

struct Session {
    rank: u32,
    ranks: Ranks,
    events: mpsc::Sender<RankEvent>,
    outgoing: Outgoing,
}

impl Session {
    /// Until the rank's end of stream or its first breach of the contract.
    async fn read(
        &self,
        mut reader: Reader,
        mut drains: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
    ) -> io::Result<()> {
        loop {
            tokio::select! {
                message = reader.message() => match message? {
                    Some(message) => self.handle(message).await?,
                    None => return Ok(()),
                },
                Some(drained) = drains.recv() => {
                    reader.take_all_there();
                    let mut result = Ok(());
                    while let Some(message) = reader.buffered()? {
                        result = self.handle(message).await;
                        if result.is_err() {
                            break;
                        }
                    }
                    drained.send(()).ok();
                    result?;
                }
            }
        }
    }

    async fn handle(&self, message: ToAgentMessage) -> io::Result<()> {
        let rank = self.rank;
        match message {
            ToAgentMessage::Join(join) => {
                if join.card.len() > CARD_MAX_BYTES || !self.ranks.join(rank) {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                self.events
                    .send(RankEvent::Joined {
                        rank,
                        card: join.card,
                    })
                    .await
                    .ok();
            }
            ToAgentMessage::Overdue(_) => {
                self.events.send(RankEvent::Overdue { rank }).await.ok();
            }
            ToAgentMessage::Leave(_) => {
                self.events.send(RankEvent::Left { rank }).await.ok();
            }
            ToAgentMessage::Broadcast(Broadcast { payload, .. }) => {
                // Who sent it is known here better than the message says.
                let local = Broadcast {
                    from: rank,
                    payload: payload.clone(),
                };
                if !Notice::is_for_launcher(&payload) {
                    self.ranks
                        .tell_all(&ToRankMessage::Broadcast(local), Some(rank));
                }
                let payload = payload.into();
                let relayed = v1::Broadcast {
                    from: rank,
                    payload,
                };
                self.outgoing
                    .data(FromAgentMessage::Broadcast(relayed))
                    .await;
            }
            ToAgentMessage::Hello(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(())
    }
}

struct Reader {
    read: OwnedReadHalf,
    buffer: BytesMut,
}

impl Reader {
    /// The next message; none at the end. Nothing is lost if the future is dropped.
    async fn message(&mut self) -> io::Result<Option<ToAgentMessage>> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(Some(message));
            }
            if self.read.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn buffered(&mut self) -> io::Result<Option<ToAgentMessage>> {
        let Some(len) = self.buffer.first_chunk::<4>() else {
            return Ok(None);
        };
        let len = u32::from_le_bytes(*len) as usize;
        if len > RANK_MESSAGE_MAX_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if self.buffer.len() < 4 + len {
            return Ok(None);
        }
        self.buffer.advance(4);
        let message = ToAgent::decode(self.buffer.split_to(len)).map_err(io::Error::other)?;
        // A message that this build does not know: a breach, for the protocol number is equal.
        message
            .message
            .map(Some)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// What the socket holds, asked of the kernel itself: the runtime may not know of it yet.
    fn take_all_there(&mut self) {
        let mut bytes = [0; 16 * 1024];
        loop {
            match crate::sys::receive_now(self.read.as_ref().as_raw_fd(), &mut bytes) {
                Ok(0) => return,
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }
}
