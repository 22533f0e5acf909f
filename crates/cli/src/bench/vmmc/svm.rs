//! Real processes on real cards: FFT and LU on shared virtual memory, their results checked, their page accesses compared with those
//! of the generators, and the times of the cards' misses (tables 4.6 and 4.7).
//!
//! Every process is this program in its hidden role `vmmc-end`: a card, or a process of a kernel.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sidestep_vmmc::process::{CardOptions, serve};
use sidestep_vmmc::svm::{Join, Kernel};
use sidestep_vmmc::workload::{self, Step, Workload};
use sidestep_vmmc::{BINS, Bins, CacheShape};

use super::super::record::Metric;
use super::super::sheet::Table;
use super::super::show_progress;
use super::record;

/// What a process is to be.
#[derive(Debug, Serialize, Deserialize)]
enum Job {
    /// The card of a name.
    Card(String),
    /// A process of a kernel.
    Share { name: String, kernel: String, size: usize, rank: usize },
}

/// What a process of a kernel has to tell.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    digest: u64,
    time_ns: u64,
    /// A page that was fetched, a page and the bytes that were sent, or neither: a barrier.
    steps: Vec<(Option<u32>, u32)>,
    delay: [u64; BINS.len() + 1],
    processing: [u64; BINS.len() + 1],
    misses: u64,
    hits: u64,
}

/// What all of them did.
struct Run {
    time_ns: u64,
    alone_ns: u64,
    is_right: bool,
    traced: Workload,
    generated: Workload,
    delay: Bins,
    processing: Bins,
    ratio: f64,
}

/// Processes of a kernel, two on each card.
const COUNT: usize = 4;

/// The kernels, and the sizes of a whole run and of a quick one.
pub const KERNELS: [(&str, usize, usize); 2] = [("fft", 1024, 256), ("lu", 64, 16)];

/// Runs one of the processes.
pub fn end(job: &str) -> Result<()> {
    match serde_json::from_str(job).context("not a job")? {
        Job::Card(name) => match serve(&name, CardOptions::default()) {
            // Two processes may start a card of one name at once: the second ends.
            Err(error) if !error.is_name_taken() => return Err(error.into()),
            _ => {}
        },
        Job::Share { name, kernel, size, rank } => {
            let card = format!("{name}-{}", rank / 2);
            let start = Some(command(&Job::Card(card.clone()))?);
            let join = Join { name: &name, rank, count: COUNT, homes: Vec::new(), card: &card, start };
            let report = Kernel::named(&kernel, size, COUNT)?.run(join)?;
            let steps = report.steps.iter().map(|step| match *step {
                Step::Fetch(page) => (Some(page), 0),
                Step::Send(page, bytes) => (Some(page), bytes),
                Step::Barrier | Step::Compute(_) => (None, 0),
            });
            let (standing, timing) = (report.standing, report.standing.timing);
            let found = Found {
                digest: report.digest,
                time_ns: report.time_ns,
                steps: steps.collect(),
                delay: timing.delay.counts,
                processing: timing.processing.counts,
                misses: standing.misses,
                hits: standing.hits,
            };
            println!("{}", serde_json::to_string(&found)?);
        }
    }
    Ok(())
}

fn command(job: &Job) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot tell where this program is")?);
    command.arg("vmmc-end").arg(serde_json::to_string(job)?);
    Ok(command)
}

