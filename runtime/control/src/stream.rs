//! The two ends of one byte stream: the launcher is the HTTP/2 client, the agent the server.
//!
//! [`serve`] returns when the stream ends, cleanly or not. It must: tonic's own
//! `serve_with_incoming` returns as soon as its stream of connections ends, killing the one it
//! has, and never returns while more could come. So the one connection is followed by a stream
//! that never yields, and dropping the connection's IO object fires the shutdown.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rlaunch_wire::limits::GRPC_MESSAGE_MAX_BYTES;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Server};

use crate::v1::agent_client::AgentClient as Client;
use crate::v1::agent_server::{Agent, AgentServer};
use crate::v1::worker_service_server::{WorkerService, WorkerServiceServer};

/// The launcher's end.
pub type AgentClient = Client<Channel>;

/// Window of one call. Output is held back by credit long before it, so that a heartbeat never
/// waits behind output that nobody reads.
const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// Window of the whole connection.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// After the stream's end, what handlers may still take before [`serve`] returns anyway.
const SHUTDOWN_MAX: Duration = Duration::from_millis(200);

/// HTTP/2 could not be started on the stream.
#[derive(Debug, thiserror::Error)]
#[error("no HTTP/2 on the stream to the agent: {0}")]
pub struct ConnectError(#[from] tonic::transport::Error);

/// The server gave up on the stream.
#[derive(Debug, thiserror::Error)]
#[error("serving the launcher's stream: {0}")]
pub struct ServeError(#[from] tonic::transport::Error);

/// Starts HTTP/2 as the client on `io`, whose next byte must be the agent's first of HTTP/2.
///
/// The client owns the stream: when the last clone and its calls are dropped, `io` is too.
pub async fn connect<I>(io: I) -> Result<AgentClient, ConnectError>
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    Ok(agent_client(channel(io).await?))
}

/// The agent behind a channel of [`channel`].
pub fn agent_client(channel: Channel) -> AgentClient {
    AgentClient::new(channel)
        .max_decoding_message_size(GRPC_MESSAGE_MAX_BYTES)
        .max_encoding_message_size(GRPC_MESSAGE_MAX_BYTES)
}

/// As [`connect`], for more services than the agent's: `WorkerService` is there too.
pub async fn channel<I>(io: I) -> Result<Channel, ConnectError>
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut io = Some(TokioIo::new(io));
    let connector = tower::service_fn(move |_| {
        let io = io.take();
        async move { io.ok_or_else(|| io::Error::other("the connection to the agent has ended")) }
    });
    let channel = Endpoint::from_static("http://agent")
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .connect_with_connector(connector)
        .await?;
    Ok(channel)
}

/// Serves `service` on one stream and returns when it ends. Calls in progress are dropped then.
pub async fn serve<R, W, S>(read: R, write: W, service: Arc<S>) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
    S: Agent + WorkerService,
{
    let (ended_sender, ended) = oneshot::channel();
    let connection = Connection {
        read,
        write,
        _ended: EndedOnDrop(Some(ended_sender)),
    };
    let incoming = OneConnection(Some(connection));
    let (grace_sender, grace) = oneshot::channel();
    let server = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .add_service(
            AgentServer::from_arc(service.clone())
                .max_decoding_message_size(GRPC_MESSAGE_MAX_BYTES)
                .max_encoding_message_size(GRPC_MESSAGE_MAX_BYTES),
        )
        .add_service(WorkerServiceServer::from_arc(service))
        .serve_with_incoming_shutdown(incoming, async {
            ended.await.ok();
            grace_sender.send(()).ok();
        });
    let give_up = async {
        // An error means that the server ended first, and then this branch is never asked again.
        if grace.await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(SHUTDOWN_MAX).await;
    };
    tokio::select! {
        served = server => Ok(served?),
        () = give_up => Ok(()),
    }
}

/// Two halves as one object, which tells of its end.
struct Connection<R, W> {
    read: R,
    write: W,
    _ended: EndedOnDrop,
}

struct EndedOnDrop(Option<oneshot::Sender<()>>);

impl Drop for EndedOnDrop {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            sender.send(()).ok();
        }
    }
}

impl<R: AsyncRead + Unpin, W: Unpin> AsyncRead for Connection<R, W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(context, buffer)
    }
}

impl<R: Unpin, W: AsyncWrite + Unpin> AsyncWrite for Connection<R, W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.write.is_write_vectored()
    }
}

impl<R, W> Connected for Connection<R, W> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

/// Yields the one connection, then stays pending: an end would make the server end it.
struct OneConnection<C>(Option<C>);

impl<C: Unpin> tonic::codegen::tokio_stream::Stream for OneConnection<C> {
    type Item = io::Result<C>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.take() {
            Some(connection) => Poll::Ready(Some(Ok(connection))),
            None => Poll::Pending,
        }
    }
}
