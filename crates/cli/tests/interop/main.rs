//! Interoperation with Linux siw in a virtual machine. `./test interop` builds the guest and runs this
//! with `SIDESTEP_INTEROP` set to its folder; without that, it says so and does nothing.
//!
//! Words on the command line choose cases by what their names contain; `SIDESTEP_INTEROP_REPEAT` says
//! how often each one runs.

mod capture;
mod guest;
mod nfs;
mod offence;
mod peer;
mod perftest;
mod raw;
mod refusal;
mod report;
mod rping;
mod setup;
mod transfer;

// The driver of `sidestep rping` drives the host's end here too.
#[allow(dead_code)]
#[path = "../../src/rping/driver.rs"]
mod driver;
// So does the writer of capture files.
#[path = "../../../iwarp/tests/pcap/mod.rs"]
mod pcap;
// The calls of NFS are those of the test with a server in user space, too.
#[allow(dead_code)]
#[path = "../../../rpc/tests/nfs/mod.rs"]
mod nfs_calls;

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use anyhow::{Context, Result};

use guest::Guest;
use report::Report;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if words.iter().any(|word| word == "--list") {
        // For runners that ask which tests there are: none without a guest.
        return ExitCode::SUCCESS;
    }
    let Some(folder) = env::var_os("SIDESTEP_INTEROP").map(PathBuf::from) else {
        println!("skipped: there is no guest; ./test interop makes one");
        return ExitCode::SUCCESS;
    };
    let only = words.into_iter().filter(|word| !word.starts_with('-')).collect();
    let repeat = env::var("SIDESTEP_INTEROP_REPEAT").ok().and_then(|count| count.parse().ok()).unwrap_or(1);
    match run(&folder, Report::new(only, repeat)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("interop: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all cases; returns how many failed.
fn run(folder: &std::path::Path, mut report: Report) -> Result<usize> {
    let versions = fs::read_to_string(folder.join("versions")).context("the guest is not built")?;
    // Everything on the wire of this guest is valid, and checked with tshark later.
    let capture = folder.join("siw.pcap");
    if report.wants_others_than("nfs") {
        let mut guest = Guest::boot(folder, Some(&capture))?;
        rping::run(&mut report, &mut guest);
        transfer::run(&mut report, &mut guest);
    }
    capture::run(&mut report, &capture);
    if report.wants_others_than("nfs") {
        let mut guest = Guest::boot(folder, None)?;
        perftest::run(&mut report, &mut guest);
        offence::run(&mut report, &mut guest);
        refusal::run(&mut report, &mut guest);
        setup::run(&mut report, &mut guest);
        setup::run_last(&mut report, &mut guest);
    }
    let capture = folder.join("nfs.pcap");
    {
        let mut guest = Guest::boot(folder, Some(&capture))?;
        nfs::run(&mut report, &mut guest);
    }
    capture::run_rpc(&mut report, &capture);
    let table = report.table();
    println!("\n{versions}\n{table}");
    println!("{} cases, {} failed", report.len(), report.failures());
    fs::write(folder.join("table.md"), table).context("writing the table")?;
    Ok(report.failures())
}
