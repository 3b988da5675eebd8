//! Messages of collectives, as the engine hands them out.

use rlaunch_transport::{Header, Incoming, Kind, Outgoing, Progress};
use rlaunch_wire::Descriptor;

use crate::Error;
use crate::core::Core;

impl Core {
    /// The next message of exactly this call from a peer, once its header is here.
    pub(crate) fn arrival(
        &mut self,
        rank: u32,
        call: &Descriptor,
    ) -> Result<Option<Header>, Error> {
        let header = self.next_header(rank, call)?;
        match header {
            Some(header) if header.kind != Kind::Collective || header.descriptor != *call => {
                Err(self.mismatch(*call, rank, header.descriptor))
            }
            header => Ok(header),
        }
    }

    /// Feeds what has come of the message that [`Core::arrival`] returned.
    ///
    /// # Safety
    /// The sink is valid for the message's length until `Done`, an error, or the sink is discarded.
    pub(crate) unsafe fn take_part(
        &mut self,
        rank: u32,
        incoming: &mut Incoming,
        call: &Descriptor,
    ) -> Result<Progress, Error> {
        let connection = self.peers[rank as usize].connection.as_mut();
        let connection = connection.expect("programs name only other ranks");
        // SAFETY: as the caller vouches.
        let progress = unsafe { connection.poll_payload(incoming) };
        progress.map_err(|error| self.explain(rank, error, call))
    }

    /// Begins a message or goes on with it.
    ///
    /// # Safety
    /// The payload is valid, and nobody writes it, until `Done`, an error, or it is abandoned.
    pub(crate) unsafe fn send_part(
        &mut self,
        rank: u32,
        message: &mut Outgoing,
        call: &Descriptor,
    ) -> Result<Progress, Error> {
        if !message.is_begun()
            && !self.peers[rank as usize].outbox.is_empty()
            && !self.flush_outbox(rank, call)?
        {
            return Ok(Progress::Idle);
        }
        let connection = self.peers[rank as usize].connection.as_mut();
        let connection = connection.expect("programs name only other ranks");
        // SAFETY: as the caller vouches.
        let progress = unsafe { connection.poll_send(message) };
        progress.map_err(|error| self.explain(rank, error, call))
    }
}
