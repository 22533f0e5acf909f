//! The ways to run a socket program: plain, or under `sidestep run`.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

/// When connections are promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promote {
    /// As users have it: on the second exchange.
    Default,
    /// From the first byte.
    Eager,
    /// To and fro at random byte positions.
    Random(u64),
}

/// How to run a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// Over kernel TCP.
    Plain,
    /// By this `sidestep` program.
    Sidestep(PathBuf, Promote),
    /// The same, with connections over VIA.
    Via(PathBuf, Promote),
    /// The same, with NICs on iWARP.
    Iwarp(PathBuf, Promote),
    /// The same, with NICs on cards that have hardly any caches.
    Card(PathBuf, Promote),
    /// Over VIA and rings in turn, if they move to and fro.
    Both(PathBuf, Promote),
}

impl Launch {
    /// Kernel TCP, and every way of promoting: with a seed, also to and fro.
    pub fn all(sidestep: &Path, seed: Option<u64>) -> Vec<Launch> {
        let promotes = [Promote::Default, Promote::Eager].into_iter().chain(seed.map(Promote::Random));
        let promoted = promotes.map(|promote| Launch::Sidestep(sidestep.to_owned(), promote));
        let over_via = [Promote::Eager].into_iter().chain(seed.map(Promote::Random));
        let over_via = over_via.map(|promote| Launch::Via(sidestep.to_owned(), promote));
        [Launch::Plain].into_iter().chain(promoted).chain(over_via).collect()
    }

    /// A command that runs `program` this way.
    pub fn command(&self, program: &Path) -> Command {
        match self {
            Launch::Plain => Command::new(program),
            Launch::Sidestep(sidestep, promote) => under(sidestep, &["--promote", &promote.to_string()], program),
            Launch::Via(sidestep, promote) => {
                under(sidestep, &["--carrier", "via", "--promote", &promote.to_string()], program)
            }
            Launch::Both(sidestep, promote) => {
                under(sidestep, &["--carrier", "both", "--promote", &promote.to_string()], program)
            }
            Launch::Card(sidestep, promote) => {
                let card = ["--carrier", "via", "--nic", "vmmc", "--card", "128"];
                under(sidestep, &[&card[..], &["--promote", &promote.to_string()]].concat(), program)
            }
            Launch::Iwarp(sidestep, promote) => {
                under(sidestep, &["--carrier", "via", "--nic", "iwarp", "--promote", &promote.to_string()], program)
            }
        }
    }
}

fn under(sidestep: &Path, options: &[&str], program: &Path) -> Command {
    let mut command = Command::new(sidestep);
    command.arg("run").args(options).arg("--").arg(program);
    command
}

impl fmt::Display for Promote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promote::Default => write!(out, "default"),
            Promote::Eager => write!(out, "eager"),
            Promote::Random(seed) => write!(out, "random:{seed}"),
        }
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Launch::Plain => write!(out, "plain"),
            Launch::Sidestep(_, promote) => write!(out, "--promote {promote}"),
            Launch::Via(_, promote) => write!(out, "--carrier via --promote {promote}"),
            Launch::Both(_, promote) => write!(out, "--carrier both --promote {promote}"),
            Launch::Card(_, promote) => write!(out, "--carrier via --nic vmmc --card 128 --promote {promote}"),
            Launch::Iwarp(_, promote) => write!(out, "--carrier via --nic iwarp --promote {promote}"),
        }
    }
}
