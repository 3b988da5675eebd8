//! What hosts of one kind have in common.

use super::View;
use crate::machine::{Interface, Kind};

/// Without what is each host's own: addresses, UUIDs, and the interfaces of its containers.
pub fn common(view: &View) -> View {
    let mut view = view.clone();
    let rails = &view.plan.rails;
    let is_common = |interface: &Interface| {
        let is_rail = rails.iter().any(|rail| rail.name == interface.name);
        is_rail || (interface.kind != Kind::Veth && !is_of_docker(&interface.name))
    };
    let interfaces = &mut view.machine.interfaces;
    let (kept, gone): (Vec<_>, Vec<_>) = interfaces.drain(..).partition(is_common);
    *interfaces = kept;
    let is_gone = |name: &str| gone.iter().any(|interface| interface.name == name);
    view.left_out.retain(|(name, _)| !is_gone(name));
    for interface in &mut view.machine.interfaces {
        interface.addresses = None;
        interface.below.retain(|name| !is_gone(name));
    }
    for gpu in &mut view.machine.gpus {
        gpu.uuid = None;
        gpu.slices.iter_mut().for_each(|slice| slice.uuid = None);
    }
    view
}

/// `br-` and the beginning of a network's random number.
fn is_of_docker(name: &str) -> bool {
    let number = name.strip_prefix("br-").unwrap_or_default();
    number.len() == 12 && number.bytes().all(|byte| byte.is_ascii_hexdigit())
}
