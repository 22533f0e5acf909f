//! The example runs as its comment says, over every transport.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Test programs lie in `deps`, examples beside it.
fn example() -> Command {
    let folder = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples");
    Command::new(folder.join("key_value"))
}

fn run(arguments: &[&str]) -> String {
    let output = example().args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_store_keeps_values_over_every_transport() {
    let folder = std::env::temp_dir();
    let id = std::process::id();
    let path = format!("unix:{}", folder.join(format!("sidestep-kv-{id}.sock")).display());
    let sockets = ["tcp:127.0.0.1:0", "udp:127.0.0.1:0", "rdma:127.0.0.1:0"];
    for address in sockets.into_iter().chain([path.as_str(), &format!("shm:kv-{id}"), &format!("vi:kv-{id}")]) {
        let mut server = Running(example().args(["serve", address]).stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = match words[..] {
            ["serving", address, socket] => format!("{}:{socket}", address.split_once(':').unwrap().0),
            ["serving", address] => address.to_owned(),
            _ => panic!("{line}"),
        };
        assert_eq!(run(&["put", &address, "colour", "blue"]), "1 keys\n");
        assert_eq!(run(&["get", &address, "colour"]), "blue\n");
        assert_eq!(run(&["get", &address, "shape"]), "shape is not here\n");
    }
    let _ = std::fs::remove_file(path.trim_start_matches("unix:"));
}
