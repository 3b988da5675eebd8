//! One rank's standard input: what the launcher sends, written as the rank takes it.

use std::collections::VecDeque;

use prost::bytes::Bytes;
use rlaunch_control::v1::StdinTaken;
use rlaunch_control::v1::from_agent::Message;
use tokio::sync::mpsc;

use super::outgoing::Outgoing;
use super::pipe::AsyncPipe;

/// The end-of-file character of a terminal.
const TERMINAL_END: &[u8] = &[4];

/// What may wait for a rank that does not read. The launcher counts [`StdinTaken`] and stays far
/// below; one that sends more breaks the contract.
pub(crate) const WAITING_MAX_BYTES: usize = 16 << 20;

pub(crate) enum Input {
    Data(Bytes),
    End,
}

/// Writes until the end, or until the rank closes its side.
pub(crate) async fn run(
    rank: u32,
    pipe: AsyncPipe,
    terminal: bool,
    mut inputs: mpsc::UnboundedReceiver<Input>,
    outgoing: Outgoing,
) {
    let mut waiting: VecDeque<Bytes> = VecDeque::new();
    let mut open = true;
    while let Some(input) = inputs.recv().await {
        match input {
            Input::Data(data) => waiting.push_back(data),
            Input::End if terminal => waiting.push_back(Bytes::from_static(TERMINAL_END)),
            Input::End => return,
        }
        while let Some(mut data) = waiting.pop_front() {
            let bytes = data.len() as u64;
            while open && !data.is_empty() {
                match pipe.write(&data).await {
                    Ok(count) => drop(data.split_to(count)),
                    // The rank reads no more: the rest is taken and dropped, as a shell would.
                    Err(_) => open = false,
                }
            }
            outgoing.control(Message::StdinTaken(StdinTaken { rank, bytes }));
        }
    }
}
