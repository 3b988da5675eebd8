//! Reasons in words.

use std::fmt::Write;

use super::{View, device, rate};
use crate::assign::{Share, WhyCores};
use crate::distance::Distance;
use crate::layout::ranges;
use crate::pairing::{Rejected, Why};
use crate::rails::{LeftOut, Rail};

pub fn why(why: Why) -> String {
    match why {
        Why::None => "there is no network device for data".to_owned(),
        Why::Only => "there is no other".to_owned(),
        Why::Nearest => "none is nearer".to_owned(),
        Why::Fastest => "none as near is faster".to_owned(),
        Why::Spread { seats, rails } => {
            format!("{rails} are as good, shared evenly by {seats}")
        }
        Why::Unknown { seats, rails } => format!(
            "this machine does not tell how far they are; {rails} as fast, shared evenly by {seats}"
        ),
    }
}

pub fn rejected(why: &Rejected) -> String {
    match why {
        Rejected::Farther {
            distance: Some(distance),
        } => distance.to_string(),
        Rejected::Farther { distance: None } => "distance unknown".to_owned(),
        Rejected::Slower {
            gbytes: Some(gbytes),
        } => format!("{gbytes:.1} GB/s"),
        Rejected::Slower { gbytes: None } => "speed unknown".to_owned(),
        Rejected::Spread => "as good, used by others".to_owned(),
    }
}

pub fn left_out(why: &LeftOut) -> String {
    match why {
        LeftOut::PortDown { state, physical } => match physical {
            Some(physical) => format!("its port is {state} ({physical}): is there a cable?"),
            None => format!("its port is {state}"),
        },
        LeftOut::NotHere => "its device file is not here: another container's".to_owned(),
        LeftOut::NoGid => "it has no RoCE address here".to_owned(),
        LeftOut::Slow { mbits, fastest } => {
            format!("{} where others have {}", rate(*mbits), rate(*fastest))
        }
        LeftOut::SwitchedOff => "it is switched off".to_owned(),
        LeftOut::NoCarrier => "no carrier: is there a cable?".to_owned(),
        LeftOut::NoAddress => "it has no address that reaches further than its link".to_owned(),
        LeftOut::Loopback => "it does not leave this machine".to_owned(),
        LeftOut::MemberOf { master } => format!("{master} speaks for it"),
        LeftOut::LeadsNowhere => "no device stands behind it: it ends on this machine".to_owned(),
        LeftOut::Tunnel => "a tunnel, and there are others".to_owned(),
        LeftOut::Socket => "RDMA devices are faster".to_owned(),
    }
}

pub fn why_cores(why: WhyCores) -> String {
    match why {
        WhyCores::NearGpu { node } => format!("NUMA node {node}, its GPU's"),
        WhyCores::NodeFull { node } => {
            format!("spread over NUMA nodes: node {node}, its GPU's, has too few")
        }
        WhyCores::GpuNodeUnknown => {
            "spread over NUMA nodes: this machine does not tell its GPU's".to_owned()
        }
        WhyCores::NodeForbidden { node } => {
            format!("spread: no core of NUMA node {node}, its GPU's, may be used here")
        }
        WhyCores::NoGpu => "spread over NUMA nodes".to_owned(),
        WhyCores::NotBound => "not bound".to_owned(),
    }
}

/// A paragraph for each device, then what is left out.
pub(super) fn together(view: &View) -> String {
    let mut out = String::from("What belongs together\n");
    let plan = &view.plan;
    for (rank, share) in plan.ranks.iter().enumerate() {
        let name = match share.devices.first() {
            Some(own) => device(*own),
            None => format!("rank {rank} of {}", plan.ranks.len()),
        };
        let _ = writeln!(out, "{name}");
        let _ = writeln!(out, "  network: {}", network(view, share, &name));
        for (reason, names) in grouped(share, &plan.rails) {
            let _ = writeln!(out, "    not {}: {reason}", names.join(" "));
        }
        let cores = share.cores.as_ref().map(|cores| ranges(&cores.cpus));
        let why = why_cores(share.why_cores);
        let _ = match cores {
            Some(cores) => writeln!(out, "  cores:   {cores} ({why})"),
            None => writeln!(out, "  cores:   {why}"),
        };
    }
    if let Some(why) = &plan.not_bound {
        let _ = writeln!(out, "not bound to cores: {why}");
    }
    let used = |index: &usize| {
        plan.ranks
            .iter()
            .any(|rank| rank.network.rails.contains(index))
    };
    let unused = (0..plan.rails.len()).filter(|index| !used(index));
    let unused: Vec<&str> = unused
        .map(|index| plan.rails[index].name.as_str())
        .collect();
    if !unused.is_empty() {
        let _ = writeln!(out, "nearest to none: {}", unused.join(" "));
    }
    if !view.left_out.is_empty() {
        out.push_str("\nNot for data\n");
        let width = view
            .left_out
            .iter()
            .map(|(name, _)| name.chars().count())
            .max();
        let width = width.unwrap_or_default();
        for (name, reason) in &view.left_out {
            let _ = writeln!(out, "  {name:width$}  {}", left_out(reason));
        }
    }
    out
}

/// `mlx5_0 (PXB, 48 GB/s): none is nearer`
fn network(view: &View, share: &Share, name: &str) -> String {
    let gpus = view.machine.gpus.len();
    let row = share.devices.first().and_then(|_| {
        let name = name.split('/').next().unwrap_or(name);
        view.names.iter().position(|known| known == name)
    });
    let chosen = share.network.rails.iter().map(|&index| {
        let rail = &view.plan.rails[index];
        let distance: Option<Distance> = row.and_then(|row| view.distances[row][gpus + index]);
        let facts = [distance.map(|it| it.to_string()), rail.rate_mbits.map(rate)];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        match facts.is_empty() {
            true => rail.name.clone(),
            false => format!("{} ({})", rail.name, facts.join(", ")),
        }
    });
    let chosen: Vec<String> = chosen.collect();
    let why = why(share.network.why);
    match chosen.is_empty() {
        true => why,
        false => format!("{}: {why}", chosen.join(" ")),
    }
}

/// Rejected rails by reason, in the order of reasons.
fn grouped<'a>(share: &Share, rails: &'a [Rail]) -> Vec<(String, Vec<&'a str>)> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let mut rejected_rails = share.network.rejected.clone();
    rejected_rails.sort_by_key(|(_, reason)| match reason {
        Rejected::Spread => (0, None),
        Rejected::Slower { .. } => (1, None),
        Rejected::Farther { distance } => (if distance.is_some() { 2 } else { 3 }, *distance),
    });
    for (index, reason) in &rejected_rails {
        let reason = rejected(reason);
        let name = rails[*index].name.as_str();
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => groups.push((reason, vec![name])),
        }
    }
    groups
}
