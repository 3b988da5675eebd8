//! Messages that nobody receives, told when their receiver leaves.
//!
//! It is no error: a program may well drop what it no longer needs. But more often a receive is
//! missing, or its tag is wrong. What has arrived is told; a message that is sent later is not missed.

use rlaunch_wire::Descriptor;

use super::Kept;
use crate::core::Core;

/// Messages named; the others are counted.
const TOLD_MAX: usize = 4;

impl Core {
    /// One line on stderr, where there are such messages on communicators that are well.
    pub(crate) fn tell_unreceived(&mut self) {
        for rank in 0..self.size() {
            let peer = &self.peers[rank as usize];
            let connection = peer.connection.as_ref();
            if peer.failure.is_none() && connection.is_some_and(|one| one.is_connected()) {
                // What is wrong with the connection matters no more.
                let _ = self.progress_pair(rank, &Descriptor::NONE);
            }
        }
        let messages = self.unreceived();
        if messages.is_empty() {
            return;
        }
        let more = messages.len().saturating_sub(TOLD_MAX);
        let mut told = messages[..messages.len() - more].join("; ");
        if more > 0 {
            told.push_str(&format!("; {more} more"));
        }
        let me = self.identity(self.rank);
        rlaunch_transport::say(format_args!(
            "rlaunch: {me} leaves the job and has not received {told}; hint: is a recv missing, or \
             its tag another?"
        ));
    }

    fn unreceived(&self) -> Vec<String> {
        let is_well = |id: u32| {
            let group = self.groups.find(id).and_then(|key| self.groups.get(key));
            group.is_some_and(|group| group.poison.is_none() && !group.is_replaced)
        };
        let contexts = self.points.contexts.iter().filter(|(id, _)| is_well(*id));
        let kept = contexts.flat_map(|(_, context)| context.kept());
        let tell = |message: &Kept, source: u32, tag: u32| {
            let call = message.header().descriptor;
            let sender = self.identity(source);
            format!("{call} from {sender}, tag {tag}")
        };
        kept.map(|(envelope, message)| tell(message, envelope.source, envelope.tag))
            .collect()
    }
}
