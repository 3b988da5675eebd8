//! This standard input, for the ranks that `--stdin` names: one of them, or a copy for each.
//!
//! A thread reads, since a read of a terminal or pipe can't be given up; it ends with the process.
//! [`Stdin::next`] gives data only while less than [`UNDER_WAY_MAX_BYTES`] has not been taken by
//! each of the ranks, so one that does not read holds the reading, and nothing else, up; one that has
//! ended does not. In the background of a terminal nothing is read until it is in the foreground:
//! reading there would stop the launcher, and with it the job.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::uio::pread;
use nix::unistd::{Whence, lseek};
use tokio::sync::mpsc;

use super::terminal;
use crate::settings::StdinTo;

/// The agent holds at most this much for a rank that does not read.
const UNDER_WAY_MAX_BYTES: u64 = 1 << 20;
const READ_BYTES: usize = 64 * 1024;
/// Between two looks whether we are in the terminal's foreground.
const FOREGROUND_POLL: Duration = Duration::from_millis(200);

pub(super) struct Stdin {
    pub(super) to: StdinTo,
    blocks: Option<mpsc::Receiver<Vec<u8>>>,
    /// Of each rank that may still take some.
    under_way_bytes: BTreeMap<u32, u64>,
}

impl Stdin {
    /// `keeps`: a later attempt of the job reads the same again; of a file, from where it stands.
    pub(super) fn read(to: StdinTo, world: u32, keeps: bool) -> std::io::Result<Self> {
        let (sender, blocks) = mpsc::channel(1);
        let thread = std::thread::Builder::new().name("stdin".into());
        if keeps {
            thread.spawn(move || copy_all(&sender))?;
        } else {
            thread.spawn(move || read_all(&sender))?;
        }
        let ranks: Range<u32> = match to {
            StdinTo::Rank(rank) => rank..rank + 1,
            StdinTo::All => 0..world,
        };
        Ok(Self {
            to,
            blocks: Some(blocks),
            under_way_bytes: ranks.map(|rank| (rank, 0)).collect(),
        })
    }

    /// The next block; None once, at the end of input. Cancel safe; waits for ever after the end.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        let takes = |bytes: &u64| *bytes < UNDER_WAY_MAX_BYTES;
        let takes = self.under_way_bytes.values().all(takes) && !self.under_way_bytes.is_empty();
        let Some(blocks) = self.blocks.as_mut().filter(|_| takes) else {
            return std::future::pending().await;
        };
        let block = blocks.recv().await;
        match &block {
            Some(block) => {
                for bytes in self.under_way_bytes.values_mut() {
                    *bytes += block.len() as u64;
                }
            }
            None => self.blocks = None,
        }
        block
    }

    pub(super) fn handle_taken(&mut self, rank: u32, bytes: u64) {
        if let Some(under_way) = self.under_way_bytes.get_mut(&rank) {
            *under_way = under_way.saturating_sub(bytes);
        }
    }

    /// It takes no more, and is not waited for.
    pub(super) fn handle_ended(&mut self, rank: u32) {
        self.under_way_bytes.remove(&rank);
    }
}

fn read_all(sender: &mpsc::Sender<Vec<u8>>) {
    let mut background = SigSet::empty();
    background.add(Signal::SIGTTIN);
    // A read in the background fails then, with EIO, instead of stopping the process.
    background.thread_block().ok();
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
            Err(error)
                if error.raw_os_error() == Some(libc::EIO) && terminal::is_in_background() =>
            {
                std::thread::sleep(FOREGROUND_POLL);
            }
            Err(_) => return,
        }
    }
}

/// As [`read_all`], of a file, whose place stays.
fn copy_all(sender: &mpsc::Sender<Vec<u8>>) {
    let input = std::io::stdin();
    let Ok(mut at) = lseek(&input, 0, Whence::SeekCur) else {
        return;
    };
    let mut block = vec![0; READ_BYTES];
    loop {
        match pread(&input, &mut block, at) {
            Ok(0) => return,
            Ok(bytes) => {
                at += i64::try_from(bytes).expect("a block is small");
                if sender.blocking_send(block[..bytes].to_vec()).is_err() {
                    return;
                }
            }
            Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stdin(ranks: Range<u32>) -> (Stdin, mpsc::Sender<Vec<u8>>) {
        let (sender, blocks) = mpsc::channel(1);
        let stdin = Stdin {
            to: StdinTo::All,
            blocks: Some(blocks),
            under_way_bytes: ranks.map(|rank| (rank, 0)).collect(),
        };
        (stdin, sender)
    }

    /// The slowest rank sets the pace, until it has ended.
    #[tokio::test]
    async fn one_rank_that_does_not_read_holds_the_reading_up() {
        let block = vec![0; usize::try_from(UNDER_WAY_MAX_BYTES).unwrap()];
        let (mut stdin, sender) = stdin(0..2);
        for end in [false, true] {
            sender.send(block.clone()).await.unwrap();
            assert_eq!(stdin.next().await.unwrap().len(), block.len());
            stdin.handle_taken(0, UNDER_WAY_MAX_BYTES);
            let limit = Duration::from_millis(20);
            let held = tokio::time::timeout(limit, stdin.next()).await;
            assert!(held.is_err(), "rank 1 has not taken its copy");
            if end {
                stdin.handle_ended(1);
            } else {
                stdin.handle_taken(1, UNDER_WAY_MAX_BYTES);
            }
        }
        drop(sender);
        assert_eq!(stdin.next().await, None);
    }
}
