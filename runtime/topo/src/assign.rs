//! Rank → GPU → rails → cores of one host, each with its reason: pure.
//!
//! Each rank has GPUs of its own, in the order of numbers (or one of each NUMA node in turn), unless
//! sharing is asked for; rails as [`crate::pairing`] says; and cores of the NUMA node of its first
//! GPU, divided among the ranks there, as [`crate::bind`] says.

use std::collections::BTreeSet;

use serde::Serialize;
use thiserror::Error;

use crate::bind::{Bound, NotBound, Unit, Wish, bind};
use crate::layout::Layout;
use crate::machine::{Gpu, Machine};
use crate::pairing::{Paired, Seat, pair};
use crate::rails::{Rail, rails};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    pub ranks: u32,
    /// 0 for ranks that use none.
    pub gpus_per_rank: Option<u32>,
    /// Several ranks may use one GPU.
    pub share_gpus: bool,
    /// Those that were granted, by number, in the order in which ranks see them; else all.
    pub granted: Option<Vec<u32>>,
    /// GPUs of each rank, by number: the user's own choice.
    pub map: Option<Vec<Vec<u32>>>,
    pub unit: Option<Unit>,
    /// One on each NUMA node in turn.
    pub in_turn: bool,
    /// Cores of other jobs.
    pub claimed: BTreeSet<u32>,
}

/// What CUDA can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    Gpu(u32),
    /// A MIG device of a GPU, by its place in the list.
    Slice {
        gpu: u32,
        index: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    pub rails: Vec<Rail>,
    /// By local rank.
    pub ranks: Vec<Share>,
    /// Why no rank is bound to cores.
    #[serde(serialize_with = "as_text")]
    pub not_bound: Option<NotBound>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    pub devices: Vec<Device>,
    pub network: Paired,
    pub cores: Option<Bound>,
    pub why_cores: WhyCores,
}

/// Why these cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyCores {
    /// They are on the NUMA node of the rank's GPU.
    NearGpu {
        node: u32,
    },
    /// The GPUs' NUMA nodes have not enough cores: ranks are spread over all.
    NodeFull {
        node: u32,
    },
    /// The machine does not tell where the GPU is.
    GpuNodeUnknown,
    /// No core of the GPU's NUMA node may be used here.
    NodeForbidden {
        node: u32,
    },
    /// Spread over NUMA nodes.
    NoGpu,
    NotBound,
}

/// Why no rank can have what it asks for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("there is no GPU here")]
    NoGpu,
    #[error("{wanted} GPUs are needed for {ranks} ranks, and {there} may be used here")]
    TooFew {
        wanted: u64,
        ranks: u32,
        there: usize,
    },
    #[error("GPU {number} is not among those that may be used here")]
    NoSuchGpu { number: u32 },
    #[error("GPU {number} is given to ranks {first} and {second}")]
    GivenTwice {
        number: u32,
        first: usize,
        second: usize,
    },
    #[error("GPUs are named for {named} ranks, and {ranks} run here")]
    MapLength { named: usize, ranks: u32 },
}

pub fn assign(machine: &Machine, request: &Request) -> Result<Plan, Refusal> {
    let devices = devices(machine, request)?;
    let rails = rails(machine).kept;
    let nodes: Vec<Option<u32>> = devices
        .iter()
        .map(|own| {
            own.first()
                .and_then(|device| gpu(machine, *device)?.place.node)
        })
        .collect();
    let (cores, not_bound, why) = cores(machine, request, &devices, &nodes);
    let seats: Vec<Seat> = devices
        .iter()
        .zip(&cores)
        .map(|(devices, cores)| seat(machine, devices, cores.as_ref()))
        .collect();
    let paired = pair(machine, &seats, &rails);
    let parts = devices.into_iter().zip(paired).zip(cores).zip(why);
    let ranks = parts.map(|(((devices, network), cores), why_cores)| Share {
        devices,
        network,
        cores,
        why_cores,
    });
    Ok(Plan {
        ranks: ranks.collect(),
        rails,
        not_bound,
    })
}

/// All that ranks may be given, in the order of numbers: a GPU that is divided is its MIG devices.
pub fn usable_devices(machine: &Machine, granted: Option<&[u32]>) -> Result<Vec<Device>, Refusal> {
    let mut devices = Vec::new();
    let mut add = |gpu: &Gpu| match gpu.slices.len() {
        0 => devices.push(Device::Gpu(gpu.number)),
        count => devices.extend((0..count).map(|index| Device::Slice {
            gpu: gpu.number,
            index,
        })),
    };
    match granted {
        Some(granted) => {
            for &number in granted {
                let own = machine.gpus.iter().find(|gpu| gpu.number == number);
                add(own.ok_or(Refusal::NoSuchGpu { number })?);
            }
        }
        None => {
            let present = machine.gpus.iter().filter(|gpu| gpu.present != Some(false));
            present.for_each(add);
        }
    }
    Ok(devices)
}

