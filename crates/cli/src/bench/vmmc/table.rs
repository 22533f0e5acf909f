//! A table for people, with the records that say the same.

use super::super::record::Record;

/// Lines of text, and records.
pub struct Table {
    widths: Vec<usize>,
    /// The lines.
    pub text: Vec<String>,
    /// The records.
    pub records: Vec<Record>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[&str]) -> Table {
        let widths = columns.iter().map(|column| column.len().max(10)).collect();
        let mut table = Table { widths, text: Vec::new(), records: Vec::new() };
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

    /// Says whether a promise is kept.
    pub fn promise(&mut self, what: &str, value: f64, at_most: f64) {
        let verdict = if value <= at_most { "met" } else { "MISSED" };
        self.text.push(format!("{what}: {value:.3}, at most {at_most} promised: {verdict}"));
    }
}
