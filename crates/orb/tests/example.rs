//! The example of docs/orb.md, as two processes.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn program() -> PathBuf {
    let own = std::env::current_exe().expect("a path");
    own.ancestors().nth(2).expect("target/debug").join("examples/echo")
}

#[test]
fn the_example_runs() {
    let mut server = Command::new(program()).arg("server").stdout(Stdio::piped()).spawn().expect("the server");
    let mut reference = String::new();
    BufReader::new(server.stdout.take().expect("piped")).read_line(&mut reference).expect("a line");
    let client = Command::new(program()).args(["client", reference.trim()]).output().expect("the client");
    server.kill().expect("running");
    server.wait().expect("ended");
    let shown = String::from_utf8_lossy(&client.stdout);
    assert_eq!(shown, "hello\none two\nrefused: nothing was said\n3 times\n", "{client:?}");
}
