//! What ranks print and read: to the printer, as credit back to their agents, from this stdin.

use rlaunch_control::v1::{self, to_agent};
use rlaunch_plan::supervise::{Event, Words};
use rlaunch_wire::limits::OUTPUT_CREDIT_PARTS;

use super::driver::Driver;
use super::translate::stream;
use crate::output::{Chunk, Printed, Source, Stream};
use crate::settings::StdinTo;

impl Driver<'_> {
    pub(super) fn handle_output(&mut self, output: v1::Output) {
        let source = Source {
            rank: output.rank,
            stream: stream(output.stream),
        };
        let v1::Output {
            data,
            host_time_us,
            partial,
            ..
        } = output;
        self.remember(source, &data, host_time_us);
        self.printer.chunk(Chunk {
            source,
            data,
            host_time_us,
            partial,
        });
    }

    /// For the verdict, and for who is named by it.
    fn remember(&mut self, source: Source, data: &[u8], host_time_us: i64) {
        let Source { rank, stream } = source;
        let host = self.placement.ranks[rank as usize].node_rank as usize;
        let at_us = host_time_us.saturating_sub(self.hosts[host].clock.offset_us());
        let state = &mut self.ranks[rank as usize];
        let has_error = state.tail.push(stream, data, at_us);
        let is_first =
            stream == Stream::Stderr && !std::mem::replace(&mut state.wrote_to_stderr, true);
        for (is_so, words) in [(is_first, Words::Stderr), (has_error, Words::Traceback)] {
            if is_so {
                self.event(Event::Printed {
                    rank,
                    words,
                    host_time_us,
                });
            }
        }
    }

    pub(super) fn handle_printed(&mut self, event: Printed) {
        match event {
            Printed::Bytes { source, bytes } => self.owe(source, bytes),
            Printed::Closed(stream) => {
                self.output_unread = true;
                if stream == Stream::Stdout {
                    self.handle_reader_gone();
                }
            }
            Printed::Full(text) | Printed::Failed(text) => {
                self.printer.talk(format!("rlaunch: {text}"));
            }
            // Comes at the end only.
            Printed::Lost(_) => {}
        }
    }

    /// As a program that writes to `| head -1` ends by SIGPIPE. Both the write and the look at the
    /// pipe may tell; a second signal would mean haste.
    pub(super) fn handle_reader_gone(&mut self) {
        if !std::mem::replace(&mut self.stdout_closed, true) {
            self.event(Event::UserSignal {
                signal: nix::libc::SIGPIPE,
            });
        }
    }

    fn owe(&mut self, source: Source, bytes: u64) {
        let Source { rank, stream } = source;
        let owed = &mut self.ranks[rank as usize].owed_bytes[stream as usize];
        *owed += bytes;
        if *owed >= self.credit_bytes / OUTPUT_CREDIT_PARTS {
            let bytes = std::mem::take(owed);
            let stream = stream as i32;
            let host = self.placement.ranks[rank as usize].node_rank as usize;
            let credit = v1::Credit {
                rank,
                stream,
                bytes,
            };
            self.links.send(host, to_agent::Message::Credit(credit));
        }
    }

    pub(super) fn handle_stdin(&mut self, (to, block): (StdinTo, Option<Vec<u8>>)) {
        let mut stdin = v1::Stdin {
            end: block.is_none(),
            data: block.unwrap_or_default().into(),
            ..v1::Stdin::default()
        };
        match to {
            StdinTo::Rank(rank) => {
                stdin.rank = rank;
                let host = self.placement.ranks[rank as usize].node_rank as usize;
                self.links.send(host, to_agent::Message::Stdin(stdin));
            }
            // Once to each host; its agent copies.
            StdinTo::All => {
                stdin.all = true;
                self.links.send_all(&to_agent::Message::Stdin(stdin));
            }
        }
    }
}
