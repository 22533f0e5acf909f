//! The table of results.

use std::fmt::Write;
use std::time::Instant;

use anyhow::Result;

/// Runs cases and keeps what came of them.
pub struct Report {
    /// Only cases whose names contain one of these words, if there are any.
    pub only: Vec<String>,
    /// How often each case runs.
    pub repeat: usize,
    rows: Vec<Row>,
}

struct Row {
    group: &'static str,
    case: String,
    role: &'static str,
    outcome: Result<String>,
}

impl Report {
    pub fn new(only: Vec<String>, repeat: usize) -> Self {
        Self { only, repeat, rows: Vec::new() }
    }

    /// Runs one case, unless it is not wanted. What it returns goes into the last column.
    pub fn case(
        &mut self,
        group: &'static str,
        case: impl Into<String>,
        role: &'static str,
        mut run: impl FnMut() -> Result<String>,
    ) {
        let case = case.into();
        let name = format!("{group}: {case}, guest {role}");
        if !self.only.is_empty() && !self.only.iter().any(|word| name.contains(word.as_str())) {
            return;
        }
        let begin = Instant::now();
        let outcome = (1..self.repeat).try_for_each(|_| run().map(drop)).and_then(|()| run());
        let verdict = match &outcome {
            Ok(note) => format!("ok {note}"),
            Err(error) => format!("FAILED {error:#}"),
        };
        println!("{name}: {verdict} ({:.2} s)", begin.elapsed().as_secs_f64());
        self.rows.push(Row { group, case, role, outcome });
    }

    /// Whether cases of other groups than this one are wanted.
    pub fn wants_others_than(&self, group: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| word != group)
    }

    /// How many cases failed.
    pub fn failures(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome.is_err()).count()
    }

    /// How many cases ran.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// All cases as a table.
    pub fn table(&self) -> String {
        let header = ["group", "case", "guest is", "result"].map(str::to_owned);
        let mut lines = vec![header];
        lines.extend(self.rows.iter().map(|row| {
            let result = match &row.outcome {
                Ok(note) if note.is_empty() => "ok".to_owned(),
                Ok(note) => format!("ok: {note}"),
                Err(error) => format!("FAILED: {error:#}"),
            };
            [row.group.to_owned(), row.case.clone(), row.role.to_owned(), result]
        }));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2)];
        let mut text = String::new();
        for (at, [group, case, role, result]) in lines.iter().enumerate() {
            let _ =
                writeln!(text, "| {group:0$} | {case:1$} | {role:2$} | {result} |", widths[0], widths[1], widths[2]);
            if at == 0 {
                let _ = writeln!(
                    text,
                    "|{}|{}|{}|---|",
                    "-".repeat(widths[0] + 2),
                    "-".repeat(widths[1] + 2),
                    "-".repeat(widths[2] + 2)
                );
            }
        }
        text
    }
}
