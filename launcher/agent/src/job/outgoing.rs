//! What the agent says to the launcher, in two queues: control first, output after.
//!
//! Control is never held back: its volume is bounded by the number of ranks and by time. Output
//! and what ranks broadcast go through a bounded queue, where the sender waits. [`Outgoing::finish`]
//! goes behind the output and ends the stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use rlaunch_control::v1::from_agent::Message;
use rlaunch_control::v1::{Finished, FromAgent, Level, Log};
use tokio::sync::mpsc;
use tonic::Status;

/// Messages of at most a line each; what HTTP/2 has not taken yet.
const DATA_QUEUE_MAX: usize = 64;

#[derive(Clone)]
pub(crate) struct Outgoing {
    control: mpsc::UnboundedSender<Message>,
    data: mpsc::Sender<Message>,
}

/// The stream that gRPC takes.
pub(crate) struct OutgoingStream {
    control: mpsc::UnboundedReceiver<Message>,
    data: mpsc::Receiver<Message>,
    finished: bool,
}

pub(crate) fn outgoing() -> (Outgoing, OutgoingStream) {
    let (control, control_receiver) = mpsc::unbounded_channel();
    let (data, data_receiver) = mpsc::channel(DATA_QUEUE_MAX);
    let stream = OutgoingStream {
        control: control_receiver,
        data: data_receiver,
        finished: false,
    };
    (Outgoing { control, data }, stream)
}

impl Outgoing {
    /// Before all output that waits. Into nothing if the launcher is gone: that is noticed by the
    /// end of its own stream.
    pub(crate) fn control(&self, message: Message) {
        self.control.send(message).ok();
    }

    pub(crate) fn log(&self, level: Level, text: impl Into<String>) {
        self.control(Message::Log(Log {
            level: level.into(),
            text: text.into(),
        }));
    }

    /// After the output before it; waits for room.
    pub(crate) async fn data(&self, message: Message) {
        self.data.send(message).await.ok();
    }

    pub(crate) async fn finish(&self) {
        self.data(Message::Finished(Finished {})).await;
    }
}

impl tokio_stream::Stream for OutgoingStream {
    type Item = Result<FromAgent, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.finished {
            return Poll::Ready(None);
        }
        if let Poll::Ready(Some(message)) = self.control.poll_recv(context) {
            return Poll::Ready(Some(Ok(FromAgent {
                message: Some(message),
            })));
        }
        match self.data.poll_recv(context) {
            Poll::Ready(Some(message)) => {
                self.finished = matches!(message, Message::Finished(_));
                Poll::Ready(Some(Ok(FromAgent {
                    message: Some(message),
                })))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}
