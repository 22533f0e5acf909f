//! The suite `vmmc`: how little memory a network card needs (Azimi 2002), on cards that are simulated under virtual time.
//!
//! Nothing here depends on how fast or busy this machine is, but for `svm` and `histograms`, which run real cards: other times are
//! those of the model, and the rest is counted.

pub mod svm;

use anyhow::Result;
use serde_json::{Map, Value, json};
use sidestep_vmmc::endpoints;
use sidestep_vmmc::experiment::{self, Force};
use sidestep_vmmc::simulation::Costs;
use sidestep_vmmc::workload::{self, GRID, Workload};
use sidestep_vmmc::{Bins, Budget, CacheShape, Config, Path};

use super::progress::within_step;
use super::record::{Metric, Record};
use super::sheet::{self, Benches, Table};
use super::sink::Sink;
use super::{options, show_progress};

/// What `bench list` says of the suite.
pub const ABOUT: &str = "a card with caches in front of host tables against one with static tables, under virtual time: \
    memory, costs, misses, execution times";

/// The benches, and what each is.
pub const BENCHES: Benches = &[
    ("memory", "what the memory of the card is used for (table 1.1)"),
    ("costs", "send and fetch of a word and a page (table 4.2)"),
    ("vmh", "ping-pong by misses of translations and size (figure 4.1)"),
    ("cbh", "ping-pong by misses of buffer descriptors and size (figure 4.4)"),
    ("grid", "misses of eight programs by entries, line and ways (figure 4.2)"),
    ("execution", "execution of eight programs, caches against tables (table 4.5)"),
    ("endpoints", "messages a second to 1 to 100,000 endpoints by the memory of the card, simulated"),
    ("svm", "FFT and LU of real processes on shared memory, and their page accesses against the generators'"),
    ("histograms", "delay and processing of misses of real card processes (tables 4.6 and 4.7)"),
    ("timing", "delay and processing of misses in the model (tables 4.6 and 4.7)"),
];

/// Runs the suite.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    // The programs at a quarter of their size, if it is to be quick.
    let scale = if options.quick { 2 } else { 0 };
    sheet::run("vmmc", BENCHES, (options, sink), weight, |name| match name {
        "memory" => Ok(memory()),
        "costs" => costs(),
        "vmh" => misses(name, Force::Vmh),
        "cbh" => misses(name, Force::Cbh),
        "grid" => Ok(grid(scale)),
        "execution" => execution(scale),
        "endpoints" => many_endpoints(),
        "svm" => svm::table(options.quick),
        "histograms" => svm::times(options.quick),
        _ => timing(scale),
    })
}

/// What each takes beside the others: about seconds of a quick run.
fn weight(bench: &str) -> f64 {
    match bench {
        "memory" | "costs" | "grid" => 0.2,
        "vmh" | "cbh" => 0.5,
        "execution" | "endpoints" => 2.5,
        _ => 1.3,
    }
}

/// Prints the benches of the suite.
pub fn list() {
    sheet::list("vmmc", ABOUT, BENCHES);
}

/// The benches that run real cards; the others are the same whenever they are run.
const ON_CARDS: [&str; 2] = ["svm", "histograms"];

fn record(bench: &str, path: &str, size: usize, metric: Metric, value: f64, extra: Value) -> Record {
    let mut extra = extra.as_object().cloned().unwrap_or_else(Map::new);
    extra.insert("simulated".into(), (!ON_CARDS.contains(&bench)).into());
    Record { bench: format!("vmmc.{bench}"), path: path.into(), size, metric, value, unit: metric.unit(), extra }
}

