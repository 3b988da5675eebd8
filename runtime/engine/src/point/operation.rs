//! Point-to-point operations under way.
//!
//! An operation lives from its start until its result is taken: by the call that waits for it, or,
//! if it was started with a completion, when it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rlaunch_wire::Descriptor;

use super::matching::Pattern;
use crate::Error;
use crate::completion::Completion;
use crate::core::Core;
use crate::failure::Slot;
use crate::request::Status;

/// Names an operation; one that ended is never mistaken for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OperationId {
    index: u32,
    generation: u32,
}

#[derive(Debug)]
pub(crate) struct PointOperation {
    pub(super) call: Descriptor,
    /// Of a receive: what it takes.
    pub(super) pattern: Pattern,
    /// Written by a receive, read by a send.
    pub(super) buffer: *mut u8,
    pub(super) stage: Stage,
    pub(super) completion: Option<Arc<Completion>>,
    /// When it was started, if nobody waits for it in a call.
    pub(super) begun: Option<Instant>,
    /// Instead of the communicator's.
    pub(super) timeout: Option<Duration>,
    pub(super) slot: Option<Slot>,
}

// SAFETY: the pointer is followed only while the operation is under way, for which its starter
// vouches, whichever thread drives it.
unsafe impl Send for PointOperation {}

/// Where an operation stands. Peers are ranks of the world.
#[derive(Debug)]
pub(super) enum Stage {
    /// A receive waits for a message.
    Posted,
    /// A receive has granted, or takes its payload.
    Receiving(u32),
    /// A send waits for its turn on the connection, or for room there.
    Queued(u32),
    /// A send has asked.
    Asking(u32),
    /// A send to this rank itself waits for its receive.
    Own,
    Ended(Result<Status, Error>),
}

/// How a start went.
#[derive(Debug)]
pub(crate) enum Started {
    Done(Status),
    Waits(OperationId),
}

#[derive(Debug, Default)]
pub(crate) struct Operations {
    places: Vec<Place>,
    free: Vec<u32>,
    started: usize,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    operation: Option<PointOperation>,
}

impl Operations {
    pub(super) fn insert(&mut self, operation: PointOperation) -> OperationId {
        self.started += usize::from(operation.completion.is_some());
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                generation: 0,
                operation: None,
            });
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[index as usize];
        place.operation = Some(operation);
        OperationId {
            index,
            generation: place.generation,
        }
    }

    pub(super) fn find(&mut self, id: OperationId) -> Option<&mut PointOperation> {
        let place = self.places.get_mut(id.index as usize)?;
        if place.generation != id.generation {
            return None;
        }
        place.operation.as_mut()
    }

    pub(super) fn look(&self, id: OperationId) -> Option<&PointOperation> {
        let place = self.places.get(id.index as usize)?;
        place
            .operation
            .as_ref()
            .filter(|_| place.generation == id.generation)
    }

    pub(super) fn remove(&mut self, id: OperationId) -> Option<PointOperation> {
        self.find(id)?;
        let place = &mut self.places[id.index as usize];
        place.generation = place.generation.wrapping_add(1);
        self.free.push(id.index);
        place.operation.take()
    }

    /// Those that nobody waits for in a call, and that have not ended.
    pub(super) fn started(&self) -> usize {
        self.started
    }

    pub(super) fn all_started(&self) -> Vec<OperationId> {
        if self.started == 0 {
            return Vec::new();
        }
        let places = self.places.iter().enumerate();
        let started = places.filter_map(|(index, place)| {
            let operation = place.operation.as_ref()?;
            operation.completion.as_ref()?;
            Some(OperationId {
                index: index as u32,
                generation: place.generation,
            })
        });
        started.collect()
    }

    /// The one whose end this tells, if it has not ended.
    fn started_by(&self, completion: &Arc<Completion>) -> Option<OperationId> {
        let is_it = |place: &Place| {
            let own = place.operation.as_ref()?.completion.as_ref()?;
            Arc::ptr_eq(own, completion).then_some(place.generation)
        };
        let mut places = self.places.iter().enumerate();
        places.find_map(|(index, place)| {
            let generation = is_it(place)?;
            let index = index as u32;
            Some(OperationId { index, generation })
        })
    }

    /// Those of one communicator that have not ended.
    fn of(&self, communicator: u32) -> Vec<OperationId> {
        let open = |place: &Place| {
            let operation = place.operation.as_ref()?;
            let is_open = !matches!(operation.stage, Stage::Ended(_));
            (is_open && operation.call.communicator == communicator).then_some(place.generation)
        };
        let places = self.places.iter().enumerate();
        places
            .filter_map(|(index, place)| {
                let generation = open(place)?;
                let index = index as u32;
                Some(OperationId { index, generation })
            })
            .collect()
    }
}

