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

mod address;
mod balance;
mod bench;
mod cache;
mod card;
mod census;
mod completions;
mod demo;
mod doctor;
mod idl;
mod init_service;
mod install;
mod names;
mod options;
mod pipe;
mod rpcbind;
mod rpcinfo;
mod rping;
mod run;
mod stat;
mod tap;
mod top;
mod turn;
mod why;

use std::{
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use clap::Parser;
use signal_hook::consts::SIGPIPE;

use options::{Command, Options};

fn main() -> ExitCode {
    let command = Options::parse().command;
    if command.only_prints() {
        end_with_the_reader();
    }
    let outcome = match command {
        Command::Run(options) => return run::run(&options),
        Command::Card(options) => return card::run(&options),
        Command::Install(options) => install::run(&options),
        Command::Completions(options) => completions::run(&options),
        Command::InitService(options) => init_service::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Stat(options) => stat::run(&options),
        Command::Why(options) => why::run(&options),
        Command::Top(options) => top::run(options),
        Command::Tap(options) => tap::run(&options),
        Command::Off(options) => turn::run(&options.subject, true),
        Command::On(options) => turn::run(&options.subject, false),
        Command::Doctor(options) => return doctor::run(&options),
        Command::Rping(options) => rping::run(&options),
        Command::Idl(options) => idl::run(&options),
        Command::Names(options) => names::run(&options),
        Command::Balance(options) => balance::run(&options),
        Command::Cache(options) => cache::run(&options),
        Command::Pipe(options) => return pipe::run(&options),
        Command::PipeWorker => {
            sidestep_filters::worker::serve(&bench::filters::kinds());
            Ok(())
        }
        Command::BenchWorker(options) => bench::worker::serve(&options),
        Command::SocketEnd(options) => bench::sockets::end::run(&options.job),
        Command::OrbEnd(options) => bench::orb::end::run(&options.job),
        Command::VmmcEnd(options) => bench::vmmc::svm::end(&options.job),
        Command::ExtendedEnd(options) => bench::extended::end::run(&options.job),
        Command::Rpcbind(options) => rpcbind::run(&options),
        Command::Rpcinfo(options) => rpcinfo::run(&options),
        Command::Demo => demo::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sidestep: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Lets this program end quietly when nobody reads what it prints, as other programs do: Rust ignores the signal, and panics then.
fn end_with_the_reader() {
    // Where that cannot be had, nothing else is lost.
    let _ = signal_hook::flag::register_conditional_default(SIGPIPE, Arc::new(AtomicBool::new(true)));
}
