//! The tables that people read.

use super::Suite;
use super::floor::TOLERANCE;
use super::path::Bench;
use super::record::{Record, digits};
use super::report::Line;

/// Prints one table for each bench, and what the floor was.
pub fn print(suite: &Suite, lines: &[Line], floor: &Record) {
    for bench in Bench::ALL {
        let own: Vec<&Line> = lines.iter().filter(|line| line.bench == bench).collect();
        if !own.is_empty() {
            println!("{}.{}", suite.name, bench.name());
            print!("{}", aligned(&rows(bench, &own)));
            println!();
        }
    }
    let count = |key: &str| floor.extra.get(key).and_then(|value| value.as_u64()).unwrap_or(0);
    println!(
        "floor {}: {} of {} measurements dropped, {} because the floor was off by more than \
         {TOLERANCE} times and the others because another program had the core",
        floor.metric.shown(floor.value),
        count("dropped"),
        count("measurements"),
        count("dropped_for_floor"),
    );
    println!("columns that begin with / are ratios to that path's value in the first column");
    if lines.iter().any(|line| line.is_disturbed) {
        println!("! no round was calm; the calmest are shown");
    }
}

fn rows(bench: Bench, lines: &[&Line]) -> Vec<Vec<String>> {
    let metrics: Vec<_> =
        bench.metrics().iter().filter(|metric| lines.iter().any(|line| line.figure(**metric).is_some())).collect();
    let references: Vec<_> = bench
        .references()
        .iter()
        .filter(|name| lines.iter().any(|line| line.ratios.iter().any(|(own, _)| own == *name)))
        .collect();

    let mut heading = vec!["size".into(), "path".into()];
    heading.extend(metrics.iter().map(|metric| metric.heading().into()));
    heading.extend(references.iter().map(|name| format!("/{name}")));
    heading.extend(["spread".into(), "rounds".into(), "waiting".into()]);
    let mut rows = vec![heading];
    for line in lines {
        let mut row = vec![size(line.size), line.row.into()];
        row.extend(metrics.iter().map(|metric| match line.figure(**metric) {
            Some(value) => metric.shown(value),
            None => String::new(),
        }));
        row.extend(references.iter().map(|name| {
            let ratio = line.ratios.iter().find(|(own, _)| own == *name);
            ratio.map(|(_, ratio)| digits(*ratio)).unwrap_or_default()
        }));
        row.push(line.spread().map(|spread| format!("{:.1} %", spread * 100.0)).unwrap_or_default());
        let mark = if line.is_disturbed { "!" } else { "" };
        row.push(format!("{mark}{}", line.kept));
        let word = |key: &str| line.circumstances.get(key).and_then(|v| v.as_str()).unwrap_or("");
        row.push(format!("{} {}", word("wait"), word("placement")));
        rows.push(row);
    }
    rows
}

/// The first two columns and the last to the left, the others to the right.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padded = match column {
                1 => format!("{cell:<width$}"),
                _ if column + 1 == columns => cell.clone(),
                _ => format!("{cell:>width$}"),
            };
            line.push_str("  ");
            line.push_str(&padded);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A count of bytes, short.
pub fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["size", "path", "p50", "waiting"], ["64 B", "ring", "77.3 ns", "spin cross"]];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| cell.to_string()).collect()).collect();
        assert_eq!(aligned(&rows), "  size  path      p50  waiting\n  64 B  ring  77.3 ns  spin cross\n");
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(65536), "64 KiB");
        assert_eq!(size(4 << 20), "4 MiB");
        assert_eq!(size(1500), "1500 B");
    }
}
