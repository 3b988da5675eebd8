//! Which of the launcher's variables stay here.

use rlaunch_wire::owner::{Owner, owner};
use rlaunch_wire::setting::{is_launcher_setting, misspelt};

use super::DropReason;

/// Belongs to this machine, this login or this terminal.
const LOCAL: [&str; 20] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "OLDPWD",
    "HOSTNAME",
    "HOST",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "KRB5CCNAME",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "MAIL",
    "SHLVL",
    "_",
    "XAUTHORITY",
];
const LOCAL_PREFIXES: [&str; 4] = ["XDG_", "SSH_", "DBUS_", "TMUX"];

/// Why a launcher's variable of this name does not go to the hosts; `None`: it goes.
pub(super) fn drop_reason(name: &[u8]) -> Option<DropReason> {
    let is_local = LOCAL.iter().any(|known| known.as_bytes() == name)
        || LOCAL_PREFIXES
            .iter()
            .any(|known| name.starts_with(known.as_bytes()));
    if is_launcher_setting(name) {
        return Some(DropReason::Local);
    }
    if misspelt(name).is_some() {
        return Some(DropReason::Misspelt);
    }
    match owner(name) {
        Some(Owner::Rank) => Some(DropReason::Rank),
        Some(Owner::Task) => Some(DropReason::Task),
        None => is_local.then_some(DropReason::Local),
    }
}
