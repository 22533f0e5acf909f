//! `sidestep doctor`: what of this machine and this user limits acceleration, what follows from it, and how to mend it.

mod checks;
mod leftovers;
mod users;

use std::{ffi::OsString, fmt, process::ExitCode};

use crate::{options::Doctor, run::program::Program};

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Good,
    /// It works, with less.
    Limited,
    /// Nothing is accelerated.
    Broken,
}

/// One thing that was looked at.
#[derive(Debug)]
pub struct Finding {
    /// What it is.
    pub name: &'static str,
    /// How it is.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What follows, unless it is good.
    pub consequence: &'static str,
    /// How to mend it, unless it is good.
    pub remedy: &'static str,
}

impl Finding {
    /// Something that was found, with what follows and how to mend it if it is not good.
    pub fn new(
        name: &'static str,
        state: State,
        found: impl Into<String>,
        consequence: &'static str,
        remedy: &'static str,
    ) -> Finding {
        Finding { name, state, found: found.into(), consequence, remedy }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.state {
            State::Good => "ok",
            State::Limited => "limited",
            State::Broken => "broken",
        };
        writeln!(out, "{word:<8} {:<18} {}", self.name, self.found)?;
        if self.state != State::Good {
            writeln!(out, "{:27} {}", "", self.consequence)?;
            writeln!(out, "{:27} {}", "", self.remedy)?;
        }
        Ok(())
    }
}

/// Prints what was found. The status is 1 if something keeps programs from being accelerated.
pub fn run(options: &Doctor) -> ExitCode {
    let mut findings = Vec::new();
    // Before the rest is looked at, which it may mend.
    findings.push(leftovers::look(options.fix));
    findings.splice(0..0, checks::all());
    findings.extend(options.programs.iter().map(program));
    findings.iter().for_each(|finding| print!("{finding}"));
    let worst = |state| findings.iter().filter(|finding| finding.state == state).count();
    match (worst(State::Broken), worst(State::Limited)) {
        (0, 0) => println!("\nprograms can be accelerated"),
        (0, limited) => println!("\nprograms can be accelerated; {limited} of these limit it"),
        (broken, _) => {
            println!("\nprograms cannot be accelerated: {broken} of these prevent it");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Whether a program could be accelerated.
fn program(name: &OsString) -> Finding {
    let shown = name.display().to_string();
    let remedy = "Use a dynamically linked build of it for glibc, without set-user-ID.";
    match Program::find(name) {
        Err(_) => {
            let remedy = "Install it, or give its path.";
            Finding::new("program", State::Broken, format!("{shown} is not there"), "It cannot be run.", remedy)
        }
        Ok(found) => match found.loading().why_not() {
            None => Finding::new("program", State::Good, format!("{shown} loads the library"), "", ""),
            Some(why) => {
                let found = format!("{shown} {why}");
                Finding::new("program", State::Broken, found, "It runs, and its connections stay on TCP.", remedy)
            }
        },
    }
}
