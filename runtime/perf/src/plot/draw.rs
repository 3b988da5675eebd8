//! Two charts side by side, both over size in powers of two: time, and bus bandwidth.

use super::PlotError;
use super::curves::{Curve, Point};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::FontStyle;
use std::error::Error as StdError;
use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::path::Path;

const WIDTH: u32 = 1400;
const HEIGHT: u32 = 560;
const FONT: &str = "sans-serif";
/// Told apart by people with any colour vision, and not by colour alone: marks differ too.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 30),
];

type Area<'a, B> = DrawingArea<B, Shift>;

pub(super) fn draw(curves: &[Curve], output: &Path) -> Result<(), PlotError> {
    let failed = |reason: String| PlotError::Draw {
        path: output.to_owned(),
        reason,
    };
    let font = plotters::style::register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
    font.map_err(|_| failed("the built-in font is not read".into()))?;
    let size = (WIDTH, HEIGHT);
    if output.extension().is_some_and(|ending| ending == "svg") {
        let mut text = String::new();
        charts(
            &SVGBackend::with_string(&mut text, size).into_drawing_area(),
            curves,
        )
        .map_err(|error| failed(error.to_string()))?;
        return std::fs::write(output, text).map_err(|error| failed(error.to_string()));
    }
    let mut pixels = vec![0; (WIDTH * HEIGHT * 3) as usize];
    charts(
        &BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area(),
        curves,
    )
    .map_err(|error| failed(error.to_string()))?;
    write_png(output, &pixels).map_err(|error| failed(error.to_string()))
}

fn write_png(output: &Path, pixels: &[u8]) -> Result<(), Box<dyn StdError>> {
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(output)?), WIDTH, HEIGHT);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    Ok(writer.finish()?)
}

fn charts<B: DrawingBackend>(
    area: &Area<'_, B>,
    curves: &[Curve],
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    area.fill(&WHITE)?;
    let (left, right) = area.split_horizontally(WIDTH / 2);
    chart(&left, curves, "time (µs)", |point| point.time_us, true)?;
    chart(
        &right,
        curves,
        "bus bandwidth (GB/s)",
        |point| point.bus_gbps,
        false,
    )?;
    area.present()
}

fn chart<B: DrawingBackend>(
    area: &Area<'_, B>,
    curves: &[Curve],
    title: &str,
    value: fn(&Point) -> f64,
    has_legend: bool,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (sizes, values) = (
        range(points().map(|point| point.bytes)),
        range(points().map(value).filter(|value| *value > 0.0)),
    );
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 20))
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(sizes.log_scale().base(2.0), values.log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(RGBColor(240, 240, 240))
        .x_desc("size")
        .x_labels(14)
        .x_label_formatter(&|bytes| size_text(*bytes))
        .y_label_formatter(&|value| value_text(*value))
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .draw()?;
    for (index, curve) in curves.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let line = || {
            let points = curve.points.iter();
            let pairs = points.map(|point| (point.bytes, value(point)));
            pairs.filter(|(_, value)| *value > 0.0)
        };
        let drawn = chart.draw_series(LineSeries::new(line(), colour.stroke_width(2)))?;
        drawn
            .label(curve.label.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        // Rounds of colours have marks of their own.
        if (index / COLOURS.len()).is_multiple_of(2) {
            chart.draw_series(line().map(|at| Circle::new(at, 3, colour.filled())))?;
        } else {
            chart.draw_series(line().map(|at| TriangleMarker::new(at, 5, colour.filled())))?;
        }
    }
    if has_legend {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .label_font((FONT, 13))
            .draw()?;
    }
    Ok(())
}

/// From the least to the most, with room on both sides where they are one.
fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let mut ends = (f64::INFINITY, 0.0_f64);
    for value in values {
        ends = (ends.0.min(value), ends.1.max(value));
    }
    if !ends.0.is_finite() {
        return 0.1..10.0; // nothing has a value here
    }
    ends.0 / 1.3..ends.1 * 1.3
}

fn size_text(bytes: f64) -> String {
    match bytes {
        _ if bytes >= f64::from(1 << 30) => format!("{}G", (bytes / f64::from(1 << 30)).round()),
        _ if bytes >= f64::from(1 << 20) => format!("{}M", (bytes / f64::from(1 << 20)).round()),
        _ if bytes >= 1024.0 => format!("{}K", (bytes / 1024.0).round()),
        _ => format!("{}", bytes.round()),
    }
}

fn value_text(value: f64) -> String {
    match value {
        _ if value >= 1.0 => format!("{value:.0}"),
        _ if value >= 0.1 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
