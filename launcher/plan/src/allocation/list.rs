//! The `-H` list: `a,b:2,user@c,[::1]:4,node[01-03]:*`.

use crate::Host;

use super::AllocationError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostListEntry {
    pub host: Host,
    pub slots: ListSlots,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListSlots {
    /// Written so many times without a number.
    Mentions(u32),
    /// `:N`, added up.
    Number(u32),
    /// `:*`
    All,
}

/// Parses what stands behind `-H`. Several `-H` are joined with commas by the caller.
pub fn parse_host_list(list: &str) -> Result<Vec<HostListEntry>, AllocationError> {
    let _ = list;
    Err(AllocationError::Empty)
}
