//! What NVML knows beyond the driver's files: NVLinks, MIG devices, health.
//!
//! The library is loaded when it is asked for, never linked: a machine without it has no such facts.
//! It is asked on a thread of its own, since it takes seconds to start without persistence mode and
//! never answers for some broken GPUs.

use std::ffi::OsStr;
use std::sync::mpsc;
use std::time::Duration;

use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError};
use nvml_wrapper::enum_wrappers::nv_link::IntDeviceType;
use nvml_wrapper::{Device, Nvml};
use serde::{Deserialize, Serialize};

use crate::machine::Health;

const LIBRARY: &str = "libnvidia-ml.so.1";
/// More than any GPU has.
const LINKS_MAX: u32 = 18;
const SLICES_MAX: u32 = 64;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NvmlFacts {
    pub gpus: Vec<NvmlGpu>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NvmlGpu {
    pub pci: String,
    pub name: Option<String>,
    pub uuid: Option<String>,
    pub minor: Option<u32>,
    pub compute: Option<(u32, u32)>,
    pub mig: Option<bool>,
    /// UUID and profile of each MIG device.
    pub slices: Vec<(String, Option<String>)>,
    /// Active NVLinks; none where it could not be asked.
    pub links: Option<Vec<Remote>>,
    pub health: Option<Health>,
}

/// The other end of so many NVLinks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remote {
    pub pci: Option<String>,
    pub is_switch: bool,
    pub count: u32,
}

impl NvmlFacts {
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// Nothing without the library, or if it takes longer than `patience`.
pub fn read(patience: Duration) -> Option<NvmlFacts> {
    read_from(OsStr::new(LIBRARY), patience)
}

/// From a library of another name: a double in tests.
pub fn read_from(library: &OsStr, patience: Duration) -> Option<NvmlFacts> {
    let (answer, answered) = mpsc::channel();
    let library = library.to_owned();
    // A library that hangs keeps this thread; the program ends without it.
    let thread = std::thread::Builder::new().name("nvml".to_owned());
    let asked = thread.spawn(move || {
        let facts = Nvml::builder()
            .lib_path(&library)
            .init()
            .ok()
            .map(|nvml| facts(&nvml));
        // Nobody waits any more: then nobody wants it.
        let _ = answer.send(facts);
    });
    asked.ok()?;
    answered.recv_timeout(patience).ok().flatten()
}

fn facts(nvml: &Nvml) -> NvmlFacts {
    let count = nvml.device_count().unwrap_or_default();
    let devices = (0..count).filter_map(|index| nvml.device_by_index(index).ok());
    NvmlFacts {
        gpus: devices.filter_map(|device| gpu(&device)).collect(),
    }
}

fn gpu(device: &Device<'_>) -> Option<NvmlGpu> {
    let compute = device.cuda_compute_capability().ok();
    let number = |number: i32| u32::try_from(number).unwrap_or_default();
    let mig = device.mig_mode().ok().map(|mode| mode.current == 1);
    Some(NvmlGpu {
        pci: device.pci_info().ok()?.bus_id,
        name: device.name().ok(),
        uuid: device.uuid().ok(),
        minor: device.minor_number().ok(),
        compute: compute.map(|it| (number(it.major), number(it.minor))),
        mig,
        slices: match mig {
            Some(true) => slices(device),
            _ => Vec::new(),
        },
        links: Some(links(device)),
        health: Some(health(device)),
    })
}

fn slices(device: &Device<'_>) -> Vec<(String, Option<String>)> {
    let count = device
        .mig_device_count()
        .unwrap_or_default()
        .min(SLICES_MAX);
    let slices = (0..count).filter_map(|index| device.mig_device_by_index(index).ok());
    let described = slices.filter_map(|slice| {
        let name = slice.name().ok();
        // `NVIDIA H100 80GB HBM3 MIG 1g.10gb`
        let profile = name.and_then(|name| Some(name.rsplit_once("MIG ")?.1.to_owned()));
        Some((slice.uuid().ok()?, profile))
    });
    described.collect()
}

fn links(device: &Device<'_>) -> Vec<Remote> {
    let mut remotes: Vec<Remote> = Vec::new();
    for number in 0..LINKS_MAX {
        let link = device.link_wrapper_for(number);
        if !link.is_active().unwrap_or(false) {
            continue;
        }
        let pci = link.remote_pci_info().ok().map(|pci| pci.bus_id);
        let is_switch = matches!(link.remote_device_type(number), Ok(IntDeviceType::Switch));
        let is_same = |known: &&mut Remote| known.pci == pci && known.is_switch == is_switch;
        match remotes.iter_mut().find(is_same) {
            Some(known) => known.count += 1,
            None => remotes.push(Remote {
                pci,
                is_switch,
                count: 1,
            }),
        }
    }
    remotes
}

fn health(device: &Device<'_>) -> Health {
    let errors = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile);
    Health {
        uncorrected: errors.ok(),
        repair_pending: device.are_pages_pending_retired().ok(),
        processes: device.running_compute_processes_count().ok(),
    }
}