fn run(kernel: &str, size: usize) -> Result<Run> {
    show_progress(&format!("vmmc.svm: {kernel}"));
    let name = format!("bench-{}-{kernel}", std::process::id());
    let start = |rank| -> Result<Child> {
        let (name, kernel) = (name.clone(), kernel.to_owned());
        let mut command = command(&Job::Share { name, kernel, size, rank })?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start a process")
    };
    let children: Vec<Child> = (0..COUNT).map(start).collect::<Result<_>>()?;
    let mut all = Vec::new();
    for mut child in children {
        let mut text = String::new();
        child.stdout.take().context("no output")?.read_to_string(&mut text)?;
        ensure!(child.wait()?.success(), "a process of {kernel} has failed");
        all.push(serde_json::from_str::<Found>(&text).with_context(|| format!("not a report: {text}"))?);
    }
    let own = Kernel::named(kernel, size, COUNT)?;
    let (digests, alone_ns) = own.run_alone()?;
    let (mut delay, mut processing, mut lookups) = (Bins::default(), Bins::default(), (0, 0));
    // The first process of each card tells of it, when both have computed.
    for found in all.iter().step_by(2) {
        for bin in 0..delay.counts.len() {
            delay.counts[bin] += found.delay[bin];
            processing.counts[bin] += found.processing[bin];
        }
        lookups = (lookups.0 + found.misses, lookups.1 + found.hits);
    }
    let steps = |found: &Found| {
        let step = |step: &(Option<u32>, u32)| match *step {
            (None, _) => Step::Barrier,
            (Some(page), 0) => Step::Fetch(page),
            (Some(page), bytes) => Step::Send(page, bytes),
        };
        found.steps.iter().map(step).collect()
    };
    Ok(Run {
        time_ns: all.iter().map(|found| found.time_ns).max().unwrap_or(0),
        alone_ns,
        is_right: all.iter().map(|found| found.digest).eq(digests),
        traced: own.workload(all.iter().map(steps).collect())?,
        generated: own.generated(),
        delay,
        processing,
        ratio: lookups.0 as f64 / lookups.1.max(1) as f64,
    })
}

fn runs(quick: bool) -> Result<Vec<(&'static str, Run)>> {
    KERNELS
        .into_iter()
        .map(|(kernel, whole, few)| Ok((kernel, run(kernel, if quick { few } else { whole })?)))
        .collect()
}

/// The kernels, right or not, and their accesses against those of the generators.
pub fn table(quick: bool) -> Result<Table> {
    let mut table =
        Table::new(&["accesses", "fetches", "sends", "C128 L8 A4", "C1K L16 A4", "C4K L64 A4", "C16K L64 A4"]);
    let shapes =
        [(128, 8), (1024, 16), (4096, 64), (16384, 64)].map(|(entries, line)| CacheShape { entries, line, ways: 4 });
    let mut notes = Vec::new();
    for (kernel, run) in runs(quick)? {
        for workload in [&run.traced, &run.generated] {
            let count = |is: fn(&Step) -> bool| workload.steps.iter().flatten().filter(|step| is(step)).count();
            let (fetches, sends) =
                (count(|step| matches!(step, Step::Fetch(_))), count(|step| matches!(step, Step::Send(..))));
            let ratios = shapes.map(|shape| workload::grid_point(workload, shape).ratio());
            let cells = ratios.map(|ratio| format!("{:.2} %", ratio * 100.0));
            table.row(&[&[workload.name.into(), fetches.to_string(), sends.to_string()], &cells[..]].concat());
            let extra = json!({"what": workload.name, "fetches": fetches, "sends": sends, "ratios": ratios});
            table.records.push(record("svm", workload.name, 0, Metric::Misses, ratios[1], extra));
        }
        let right = if run.is_right { "equal to that of one process" } else { "WRONG" };
        let ms = |ns: u64| ns as f64 / 1e6;
        notes.push(format!(
            "{kernel}: {COUNT} processes on {} cards {:.0} ms, one process {:.0} ms; the result is {right}; {:.2} % of the real \
             cards' lookups missed",
            COUNT / 2,
            ms(run.time_ns),
            ms(run.alone_ns),
            run.ratio * 100.0
        ));
        ensure!(run.is_right, "{kernel}: the result differs from that of one process");
    }
    table.text.extend(notes);
    Ok(table)
}

/// The times of the misses of the real cards.
pub fn times(quick: bool) -> Result<Table> {
    let names = Bins::names();
    let mut table = Table::new(&[&["program", "what", "misses"], &names[..]].concat());
    for (kernel, run) in runs(quick)? {
        for (what, bins) in [("delay", run.delay), ("processing", run.processing)] {
            let shares = bins.shares();
            let cells = shares.map(|share| format!("{:.1}", share * 100.0));
            table.row(&[&[kernel.into(), what.into(), bins.total().to_string()], &cells[..]].concat());
            let within: f64 = shares[..3].iter().sum();
            let extra = json!({"what": what, "bins": shares, "names": names, "misses": bins.total()});
            let path = format!("{kernel} {what}");
            table.records.push(record("histograms", &path, 0, Metric::Utilisation, within, extra));
        }
    }
    table.text.push("percent of the misses of real card processes in each bin of microseconds".into());
    Ok(table)
}
