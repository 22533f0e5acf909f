//! `sidestep bench compare OLD NEW`: two builds of this program, measured in turn, or two runs that were saved, line by line.
//!
//! Of builds, each turn runs a suite with one and then with the other; which one comes first alternates, so that a machine that
//! becomes slower or faster meanwhile favours neither. A line compares the medians of its values. Lines that measure the
//! machine or the kernel alone (`cacheline`, `memcpy`, `tcp`, ...) are there, too: what they differ by is the noise.
//!
//! A difference that is smaller than the noise of the two is not called one.

use std::io::Read;
use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};

use super::record::Record;
use super::saved::Saved;
use super::stats::{differs, median, noise, spread};
use super::{progress::Plan, table};
use crate::options;

/// One measured line: its bench, path, size and circumstances.
type Key = (String, String, usize, String);

/// What both sides gave for one line.
#[derive(Debug, Default)]
struct Values {
    sides: [Vec<f64>; 2],
    /// What a saved run says of the spread of its rounds.
    told: [Option<f64>; 2],
    larger_is_better: bool,
}

const SUITES: [&str; 3] = ["fabric", "via", "iwarp"];
const TURNS: u32 = 5;
/// What a line may lose, in percent of the median.
const LIMIT: f64 = 3.0;
/// The figures that are compared: medians, and what is counted per second.
const METRICS: [&str; 10] = [
    "one_way_p50",
    "one_way_mean",
    "call_p50",
    "round_trip_p50",
    "rate",
    "bandwidth",
    "cost",
    "cycles",
    "requests",
    "connections",
];

/// Compares both, prints a table, and fails if a line of the new one is slower.
pub fn run(options: &options::Bench) -> Result<()> {
    let [old, new] = &options.builds[..] else {
        bail!("compare takes two programs or two saved runs: sidestep bench compare OLD NEW");
    };
    let lines = match [is_program(old)?, is_program(new)?] {
        [true, true] => builds([old, new], options)?,
        [false, false] => {
            let mut lines = BTreeMap::new();
            for (side, file) in [old, new].into_iter().enumerate() {
                Saved::read(file)?.records.iter().for_each(|record| add(record, side, &mut lines));
            }
            lines
        }
        _ => bail!("compare takes two programs or two saved runs, not one of each"),
    };
    let slower = print(&lines);
    ensure!(slower == 0, "{slower} lines are slower by more than {LIMIT} % and the noise");
    Ok(())
}

/// Whether it is a program rather than a saved run.
fn is_program(file: &Path) -> Result<bool> {
    if file.is_dir() {
        return Ok(false);
    }
    let mut first = [0; 4];
    let opened = fs::File::open(file);
    let mut file = opened.with_context(|| format!("{} is not a program and not a saved run", file.display()))?;
    Ok(file.read(&mut first).is_ok_and(|count| count == first.len()) && &first == b"\x7fELF")
}

fn builds(programs: [&Path; 2], options: &options::Bench) -> Result<BTreeMap<Key, Values>> {
    let suites: Vec<&str> = match options.suites.is_empty() {
        true => SUITES.to_vec(),
        false => options.suites.iter().map(String::as_str).collect(),
    };
    let turns = options.rounds.unwrap_or(TURNS);
    let mut lines = BTreeMap::new();
    let plan = Plan::of((suites.len() * turns as usize * 2) as f64);
    for suite in suites {
        for turn in 0..turns {
            for place in 0..2 {
                let side = (turn as usize + place) % 2;
                plan.step(1.0, &format!("{suite}: turn {} of {turns}, {}", turn + 1, ["old", "new"][side]));
                measure(programs[side], suite, &options.only, side, &mut lines)?;
            }
        }
    }
    drop(plan);
    Ok(lines)
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
        let mut record: Record = serde_json::from_str(line).with_context(|| format!("not a record: {line}"))?;
        // Here the turns of this comparison tell the spread.
        record.extra.remove("spread");
        add(&record, side, lines);
    }
    Ok(())
}