impl Core {
    /// The operation's result reaches whoever waits. Nothing happens if it has ended already.
    pub(super) fn end_point(&mut self, id: OperationId, result: Result<Status, Error>) {
        let Some(operation) = self.points.operations.find(id) else {
            return;
        };
        if matches!(operation.stage, Stage::Ended(_)) {
            return;
        }
        let Some(completion) = operation.completion.take() else {
            operation.stage = Stage::Ended(result);
            return;
        };
        let (call, slot) = (operation.call, operation.slot);
        self.points.operations.started -= 1;
        self.points.operations.remove(id);
        self.record_finish(call.communicator, slot, result.is_ok());
        let is_told =
            matches!(&result, Err(error) if !matches!(error, Error::Finalized | Error::Cancelled));
        if is_told {
            self.ending.has_told = true;
            if let Some(key) = self.groups.find(call.communicator) {
                self.note_told(key);
            }
        }
        completion.complete(result);
    }

    /// Takes the result of an operation that has one.
    pub(super) fn take_point(&mut self, id: OperationId) -> Option<Result<Status, Error>> {
        let operation = self.points.operations.find(id)?;
        if !matches!(operation.stage, Stage::Ended(_)) {
            return None;
        }
        match self.points.operations.remove(id)?.stage {
            Stage::Ended(result) => Some(result),
            _ => None,
        }
    }

    /// Its message has left.
    pub(crate) fn end_sent(&mut self, id: OperationId) {
        self.end_point(id, Ok(Status::default()));
    }

    /// Ends an operation with an error before its time: from now on its buffer is not touched.
    pub(crate) fn cancel_point(&mut self, id: OperationId, error: &Error) {
        let Some(operation) = self.points.operations.find(id) else {
            return;
        };
        let communicator = operation.call.communicator;
        match operation.stage {
            Stage::Ended(_) => return,
            Stage::Posted => {
                self.points.context(communicator).withdraw(&id);
            }
            Stage::Receiving(peer) => {
                let peer = &mut self.peers[peer as usize];
                if peer.pair.forget_receive(id)
                    && let Some(connection) = &mut peer.connection
                {
                    connection.withdraw_payload();
                }
            }
            Stage::Asking(peer) => {
                let asking = &mut self.peers[peer as usize].pair.asking;
                asking.retain(|(_, asks)| *asks != id);
            }
            Stage::Queued(peer) => self.abandon_send(peer, id),
            Stage::Own => self.points.context(communicator).remove_own(id),
        }
        self.end_point(id, Err(error.clone()));
    }

    /// Ends a started receive that no message has met; false if there is none such.
    pub(crate) fn cancel_receive(&mut self, completion: &Arc<Completion>) -> bool {
        let Some(id) = self.points.operations.started_by(completion) else {
            return false;
        };
        let operation = self.points.operations.look(id);
        if !operation.is_some_and(|operation| matches!(operation.stage, Stage::Posted)) {
            return false;
        }
        self.cancel_point(id, &Error::Cancelled);
        true
    }

    /// Ends all operations of a communicator that has failed or is freed, and drops what was kept.
    pub(crate) fn close_points(&mut self, communicator: u32, error: &Error) {
        for id in self.points.operations.of(communicator) {
            self.cancel_point(id, error);
        }
        let contexts = &mut self.points.contexts;
        let Some(index) = contexts.iter().position(|(id, _)| *id == communicator) else {
            return;
        };
        let (_, mut context) = contexts.swap_remove(index);
        let kept: Vec<_> = context.drain().collect();
        for (envelope, message) in kept {
            self.drop_kept(envelope.source, message);
        }
    }
}
