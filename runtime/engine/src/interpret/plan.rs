//! A program, arranged by what happens in order: the messages with each peer in each direction.

use rlaunch_schedule::{Action, Program, Spec, program};

/// What the interpreter needs of a program, made once for many calls.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) program: Program,
    pub(crate) lanes: Vec<Lane>,
    /// Steps without a peer.
    pub(crate) local: Vec<u32>,
}

/// The steps that exchange messages with one peer.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Its rank in the program.
    pub(crate) peer: u32,
    pub(crate) sends: Vec<u32>,
    pub(crate) recvs: Vec<u32>,
}

impl Plan {
    pub(crate) fn new(spec: &Spec, rank: u32) -> Self {
        let program = program(spec, rank);
        let mut lanes: Vec<Lane> = Vec::new();
        let mut lane_of = vec![None; spec.world as usize];
        let mut local = Vec::new();
        for (index, step) in (0..).zip(&program.steps) {
            let Some(peer) = step.action.peer() else {
                local.push(index);
                continue;
            };
            let at = *lane_of[peer as usize].get_or_insert_with(|| {
                lanes.push(Lane {
                    peer,
                    sends: Vec::new(),
                    recvs: Vec::new(),
                });
                lanes.len() - 1
            });
            match step.action {
                Action::Send { .. } => lanes[at].sends.push(index),
                _ => lanes[at].recvs.push(index),
            }
        }
        Self {
            program,
            lanes,
            local,
        }
    }
}
