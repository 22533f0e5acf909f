//! `sidestep pipe`: runs a pipeline of filters that a file describes, and checks and draws such files.

mod bottleneck;
mod live;
pub mod options;
mod summary;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use sidestep_filters::{Graph, Group, Launcher, Outcome, Problem, Setting, Transport, builtin, check, draw, parse};

use self::options::{Pipe, PipeCommand, PipeTransport};
use live::Live;

/// Between two looks at a pipeline that runs.
const LOOK: Duration = Duration::from_millis(200);

/// Runs `sidestep pipe`. It fails if a unit of work does.
pub fn run(options: &Pipe) -> ExitCode {
    let outcome = match (&options.command, &options.file) {
        (Some(PipeCommand::Check { file, svg }), _) => inspect(file, svg.as_deref()).map(|()| true),
        (Some(PipeCommand::Kinds), _) => {
            list();
            Ok(true)
        }
        (None, Some(file)) => execute(file, options),
        (None, None) => Err(anyhow!("which file?")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sidestep: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// How this program starts workers of its own.
pub fn launcher() -> Result<Launcher> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let program = program.to_str().context("the path of this program is not text")?;
    Ok(Launcher::command(&[program, "pipe-worker"]))
}

/// The description in a file, if it has the form of one.
fn read(file: &Path) -> Result<Graph> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let mut graph = parse(&text).map_err(|problems| told(file, &problems))?;
    if graph.name.is_empty() {
        graph.name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    }
    Ok(graph)
}

fn told(file: &Path, problems: &[Problem]) -> anyhow::Error {
    let lines: Vec<String> = problems.iter().map(|problem| format!("{}: {problem}", file.display())).collect();
    anyhow!("{}", lines.join("\n"))
}

fn inspect(file: &Path, svg: Option<&Path>) -> Result<()> {
    let graph = read(file)?;
    // Also one that is wrong has a picture.
    if let Some(svg) = svg {
        fs::write(svg, draw(&graph)).with_context(|| svg.display().to_string())?;
    }
    let problems = check(&graph, &builtin::kinds());
    if !problems.is_empty() {
        return Err(told(file, &problems));
    }
    let copies = graph.copies().count();
    let processes: std::collections::BTreeSet<String> = graph.copies().map(|copy| graph.process_of(copy)).collect();
    println!(
        "{}: {} filters with {copies} copies in {} processes, {} streams, {} {} of work; nothing is wrong with it",
        graph.name,
        graph.filters.len(),
        processes.len(),
        graph.streams.len(),
        graph.units.len(),
        if graph.units.len() == 1 { "unit" } else { "units" }
    );
    Ok(())
}

fn list() {
    for (name, kind) in builtin::kinds().iter() {
        let ports = |ports: &[sidestep_filters::Port]| {
            ports.iter().map(|port| format!("{} ({})", port.name, port.holds)).collect::<Vec<_>>().join(", ")
        };
        println!("{name:<15} {}", kind.about());
        println!(
            "{:<15}   inputs: {}; outputs: {}",
            "",
            or_none(&ports(kind.inputs())),
            or_none(&ports(kind.outputs()))
        );
        let said = |settings: &[Setting]| settings.iter().map(said).collect::<Vec<_>>().join("; ");
        if !kind.settings().is_empty() {
            println!("{:<15}   settings: {}", "", said(kind.settings()));
        }
        if !kind.unit_settings().is_empty() {
            println!("{:<15}   of a unit: {}", "", said(kind.unit_settings()));
        }
    }
}

fn said(setting: &Setting) -> String {
    format!("{} ({}{})", setting.name, setting.accepts, if setting.is_needed { ", needed" } else { "" })
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

fn execute(file: &Path, options: &Pipe) -> Result<bool> {
    let mut graph = read(file)?;
    if let Some(transport) = options.transport {
        graph.transport = match transport {
            PipeTransport::Channel => Transport::Channel,
            PipeTransport::Tcp => Transport::Tcp,
            PipeTransport::Vi => Transport::Vi,
        };
    }
    let units = std::mem::take(&mut graph.units);
    let started = Group::start(graph, &builtin::kinds(), launcher()?);
    let mut group = match started {
        Err(sidestep_filters::Error::Description(problems)) => return Err(told(file, &problems)),
        other => other?,
    };
    let began = Instant::now();
    let mut live = Live::new(!options.json);
    let total = units.len();
    units.into_iter().for_each(|unit| {
        group.submit(unit.settings);
    });
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut looked = Instant::now();
    while group.is_busy() {
        outcomes.extend(group.poll(LOOK)?);
        if looked.elapsed() >= LOOK {
            group.ask_counts();
            live.show(&group, outcomes.len(), total);
            looked = Instant::now();
        }
    }
    let elapsed = began.elapsed();
    group.final_counts()?;
    live.clear();
    outcomes.sort_by_key(|outcome| outcome.unit);
    let summary = summary::Summary::new(&group, &outcomes, elapsed);
    if options.json {
        println!("{}", summary.json());
    } else {
        eprint!("{}", summary.text());
    }
    if outcomes.len() != total {
        bail!("{} of {total} units of work ended", outcomes.len());
    }
    Ok(outcomes.iter().all(|outcome| outcome.result.is_ok()))
}
