//! From samples to records: the calm rounds, their medians, the better placement, and the ratios, which are medians of the
//! ratios of each round: what changes from round to round changes both.

use serde_json::{Map, Value, json};

use super::path::{Bench, Work};
use super::record::{Metric, Record};
use super::rounds::{Measured, Sample};
use super::stats::{OneWay, median, spread};
use super::{Suite, cacheline};

/// One line of a table: a path at one size.
pub struct Line {
    /// The bench.
    pub bench: Bench,
    /// The name of the line.
    pub row: &'static str,
    /// Bytes per message.
    pub size: usize,
    /// Its figures.
    pub figures: Vec<(Metric, f64)>,
    /// The main figure of each round that counts.
    by_round: Vec<(usize, f64)>,
    /// The times that growing shares of its messages stayed within, if each was timed.
    distribution: Vec<(f64, f64)>,
    /// The main figure against each reference line, where there is one.
    pub ratios: Vec<(&'static str, f64)>,
    /// How its ends waited and where they ran; empty for a single process.
    pub circumstances: Map<String, Value>,
    /// Rounds that count.
    pub kept: usize,
    /// Rounds that were dropped.
    pub dropped: usize,
    /// No round was calm; the calmest were used.
    pub is_disturbed: bool,
}

impl Line {
    /// Its value of a metric.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        self.figures.iter().find(|(own, _)| *own == metric).map(|(_, value)| *value)
    }

    fn main_figure(&self) -> Option<f64> {
        self.figure(self.bench.metrics()[0])
    }

    /// Waking another core and sharing one are two things; elsewhere placements are compared.
    fn compares_with(&self, other: &Line) -> bool {
        let placement = |line: &Line| line.circumstances.get("placement").cloned();
        self.bench == other.bench && (self.bench != Bench::Wake || placement(self) == placement(other))
    }

    fn is_better_than(&self, other: &Line) -> bool {
        let larger_is_better = self.bench.metrics()[0].larger_is_better();
        match (self.main_figure(), other.main_figure()) {
            (Some(own), Some(other)) => (own > other) == larger_is_better,
            (own, _) => own.is_some(),
        }
    }

    /// How far its rounds lie from their median.
    pub fn spread(&self) -> Option<f64> {
        spread(&self.by_round.iter().map(|(_, value)| *value).collect::<Vec<f64>>())
    }

    /// Its records, one for each figure.
    pub fn records(&self, suite: &Suite) -> Vec<Record> {
        let record = |(metric, value): &(Metric, f64)| {
            let mut extra = self.circumstances.clone();
            extra.insert("rounds".into(), self.kept.into());
            extra.insert("dropped".into(), self.dropped.into());
            if self.is_disturbed {
                extra.insert("disturbed".into(), true.into());
            }
            let is_main = *metric == self.bench.metrics()[0];
            if let (true, Some(spread)) = (is_main, self.spread()) {
                extra.insert("spread".into(), spread.into());
            }
            if is_main && !self.distribution.is_empty() {
                extra.insert("distribution".into(), json!(self.distribution));
            }
            if is_main && !self.ratios.is_empty() {
                let ratios = self.ratios.iter().map(|(name, ratio)| (name.to_string(), json!(ratio)));
                extra.insert("ratios".into(), Value::Object(ratios.collect()));
            }
            Record {
                bench: format!("{}.{}", suite.name, self.bench.name()),
                path: self.row.into(),
                size: self.size,
                metric: *metric,
                value: *value,
                unit: metric.unit(),
                extra,
            }
        };
        self.figures.iter().map(record).collect()
    }
}

/// The lines of a run, ordered by bench, size and the order of the suite.
pub fn lines(measured: &[Measured], floor: f64) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for cell in measured {
        let line = line(cell, floor);
        let same = |known: &Line| (known.bench, known.row, known.size) == (line.bench, line.row, line.size);
        match lines.iter_mut().find(|known| same(known)) {
            None => lines.push(line),
            Some(known) => keep_better(known, line),
        }
    }
    lines.sort_by_key(|line| (line.bench, line.size));
    for at in 0..lines.len() {
        lines[at].ratios = ratios(&lines, at);
    }
    lines
}

/// The floor of the run, and how many measurements it made unusable.
pub fn floor_record(suite: &Suite, measured: &[Measured], floor: f64) -> Record {
    let samples = || measured.iter().flat_map(|cell| &cell.samples);
    let floors = || samples().map(|sample| sample.floor);
    let off = floors().filter(|around| !around.is_calm(floor)).count();
    let dropped = samples().filter(|sample| !sample.is_calm(floor)).count();
    let mut extra = Map::new();
    let middle = median(floors().map(|around| around.before));
    extra.insert("median".into(), json!(middle));
    extra.insert("measurements".into(), samples().count().into());
    extra.insert("dropped".into(), dropped.into());
    extra.insert("dropped_for_floor".into(), off.into());
    Record {
        bench: format!("{}.floor", suite.name),
        path: cacheline::PATH.name.into(),
        size: cacheline::LINE_BYTES,
        metric: Metric::OneWayP50,
        value: floor,
        unit: Metric::OneWayP50.unit(),
        extra,
    }
}

