//! The lines of a picture: one for each run, type, reduction and root.

use crate::report::document::{SavedResult, SavedRun};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    pub(super) label: String,
    /// By size.
    pub(super) points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) bytes: f64,
    pub(super) time_us: f64,
    pub(super) bus_gbps: f64,
}

/// Labels say only what differs within the run, after the run's own name.
pub(super) fn curves(label: &str, run: &SavedRun, in_place: bool) -> Vec<Curve> {
    type Key = (String, Option<String>, Option<u32>);
    let key =
        |result: &SavedResult| -> Key { (result.dtype.clone(), result.redop.clone(), result.root) };
    let mut keys: Vec<Key> = Vec::new();
    for result in &run.results {
        if !keys.contains(&key(result)) {
            keys.push(key(result));
        }
    }
    let differs = |of: fn(&Key) -> String| keys.iter().any(|other| of(other) != of(&keys[0]));
    let (types, ops, roots) = (
        differs(|key| key.0.clone()),
        differs(|key| key.1.clone().unwrap_or_default()),
        differs(|key| format!("{:?}", key.2)),
    );
    let transports = run.transports.join("+");
    let name = format!("{label}: {}, {} ranks, {transports}", run.test, run.world);
    let curve = |wanted: &Key| {
        let mut label = name.clone();
        if types {
            label += &format!(", {}", wanted.0);
        }
        if let (true, Some(op)) = (ops, &wanted.1) {
            label += &format!(", {op}");
        }
        if let (true, Some(root)) = (roots, wanted.2) {
            label += &format!(", root {root}");
        }
        let points = run.results.iter().filter(|result| key(result) == *wanted);
        let points = points.filter_map(|result| point(result, in_place));
        let mut points: Vec<Point> = points.collect();
        points.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
        Curve { label, points }
    };
    let all = keys.iter().map(curve);
    all.filter(|curve| !curve.points.is_empty()).collect()
}

/// None where logarithms have no place for it.
fn point(result: &SavedResult, in_place: bool) -> Option<Point> {
    let placement = match result.in_place {
        Some(placement) if in_place => placement,
        _ => result.out_of_place,
    };
    (result.size > 0 && placement.time_us > 0.0).then_some(Point {
        bytes: result.size as f64,
        time_us: placement.time_us,
        bus_gbps: placement.busbw,
    })
}
