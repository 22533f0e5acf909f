//! `sidestep bench compare OLD NEW`: two builds of this program, measured in turn, line by line.
//!
//! Each turn runs a suite with one build and then with the other; which one comes first alternates, so that a machine that
//! becomes slower or faster meanwhile favours neither. A line compares the medians of its values. Lines that measure the
//! machine or the kernel alone (`cacheline`, `memcpy`, `tcp`, ...) are there, too: what they differ by is the noise.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{show_progress, stats::median, table};
use crate::options;

/// One measured line: its bench, path, size and circumstances.
type Key = (String, String, u64, String);

/// What both builds gave for one line.
#[derive(Debug, Default)]
struct Values {
    sides: [Vec<f64>; 2],
    larger_is_better: bool,
}

const SUITES: [&str; 3] = ["fabric", "via", "iwarp"];
const TURNS: u32 = 5;
/// What a line may lose, in percent of the median.
const LIMIT: f64 = 3.0;
/// The figures that are compared: medians, and what is counted per second.
const METRICS: [&str; 7] = ["one_way_p50", "rate", "bandwidth", "cost", "cycles", "requests", "connections"];

/// Measures both, prints a table, and fails if a line of the new build is slower.
pub fn run(options: &options::Bench) -> Result<()> {
    let [old, new] = &options.builds[..] else {
        bail!("compare takes two programs: sidestep bench compare OLD NEW");
    };
    for program in [old, new] {
        ensure!(program.is_file(), "{} is not a program; give the path of a built `sidestep`", program.display());
    }
    let suites: Vec<&str> = match options.suites.is_empty() {
        true => SUITES.to_vec(),
        false => options.suites.iter().map(String::as_str).collect(),
    };
    let turns = options.rounds.unwrap_or(TURNS);
    let mut lines = BTreeMap::new();
    for suite in suites {
        for turn in 0..turns {
            for place in 0..2 {
                let side = (turn as usize + place) % 2;
                show_progress(&format!("{suite}: turn {} of {turns}, {}", turn + 1, ["old", "new"][side]));
                measure([old, new][side], suite, &options.only, side, &mut lines)?;
            }
        }
    }
    show_progress("");
    let slower = print(&lines);
    ensure!(slower == 0, "{slower} lines are slower by more than {LIMIT} %");
    Ok(())
}

fn measure(program: &Path, suite: &str, only: &[String], side: usize, lines: &mut BTreeMap<Key, Values>) -> Result<()> {
    let mut command = Command::new(program);
    command.args(["bench", suite, "--json", "--quick", "--rounds", "3"]);
    if !only.is_empty() {
        command.args(["--only", &only.join(",")]);
    }
    let output = command.output().with_context(|| format!("{} does not start", program.display()))?;
    ensure!(
        output.status.success(),
        "{} bench {suite} fails: {}",
        program.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let record: Value = serde_json::from_str(line).with_context(|| format!("not a record: {line}"))?;
        let word = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
        let (Some(value), metric) = (record["value"].as_f64(), word("metric")) else { continue };
        if !METRICS.contains(&metric.as_str()) {
            continue;
        }
        let circumstances = [metric.clone(), word("wait"), word("placement"), word("mode")].join(" ");
        let key = (word("bench"), word("path"), record["size"].as_u64().unwrap_or(0), circumstances);
        let values = lines.entry(key).or_default();
        values.sides[side].push(value);
        values.larger_is_better = !matches!(metric.as_str(), "one_way_p50" | "cost" | "cycles");
    }
    Ok(())
}

impl Values {
    /// How many times better the new build is, by its median.
    fn gain(&self) -> Option<f64> {
        let [old, new] = self.medians()?;
        let ratio = (old > 0.0 && new > 0.0).then(|| new / old)?;
        Some(if self.larger_is_better { ratio } else { 1.0 / ratio })
    }

    /// The medians of the old and the new build.
    fn medians(&self) -> Option<[f64; 2]> {
        let [old, new] = &self.sides;
        Some([median(old.iter().copied())?, median(new.iter().copied())?])
    }

    /// The spread of one build's own values around its median: what a difference has to exceed to mean something.
    fn spread(&self) -> f64 {
        let off = |values: &Vec<f64>| {
            let middle = median(values.iter().copied())?;
            median(values.iter().map(|value| (value / middle - 1.0).abs()))
        };
        self.sides.iter().filter_map(off).fold(0.0, f64::max)
    }
}

/// Prints all lines; returns how many are slower than allowed.
fn print(lines: &BTreeMap<Key, Values>) -> usize {
    let heading = ["size", "path", "bench", "old", "new", "new/old", "spread", "circumstances"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mut slower = 0;
    for ((bench, path, size, circumstances), values) in lines {
        let (Some(gain), Some(medians)) = (values.gain(), values.medians()) else { continue };
        let is_slower = gain < 1.0 - LIMIT / 100.0;
        slower += usize::from(is_slower);
        let [old, new] = medians.map(|value| format!("{value:.4e}"));
        rows.push(vec![
            table::size(*size as usize),
            path.clone(),
            bench.clone(),
            old,
            new,
            format!("{gain:.3}{}", if is_slower { " slower" } else { "" }),
            format!("{:.1} %", values.spread() * 100.0),
            circumstances.clone(),
        ]);
    }
    print!("{}", table::aligned(&rows));
    println!("new/old: how many times better the new build is; spread: how far the values of one build lie apart");
    slower
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_above_one_whichever_way_is_better() {
        let values = |larger_is_better| Values { sides: [vec![2.0, 2.0, 9.0], vec![4.0, 4.0, 1.0]], larger_is_better };
        assert_eq!(values(true).gain(), Some(2.0));
        assert_eq!(values(false).gain(), Some(0.5));
        assert_eq!(Values::default().gain(), None);
        assert_eq!(values(true).spread(), 0.0);
    }
}
