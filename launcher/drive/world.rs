//! The runtime's world as the launcher sees it: who has joined, what ranks say to all.

use prost::Message as _;
use rlaunch_control::v1::{self, to_agent};
use rlaunch_plan::joining;
use rlaunch_plan::supervise::Event;
use rlaunch_wire::notice::{Notice, NoticeKind};

use super::driver::Driver;

impl Driver<'_> {
    /// Passed on to the other hosts. Of its meaning only "I lost rank N" is read, a failure that follows
    /// from another one, and what is for the launcher alone: because of whom a rank fails.
    pub(super) fn handle_broadcast(&mut self, host: usize, broadcast: v1::Broadcast) {
        let notice = Notice::decode(broadcast.payload.as_ref())
            .ok()
            .and_then(|it| it.kind);
        let rank = broadcast.from;
        match notice {
            Some(NoticeKind::Blames(blames)) => {
                let (peer, aborted) = (blames.rank, blames.aborted);
                self.event(Event::Blamed {
                    rank,
                    peer,
                    aborted,
                });
                return;
            }
            Some(NoticeKind::Failed(failed)) if failed.rank != rank => {
                self.event(Event::PeerLost {
                    rank,
                    peer: failed.rank,
                    has_left: failed.has_left,
                });
            }
            _ => {}
        }
        self.links
            .send_others(Some(host), &to_agent::Message::Broadcast(broadcast));
    }

    /// The world is told once every rank has joined.
    pub(super) fn handle_joined(&mut self, joined: v1::Joined) {
        let v1::Joined { rank, card } = joined;
        if self.ranks[rank as usize]
            .card
            .replace(card.into())
            .is_none()
        {
            self.joined += 1;
        }
        self.event(Event::Joined { rank });
        if self.joined == self.ranks.len() {
            let cards = self
                .ranks
                .iter_mut()
                .map(|rank| rank.card.clone().unwrap_or_default().into());
            let world = v1::World {
                cards: cards.collect(),
            };
            self.links.send_all(&to_agent::Message::World(world));
        }
    }

    /// A rank has waited for the others as long as it may, and is told who is missing.
    pub(super) fn handle_overdue(&mut self, host: usize, rank: u32) {
        let places = self.placement.ranks.iter().zip(&self.ranks);
        let missing = places.filter(|(_, state)| state.card.is_none());
        let missing: Vec<(u32, &str)> = missing
            .map(|(place, _)| {
                let name = self.hosts[place.node_rank as usize].name.as_str();
                (place.rank, name)
            })
            .collect();
        // Else the world was told just now.
        if !missing.is_empty() {
            let text = joining::missing(&missing, self.ranks.len());
            let told = v1::Missing { rank, text };
            self.links.send(host, to_agent::Message::Missing(told));
        }
    }
}