/// The records of a bench. What takes long is not run for that: its lines have the names of programs.
#[cfg(test)]
pub fn records(bench: &str) -> Vec<Record> {
    let named = |bench: &str, metric: Metric, programs: &[&str], kinds: [&str; 2]| {
        let paths = programs.iter().flat_map(|program| kinds.map(|kind| format!("{program} {kind}")));
        paths.map(|path| record(bench, &path, 0, metric, 1.0, json!({}))).collect()
    };
    match bench {
        "memory" => memory().records,
        "costs" => costs().expect("costs").records,
        "vmh" => misses("vmh", Force::Vmh).expect("misses").records,
        "cbh" => misses("cbh", Force::Cbh).expect("misses").records,
        "grid" => grid(4).records,
        "execution" => {
            let programs: Vec<&str> = Workload::all(4).iter().map(|workload| workload.name).collect();
            named(bench, Metric::Cost, &programs, ["cached", "static"])
        }
        "histograms" => {
            let kernels = svm::KERNELS.map(|(kernel, ..)| kernel);
            named(bench, Metric::Utilisation, &kernels, ["delay", "processing"])
        }
        _ => Vec::new(),
    }
}

fn memory() -> Table {
    let (cached, fixed) = (Budget::of(&Config::default()), Budget::of(&Config::baseline()));
    let mut table = Table::new(&["region", "tables", "caches", "ratio"]);
    for ((name, before), (_, after)) in fixed.rows().into_iter().zip(cached.rows()) {
        let ratio = if before == 0 { 0.0 } else { after as f64 / before as f64 };
        let kib = |bytes: usize| format!("{:.1} KiB", bytes as f64 / 1024.0);
        table.row(&[name.into(), kib(before), kib(after), format!("{ratio:.3}")]);
        for (path, bytes) in [("static", before), ("cached", after)] {
            table.records.push(record("memory", path, 0, Metric::Memory, bytes as f64, json!({"what": name})));
        }
    }
    let share = |part: fn(&Budget) -> usize| part(&cached) as f64 / part(&fixed) as f64;
    let (lookup, total) = (share(Budget::lookup), share(Budget::total));
    table.promise("lookup memory against the tables", lookup, 0.26);
    table.promise("all memory against that of the tables", total, 0.55);
    table
}

fn costs() -> Result<Table> {
    let mut table = Table::new(&["operation", "tables", "caches", "thesis"]);
    let [fixed, cached] =
        [Config::baseline(), Config::default()].map(|config| experiment::basic_costs(&config, Costs::default()));
    let (fixed, cached) = (fixed?, cached?);
    let rows = [
        ("send", 4, fixed.send_word, cached.send_word, 8_000),
        ("fetch", 4, fixed.fetch_word, cached.fetch_word, 22_000),
        ("send", 4096, fixed.send_page, cached.send_page, 52_000),
        ("fetch", 4096, fixed.fetch_page, cached.fetch_page, 81_000),
    ];
    for (path, size, before, after, there) in rows {
        let us = |ns: u64| format!("{:.1} us", ns as f64 / 1000.0);
        table.row(&[format!("{path} {size} B"), us(before), us(after), us(there)]);
        table.records.push(record("costs", path, size, Metric::Cost, before as f64, json!({})));
        let cached = record("costs", &format!("{path}-cached"), size, Metric::Cost, after as f64, json!({}));
        table.records.push(cached);
    }
    let rates = [("send", fixed.send_rate, cached.send_rate), ("fetch", fixed.fetch_rate, cached.fetch_rate)];
    for (path, before, after) in rates {
        let mb = |rate: f64| format!("{:.0} MB/s", rate / 1e6);
        table.row(&[format!("{path}, long"), mb(before), mb(after), "118 MB/s".into()]);
    }
    let word = fixed.fetch_word as f64 / fixed.send_word as f64;
    table.text.push(format!("fetch against send of a word: {word:.2} (2.75 there)"));
    Ok(table)
}

