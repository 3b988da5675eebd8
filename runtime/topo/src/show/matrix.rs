//! The matrix of `nvidia-smi topo -m`, with cores.

use super::View;
use crate::distance::Distance;
use crate::layout::ranges;
use crate::machine::Machine;

pub(super) fn matrix(view: &View) -> String {
    if view.names.len() < 2 {
        return String::new();
    }
    let gpus = view.machine.gpus.len();
    let mut rows: Vec<Vec<String>> = vec![head(view)];
    for (index, name) in view.names.iter().enumerate() {
        let mut row = vec![name.clone()];
        let cell = |distance: &Option<Distance>| match distance {
            Some(distance) => distance.to_string(),
            None => "?".to_owned(),
        };
        row.extend(view.distances[index].iter().map(cell));
        let place = match index < gpus {
            true => &view.machine.gpus[index].place,
            false => &view.plan.rails[index - gpus].place,
        };
        row.push(
            place
                .node
                .map(|node| cpus(&view.machine, node))
                .unwrap_or("?".to_owned()),
        );
        row.push(
            place
                .node
                .map(|node| node.to_string())
                .unwrap_or("?".to_owned()),
        );
        rows.push(row);
    }
    let mut out = table(&rows);
    out.push_str(&legend(view));
    out
}

fn head(view: &View) -> Vec<String> {
    let mut head = vec![String::new()];
    head.extend(view.names.iter().cloned());
    head.push("CPUs".to_owned());
    head.push("NUMA".to_owned());
    head
}

/// Those of the node that may be used here.
fn cpus(machine: &Machine, node: u32) -> String {
    let own = machine.usable.nodes.iter().find(|it| it.number == node);
    let cpus = own.map(|node| node.cores.iter().flat_map(|core| core.cpus.iter().copied()));
    let mut cpus: Vec<u32> = cpus.into_iter().flatten().collect();
    cpus.sort_unstable();
    match cpus.is_empty() {
        true => "none here".to_owned(),
        false => ranges(&cpus),
    }
}

pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// Of what is in the matrix.
fn legend(view: &View) -> String {
    let all: Vec<Option<Distance>> = view.distances.iter().flatten().copied().collect();
    let has = |wanted: fn(&Option<Distance>) -> bool| all.iter().any(wanted);
    let lines: [(bool, &str); 7] = [
        (
            has(|it| matches!(it, Some(Distance::NvLink(_)))),
            "NV#   so many NVLinks",
        ),
        (
            has(|it| *it == Some(Distance::Pix)),
            "PIX   at most one PCIe switch",
        ),
        (
            has(|it| *it == Some(Distance::Pxb)),
            "PXB   several PCIe switches, not the CPU",
        ),
        (
            has(|it| *it == Some(Distance::Phb)),
            "PHB   a PCIe host bridge: through the CPU",
        ),
        (
            has(|it| *it == Some(Distance::Node)),
            "NODE  two host bridges of one NUMA node",
        ),
        (
            has(|it| *it == Some(Distance::Sys)),
            "SYS   the connection between NUMA nodes",
        ),
        (has(Option::is_none), "?     this machine does not tell"),
    ];
    let lines = lines.iter().filter(|(is_there, _)| *is_there);
    lines.map(|(_, line)| format!("  {line}\n")).collect()
}
