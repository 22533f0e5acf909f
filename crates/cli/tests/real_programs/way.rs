//! How the programs of a test are run: judged by how much of their traffic leaves TCP, or compared with the plain programs.

use std::{cell::Cell, path::Path, process::Command};

use sidestep_testkit::sockets::Promote;

thread_local! {
    static WAY: Cell<Way> = const { Cell::new(Way::Judged) };
}

/// How the programs of a test are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Under `sidestep run`, and how much of the traffic leaves TCP is judged.
    Judged,
    /// The same with connections over VIA.
    JudgedOverVia,
    /// To be compared with the other ways, of which `None` is the plain program. Promoted connections are only counted.
    Compared(Option<Promote>),
}

/// Runs a test with connections over VIA.
pub fn over_via(test: fn()) {
    in_way(Way::JudgedOverVia, test);
}

/// Runs something with all programs of this thread run in one way.
pub fn in_way<T>(way: Way, test: impl FnOnce() -> T) -> T {
    WAY.set(way);
    test()
}

pub fn is_over_via() -> bool {
    WAY.get() == Way::JudgedOverVia
}

pub fn is_compared() -> bool {
    matches!(WAY.get(), Way::Compared(_))
}

pub fn is_plain() -> bool {
    WAY.get() == Way::Compared(None)
}

/// The environment that makes `sidestep run` promote in this way.
pub fn variables() -> Option<(&'static str, String)> {
    match WAY.get() {
        Way::JudgedOverVia => Some(("SIDESTEP_CARRIER", "via".into())),
        Way::Compared(Some(promote)) => Some(("SIDESTEP_PROMOTE", promote.to_string())),
        Way::Judged | Way::Compared(None) => None,
    }
}

/// A program under `sidestep run`, or alone if that is the way; `begin` makes the command of what is executed first.
pub fn run(sidestep: &Path, program: &Path, begin: impl FnOnce(&Path) -> Command) -> Command {
    if is_plain() {
        return begin(program);
    }
    let mut command = begin(sidestep);
    command.args(["run", "--"]).arg(program);
    command
}
