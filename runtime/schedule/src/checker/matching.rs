//! Which send meets which receive.

use super::{Violation, classes};
use crate::{Action, Program, Slice};
use std::collections::BTreeMap;

/// A step of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub rank: u32,
    pub step: u32,
}

/// The other side of each step that sends or receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matches {
    partners: Vec<Vec<Option<Partner>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Partner {
    place: Place,
    /// The receive before this one on the same pair of ranks: messages of a pair keep their order.
    previous_recv: Option<Place>,
    /// The receive after this message's one.
    next_recv: Option<Place>,
}

/// Messages of one ordered pair of ranks.
#[derive(Default)]
struct Channel {
    sends: Vec<(Place, Slice)>,
    receives: Vec<(Place, Slice)>,
}

impl Matches {
    /// Matches by order of steps; an error where one side has more, or of another length. Ranks in
    /// the programs must exist.
    pub fn of(programs: &[Program]) -> Result<Self, Violation> {
        let mut partners: Vec<Vec<Option<Partner>>> = programs
            .iter()
            .map(|program| vec![None; program.steps.len()])
            .collect();
        for ((from, to), channel) in channels(programs) {
            let (sends, receives) = (channel.sends.len(), channel.receives.len());
            if sends != receives {
                let (from, to) = (from as usize, to as usize);
                return Err(Violation::Unmatched {
                    from,
                    to,
                    sends,
                    receives,
                });
            }
            let mut previous_recv = None;
            for ((send, sent), (recv, received)) in channel.sends.iter().zip(&channel.receives) {
                let sent = classes(&programs[from as usize], *sent);
                let received = classes(&programs[to as usize], *received);
                if !sent.eq(received) {
                    return Err(Violation::MatchDiffers {
                        from: from as usize,
                        send: send.step as usize,
                        to: to as usize,
                        recv: recv.step as usize,
                    });
                }
                let partner = |place| {
                    Some(Partner {
                        place,
                        previous_recv,
                        next_recv: None,
                    })
                };
                if let Some(previous) = previous_recv
                    && let Some(entry) = at(&mut partners, previous)
                {
                    entry.next_recv = Some(*recv);
                }
                *at(&mut partners, *send) = partner(*recv);
                *at(&mut partners, *recv) = partner(*send);
                previous_recv = Some(*recv);
            }
        }
        Ok(Self { partners })
    }

    /// The step that `place` exchanges with; none for a copy.
    pub fn partner(&self, place: Place) -> Option<Place> {
        self.entry(place).map(|partner| partner.place)
    }

    /// The receive that has to be complete before the message of `place` may arrive.
    pub fn previous_recv(&self, place: Place) -> Option<Place> {
        self.entry(place).and_then(|partner| partner.previous_recv)
    }

    /// The receive that waits for the receive `place` to keep the order of their pair.
    pub fn next_recv(&self, place: Place) -> Option<Place> {
        self.entry(place).and_then(|partner| partner.next_recv)
    }

    fn entry(&self, place: Place) -> Option<Partner> {
        self.partners[place.rank as usize][place.step as usize]
    }
}

fn at(partners: &mut [Vec<Option<Partner>>], place: Place) -> &mut Option<Partner> {
    &mut partners[place.rank as usize][place.step as usize]
}

fn channels(programs: &[Program]) -> BTreeMap<(u32, u32), Channel> {
    let mut channels: BTreeMap<(u32, u32), Channel> = BTreeMap::new();
    for (rank, program) in (0..).zip(programs) {
        for (step, action) in (0..).zip(program.steps.iter().map(|step| &step.action)) {
            let place = Place { rank, step };
            match *action {
                Action::Send { to, from } => {
                    channels
                        .entry((rank, to))
                        .or_default()
                        .sends
                        .push((place, from));
                }
                Action::Recv { from, to } | Action::RecvReduce { from, to, .. } => {
                    channels
                        .entry((from, rank))
                        .or_default()
                        .receives
                        .push((place, to));
                }
                Action::Copy { .. } | Action::Reduce { .. } => {}
            }
        }
    }
    channels
}