fn misses(bench: &'static str, force: Force) -> Result<Table> {
    let mut table =
        Table::new(&["bytes", "0 %", "10 %", "20 %", "30 %", "40 %", "50 %", "for a miss", "R^2", "again", "packets"]);
    let config = Config::default();
    let (mut least_straight, mut furthest) = (1.0_f64, 1.0_f64);
    for size in [4_u64, 256, 1024, 4096, 16384] {
        let (mut cells, mut points, mut again) = (vec![size.to_string()], Vec::new(), [0.0; 2]);
        for percent in [0_u32, 10, 20, 30, 40, 50] {
            let run = experiment::ping_pong(&config, Costs::default(), force, f64::from(percent) / 100.0, size)?;
            points.push((run.miss_ratio, run.one_way_ns));
            cells.push(format!("{:.1} us", run.one_way_ns / 1000.0));
            again = [run.returns_per_miss, run.resent_per_miss];
            let extra = json!({"misses": run.miss_ratio, "again": again[0], "packets": again[1]});
            let path = format!("{percent} %");
            table.records.push(record(bench, &path, size as usize, Metric::OneWayMean, run.one_way_ns, extra));
        }
        let fit = experiment::fit(&points);
        least_straight = least_straight.min(fit.r_squared);
        furthest = if (again[0] - 1.0).abs() > (furthest - 1.0_f64).abs() { again[0] } else { furthest };
        cells.extend([format!("{:.1} us", fit.slope / 1000.0), format!("{:.4}", fit.r_squared)]);
        cells.extend(again.map(|again| format!("{again:.2}")));
        table.row(&cells);
    }
    let note = "mean time one way; for a miss: the slope of the line, retransmissions, and packets sent again";
    table.text.push(note.into());
    table.promise_at_least("R^2 of time by misses, of the worst size", least_straight, 0.99);
    table.promise("retransmissions a miss, how far from one, of the worst size", (furthest - 1.0).abs(), 0.1);
    Ok(table)
}

fn many_endpoints() -> Result<Table> {
    let mut table = Table::new(&["card", "1", "10", "100", "1000", "10000", "100000"]);
    let cost = endpoints::MessageCost::new(4096)?;
    let cards = [330_usize, 400, 512, 1024, 2048, 4096];
    for (number, kib) in cards.into_iter().enumerate() {
        within_step(number as f64 / cards.len() as f64);
        let mut cells = vec![format!("{kib} KiB")];
        for count in [1_u32, 10, 100, 1000, 10_000, 100_000] {
            let point = endpoints::serve(kib * 1024, count, &cost)?;
            cells.push(format!("{:.0}/s", point.rate));
            let extra = json!({"endpoints": count, "vmh": point.vmh_misses, "cbh": point.cbh_misses});
            table.records.push(record(
                "endpoints",
                &format!("{kib} KiB"),
                count as usize,
                Metric::Rate,
                point.rate,
                extra,
            ));
        }
        table.row(&cells);
    }
    table.text.push("messages of 4 KiB one after the other, each to an endpoint chosen at random; simulated".into());
    Ok(table)
}

fn grid(scale: u32) -> Table {
    let mut table = Table::new(&["C L A", "program", "misses", "cold", "send", "receive"]);
    let (entries, lines, ways) = GRID;
    let programs = Workload::all(scale);
    for (number, workload) in programs.iter().enumerate() {
        show_progress(&format!("vmmc.grid: {}", workload.name));
        within_step(number as f64 / programs.len() as f64);
        for entries in entries {
            for line in lines {
                for ways in ways {
                    let found = workload::grid_point(workload, CacheShape { entries, line, ways });
                    let shape = format!("C{}K L{line} A{ways}", entries / 1024);
                    let share = |ratio: f64| format!("{:.2} %", ratio * 100.0);
                    let [send, receive] = [Path::Send, Path::Receive].map(|path| found.path_ratio(path));
                    let (all, cold) = (found.ratio(), found.cold_ratio());
                    let cells = [share(all), share(cold), share(send), share(receive)];
                    table.row(&[&[shape.clone(), workload.name.into()], &cells[..]].concat());
                    let extra = json!({"what": workload.name, "cold": cold, "send": send, "receive": receive,
                        "entries": entries, "line": line, "ways": ways});
                    let path = format!("{} {shape}", workload.name);
                    table.records.push(record("grid", &path, 0, Metric::Misses, all, extra));
                }
            }
        }
    }
    table
}

