//! stderr of a carrier, line by line, into a bounded channel that never holds the carrier up.

use tokio::sync::mpsc;

/// Lines kept for a reader that is behind.
const LINES_MAX: usize = 256;
/// A line longer than this is cut here; stderr of a shell is talk, not data.
const LINE_MAX_BYTES: usize = 4096;

/// Splits bytes into lines and hands them on; dropped together with the carrier, which closes the
/// channel.
pub(crate) struct Lines {
    sender: mpsc::Sender<String>,
    partial: Vec<u8>,
}

pub(crate) fn channel() -> (Lines, mpsc::Receiver<String>) {
    let (sender, receiver) = mpsc::channel(LINES_MAX);
    (
        Lines {
            sender,
            partial: Vec::new(),
        },
        receiver,
    )
}

impl Lines {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' || self.partial.len() >= LINE_MAX_BYTES {
                self.flush();
            }
            if *byte != b'\n' {
                self.partial.push(*byte);
            }
        }
    }

    fn flush(&mut self) {
        let line = String::from_utf8_lossy(&self.partial);
        let line = line.trim_end();
        if !line.is_empty() {
            // A full channel means that nobody reads: the newest line is lost.
            let _ = self.sender.try_send(line.to_owned());
        }
        self.partial.clear();
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Reads `stream` to its end in a task of its own.
pub(crate) fn spawn_reader(
    mut stream: impl tokio::io::AsyncRead + Unpin + Send + 'static,
) -> mpsc::Receiver<String> {
    use tokio::io::AsyncReadExt;
    let (mut lines, receiver) = channel();
    tokio::spawn(async move {
        let mut buffer = vec![0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut buffer).await {
            lines.feed(&buffer[..length]);
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_the_last_one_without_its_end() {
        let (mut lines, mut receiver) = channel();
        lines.feed(b"one\r\ntw");
        lines.feed(b"o\n\n\xffthree");
        drop(lines);
        let mut got = Vec::new();
        while let Some(line) = receiver.blocking_recv() {
            got.push(line);
        }
        assert_eq!(got, ["one", "two", "\u{fffd}three"]);
    }

    #[test]
    fn a_reader_that_is_away_holds_nothing_up() {
        let (mut lines, mut receiver) = channel();
        for _ in 0..10 * LINES_MAX {
            lines.feed(b"x\n");
        }
        drop(lines);
        assert_eq!(
            std::iter::from_fn(|| receiver.blocking_recv()).count(),
            LINES_MAX
        );
    }
}
