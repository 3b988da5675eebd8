//! This standard input, for the one rank that `--stdin` names.
//!
//! A thread reads, since a read of a terminal or pipe can't be given up; it ends with the process.
//! [`Stdin::next`] gives data only while less than [`UNDER_WAY_MAX_BYTES`] has not been taken by
//! the rank, so a rank that does not read holds the reading, and nothing else, up.

use std::io::Read;

use tokio::sync::mpsc;

/// The agent holds at most this much for a rank that does not read.
const UNDER_WAY_MAX_BYTES: u64 = 1 << 20;
const READ_BYTES: usize = 64 * 1024;

pub(super) struct Stdin {
    pub(super) rank: u32,
    blocks: Option<mpsc::Receiver<Vec<u8>>>,
    under_way_bytes: u64,
}

impl Stdin {
    pub(super) fn read(rank: u32) -> std::io::Result<Self> {
        let (sender, blocks) = mpsc::channel(1);
        std::thread::Builder::new()
            .name("stdin".into())
            .spawn(move || {
                let mut input = std::io::stdin().lock();
                let mut block = vec![0; READ_BYTES];
                loop {
                    match input.read(&mut block) {
                        Ok(0) => return,
                        Ok(bytes) => {
                            if sender.blocking_send(block[..bytes].to_vec()).is_err() {
                                return;
                            }
                        }
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(_) => return,
                    }
                }
            })?;
        Ok(Self {
            rank,
            blocks: Some(blocks),
            under_way_bytes: 0,
        })
    }

    /// The next block; None once, at the end of input. Cancel safe; waits for ever after the end.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        let Some(blocks) = self
            .blocks
            .as_mut()
            .filter(|_| self.under_way_bytes < UNDER_WAY_MAX_BYTES)
        else {
            return std::future::pending().await;
        };
        let block = blocks.recv().await;
        match &block {
            Some(block) => self.under_way_bytes += block.len() as u64,
            None => self.blocks = None,
        }
        block
    }

    pub(super) fn handle_taken(&mut self, bytes: u64) {
        self.under_way_bytes = self.under_way_bytes.saturating_sub(bytes);
    }
}
