//! One rank's standard input: what the launcher sends, written as the rank takes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prost::bytes::{Buf, Bytes};
use rlaunch_control::v1::StdinTaken;
use rlaunch_control::v1::from_agent::Message;
use tokio::sync::mpsc;

use super::outgoing::Outgoing;
use super::pipe::AsyncPipe;

/// The end-of-file character of a terminal.
const TERMINAL_END: &[u8] = &[4];

/// What may wait for a rank that does not read. The launcher counts [`StdinTaken`] and stays far
/// below; one that sends more breaks the contract.
const WAITING_MAX_BYTES: usize = 16 << 20;

enum Input {
    Data(Bytes),
    End,
}

/// The driver's end. Dropping it ends the rank's stdin once what waits is written.
pub(crate) struct StdinSender {
    inputs: mpsc::UnboundedSender<Input>,
    waiting_bytes: Arc<AtomicUsize>,
}

impl StdinSender {
    /// False: more waits than the contract allows, and this was not taken.
    pub(crate) fn send(&self, data: Bytes) -> bool {
        let waiting = self.waiting_bytes.fetch_add(data.len(), Ordering::Relaxed);
        if waiting > WAITING_MAX_BYTES {
            return false;
        }
        // After End nothing is expected, and nobody is there to take it.
        self.inputs.send(Input::Data(data)).ok();
        true
    }

    pub(crate) fn end(&self) {
        self.inputs.send(Input::End).ok();
    }
}

/// Starts the task that writes to `pipe`. It ends with its sender, or with the rank's stdin.
pub(crate) fn start(rank: u32, pipe: AsyncPipe, terminal: bool, outgoing: Outgoing) -> StdinSender {
    let (inputs, receiver) = mpsc::unbounded_channel();
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let sender = StdinSender {
        inputs,
        waiting_bytes: waiting_bytes.clone(),
    };
    tokio::spawn(run(rank, pipe, terminal, receiver, waiting_bytes, outgoing));
    sender
}

async fn run(
    rank: u32,
    pipe: AsyncPipe,
    terminal: bool,
    mut inputs: mpsc::UnboundedReceiver<Input>,
    waiting_bytes: Arc<AtomicUsize>,
    outgoing: Outgoing,
) {
    let mut open = true;
    while let Some(input) = inputs.recv().await {
        let data = match input {
            Input::Data(data) => data,
            Input::End if terminal => {
                write_all(&pipe, Bytes::from_static(TERMINAL_END)).await;
                continue;
            }
            Input::End => return,
        };
        let len = data.len();
        // If the rank reads no more, the rest is taken and dropped, as a shell would.
        open = open && write_all(&pipe, data).await;
        waiting_bytes.fetch_sub(len, Ordering::Relaxed);
        let bytes = len as u64;
        outgoing.control(Message::StdinTaken(StdinTaken { rank, bytes }));
    }
}

/// False: the rank has closed its side.
async fn write_all(pipe: &AsyncPipe, mut data: Bytes) -> bool {
    while !data.is_empty() {
        match pipe.write(&data).await {
            Ok(count) => data.advance(count),
            Err(_) => return false,
        }
    }
    true
}
