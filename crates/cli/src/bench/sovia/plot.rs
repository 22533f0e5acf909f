//! The ladders as a picture: latency and bandwidth by size, a line for each mechanism.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::super::path::Bench;
use super::super::report::Line;

/// The lines of the picture, in the order of the ladder.
const ROWS: [&str; 10] =
    ["handler", "single", "flowctrl", "dacks", "combine", "sovia", "vi", "ring", "tcp-spin", "tcp"];
const COLOURS: [RGBColor; 10] = [
    RGBColor(0x9e, 0x9e, 0x9e),
    RGBColor(0xd8, 0x5f, 0x02),
    RGBColor(0xe6, 0xab, 0x02),
    RGBColor(0x66, 0xa6, 0x1e),
    RGBColor(0x1b, 0x9e, 0x77),
    RGBColor(0x0b, 0x3c, 0x8c),
    RGBColor(0xe7, 0x29, 0x8a),
    RGBColor(0x75, 0x70, 0xb3),
    RGBColor(0x33, 0x33, 0x33),
    RGBColor(0x66, 0x33, 0x00),
];

/// Draws an SVG.
pub fn draw(lines: &[Line], file: &Path) -> Result<()> {
    let area = SVGBackend::new(file, (1080, 460)).into_drawing_area();
    area.fill(&WHITE).map_err(failed)?;
    let halves = area.split_evenly((1, 2));
    chart(&halves[0], lines, Bench::Latency, ("one way, microseconds", 1e-3))?;
    chart(&halves[1], lines, Bench::Bandwidth, ("gigabytes per second", 1e-9))?;
    area.present().map_err(failed)
}

fn chart(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    lines: &[Line],
    bench: Bench,
    (unit, scale): (&str, f64),
) -> Result<()> {
    let metric = bench.metrics()[0];
    let points = |row: &str| -> Vec<(f64, f64)> {
        let own = lines.iter().filter(|line| line.bench == bench && line.row == row);
        own.filter_map(|line| Some((line.size as f64, line.figure(metric)? * scale))).collect()
    };
    let all: Vec<(f64, f64)> = ROWS.iter().flat_map(|row| points(row)).collect();
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        let values = || all.iter().map(of);
        (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
    };
    let (sizes, values) = (bounds(|point| point.0), bounds(|point| point.1));
    if all.is_empty() {
        return Ok(());
    }
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .caption(format!("{}, {unit}, by size of a message", bench.name()), ("sans-serif", 15))
        .x_label_area_size(34)
        .y_label_area_size(48)
        .build_cartesian_2d(
            (sizes.0..sizes.1 * 1.3).log_scale().base(4.0),
            (values.0 * 0.8..values.1 * 1.3).log_scale(),
        )
        .map_err(failed)?;
    let size = |bytes: &f64| if *bytes < 1024.0 { format!("{bytes} B") } else { format!("{} KiB", bytes / 1024.0) };
    chart.configure_mesh().x_labels(6).x_label_formatter(&size).light_line_style(WHITE).draw().map_err(failed)?;
    for (row, colour) in ROWS.iter().zip(COLOURS) {
        let points = points(row);
        if points.is_empty() {
            continue;
        }
        let series = LineSeries::new(points, colour.stroke_width(2)).point_size(3);
        let drawn = chart.draw_series(series).map_err(failed)?;
        drawn.label(*row).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    let place = if bench == Bench::Latency { SeriesLabelPosition::UpperLeft } else { SeriesLabelPosition::LowerRight };
    chart
        .configure_series_labels()
        .position(place)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .draw()
        .map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw the ladder: {error}")
}
