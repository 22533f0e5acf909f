//! perftest over siw within the guest, as a comparison. None of our code takes part, so that a figure which
//! an overloaded machine does not give is no failure.

use anyhow::{Context, Result, ensure};

use crate::guest::Guest;
use crate::report::Report;

pub fn run(report: &mut Report, guest: &mut Guest) {
    for (tool, arguments, column, unit) in [
        ("ib_send_lat", "-s 64 -n 300", 5, "us on average"),
        ("ib_write_lat", "-s 64 -n 300", 5, "us on average"),
        ("ib_read_lat", "-s 64 -n 300", 5, "us on average"),
        ("ib_send_bw", "-s 65536 -n 500", 3, "MB/s"),
        ("ib_write_bw", "-s 65536 -n 500", 3, "MB/s"),
    ] {
        report.case("perftest", format!("{tool} {arguments}"), "both", || {
            Ok(match measure(guest, tool, arguments, column) {
                Ok(figure) => format!("{figure} {unit}"),
                Err(error) => format!("no figure: {}", error.to_string().lines().next().unwrap_or_default()),
            })
        });
    }
}

/// Runs server and client in the guest; gives one column of the line of results.
fn measure(guest: &Guest, tool: &str, arguments: &str, column: usize) -> Result<f64> {
    let command = format!("timeout -s KILL 40 {tool} -R -d siw0 -p 7300 {arguments}");
    let output = guest.run(&format!("{command} >/dev/null 2>&1 & sleep 2; {command} 10.0.2.15; wait"))?;
    let mut lines = output.lines().map(|line| line.split_whitespace().map_while(|word| word.parse().ok()).collect());
    let results: Option<Vec<f64>> = lines.find(|numbers: &Vec<f64>| numbers.len() > column);
    let numbers = results.with_context(|| format!("no results: {}", output.trim()))?;
    let figure = numbers[column];
    ensure!(figure.is_finite() && figure > 0.0, "a figure of {figure}");
    Ok(figure)
}
