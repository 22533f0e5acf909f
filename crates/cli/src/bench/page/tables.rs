//! The parts of a report that are tables.

use std::fmt::Write;

use super::{charts, escape};
use crate::bench::machine::Machine;
use crate::bench::promise;
use crate::bench::record::{Metric, Record, digits};
use crate::bench::saved::Saved;
use crate::bench::seeds;
use crate::bench::table::size;

/// The machine, the versions, and the commands that repeat the run.
pub fn machine(run: &Saved) -> String {
    let Machine { facts } = &run.machine;
    let mut out = String::from("<h2>Machine and versions</h2>\n<dl>");
    for (name, value) in facts {
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    }
    let value = |name: &str| facts.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str());
    let number = |name: &str| value(name).split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    if value("Sidestep").contains("debug") {
        out += "</dl><p class=\"bad\">This is a debug build: its times say nothing.</p><dl>";
    }
    if number("load before the run") > number("cores") * BUSY {
        out += "</dl><p class=\"bad\">Other programs were running before the run: its times say little.</p><dl>";
    }
    let commands: Vec<String> = run.commands.iter().map(|command| escape(command)).collect();
    let _ = writeln!(out, "</dl>\n<h2>Commands</h2>\n<pre>{}</pre>", commands.join("\n"));
    out
}

/// With this share of the cores in use, a run is disturbed.
const BUSY: f64 = 0.5;

/// How many times better than kernel TCP, for everything that has such a figure.
pub fn overview(records: &[Record]) -> String {
    let own: Vec<&Record> = records.iter().filter(|record| is_against_tcp(record)).collect();
    let most = own.iter().map(|record| record.value.ln().abs()).fold(1.0, f64::max);
    if own.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2>How many times better than kernel TCP</h2>\n<p>Unmodified programs under <code>sidestep run</code>, against \
         TCP where it is at its best. p50 is the median time of a message one way, cpu/message the processor time of both ends. \
         Bars are logarithmic; a grey one is a difference that may be noise.</p>\n<div class=\"scroll\"><table><tr><th class=\"t\">workload</th><th class=\"t\">by</th><th>times</th>\
         <th class=\"t\"></th><th>noise</th><th class=\"t\">verdict</th></tr>\n",
    );
    for record in own {
        let word = |key: &str| record.extra.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        let is = |key: &str| record.extra.get(key).and_then(|value| value.as_bool()).unwrap_or(false);
        let noise = record.extra.get("noise").and_then(|noise| noise.as_f64());
        let (differs, better) = (is("differs"), record.value > 1.0);
        let verdict = match (differs, better) {
            (true, true) => "<span class=\"good\">better</span>",
            (true, false) => "<span class=\"bad\">worse</span>",
            (false, _) if noise.is_some() => "no difference beyond the noise",
            (false, _) => "too few rounds",
        };
        let width = (record.value.ln().abs() / most * 100.0).clamp(0.0, 100.0);
        let class = match (differs, better) {
            (true, true) => "",
            (true, false) => " class=\"worse\"",
            (false, _) => " class=\"none\"",
        };
        let placed = if word("placement") == "same" { ", on one core" } else { "" };
        let metric = serde_json::from_value::<Metric>(word("of").into()).map_or("", |metric| metric.heading());
        let _ = writeln!(
            out,
            "<tr><td class=\"t\">{}: {}{placed}</td><td class=\"t\">{metric}</td><td>{}</td>\
             <td class=\"bar\"><i{class} style=\"width:{width:.0}%\"></i></td><td class=\"n\">{}</td><td class=\"t\">{verdict}</td></tr>",
            escape(record.bench.trim_start_matches("sockets.")),
            escape(word("what")),
            digits(record.value),
            noise.map_or("?".into(), |noise| format!("{:.0} %", noise * 100.0)),
        );
    }
    out + "</table></div>\n"
}

fn is_against_tcp(record: &Record) -> bool {
    record.metric == Metric::Ratio
        && record.extra.get("against").is_some_and(|against| against == "tcp")
        && record.bench.starts_with("sockets.")
}

/// What others would be chosen for the same, if the run has them.
pub fn peers(records: &[Record]) -> String {
    let own: Vec<Record> = records.iter().filter(|record| record.bench.starts_with("peers.")).cloned().collect();
    if own.is_empty() {
        return String::new();
    }
    let notes: Vec<String> = own
        .iter()
        .filter_map(|record| Some(format!("<li>{}</li>", escape(record.extra.get("note")?.as_str()?))))
        .collect();
    let mut out = String::from("<h2>What a user would pick instead</h2>\n");
    for bench in charts::benches(&own) {
        out += &table(bench, &own);
    }
    if !notes.is_empty() {
        let _ = writeln!(out, "<p>Not measured here:</p><ul>{}</ul>", notes.join(""));
    }
    out
}

