//! The flight recorder's entries, as operations begin and end.

use super::Slot;
use super::recorder::About;
use crate::core::Core;
use crate::group::GroupKey;
use crate::wait::Operation;
use rlaunch_wire::Descriptor;

impl Core {
    #[inline]
    pub(crate) fn record_begin(&self, key: GroupKey, operation: &dyn Operation) -> Option<Slot> {
        let group = self.groups.get(key)?;
        let recorder = &group.shared.recorder;
        Some(recorder.begin(&operation.call(), operation.about()))
    }

    /// It has to wait.
    pub(crate) fn record_wait(&self, key: GroupKey, slot: Option<Slot>) {
        if let (Some(group), Some(slot)) = (self.groups.get(key), slot) {
            group.shared.recorder.wait(slot);
        }
    }

    #[inline]
    pub(crate) fn record_end(
        &self,
        key: GroupKey,
        slot: Option<Slot>,
        is_ok: bool,
        has_waited: bool,
    ) {
        if let (Some(group), Some(slot)) = (self.groups.get(key), slot) {
            group.shared.recorder.end(slot, is_ok, has_waited);
        }
    }

    /// Of an operation that nobody waits for in a call.
    pub(crate) fn record_start(&self, call: &Descriptor, about: About) -> Option<Slot> {
        let key = self.groups.find(call.communicator)?;
        let recorder = &self.groups.get(key)?.shared.recorder;
        let slot = recorder.begin(call, about);
        recorder.wait(slot);
        Some(slot)
    }

    pub(crate) fn record_finish(&self, communicator: u32, slot: Option<Slot>, is_ok: bool) {
        if let Some(key) = self.groups.find(communicator) {
            self.record_end(key, slot, is_ok, true);
        }
    }
}
