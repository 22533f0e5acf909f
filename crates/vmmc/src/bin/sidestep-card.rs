//! A card process: `sidestep-card NAME [ADDRESS]`. Started by the first process that attaches to the name, not by people. At an
//! address of the fabric, such as `iwarp:HOST:PORT`, cards of other hosts find it.

use std::process::ExitCode;

use sidestep_vmmc::process::{CardOptions, serve, serve_at};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), place) = (arguments.next(), arguments.next()) else {
        eprintln!("sidestep-card: give the name of the card, and where cards of other hosts find it, if they do");
        return ExitCode::FAILURE;
    };
    let options = CardOptions::default();
    let served = place.map_or_else(|| serve(&name, options), |place| serve_at(&name, &place, options));
    match served {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sidestep-card {name}: {error}");
            ExitCode::FAILURE
        }
    }
}
