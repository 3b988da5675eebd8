//! From a Slurm job to the hosts that ranks may use: all of it, some by `-H`, or a hostfile within it.
//!
//! As under mpirun, what the user names must be of the allocation. A host without a number of its own
//! has the slots that Slurm gave it; a number in a hostfile is the user's word.

use crate::Host;
use crate::allocation::{AllocatedHost, Allocation, HostListEntry, ListSlots, Slots};
use crate::text::table;

use super::{SlurmError, SlurmJob, SlurmNode};

impl SlurmJob {
    /// All of it.
    pub fn allocation(&self) -> Allocation {
        let hosts = self
            .hosts()
            .map(|(host, slots)| AllocatedHost::new(host, Slots::Given { slots, max: None }));
        Allocation {
            hosts: hosts.collect(),
        }
    }

    /// `-H` without a hostfile, in `-H`'s order. `is_here` says whether a name means this machine.
    pub fn select(
        &self,
        list: &[HostListEntry],
        oversubscribe: bool,
        is_here: impl Fn(&str) -> bool,
    ) -> Result<Allocation, SlurmError> {
        let mut hosts = Vec::new();
        for entry in list {
            let node = self.allocated(&entry.host.name, &is_here)?;
            let slots = match entry.slots {
                ListSlots::Mentions(_) | ListSlots::All => node.tasks,
                ListSlots::Number(slots) if slots > node.tasks && !oversubscribe => {
                    return Err(SlurmError::MoreThanAllocated {
                        id: self.id.clone(),
                        host: entry.host.to_string(),
                        slots,
                        available: node.tasks,
                    });
                }
                ListSlots::Number(slots) => slots,
            };
            let host = self.named(&entry.host, node);
            hosts.push(AllocatedHost::new(host, Slots::Given { slots, max: None }));
        }
        Ok(Allocation { hosts })
    }

    /// A hostfile inside the allocation: fills in slots that it leaves open.
    pub fn fit(
        &self,
        allocation: &mut Allocation,
        is_here: impl Fn(&str) -> bool,
    ) -> Result<(), SlurmError> {
        for allocated in &mut allocation.hosts {
            let node = self.allocated(&allocated.host.name, &is_here)?;
            if let Slots::FromSurvey { max } = allocated.slots {
                let slots = node.tasks.min(max.unwrap_or(u32::MAX));
                allocated.slots = Slots::Given { slots, max };
            }
            allocated.host = self.named(&allocated.host, node);
        }
        Ok(())
    }

    /// As the user wrote it, but `localhost` by the name that the other hosts know, and by its address a
    /// node that has one.
    fn named(&self, written: &Host, node: &SlurmNode) -> Host {
        let mut host = written.clone();
        if node.address.is_some() || self.node(&host.name).is_none() {
            node.reached().clone_into(&mut host.name);
        }
        host
    }

    fn allocated(
        &self,
        name: &str,
        is_here: &impl Fn(&str) -> bool,
    ) -> Result<&SlurmNode, SlurmError> {
        let here = || self.nodes.iter().find(|node| is_here(&node.name));
        let node = self.node(name).or_else(|| here().filter(|_| is_here(name)));
        node.ok_or_else(|| SlurmError::NotAllocated {
            id: self.id.clone(),
            host: name.to_owned(),
            nodes: table(self.nodes.iter().map(|node| node.name.clone())),
        })
    }
}
