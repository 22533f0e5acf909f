//! `sidestep bench seeds`: every table and figure of the documents that Sidestep comes from, what stands there, and what is
//! measured here.
//!
//! The registry ([`registry::ENTRIES`]) names for each the two lines of a run whose ratio says the same. Times of that day's
//! machines cannot be met or missed; the direction and the size of an effect can.

mod registry;

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use serde_json::json;

use super::record::{Metric, Record, digits};
use super::saved::Saved;
use super::sink::Sink;
use super::stats::{differs, noise};
use super::{measure, options, progress};
pub use registry::ANY;
use registry::ENTRIES;

/// One table or figure of a document.
struct Entry {
    document: &'static str,
    place: &'static str,
    what: &'static str,
    paper: Paper,
    source: Source,
}

/// What the document has.
#[derive(Clone, Copy)]
enum Paper {
    /// The first is so many times better than the second.
    Times(f64),
    /// It is better; the figure is in a plot alone.
    Better,
    /// There is no ratio in it.
    Nothing,
}

/// Where our figure comes from.
enum Source {
    /// From these lines of a run. The text says why it is the other way round here, for one of which that is known.
    Lines(Lines, &'static str),
    /// It cannot be had here, and why.
    NotHere(&'static str),
    /// Nothing here does it.
    NotBuilt,
}

/// Two lines of a run.
struct Lines {
    bench: &'static str,
    metric: Metric,
    size: usize,
    /// The better one, and what it is compared with; without a name, that is the whole, of which the first is a share.
    paths: [&'static str; 2],
    /// Only lines with these many connections, or with this in what they are of.
    of: Of,
}

/// Which lines of a bench.
enum Of {
    All,
    Connections(u64),
    What(&'static str),
}

/// One of them, judged.
pub struct Judged {
    /// The document.
    pub document: &'static str,
    /// The table or figure.
    pub place: &'static str,
    /// What is compared.
    pub what: &'static str,
    /// How many times better the first is there.
    pub paper: Option<f64>,
    /// How many times better it is here.
    pub ours: Option<f64>,
    /// What of that may be noise, as a share, if that is known.
    pub noise: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
}

/// What can be said of a table or figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The effect is at least as large, but for a tenth.
    Met,
    /// The effect is there, and smaller.
    SameDirection,
    /// The document has a difference; here it is smaller than the noise.
    NoDifference,
    /// It is the other way round, and why.
    Reversed(&'static str),
    /// It cannot be had here, and why.
    NotReproducible(&'static str),
    /// The run has no such lines; what measures them.
    NotMeasured(&'static str),
    /// Nothing here does it.
    NotBuilt,
}

impl Verdict {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::SameDirection => "same direction",
            Verdict::NoDifference => "no difference",
            Verdict::Reversed(_) => "reversed",
            Verdict::NotReproducible(_) => "not reproducible here",
            Verdict::NotMeasured(_) => "not measured",
            Verdict::NotBuilt => "not built",
        }
    }

    /// The reason, where one is needed.
    pub fn why(&self) -> &'static str {
        match self {
            Verdict::Reversed(why) | Verdict::NotReproducible(why) | Verdict::NotMeasured(why) => why,
            _ => "",
        }
    }
}

/// Judges every entry by the records of a run.
pub fn judge(records: &[Record]) -> Vec<Judged> {
    entries(&[]).map(|entry| entry.judge(records)).collect()
}

/// The entries that a filter leaves; its words are numbers of documents, or tables and figures.
fn entries(only: &[String]) -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().filter(move |entry| only.is_empty() || only.iter().any(|word| entry.is_named(word)))
}

impl Entry {
    fn is_named(&self, word: &str) -> bool {
        self.document.starts_with(word) || self.place.eq_ignore_ascii_case(word)
    }

    fn judge(&self, records: &[Record]) -> Judged {
        let paper = match self.paper {
            Paper::Times(times) => Some(times),
            Paper::Better | Paper::Nothing => None,
        };
        let (ours, verdict) = match &self.source {
            Source::NotBuilt => (None, Verdict::NotBuilt),
            Source::NotHere(why) => (None, Verdict::NotReproducible(why)),
            Source::Lines(lines, why) => match lines.ratio(records) {
                None => (None, Verdict::NotMeasured(lines.bench)),
                Some(ours) => (Some(ours), verdict(self.paper, ours, why)),
            },
        };
        let noise = ours.and_then(|ours| ours.noise);
        let ours = ours.map(|ours| ours.times);
        Judged { document: self.document, place: self.place, what: self.what, paper, ours, noise, verdict }
    }
}

/// How many times better something is, and what of that may be noise, as a share; `None` if that is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratio {
    times: f64,
    noise: Option<f64>,
}

fn verdict(paper: Paper, ours: Ratio, why: &'static str) -> Verdict {
    let (is_noise, ours) = (ours.noise.is_some() && !differs(ours.times, ours.noise), ours.times);
    let reversed = Verdict::Reversed(if why.is_empty() { "the reason is not known" } else { why });
    match paper {
        // What hardly differs there has no direction.
        Paper::Times(times) if is_noise && is_nearly_equal(times) => Verdict::Met,
        _ if is_noise => Verdict::NoDifference,
        Paper::Times(times) if ours >= times * NEARLY => Verdict::Met,
        Paper::Times(times) if is_nearly_equal(times) && ours > times / 2.0 => Verdict::SameDirection,
        Paper::Times(times) if (times > 1.0) == (ours > 1.0) => Verdict::SameDirection,
        Paper::Better | Paper::Nothing if ours > 1.0 => Verdict::Met,
        _ => reversed,
    }
}

fn is_nearly_equal(times: f64) -> bool {
    (1.0 / NEARLY_EQUAL..NEARLY_EQUAL).contains(&times)
}

impl Lines {
    /// How many times better the first path is, each where it is at its best.
    fn ratio(&self, records: &[Record]) -> Option<Ratio> {
        let (larger, is_share) = (self.metric.larger_is_better(), self.paths[1] == WHOLE);
        let best = |path: &str| {
            let own = records.iter().filter(|record| self.fits(record) && record.path == path);
            // Zero stands for nothing measured, but where nothing of it can be what was found: none of a share, or never.
            let is_found =
                |record: &&Record| is_share || self.metric == Metric::Ratio && !record.extra.contains_key("note");
            let own = own.filter(|record| record.value > 0.0 || record.value == 0.0 && is_found(record));
            own.reduce(|one, two| if (one.value > two.value) == larger { one } else { two })
        };
        let first = best(self.paths[0])?;
        if is_share {
            return Some(Ratio { times: first.value, noise: None });
        }
        let second = best(self.paths[1]).filter(|second| second.value > 0.0)?;
        let times = if larger { first.value / second.value } else { second.value / first.value };
        Some(Ratio { times, noise: noise([first.spread(), second.spread()]) })
    }

