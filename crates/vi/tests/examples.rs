//! The examples run, between two processes.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
};

fn start(name: &str, role: &str, arguments: &[&str]) -> Child {
    let folder: PathBuf = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples");
    Command::new(folder.join(name))
        .arg(role)
        .args(arguments)
        .env("VIA_POINT", format!("{name}-{}", std::process::id()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example was built")
}

fn run(name: &str, arguments: &[&str], says: &str) {
    let mut server = start(name, "server", arguments);
    let client = start(name, "client", arguments).wait_with_output().unwrap();
    let text = String::from_utf8(client.stdout).unwrap();
    assert!(client.status.success() && text.contains(says), "{text}");
    assert!(server.wait().unwrap().success());
}

#[test]
fn pingpong_runs() {
    run("pingpong", &["1000", "40"], "half a round trip");
}

#[test]
fn cq_server_runs() {
    run("cq_server", &["20", "2000"], "requests a second");
}
