//! A run that was kept: what it was measured on, by which commands, and every record. `--report DIR` writes it as
//! `DIR/run.json`; `bench compare` and `bench seeds` read it again.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::machine::Machine;
use super::record::Record;

/// A run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Saved {
    /// The commands that made it.
    pub commands: Vec<String>,
    /// What it took, in seconds.
    pub seconds: f64,
    /// Where it was measured.
    pub machine: Machine,
    /// What was measured.
    pub records: Vec<Record>,
}

impl Saved {
    /// Writes it.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string(self).context("a run has only plain values")?;
        fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
    }

    /// Reads one: a file of a report, the folder of one, or the lines that `--json` prints.
    pub fn read(path: &Path) -> Result<Saved> {
        let file = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut saved = match serde_json::from_str::<Saved>(&text) {
            Ok(saved) => saved,
            Err(_) => {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                let records: Result<Vec<Record>, _> = lines.map(serde_json::from_str).collect();
                let records = records.with_context(|| format!("{} is no saved run", file.display()))?;
                Saved { records, ..Saved::default() }
            }
        };
        ensure!(!saved.records.is_empty(), "{} has no records", file.display());
        for record in &mut saved.records {
            record.unit = record.metric.unit();
            record.extra.remove("unit");
        }
        Ok(saved)
    }
}

/// Its name in the folder of a report.
pub const FILE: &str = "run.json";