fn execution(scale: u32) -> Result<Table> {
    let mut table = Table::new(&["program", "tables", "caches", "longer by", "misses", "again for a miss", "packets"]);
    let mut near = 0;
    let all = Workload::all(scale);
    for (number, workload) in all.iter().enumerate() {
        show_progress(&format!("vmmc.execution: {}", workload.name));
        within_step(number as f64 / all.len() as f64);
        // Where the static tables are too small for the program, as for the largest of the thesis, there is nothing to compare.
        let fixed = workload::execute(workload, &Config::baseline(), Costs::default());
        let cached = workload::execute(workload, &Config::default(), Costs::default())?;
        let ms = |ns: u64| format!("{:.0} ms", ns as f64 / 1e6);
        let ratio = cached.misses as f64 / cached.hits.max(1) as f64;
        // Cards with tables send again, too, where a receiver has no room: what misses add is the difference.
        let (went_back, resent) = fixed.as_ref().map_or((0, 0), |fixed| (fixed.went_back, fixed.resent));
        let again = [(cached.went_back, went_back), (cached.resent, resent)]
            .map(|(with, without)| (with as f64 - without as f64) / cached.misses.max(1) as f64);
        let tail = [format!("{:.2} %", ratio * 100.0), format!("{:.2}", again[0]), format!("{:.2}", again[1])];
        let path = |kind: &str| format!("{} {kind}", workload.name);
        let time = cached.time_ns as f64;
        let extra = json!({"misses": ratio, "again": again[0], "packets": again[1]});
        table.records.push(record("execution", &path("cached"), 0, Metric::Cost, time, extra));
        match fixed {
            Ok(fixed) => {
                let longer = cached.time_ns as f64 / fixed.time_ns as f64 - 1.0;
                near += usize::from(longer <= 0.05);
                table.records.push(record(
                    "execution",
                    &path("static"),
                    0,
                    Metric::Cost,
                    fixed.time_ns as f64,
                    json!({"longer": longer}),
                ));
                let cells =
                    [workload.name.into(), ms(fixed.time_ns), ms(cached.time_ns), format!("{:.1} %", longer * 100.0)];
                table.row(&[&cells[..], &tail[..]].concat());
            }
            Err(error) => {
                table.row(
                    &[&[workload.name.into(), "-".into(), ms(cached.time_ns), "-".into()][..], &tail[..]].concat(),
                );
                table.text.push(format!("{}: {error}", workload.name));
            }
        }
    }
    table.text.push("again for a miss: retransmissions and their packets, beyond those of the tables".into());
    let what = "programs of eight that take at most 5 % longer with caches";
    table.promise_at_least(what, near as f64, 5.0);
    Ok(table)
}

fn timing(scale: u32) -> Result<Table> {
    let names = Bins::names();
    let mut table = Table::new(&[&["program", "what"], &names[..]].concat());
    let programs = Workload::all(scale.max(1));
    for (number, workload) in programs.iter().enumerate() {
        show_progress(&format!("vmmc.timing: {}", workload.name));
        within_step(number as f64 / programs.len() as f64);
        let run = workload::execute(workload, &Config::default(), Costs::default())?;
        for (what, bins) in [("delay", run.timing.delay), ("processing", run.timing.processing)] {
            let shares = bins.shares();
            let cells = shares.map(|share| format!("{:.1}", share * 100.0));
            table.row(&[&[workload.name.into(), what.into()], &cells[..]].concat());
            let path = format!("{} {what}", workload.name);
            let within: f64 = shares[..3].iter().sum();
            let extra = json!({"what": what, "bins": shares, "names": names});
            table.records.push(record("timing", &path, 0, Metric::Utilisation, within, extra));
        }
    }
    table.text.push("percent of the misses in each bin of microseconds".into());
    Ok(table)
}
