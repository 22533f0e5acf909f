//! The `sidestep` program.
//!
//! **What it is.** The command line: one subcommand per job, each in its own module.
//!
//! **Who calls it.** People, `./sidestep` at the root, and itself: `bench` starts its second
//! process by running this program again.
//!
//! **What it calls.** The crates below it, by their public interfaces only.
//!
//! **What it never does.** It holds no protocol and no unsafe code.

#![forbid(unsafe_code)]

mod bench;
mod options;

use std::process::ExitCode;

use clap::Parser;

use options::{Command, Options};

fn main() -> ExitCode {
    let outcome = match Options::parse().command {
        Command::Bench(options) => bench::run(&options),
        Command::BenchWorker(options) => bench::worker::serve(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sidestep: {error:#}");
            ExitCode::FAILURE
        }
    }
}
