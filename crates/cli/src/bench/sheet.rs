//! Suites of which each bench is a table for people, with the records that say the same.

use anyhow::{Result, ensure};

use super::{
    options,
    progress::Plan,
    promise::{self, Bound},
    record::{Metric, Record},
    show_progress,
    sink::Sink,
};

/// The benches of such a suite, and what each is.
pub type Benches = &'static [(&'static str, &'static str)];

/// Runs those that were asked for, by name. A weight says how long a bench takes beside the others.
pub fn run(
    suite: &str,
    benches: Benches,
    (options, sink): (&options::Bench, &mut Sink),
    weight: impl Fn(&str) -> f64,
    mut measure: impl FnMut(&'static str) -> Result<Table>,
) -> Result<()> {
    for word in &options.only {
        let known = benches.iter().any(|(name, _)| name == word);
        ensure!(known, "--only {word}: no such bench; see `sidestep bench list`");
    }
    let wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|word| word == name);
    let chosen = || benches.iter().filter(|(name, _)| wanted(name));
    let plan = Plan::of(chosen().map(|(name, _)| weight(name)).sum());
    for (name, about) in chosen() {
        plan.step(weight(name), &format!("{suite}.{name}"));
        let table = measure(name)?;
        show_progress("");
        let bench = format!("{suite}.{name}");
        let promises = table.promises.into_iter().map(|promise| Record { bench: bench.clone(), ..promise });
        sink.take(table.records.into_iter().chain(promises));
        if !sink.is_json() {
            println!("{name}: {about}");
            table.text.iter().for_each(|line| println!("  {line}"));
            println!();
        }
    }
    Ok(())
}

/// Prints what they are.
pub fn list(suite: &str, about: &str, benches: Benches) {
    println!("{suite}: {about}");
    benches.iter().for_each(|(name, about)| println!("  {name:<12} {about}"));
}

/// Lines of text, and records.
pub struct Table {
    widths: Vec<usize>,
    /// The lines.
    pub text: Vec<String>,
    /// The records.
    pub records: Vec<Record>,
    /// Those of what is promised, which do not say of which bench.
    promises: Vec<Record>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[&str]) -> Table {
        let widths = columns.iter().map(|column| column.len().max(10)).collect();
        let mut table = Table { widths, text: Vec::new(), records: Vec::new(), promises: Vec::new() };
        table.widths[0] = 24;
        table.row(&columns.iter().map(|column| column.to_string()).collect::<Vec<_>>());
        table
    }

    /// Adds a line.
    pub fn row(&mut self, cells: &[String]) {
        let mut line = String::new();
        for (at, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            line += &if at == 0 { format!("{cell:<width$}") } else { format!(" {cell:>width$}") };
        }
        self.text.push(line);
    }

    /// Says whether a promise is kept, in a line and in a record.
    pub fn promise(&mut self, what: &str, value: f64, at_most: f64) {
        self.judge(what, Bound::AtMost(at_most), value);
    }

    /// The same of what must be large.
    pub fn promise_at_least(&mut self, what: &str, value: f64, at_least: f64) {
        self.judge(what, Bound::AtLeast(at_least), value);
    }

    fn judge(&mut self, what: &str, bound: Bound, found: f64) {
        let (path, metric) = (what.to_string(), Metric::Ratio);
        let (bench, extra) = (String::new(), serde_json::Map::new());
        let record = Record { bench, path, size: 0, metric, value: found, unit: metric.unit(), extra };
        let record = bound.about(record);
        self.text.push(format!("{what}: {}", promise::shown(&record)));
        self.promises.push(record);
    }
}
