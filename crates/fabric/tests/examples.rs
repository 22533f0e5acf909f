//! The examples run, end well, and say what they are meant to say.

use std::{env, path::PathBuf, process::Command};

#[test]
fn put_get() {
    let said = run("put_get");
    for line in [
        "the owner finds: greetings from another process",
        "the writer gets back: greetings from another process",
        "the owner hears: done (the connection is closed: closed by the peer)",
    ] {
        assert!(said.contains(line), "{line:?} is missing in:\n{said}");
    }
}

#[test]
fn channel_echo() {
    let said = run("channel_echo");
    for line in ["the client is told: welcome", "the server echoed 6400000 bytes: closed by the peer"] {
        assert!(said.contains(line), "{line:?} is missing in:\n{said}");
    }
}

#[test]
fn read_only_table() {
    let said = run("read_only_table");
    for line in [
        "the reader reads without the owner: true",
        "the reader may not write: ",
        "the owner hears: the rows of version 3",
        "the reader is told: ",
    ] {
        assert!(said.contains(line), "{line:?} is missing in:\n{said}");
    }
}

/// Runs an example: the one that was built with this test, or one that cargo builds now.
fn run(name: &str) -> String {
    let built = built(name);
    let mut command = if built.exists() {
        Command::new(built)
    } else {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["run", "--quiet", "--example", name]).current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo
    };
    let output = command.output().expect("an example that can be started");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{name} ended with {}:\n{said}", output.status);
    said
}

/// Test programs lie in `deps`, examples beside it.
fn built(name: &str) -> PathBuf {
    let own = env::current_exe().expect("the path of this program");
    let profile = own.ancestors().nth(2).expect("a folder of the profile");
    profile.join("examples").join(name)
}