    fn fits(&self, record: &Record) -> bool {
        let of = match self.of {
            Of::All => true,
            Of::Connections(count) => record.extra.get("connections").and_then(|value| value.as_u64()) == Some(count),
            Of::What(what) => {
                record.extra.get("what").and_then(|value| value.as_str()).is_some_and(|own| own.contains(what))
            }
        };
        of && record.bench == self.bench
            && record.metric == self.metric
            && (self.size == ANY || record.size == self.size)
    }
}

/// Measures what the registry names, or takes it from saved runs, and prints what follows.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    for word in &options.only {
        ensure!(
            ENTRIES.iter().any(|entry| entry.is_named(word)),
            "--only {word}: neither a document (000 to 004) nor a table or figure such as `Fig 5.9`"
        );
    }
    let mut records = Vec::new();
    for file in &options.builds {
        records.extend(Saved::read(file)?.records);
    }
    let mut failed = Vec::new();
    if options.builds.is_empty() {
        let mut measured = if sink.is_json() { Sink::silent() } else { Sink::new(false) };
        let (begin, needed) = (Instant::now(), needed(&options.only));
        let scale = if options.quick { 1.0 } else { 5.0 };
        let total: f64 = needed.keys().map(|(suite, _)| seconds(suite) * scale).sum();
        let mut done = 0.0;
        for ((suite, _), only) in needed {
            progress::step(begin, done, total, suite);
            done += seconds(suite) * scale;
            let step = options::Bench { suite: suite.into(), only, ..options.clone() };
            if let Err(error) = measure(&step, &mut measured) {
                eprintln!("sidestep: {suite}: {error:#}");
                failed.push(suite);
            }
        }
        progress::end();
        records = measured.into_records();
    }
    let judged: Vec<Judged> = entries(&options.only).map(|entry| entry.judge(&records)).collect();
    if sink.is_json() {
        judged.iter().for_each(|judged| println!("{}", judged.json()));
    } else {
        print(&judged);
    }
    sink.keep(records);
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("not measured: {}", failed.join(", ")),
    }
}

