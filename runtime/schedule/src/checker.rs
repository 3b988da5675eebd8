//! Judges the programs of all ranks together.

use crate::Program;
use rlaunch_wire::Collective;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {}

pub fn check(_collective: Collective, _root: u32, _programs: &[Program]) -> Result<(), Violation> {
    Ok(())
}