/// What the documents have, and what the run has for it.
pub fn seeds(run: &Saved) -> String {
    let judged = seeds::judge(&run.records);
    if !judged.iter().any(|entry| entry.ours.is_some()) {
        return String::new();
    }
    let (here, others): (Vec<_>, Vec<_>) = judged.iter().partition(|entry| entry.ours.is_some());
    "<h2>Tables and figures of the documents</h2>\n<p>How many times better the first is than the second: in the document, and here. \
     Only the direction and the size of an effect can be compared, not times.</p>\n"
        .to_owned()
        + &listed(" open", "In this run", &here)
        + &listed("", "Every other table and figure", &others)
}

fn listed(open: &str, heading: &str, entries: &[&seeds::Judged]) -> String {
    let mut out = format!(
        "<details{open}><summary>{heading}</summary><div class=\"scroll\"><table><tr><th class=\"t\">document</th>\
         <th class=\"t\">where</th><th class=\"t\">what</th><th>there</th><th>here</th><th>noise</th>\
         <th class=\"t\">verdict</th></tr>\n",
    );
    for entry in entries {
        let class = match entry.verdict.name() {
            "met" => "good",
            "reversed" => "bad",
            _ => "faint",
        };
        let times = |value: Option<f64>| value.map(digits).unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><td class=\"t n\">{}</td><td class=\"t n\">{}</td><td class=\"t\">{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"t\"><span class=\"{class}\">{}</span> {}</td></tr>",
            escape(entry.document),
            escape(entry.place),
            escape(entry.what),
            times(entry.paper),
            times(entry.ours),
            entry.noise_shown(),
            entry.verdict.name(),
            escape(entry.verdict.why()),
        );
    }
    out + "</table></div></details>\n"
}

/// Every figure.
pub fn all(records: &[Record]) -> String {
    let mut out = String::from("<h2>Every figure</h2>\n");
    for bench in charts::benches(records) {
        if bench.starts_with("peers.") || bench.ends_with(".floor") {
            continue;
        }
        let _ = writeln!(out, "<details><summary>{}</summary>\n{}</details>", escape(bench), table(bench, records));
    }
    out
}

/// Ratios that another part of the page shows.
fn is_elsewhere(record: &Record) -> bool {
    let is_other = || record.bench.starts_with("sockets.") || record.extra.contains_key("note");
    record.metric == Metric::Ratio && (is_other() || promise::verdict(record).is_some())
}

/// One line of a table: what belongs together but for the metric.
#[derive(PartialEq)]
struct Key<'a> {
    what: &'a str,
    path: &'a str,
    placement: &'a str,
    size: usize,
    count: u64,
}

fn table(bench: &str, records: &[Record]) -> String {
    let own = || records.iter().filter(|record| record.bench == bench && !is_elsewhere(record));
    let mut metrics: Vec<Metric> = Vec::new();
    let mut keys: Vec<Key<'_>> = Vec::new();
    for record in own() {
        if !metrics.contains(&record.metric) {
            metrics.push(record.metric);
        }
        if !keys.contains(&key(record)) {
            keys.push(key(record));
        }
    }
    if keys.is_empty() {
        return String::new();
    }
    let named = keys.iter().any(|key| !key.what.is_empty());
    let mut out = String::from("<div class=\"scroll\"><table><tr>");
    out += if named { "<th class=\"t\">what</th>" } else { "<th>size</th>" };
    out += "<th class=\"t\">path</th><th class=\"t\">where</th>";
    for metric in &metrics {
        let _ = write!(out, "<th>{}</th>", metric.heading());
    }
    out += "<th>spread</th></tr>\n";
    for line in &keys {
        let first = if named {
            format!("<td class=\"t\">{}</td>", escape(line.what))
        } else {
            format!("<td class=\"n\">{}</td>", size(line.size))
        };
        let path = escape(charts::path_name(bench, line.path));
        let _ = write!(out, "<tr>{first}<td class=\"t n\">{path}</td><td class=\"t\">{}</td>", escape(line.placement));
        let mut spread = String::new();
        for metric in &metrics {
            let found = own().find(|record| record.metric == *metric && key(record) == *line);
            let shown = found.map(|record| metric.shown(record.value)).unwrap_or_default();
            let _ = write!(out, "<td class=\"n\">{shown}</td>");
            if let (true, Some(share)) =
                (spread.is_empty(), found.and_then(|record| record.extra.get("spread")?.as_f64()))
            {
                spread = format!("{:.1} %", share * 100.0);
            }
        }
        let _ = writeln!(out, "<td class=\"n\">{spread}</td></tr>");
    }
    out + "</table></div>\n"
}

fn key(record: &Record) -> Key<'_> {
    let word = |key: &str| record.extra.get(key).and_then(|value| value.as_str()).unwrap_or_default();
    Key {
        what: word("what"),
        path: &record.path,
        placement: if record.extra.contains_key("simulated") { "simulated" } else { word("placement") },
        size: record.size,
        count: record.extra.get("threads").and_then(|threads| threads.as_u64()).unwrap_or(0),
    }
}