fn devices(machine: &Machine, request: &Request) -> Result<Vec<Vec<Device>>, Refusal> {
    let ranks = request.ranks as usize;
    let mut usable = usable_devices(machine, request.granted.as_deref())?;
    if let Some(map) = &request.map {
        return mapped(map, &usable, request);
    }
    let each = request.gpus_per_rank.unwrap_or(match usable.is_empty() {
        true => 0,
        false => 1,
    }) as usize;
    if each == 0 {
        return Ok(vec![Vec::new(); ranks]);
    }
    if usable.is_empty() {
        return Err(Refusal::NoGpu);
    }
    if request.in_turn {
        usable = in_turn(machine, usable);
    }
    let wanted = ranks.saturating_mul(each);
    let is_enough = wanted <= usable.len() || (request.share_gpus && each <= usable.len());
    if !is_enough {
        return Err(Refusal::TooFew {
            wanted: wanted as u64,
            ranks: request.ranks,
            there: usable.len(),
        });
    }
    let of_rank = |rank: usize| {
        let own = (0..each).map(|next| usable[(rank * each + next) % usable.len()]);
        own.collect()
    };
    Ok((0..ranks).map(of_rank).collect())
}

fn mapped(
    map: &[Vec<u32>],
    usable: &[Device],
    request: &Request,
) -> Result<Vec<Vec<Device>>, Refusal> {
    if map.len() != request.ranks as usize {
        return Err(Refusal::MapLength {
            named: map.len(),
            ranks: request.ranks,
        });
    }
    let mut owner: Vec<(u32, usize)> = Vec::new();
    let mut devices = Vec::new();
    for (rank, numbers) in map.iter().enumerate() {
        let mut own = Vec::new();
        for &number in numbers {
            let of_gpu = |device: &&Device| match device {
                Device::Gpu(gpu) | Device::Slice { gpu, .. } => *gpu == number,
            };
            let found: Vec<Device> = usable.iter().filter(of_gpu).copied().collect();
            if found.is_empty() {
                return Err(Refusal::NoSuchGpu { number });
            }
            let before = owner.iter().find(|(gpu, _)| *gpu == number);
            if let Some((_, first)) = before.filter(|_| !request.share_gpus) {
                return Err(Refusal::GivenTwice {
                    number,
                    first: *first,
                    second: rank,
                });
            }
            owner.push((number, rank));
            own.extend(found);
        }
        devices.push(own);
    }
    Ok(devices)
}

/// The first of each NUMA node, then the second of each.
fn in_turn(machine: &Machine, devices: Vec<Device>) -> Vec<Device> {
    let node = |device: &Device| gpu(machine, *device).and_then(|gpu| gpu.place.node);
    let mut counts: Vec<(Option<u32>, usize)> = Vec::new();
    let mut keyed: Vec<(usize, Device)> = Vec::new();
    for device in devices {
        let node = node(&device);
        let turn = match counts.iter_mut().find(|(known, _)| *known == node) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                counts.push((node, 0));
                0
            }
        };
        keyed.push((turn, device));
    }
    keyed.sort_by_key(|(turn, _)| *turn);
    keyed.into_iter().map(|(_, device)| device).collect()
}

pub fn gpu(machine: &Machine, device: Device) -> Option<&Gpu> {
    let (Device::Gpu(number) | Device::Slice { gpu: number, .. }) = device;
    machine.gpus.iter().find(|gpu| gpu.number == number)
}

type Cores = (Vec<Option<Bound>>, Option<NotBound>, Vec<WhyCores>);

fn cores(
    machine: &Machine,
    request: &Request,
    devices: &[Vec<Device>],
    nodes: &[Option<u32>],
) -> Cores {
    let known: Option<Vec<u32>> = nodes.iter().copied().collect();
    let layout = Layout {
        gpu_nodes: known.unwrap_or_default(),
        ..machine.usable.clone()
    };
    let wish = Wish {
        unit: request.unit.unwrap_or(Unit::Divided),
        ranks: request.ranks,
        in_turn: request.in_turn,
    };
    let bound = match bind(&layout, &request.claimed, wish) {
        Ok(bound) => bound,
        Err(why) => {
            let nobody = vec![None; devices.len()];
            return (nobody, Some(why), vec![WhyCores::NotBound; devices.len()]);
        }
    };
    let why = devices
        .iter()
        .zip(nodes)
        .zip(&bound)
        .map(|((own, node), bound)| match (own.is_empty(), node) {
            (true, _) => WhyCores::NoGpu,
            (false, None) => WhyCores::GpuNodeUnknown,
            (false, Some(node)) => near(&layout, *node, bound),
        });
    let why = why.collect();
    (bound.into_iter().map(Some).collect(), None, why)
}

fn near(layout: &Layout, node: u32, bound: &Bound) -> WhyCores {
    let Some(own) = layout.nodes.iter().find(|it| it.number == node) else {
        return WhyCores::NodeForbidden { node };
    };
    let is_own = |core: &u32| own.cores.iter().any(|it| it.name == *core);
    match bound.claims.iter().all(is_own) {
        true => WhyCores::NearGpu { node },
        false => WhyCores::NodeFull { node },
    }
}

fn seat(machine: &Machine, devices: &[Device], cores: Option<&Bound>) -> Seat {
    let own = devices.first().and_then(|device| gpu(machine, *device));
    if let Some(gpu) = own {
        return Seat {
            place: gpu.place.clone(),
            pci: Some(gpu.address),
        };
    }
    let first = cores.and_then(|cores| cores.cpus.first());
    let node = first.and_then(|cpu| {
        let mut nodes = machine.usable.nodes.iter();
        nodes.find(|node| node.cores.iter().any(|core| core.cpus.contains(cpu)))
    });
    let mut seat = Seat::default();
    seat.place.node = node.map(|node| node.number);
    seat
}

fn as_text<S: serde::Serializer>(why: &Option<NotBound>, to: S) -> Result<S::Ok, S::Error> {
    match why {
        Some(why) => to.collect_str(why),
        None => to.serialize_none(),
    }
}
