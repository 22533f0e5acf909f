//! What the ladders say, beside what the papers say.

use super::super::path::Bench;
use super::super::record::{Metric, digits};
use super::super::report::Line;

/// A ratio of two lines, what a paper has for it, and what is promised.
struct Step {
    about: &'static str,
    bench: Bench,
    size: usize,
    /// The better one, and what it is compared with.
    rows: [&'static str; 2],
    /// As the paper has it; 0: it has no such figure.
    paper: f64,
    /// At least so much; 0: nothing is promised.
    must: f64,
}

const fn step(about: &'static str, bench: Bench, size: usize, rows: [&'static str; 2], paper: f64, must: f64) -> Step {
    Step { about, bench, size, rows, paper, must }
}

/// The figures of seed 001 (SOVIA: 4 B in 10.5 us, a handler 15 us more, VIA 8.5 us, TCP 55 us) and of seed 004 chapters
/// 2 and 6 (28.5 us datagrams, 37 us streams, 28 us EMP, 120 us TCP; about ten times the throughput of small messages).
const STEPS: &[Step] = &[
    step("no handler thread", Bench::Latency, 4, ["single", "handler"], 25.5 / 10.5, 0.0),
    step("window", Bench::Rate, 16, ["flowctrl", "single"], 0.0, 0.0),
    step("delayed acknowledgements", Bench::Rate, 16, ["dacks", "flowctrl"], 0.0, 0.0),
    step("combining", Bench::Rate, 16, ["combine", "dacks"], 0.0, 5.0),
    step("what the carrier adds", Bench::Latency, 4, ["sovia", "vi"], 8.5 / 10.5, 1.0 / 1.3),
    step("against TCP", Bench::Latency, 4, ["sovia", "tcp"], 55.0 / 10.5, 0.0),
    step("bandwidth at 16 KiB", Bench::Bandwidth, 16 << 10, ["sovia", "vi"], 1.0, 0.95),
    step("bandwidth at 32 KiB", Bench::Bandwidth, 32 << 10, ["sovia", "vi"], 814.0 / 815.0, 0.95),
    step("bandwidth at 64 KiB", Bench::Bandwidth, 64 << 10, ["sovia", "vi"], 0.0, 0.95),
    step("bandwidth at 256 KiB", Bench::Bandwidth, 256 << 10, ["sovia", "vi"], 0.0, 0.95),
    step("in memory of the program, 16 KiB", Bench::Bandwidth, 16 << 10, ["sovia", "vi-malloc"], 0.0, 0.95),
    step("in memory of the program, 32 KiB", Bench::Bandwidth, 32 << 10, ["sovia", "vi-malloc"], 0.0, 0.95),
    step("in memory of the program, 64 KiB", Bench::Bandwidth, 64 << 10, ["sovia", "vi-malloc"], 0.0, 0.95),
    step("in memory of the program, 256 KiB", Bench::Bandwidth, 256 << 10, ["sovia", "vi-malloc"], 0.0, 0.95),
    step("rendezvous", Bench::Bandwidth, 64 << 10, ["sovia", "combine"], 0.0, 0.0),
    step("delayed acknowledgements", Bench::Latency, 4, ["ds_da", "ds"], 0.0, 0.0),
    step("acknowledgements apart", Bench::Latency, 4, ["ds_da_uq", "ds_da"], 0.0, 0.0),
    step("datagrams", Bench::Latency, 4, ["dg", "ds_da_uq"], 37.0 / 28.5, 0.0),
    step("datagrams against the VI", Bench::Latency, 4, ["dg", "vi"], 28.0 / 28.5, 0.0),
    step("32 credits against one", Bench::Latency, 4, ["32 credits", "1 credit"], 0.0, 0.0),
    step("packetised, 1 B", Bench::Rate, 1, ["packetised", "credits"], 10.0, 5.0),
    step("packetised, 64 B", Bench::Rate, 64, ["packetised", "credits"], 10.0, 5.0),
    step("packetised, 256 B", Bench::Rate, 256, ["packetised", "credits"], 10.0, 5.0),
    step("packetised, 1 KiB", Bench::Rate, 1 << 10, ["packetised", "credits"], 10.0, 5.0),
    step("on one transport, 4 B", Bench::Latency, 4, ["byte ring", "slot credits"], 1.0, 0.0),
    step("on one transport, 1 B", Bench::Rate, 1, ["byte ring", "slot credits"], 10.0, 0.0),
    step("on one transport, 16 B", Bench::Rate, 16, ["byte ring", "slot credits"], 10.0, 0.0),
    step("on one transport, 256 B", Bench::Rate, 256, ["byte ring", "slot credits"], 10.0, 0.0),
    step("on one transport, 1 KiB", Bench::Rate, 1 << 10, ["byte ring", "slot credits"], 10.0, 0.0),
    step("on one transport, 4 KiB", Bench::Rate, 4 << 10, ["byte ring", "slot credits"], 0.0, 0.0),
];

/// Prints the steps for which there are figures.
pub fn print(lines: &[Line]) {
    println!("sovia.ladder: how many times better the first is than the second, and what the papers have");
    for step in STEPS {
        let Some(ratio) = ratio(lines, step) else { continue };
        let paper = if step.paper > 0.0 { format!("paper {}", digits(step.paper)) } else { String::new() };
        let verdict = match step.must {
            0.0 => String::new(),
            must => format!("{} promised: {}", digits(must), if ratio >= must { "met" } else { "MISSED" }),
        };
        let rows = format!("{} / {}", step.rows[0], step.rows[1]);
        let line = format!(
            "  {:<36} {:<9} {rows:<24} {:>6}  {paper:<12} {verdict}",
            step.about,
            step.bench.name(),
            digits(ratio)
        );
        println!("{}", line.trim_end());
    }
    for line in lines.iter().filter(|line| line.bench == Bench::Buffer && line.row == "packetised") {
        if let Some(share) = line.figure(Metric::Utilisation) {
            let verdict = if share >= 0.95 { "met" } else { "MISSED" };
            println!("  buffer in use, messages of {} B: {:.1} %, 95 promised: {verdict}", line.size, share * 100.0);
        }
    }
    println!();
}

/// How many times better the first row of a step is.
fn ratio(lines: &[Line], step: &Step) -> Option<f64> {
    let metric = step.bench.metrics()[0];
    let value = |row: &str| {
        let line = lines.iter().find(|line| (line.bench, line.size, line.row) == (step.bench, step.size, row));
        line.and_then(|line| line.figure(metric))
    };
    let [ours, theirs] = [value(step.rows[0])?, value(step.rows[1])?];
    Some(if metric.larger_is_better() { ours / theirs } else { theirs / ours })
}
