//! The behaviour programs (`tests/behaviours`): each notes what it sees of its sockets, and that is the same on every path.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Bounded, Ended, Launch, compile};
use crate::process::PATIENCE;

/// One of them, built.
#[derive(Debug)]
pub struct Behaviour {
    /// Its name: that of its file.
    pub name: String,
    /// How it can be run: with both ends in one process, in two, or with roles of its own.
    pub modes: &'static [&'static str],
    /// Where it is.
    pub program: PathBuf,
}

impl Behaviour {
    /// The names of all.
    pub fn all() -> Vec<String> {
        let entries = fs::read_dir(folder("behaviours")).expect("the folder of behaviours");
        let files = entries.map(|entry| PathBuf::from(entry.expect("an entry").file_name()));
        let sources = files.filter(|file| file.extension().is_some_and(|extension| extension == "c"));
        let mut names: Vec<String> =
            sources.map(|source| source.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Builds it.
    pub fn new(name: &str) -> Behaviour {
        Behaviour::built(name, "behaviours", &[])
    }

    /// Builds it with an allocator of its own (`tests/environments/allocator.c`).
    pub fn with_own_allocator(name: &str) -> Behaviour {
        let source = folder("environments").join("allocator.c");
        let allocator = compile(&source, &artefacts().join("environments"), &["-fno-builtin", "-c"]);
        Behaviour::built(name, "behaviours-allocator", &[allocator.to_str().expect("a path")])
    }

    fn built(name: &str, into: &str, more: &[&str]) -> Behaviour {
        let source = folder("behaviours").join(name).with_extension("c");
        let own_roles = fs::read_to_string(&source).expect("a source").contains("#define OWN_ROLES");
        let modes: &[&str] = if own_roles { &["roles"] } else { &["alone", "pair"] };
        // Some look at how much stack the library uses.
        let debugging: &[&str] = if cfg!(debug_assertions) { &["-DBUILT_FOR_DEBUGGING"] } else { &[] };
        let more = &[more, debugging].concat();
        Behaviour { name: name.to_string(), modes, program: compile(&source, &artefacts().join(into), more) }
    }

    /// A command that runs it.
    pub fn command(&self, launch: &Launch, mode: &str) -> Command {
        let mut command = launch.command(&self.program);
        command.arg(mode);
        command
    }

    /// Runs it over kernel TCP, which must work, and in other ways, by the commands that `made` makes: what it notes and how
    /// it ends is the same.
    pub fn expect_equal(&self, mode: &str, launches: &[Launch], what: &str, made: impl Fn(&Launch) -> Command) {
        let expected = self.over_kernel(mode, what, &mut made(&Launch::Plain));
        for launch in launches {
            let compared = self.compare(mode, launch, what, &expected, &mut made(launch));
            compared.unwrap_or_else(|difference| panic!("{difference}"));
        }
    }

    /// Runs a command of it over kernel TCP, which must work.
    pub fn over_kernel(&self, mode: &str, what: &str, command: &mut Command) -> Ended {
        let ended = Bounded::start(command, PATIENCE).wait();
        assert!(
            ended.success() && ended.stdout.contains('['),
            "{} {mode}{what} over kernel TCP: {}",
            self.name,
            shown(&ended)
        );
        ended
    }

    /// Runs a command of it that launches it this way, and says in what it differs from how it ended over kernel TCP.
    pub fn compare(
        &self,
        mode: &str,
        launch: &Launch,
        what: &str,
        expected: &Ended,
        command: &mut Command,
    ) -> Result<(), String> {
        let got = Bounded::start(command, PATIENCE).wait();
        if got.status == expected.status && got.stdout == expected.stdout {
            return Ok(());
        }
        let difference = difference(&expected.stdout, &got.stdout);
        Err(format!("{} {mode} {launch}{what} differs from kernel TCP:\n{difference}{}", self.name, shown(&got)))
    }
}

/// Builds `tests/environments/enter.c`, which runs a command in hostile surroundings.
pub fn enter_program() -> PathBuf {
    compile(&folder("environments").join("enter.c"), &artefacts().join("environments"), &[])
}

fn shown(ended: &Ended) -> String {
    format!("{:?}\n{}", ended.status, ended.stderr)
}

/// The first lines in which two transcripts differ.
fn difference(expected: &str, got: &str) -> String {
    let (mut left, mut right) = (expected.lines(), got.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (left.next(), right.next()) {
            (None, None) => return String::new(),
            (left, right) if left == right => {}
            (left, right) => {
                let [left, right] = [left, right].map(|line| line.unwrap_or("(nothing)"));
                return format!("line {number}, kernel TCP: {left}\nline {number}, Sidestep:   {right}\n");
            }
        }
    }
}

/// Where cargo puts what this build makes.
fn artefacts() -> PathBuf {
    env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").to_owned()
}

/// A folder of `tests`.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/testkit").join("tests").join(name)
}
