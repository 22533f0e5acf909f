//! A card process: `sidestep-card NAME`. Started by the first process that attaches to the name, not by people.

use std::process::ExitCode;

use sidestep_vmmc::process::{CardOptions, serve};

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        eprintln!("sidestep-card: give the name of the card");
        return ExitCode::FAILURE;
    };
    match serve(&name, CardOptions::default()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sidestep-card {name}: {error}");
            ExitCode::FAILURE
        }
    }
}