/// What the lines of the registry take of a suite with `--quick`, roughly; in full about five times as much.
fn seconds(suite: &str) -> f64 {
    match suite {
        "balance" => 1.0,
        "extended" | "vmmc" => 15.0,
        "sockets" => 90.0,
        _ => 40.0,
    }
}

/// The suites that have lines of the registry, and of each the benches; applications of a suite come apart.
fn needed(only: &[String]) -> BTreeMap<(&'static str, bool), Vec<String>> {
    let mut suites: BTreeMap<(&str, bool), Vec<String>> = BTreeMap::new();
    for entry in entries(only) {
        let Source::Lines(lines, _) = &entry.source else { continue };
        let (suite, bench) = lines.bench.split_once('.').unwrap_or((lines.bench, ""));
        // FTP and ONC RPC over VIA are measured as sockets are, by the suite of the carrier.
        let is_application = suite == "sockets" && matches!(bench, "ftp" | "rpc");
        let suite = if is_application { "sovia" } else { suite };
        let benches = suites.entry((suite, is_application)).or_default();
        if !benches.iter().any(|own| own == bench) {
            benches.push(bench.into());
        }
    }
    suites
}

impl Judged {
    /// The noise as tables show it; a question mark where there are too few rounds to know it.
    pub fn noise_shown(&self) -> String {
        match (self.ours, self.noise) {
            (None, _) => String::new(),
            (Some(_), None) => "?".to_owned(),
            (Some(_), Some(noise)) => format!("{:.0} %", noise * 100.0),
        }
    }

    fn json(&self) -> String {
        let Judged { document, place, what, paper, ours, noise, verdict } = self;
        json!({"document": document, "place": place, "what": what, "paper": paper, "ours": ours, "noise": noise,
               "verdict": verdict.name(), "why": verdict.why()})
        .to_string()
    }
}

fn print(judged: &[Judged]) {
    let times = |value: Option<f64>| value.map(digits).unwrap_or_default();
    let mut document = "";
    for entry in judged {
        if entry.document != document {
            document = entry.document;
            println!(
                "{document}\n  {:<12} {:<62} {:>7} {:>7} {:>6}  verdict",
                "where", "what", "there", "here", "noise"
            );
        }
        let why = match entry.verdict.why() {
            "" => String::new(),
            why => format!(": {why}"),
        };
        let (paper, ours) = (times(entry.paper), times(entry.ours));
        let noise = entry.noise_shown();
        println!(
            "  {:<12} {:<62} {paper:>7} {ours:>7} {noise:>6}  {}{why}",
            entry.place,
            entry.what,
            entry.verdict.name()
        );
    }
    let count = |name: &str| judged.iter().filter(|entry| entry.verdict.name() == name).count();
    let names =
        ["met", "same direction", "no difference", "reversed", "not reproducible here", "not measured", "not built"];
    let counts: Vec<String> = names.iter().map(|name| format!("{} {name}", count(name))).collect();
    println!("{} tables and figures: {}", judged.len(), counts.join(", "));
    println!(
        "there, here: how many times better the first is than the second, or which share it is; times themselves belong to their \
         machines"
    );
}

/// What a share is a share of.
const WHOLE: &str = "";
/// What is met may lack so much.
const NEARLY: f64 = 0.9;
/// Ratios nearer to one than this have no direction.
const NEARLY_EQUAL: f64 = 1.1;

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
