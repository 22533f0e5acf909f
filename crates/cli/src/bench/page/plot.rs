//! Plots as SVG that needs no script and takes its colours from the page, so that it is read in a light and in a dark room.

use std::fmt::Write;

/// What the values of an axis are, and how they are written beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Nanoseconds.
    Time,
    /// Bytes per second.
    Bandwidth,
    /// Something per second.
    Frequency,
    /// Bytes.
    Size,
    /// A number of things.
    Count,
    /// A share of messages, towards all of them: 90 %, 99 %, 99.9 %.
    Share,
    /// A share that begins at nothing and grows evenly.
    Percent,
    /// Nanoseconds that begin at nothing and grow evenly, where a straight line is to be seen as one.
    EvenTime,
}

/// One line: its name, which of the colours it has, and its points.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// The number of its colour and mark.
    pub colour: usize,
    /// Where it goes, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Lines over two axes.
#[derive(Debug)]
pub struct Plot {
    /// What it shows, for readers who do not see it.
    pub about: String,
    /// The axis across, and its name.
    pub x: (Scale, &'static str),
    /// The axis upwards.
    pub y: Scale,
    /// The lines.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 34.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 48.0;
/// Labels across stand no nearer than this.
const APART: f64 = 52.0;

impl Scale {
    /// Where a value lies, on a line that grows evenly.
    fn place(self, value: f64) -> f64 {
        match self {
            Scale::Share => -(1.0 - value).max(1e-6).log10(),
            Scale::Percent | Scale::EvenTime => value,
            _ => value.max(f64::MIN_POSITIVE).log10(),
        }
    }

    /// A value as it is written.
    pub fn label(self, value: f64) -> String {
        let scaled = |steps: &[(f64, &str)]| {
            let (unit, name) = steps.iter().rev().find(|(unit, _)| value >= *unit * 0.999).unwrap_or(&steps[0]);
            let number = value / unit;
            let digits = if number >= 100.0 || number.fract().abs() < 0.005 { 0 } else { 1 };
            if number < 1.0 { format!("{number} {name}") } else { format!("{number:.digits$} {name}") }
        };
        match self {
            Scale::EvenTime if value == 0.0 => "0".into(),
            Scale::Time | Scale::EvenTime => scaled(&[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")]),
            Scale::Bandwidth => scaled(&[(1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")]),
            Scale::Frequency => scaled(&[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")]),
            Scale::Size => scaled(&[(1.0, "B"), (1024.0, "KiB"), (1_048_576.0, "MiB")]),
            Scale::Count => format!("{value}"),
            Scale::Share | Scale::Percent => format!("{} %", (value * 1e7).round() / 1e5),
        }
    }

    fn is_even(self) -> bool {
        matches!(self, Scale::Percent | Scale::EvenTime)
    }

    /// Round values that lie between two.
    fn ticks(self, low: f64, high: f64) -> Vec<f64> {
        if self == Scale::Share {
            return [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999].into_iter().filter(|share| *share <= high).collect();
        }
        if self.is_even() {
            // Four to ten of them, apart by 1, 2 or 5.
            let power = 10f64.powf((high / 4.0).max(f64::MIN_POSITIVE).log10().floor());
            let step = [5.0, 2.0, 1.0].map(|step| step * power).into_iter().find(|step| high / step >= 4.0);
            let step = step.unwrap_or(power);
            return (0..=(high / step) as usize).map(|count| count as f64 * step).collect();
        }
        let decades = high.log10() - low.log10();
        let steps: &[f64] = match decades {
            _ if decades < 1.2 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            _ if decades < 3.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let first = low.log10().floor() as i32;
        let last = high.log10().ceil() as i32;
        let all = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        all.filter(|value| (low * 0.999..=high * 1.001).contains(value)).collect()
    }
}

impl Plot {
    /// The picture.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let (low_x, high_x) = bounds(points().map(|point| point.0));
        let (low_y, high_y) = bounds(points().map(|point| point.1));
        // Some room above and below, so that nothing lies on the frame.
        let (low_y, high_y) = match self.y.is_even() {
            true => (0.0, high_y * 1.1),
            false => (low_y / 1.25, high_y * 1.25),
        };
        let across = |value: f64| {
            let [low, high, at] = [low_x, high_x, value].map(|value| self.x.0.place(value));
            LEFT + (at - low) / (high - low).max(1e-9) * (WIDTH - LEFT - RIGHT)
        };
        let up = |value: f64| {
            let [low, high, at] = [low_y, high_y, value].map(|value| self.y.place(value));
            HEIGHT - BOTTOM - (at - low) / (high - low).max(1e-9) * (HEIGHT - TOP - BOTTOM)
        };
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            super::escape(&self.about)
        );
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for value in self.y.ticks(low_y, high_y) {
            let (y, text) = (up(value), self.y.label(value));
            let _ = writeln!(out, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/>");
            let _ = writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>", LEFT - 8.0, y + 4.0);
        }
        for value in self.across_ticks(low_x, high_x, across) {
            let (x, text) = (across(value), self.x.0.label(value));
            let _ = writeln!(out, "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/>");
            let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>", bottom + 18.0);
        }
        let _ = writeln!(out, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>");
        let middle = (LEFT + right) / 2.0;
        let _ = writeln!(
            out,
            "<text class=\"name\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 8.0,
            self.x.1
        );
        for series in &self.series {
            let line: Vec<String> =
                series.points.iter().map(|(x, y)| format!("{:.1} {:.1}", across(*x), up(*y))).collect();
            let _ = writeln!(out, "<g class=\"c{}\"><path class=\"line\" d=\"M{}\"/>", series.colour, line.join("L"));
            for (x, y) in &series.points {
                let told = format!("{}: {}, {}", series.name, self.x.0.label(*x), self.y.label(*y));
                let _ = writeln!(
                    out,
                    "<path class=\"mark\" d=\"{}\"><title>{}</title></path>",
                    mark(series.colour, across(*x), up(*y)),
                    super::escape(&told)
                );
            }
            out += "</g>\n";
        }
        out + "</svg>\n"
    }

    /// The values that are named across: of sizes and counts those that were measured, as far as they have room.
    fn across_ticks(&self, low: f64, high: f64, across: impl Fn(f64) -> f64) -> Vec<f64> {
        if !matches!(self.x.0, Scale::Size | Scale::Count) {
            return self.x.0.ticks(low, high);
        }
        let mut all: Vec<f64> =
            self.series.iter().flat_map(|series| series.points.iter().map(|point| point.0)).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        let mut kept: Vec<f64> = Vec::new();
        for value in all {
            if kept.last().is_none_or(|last| across(value) - across(*last) >= APART) {
                kept.push(value);
            }
        }
        kept
    }
}

/// The mark of a line, so that lines are told apart without their colours, too.
pub fn mark(number: usize, x: f64, y: f64) -> String {
    match number % 4 {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x - 4.0),
        1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        2 => format!("M{x:.1} {:.1}l4.5 8h-9z", y - 5.0),
        _ => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
    }
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        assert_eq!(Scale::Time.label(200.0), "200 ns");
        assert_eq!(Scale::Time.label(1500.0), "1.5 µs");
        assert_eq!(Scale::Size.label(65536.0), "64 KiB");
        assert_eq!(Scale::Bandwidth.label(2e10), "20 GB/s");
        assert_eq!(Scale::Share.label(0.999), "99.9 %");
        assert_eq!(Scale::Frequency.label(0.5), "0.5 /s");
        assert_eq!(Scale::Percent.label(0.25), "25 %");
    }

    #[test]
    fn an_even_axis_begins_at_nothing() {
        assert_eq!(Scale::Percent.ticks(0.0, 0.5), [0.0, 0.1, 0.2, 0.30000000000000004, 0.4, 0.5]);
        let times: Vec<String> =
            Scale::EvenTime.ticks(7_000.0, 190_000.0).into_iter().map(|time| Scale::EvenTime.label(time)).collect();
        assert_eq!(times, ["0", "20 µs", "40 µs", "60 µs", "80 µs", "100 µs", "120 µs", "140 µs", "160 µs", "180 µs"]);
    }

    #[test]
    fn a_plot_has_every_line_point_and_name() {
        let series =
            |name: &str, colour, points: &[(f64, f64)]| Series { name: name.into(), colour, points: points.to_vec() };
        let plot = Plot {
            about: "a <test>".into(),
            x: (Scale::Size, "size of a message"),
            y: Scale::Time,
            series: vec![series("one", 0, &[(1.0, 100.0), (64.0, 120.0)]), series("two", 1, &[(64.0, 9000.0)])],
        };
        let svg = plot.svg();
        assert_eq!(svg.matches("class=\"mark\"").count(), 3);
        assert_eq!(svg.matches("class=\"line\"").count(), 2);
        for expected in ["64 B", "size of a message", "a &lt;test&gt;", "two: 64 B, 9 µs"] {
            assert!(svg.contains(expected), "{expected} in\n{svg}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
