//! The way back: counts as Slurm writes them.

/// `3 1 1` → `3,1(x2)`
pub(super) fn counts(counts: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for count in counts {
        match runs.last_mut() {
            Some((number, times)) if *number == count => *times += 1,
            _ => runs.push((count, 1)),
        }
    }
    let text = |(number, times): (u32, u32)| match times {
        1 => number.to_string(),
        times => format!("{number}(x{times})"),
    };
    runs.into_iter().map(text).collect::<Vec<_>>().join(",")
}
