//! Calls to and from Combat, a broker in Tcl: text, an exception and an attribute.
//!
//! Without Combat these tests say that they are left out.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/combat").join(name)
}

fn example() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples/echo")
}

fn is_there() -> bool {
    let asked = Command::new("tclsh").arg(script("echo.tcl")).output();
    let there = asked.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("left out: Combat is not installed");
    }
    there
}

/// A server that has printed its reference. Dropping it ends it.
struct Server(Child, String);

impl Server {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut reference = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut reference).unwrap();
        Self(child, reference.trim().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn combat_calls_us() {
    if !is_there() {
        return;
    }
    let server = Server::start(Command::new(example()).arg("server"));
    let text = said(Command::new("tclsh").arg(script("client.tcl")).arg(&server.1));
    let long = "long ".repeat(20_000);
    assert_eq!(text, format!("hello\n{long}\nrefused: nothing was said\n2 times\n"));
}

#[test]
fn we_call_combat() {
    if !is_there() {
        return;
    }
    let server = Server::start(Command::new("tclsh").arg(script("server.tcl")));
    let text = said(Command::new(example()).arg("client").arg(&server.1));
    let expected =
        said(Command::new(example()).arg("client").arg(&Server::start(Command::new(example()).arg("server")).1));
    assert_eq!(text, expected);
}
