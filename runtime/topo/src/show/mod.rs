//! A machine for people and programs: what hangs where, how far it is, what belongs together and why.
//! Pure. Decisions arrive here as data; only here they become words.

mod common;
mod matrix;
mod svg;
mod tree;
mod words;

use serde::Serialize;

use crate::assign::{Device, Plan, Request, assign, usable_devices};
use crate::distance::{Distance, between_gpus, over_pci};
use crate::machine::{Address, Machine, Place};
use crate::rails::{LeftOut, Rails, rails};

pub use common::common;
pub use svg::{svg, svg_of};
pub use words::{left_out, rejected, why, why_cores};

/// Everything that is shown.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub machine: Machine,
    /// GPUs, then rails: in the order of rows and columns.
    pub names: Vec<String>,
    /// By row and column; nothing where the machine does not tell.
    pub distances: Vec<Vec<Option<Distance>>>,
    pub left_out: Vec<(String, LeftOut)>,
    /// One rank for each device; without GPUs one for each NUMA node.
    pub plan: Plan,
}

pub fn view(machine: Machine) -> View {
    let Rails { kept, left_out } = rails(&machine);
    let devices = usable_devices(&machine, None).unwrap_or_default();
    let ranks = match devices.len() {
        0 => machine.usable.nodes.len().max(1),
        count => count,
    };
    let request = Request {
        ranks: u32::try_from(ranks).unwrap_or(u32::MAX),
        ..Request::default()
    };
    let plan = assign(&machine, &request).unwrap_or(Plan {
        rails: kept.clone(),
        ranks: Vec::new(),
        not_bound: None,
    });
    let gpus = machine.gpus.iter().map(|gpu| format!("GPU{}", gpu.number));
    let names = gpus
        .chain(kept.iter().map(|rail| rail.name.clone()))
        .collect();
    let ends: Vec<(Option<Address>, &Place)> = machine
        .gpus
        .iter()
        .map(|gpu| (Some(gpu.address), &gpu.place))
        .chain(kept.iter().map(|rail| (rail.pci, &rail.place)))
        .collect();
    let distance = |a: usize, b: usize| {
        if a == b {
            return Some(Distance::Same);
        }
        match (machine.gpus.get(a), machine.gpus.get(b)) {
            (Some(a), Some(b)) => between_gpus(a, b),
            _ if ends[a].0.is_some() && ends[a].0 == ends[b].0 => Some(Distance::Pix),
            _ => over_pci(ends[a].1, ends[b].1),
        }
    };
    let row = |a: usize| (0..ends.len()).map(|b| distance(a, b)).collect();
    let distances = (0..ends.len()).map(row).collect();
    View {
        names,
        distances,
        left_out,
        plan,
        machine,
    }
}

/// Tree, matrix, and what belongs together.
pub fn text(view: &View) -> String {
    let mut parts = vec![
        tree::tree(&view.machine),
        matrix::matrix(view),
        words::together(view),
    ];
    parts.retain(|part| !part.is_empty());
    // Names come from other machines: none of them moves the reader's cursor.
    let is_bad = |letter: char| letter.is_control() && letter != '\n';
    parts.join("\n").replace(is_bad, "\u{fffd}")
}

/// `GPU0`, `GPU0/2` for its third MIG device.
pub fn device(device: Device) -> String {
    match device {
        Device::Gpu(number) => format!("GPU{number}"),
        Device::Slice { gpu, index } => format!("GPU{gpu}/{index}"),
    }
}

/// `400 Gb/s`, `2.5 Gb/s`
pub(crate) fn rate(mbits: u32) -> String {
    match mbits % 1000 {
        0 => format!("{} Gb/s", mbits / 1000),
        _ => format!("{} Gb/s", f64::from(mbits) / 1000.0),
    }
}
