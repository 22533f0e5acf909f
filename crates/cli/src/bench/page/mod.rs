//! The report of a run: one HTML page that needs no script and nothing from outside, and beside it the run itself.

mod charts;
mod filters;
mod histograms;
mod misses;
mod plot;
mod promises;
mod tables;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::saved::{self, Saved};

/// Makes the folder of a report, before anything is measured for it.
pub fn prepare(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))
}

/// Writes `index.html` and `run.json` into a folder.
pub fn write(folder: &Path, run: &Saved) -> Result<()> {
    run.write(&folder.join(saved::FILE))?;
    let file = folder.join("index.html");
    fs::write(&file, html(run)).with_context(|| format!("cannot write {}", file.display()))
}

fn html(run: &Saved) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    out += "<title>Sidestep: a run of the benchmarks</title>\n";
    let _ = writeln!(out, "<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Sidestep: a run of the benchmarks</h1>");
    let minutes = super::progress::spoken(std::time::Duration::from_secs_f64(run.seconds.max(0.0)));
    let _ = writeln!(
        out,
        "<p class=\"faint\">{} figures in {minutes}. Candidates and baselines took turns in every round; a figure is the \
         median of its rounds. Absolute times belong to this machine on this day: compare ratios.</p>",
        run.records.len()
    );
    out += &tables::machine(run);
    out += &tables::overview(&run.records);
    out += &tables::peers(&run.records);
    out += &promises::table(&run.records);
    let figures = charts::figures(&run.records);
    if !figures.is_empty() {
        out += "<h2>Plots</h2>\n<div class=\"plots\">\n";
        for figure in &figures {
            let (title, note) = (escape(&figure.title), escape(&figure.note));
            let _ = writeln!(out, "<figure><figcaption>{title}<span>{note}</span></figcaption>\n{}", figure.plot.svg());
            out += "<ul class=\"legend\">";
            for series in &figure.plot.series {
                let _ =
                    write!(out, "<li>{}<span>{}</span></li>", charts::legend_mark(series.colour), escape(&series.name));
            }
            out += "</ul></figure>\n";
        }
        out += "</div>\n";
    }
    out += &histograms::table(&run.records);
    out += &misses::grid_table(&run.records);
    out += &tables::seeds(run);
    out += &tables::all(&run.records);
    out + "</body>\n</html>\n"
}

/// Text in which nothing is markup.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests;