fn line(cell: &Measured, floor: f64) -> Line {
    let (kept, is_disturbed) = kept(&cell.samples, floor);
    let mut circumstances = Map::new();
    if matches!(cell.path.work, Work::Pair { .. }) {
        circumstances.insert("wait".into(), json!(cell.part.wait));
        circumstances.insert("placement".into(), cell.placement.name().into());
    }
    Line {
        bench: cell.part.bench,
        row: cell.part.row,
        size: cell.size,
        figures: figures(&kept),
        by_round: kept
            .iter()
            .filter_map(|sample| Some((sample.round, main_figure(cell.part.bench, sample)?)))
            .collect(),
        distribution: distribution(&kept),
        ratios: Vec::new(),
        circumstances,
        kept: kept.len(),
        dropped: cell.samples.len() - kept.len(),
        is_disturbed,
    }
}

/// The samples with a calm floor; if there are none, the third with the calmest.
fn kept(samples: &[Sample], floor: f64) -> (Vec<&Sample>, bool) {
    let calm: Vec<&Sample> = samples.iter().filter(|sample| sample.is_calm(floor)).collect();
    if !calm.is_empty() {
        return (calm, false);
    }
    let mut all: Vec<&Sample> = samples.iter().collect();
    let distance = |sample: &Sample| sample.distance(floor);
    all.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
    all.truncate(samples.len().div_ceil(3));
    (all, true)
}

/// The median of the ratios of the rounds that both lines have; of their medians, if there are few such rounds.
fn ratio(line: &Line, other: &Line) -> Option<f64> {
    let of_round = |(round, own): &(usize, f64)| {
        let (_, other) = other.by_round.iter().find(|(theirs, _)| theirs == round)?;
        Some(own / other)
    };
    let each: Vec<f64> = line.by_round.iter().filter_map(of_round).collect();
    if each.len() >= FEW_ROUNDS { median(each) } else { Some(line.main_figure()? / other.main_figure()?) }
}

/// The main figure of a bench in one sample.
fn main_figure(bench: Bench, sample: &Sample) -> Option<f64> {
    let metric = bench.metrics()[0];
    if let (Metric::OneWayP50, Some(times)) = (metric, &sample.one_way) {
        return Some(times.quantile(0.5));
    }
    sample.figures.iter().find(|(own, _)| *own == metric).map(|(_, value)| *value)
}

/// Medians over the samples; tails over all their messages together.
fn figures(samples: &[&Sample]) -> Vec<(Metric, f64)> {
    let mut figures = Vec::new();
    let one_way: Vec<&OneWay> = samples.iter().filter_map(|sample| sample.one_way.as_ref()).collect();
    if let Some(middle) = median(one_way.iter().map(|times| times.quantile(0.5))) {
        let all = OneWay::merged(one_way.iter().copied());
        figures.push((Metric::OneWayP50, middle));
        figures.push((Metric::OneWayP99, all.quantile(0.99)));
        figures.push((Metric::OneWayP999, all.quantile(0.999)));
    }
    let Some(first) = samples.first() else {
        return figures;
    };
    for (at, (metric, _)) in first.figures.iter().enumerate() {
        figures.extend(median(samples.iter().map(|sample| sample.figures[at].1)).map(|m| (*metric, m)));
    }
    figures
}

/// The distribution of all their messages together.
fn distribution(samples: &[&Sample]) -> Vec<(f64, f64)> {
    let one_way: Vec<&OneWay> = samples.iter().filter_map(|sample| sample.one_way.as_ref()).collect();
    if one_way.is_empty() { Vec::new() } else { OneWay::merged(one_way).distribution() }
}

/// Of two placements of one line, keeps the better and notes the other's main figure.
fn keep_better(known: &mut Line, line: Line) {
    let (better, worse) = if line.is_better_than(known) {
        let worse = std::mem::replace(known, line);
        (known, worse)
    } else {
        (known, line)
    };
    let placement = worse.circumstances.get("placement").cloned().unwrap_or_default();
    better.circumstances.insert("other_placement".into(), placement);
    better.circumstances.insert("other_value".into(), json!(worse.main_figure()));
}

/// The main figure of a line against the reference lines of its bench.
fn ratios(lines: &[Line], at: usize) -> Vec<(&'static str, f64)> {
    let line = &lines[at];
    let mut ratios = Vec::new();
    for reference in line.bench.references() {
        if line.row == *reference {
            continue;
        }
        let candidates = || lines.iter().filter(|other| other.row == *reference && line.compares_with(other));
        // A reference with one size only, such as a cache line, stands for all sizes.
        let found = match candidates().count() {
            1 => candidates().next(),
            _ => candidates().find(|other| other.size == line.size),
        };
        if let Some(ratio) = found.and_then(|other| ratio(line, other)) {
            ratios.push((*reference, ratio));
        }
    }
    ratios
}

/// With fewer common rounds, medians are compared.
const FEW_ROUNDS: usize = 3;
