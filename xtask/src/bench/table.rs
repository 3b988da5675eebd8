//! Markdown tables and the figures in them.

/// Columns padded, so that the source reads like the page.
pub(super) fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| &row[column]).chain([&head[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!(" {cell:>width$} |"));
        format!("|{}\n", padded.collect::<String>())
    };
    let rule: String = widths
        .iter()
        .map(|width| format!("{}:|", "-".repeat(width + 1)))
        .collect();
    let body: String = rows.iter().map(|row| line(row)).collect();
    format!("{}|{rule}\n{body}", line(head))
}

/// Three digits that count; a dash where nothing was measured.
pub(super) fn digits(value: f64) -> String {
    match value {
        missing if !missing.is_finite() => "–".to_owned(),
        small if small < 10.0 => format!("{small:.2}"),
        middle if middle < 100.0 => format!("{middle:.1}"),
        large => format!("{large:.0}"),
    }
}

/// Two decimals; a dash where a side is missing.
pub(super) fn ratio(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.2}")
    } else {
        "–".to_owned()
    }
}

pub(super) fn size_text(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

pub(super) fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Of at least one value.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let row = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let text = markdown(&row(&["bytes", "µs"]), &[row(&["8 B", "0.42"])]);
        assert_eq!(
            text,
            "| bytes |   µs |\n|------:|-----:|\n|   8 B | 0.42 |\n"
        );
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(
            [digits(0.4219), digits(12.34), digits(1234.5)],
            ["0.42", "12.3", "1234"]
        );
        assert_eq!(
            [size_text(8), size_text(65536), size_text(1 << 26)],
            ["8 B", "64 KiB", "64 MiB"]
        );
        assert_eq!(
            (best(&[3.0, 1.0, 2.0]), median(&[3.0, 1.0, 2.0])),
            (1.0, 2.0)
        );
    }
}
