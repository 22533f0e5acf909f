//! `sidestep run`: a program with the preload library before it.

pub mod library;
pub mod options;
pub mod program;
mod summary;
mod supervise;

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, ExitCode},
};

use options::Run;
use sidestep_sockets::config::options::{CARD, DIRECTORY, NIC, VERBOSE};

use crate::card;
use program::{Loading, Program};

/// Runs it, and returns only if that failed or with `--verbose`.
pub fn run(options: &Run) -> ExitCode {
    match try_run(options) {
        Ok(status) => status,
        Err(failure) => {
            eprintln!("sidestep: {}", failure.message);
            ExitCode::from(failure.status)
        }
    }
}

/// Why there was nothing to run, and what a shell would exit with.
struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    fn own(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), status: 125 }
    }

    fn of(name: &OsStr, error: &io::Error) -> Failure {
        let shown = name.display();
        match error.kind() {
            io::ErrorKind::NotFound => Failure { message: format!("{shown}: not found"), status: 127 },
            _ => Failure { message: format!("{shown}: cannot be executed: {error}"), status: 126 },
        }
    }
}

fn try_run(options: &Run) -> Result<ExitCode, Failure> {
    check_card(options).map_err(Failure::own)?;
    let (name, arguments) = options.command.split_first().ok_or_else(|| Failure::own("no program given"))?;
    let program = Program::find(name).map_err(|error| Failure::of(name, &error))?;
    let loading = program.loading();
    let shown = Path::new(name).file_name().unwrap_or(name).display().to_string();
    if let Some(why) = loading.why_not() {
        eprintln!("sidestep: {shown} {why}: it runs, over TCP");
    }
    let library = library::find().map_err(Failure::own)?;
    let mut command = Command::new(&program.path);
    command.arg0(name).args(arguments).envs(options.environment.iter().cloned());
    if loading != Loading::Refuses {
        command.env(PRELOAD, preload(library.as_os_str(), std::env::var_os(PRELOAD).as_deref()));
    }
    if options.value(&VERBOSE) == "true" {
        return supervise::run(command, &shown, options.value(&DIRECTORY)).map_err(|error| Failure::of(name, &error));
    }
    Err(Failure::of(name, &command.exec()))
}

/// Whether the card that connections over VIA are to be on can be built. The library, which builds it, could only go on without.
fn check_card(options: &Run) -> Result<(), String> {
    let (nic, kib) = (options.value(&NIC), options.value(&CARD));
    if nic == "vmmc" {
        // The table of options has seen to it that it is a number.
        let built = card::of_memory(kib.parse().unwrap_or_default());
        return built.map(drop).map_err(|error| format!("--card {kib} (in KiB): {error}"));
    }
    match options.is_by_hand(&CARD) {
        // A variable may be that of a program around this one.
        false => Ok(()),
        true => Err(format!(
            "--card {kib} is for --carrier via --nic vmmc, and here it is --nic {nic}: leave one of them out"
        )),
    }
}

/// The library goes first: what was preloaded before comes after it, in the same order.
fn preload(library: &OsStr, before: Option<&OsStr>) -> OsString {
    let mut all = library.to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty() && *before != library) {
        all.push(":");
        all.push(before);
    }
    all
}

const PRELOAD: &str = "LD_PRELOAD";