fn add(record: &Record, side: usize, lines: &mut BTreeMap<Key, Values>) {
    let word = |key: &str| record.extra.get(key).map(|value| value.to_string()).unwrap_or_default();
    let metric = serde_json::to_value(record.metric).unwrap_or_default();
    let metric = metric.as_str().unwrap_or_default();
    if !METRICS.contains(&metric) {
        return;
    }
    let words = ["wait", "placement", "mode", "what", "threads", "used"].map(|key| word(key).replace('"', ""));
    let circumstances = [&[metric.to_owned()], &words[..]].concat().join(" ").trim_end().to_owned();
    let values = lines.entry((record.bench.clone(), record.path.clone(), record.size, circumstances)).or_default();
    values.sides[side].push(record.value);
    values.told[side] = record.extra.get("spread").and_then(|spread| spread.as_f64());
    values.larger_is_better = record.metric.larger_is_better();
}

impl Values {
    /// How many times better the new one is, by its median.
    fn gain(&self) -> Option<f64> {
        let [old, new] = self.medians()?;
        let ratio = (old > 0.0 && new > 0.0).then(|| new / old)?;
        Some(if self.larger_is_better { ratio } else { 1.0 / ratio })
    }

    /// The medians of the old and the new one.
    fn medians(&self) -> Option<[f64; 2]> {
        let [old, new] = &self.sides;
        Some([median(old.iter().copied())?, median(new.iter().copied())?])
    }

    /// What a difference has to exceed to mean something; `None` if there are too few values to tell.
    fn noise(&self) -> Option<f64> {
        noise([0, 1].map(|side| self.told[side].or_else(|| spread(&self.sides[side]))))
    }

    fn verdict(&self, gain: f64) -> &'static str {
        match differs(gain, self.noise()) {
            false => "",
            true if gain < 1.0 - LIMIT / 100.0 => "slower",
            true if gain > 1.0 + LIMIT / 100.0 => "faster",
            true => "",
        }
    }
}

/// Prints all lines; returns how many are slower than allowed.
fn print(lines: &BTreeMap<Key, Values>) -> usize {
    let heading = ["size", "path", "bench", "old", "new", "new/old", "noise", "", "circumstances"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mut verdicts = Vec::new();
    for ((bench, path, size, circumstances), values) in lines {
        let (Some(gain), Some(medians)) = (values.gain(), values.medians()) else { continue };
        let verdict = values.verdict(gain);
        verdicts.push(verdict);
        let [old, new] = medians.map(|value| format!("{value:.4e}"));
        rows.push(vec![
            table::size(*size),
            path.clone(),
            bench.clone(),
            old,
            new,
            format!("{gain:.3}"),
            values.noise().map_or("?".into(), |noise| format!("{:.1} %", noise * 100.0)),
            verdict.into(),
            circumstances.clone(),
        ]);
    }
    print!("{}", table::aligned(&rows));
    let count = |verdict: &str| verdicts.iter().filter(|own| **own == verdict).count();
    println!(
        "new/old: how many times better the new one is; {} lines faster, {} slower, {} without a difference beyond the noise",
        count("faster"),
        count("slower"),
        count("")
    );
    count("slower")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(larger_is_better: bool) -> Values {
        Values { sides: [vec![2.0, 2.0, 9.0], vec![4.0, 4.0, 1.0]], larger_is_better, ..Values::default() }
    }

    #[test]
    fn a_gain_is_above_one_whichever_way_is_better() {
        assert_eq!(values(true).gain(), Some(2.0));
        assert_eq!(values(false).gain(), Some(0.5));
        assert_eq!(Values::default().gain(), None);
    }

    #[test]
    fn a_difference_within_the_noise_has_no_verdict() {
        assert_eq!(values(true).verdict(2.0), "faster");
        assert_eq!(values(true).verdict(0.5), "slower");
        let noisy = Values { told: [Some(0.3), Some(0.3)], ..values(true) };
        assert_eq!(noisy.verdict(0.5), "");
        let few = Values { sides: [vec![1.0], vec![2.0]], ..Values::default() };
        assert_eq!(few.verdict(2.0), "");
    }
}
