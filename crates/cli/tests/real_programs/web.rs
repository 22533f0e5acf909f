//! curl against nginx and against Python's own server.

use std::{fs, path::Path};

use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::kit::{Stage, free_port, is_root, program, serve};

const LENGTH: usize = 160 << 20;

#[test]
pub fn curl_and_nginx() {
    let (Some(nginx), Some(_)) = (program("nginx"), program("curl")) else { return };
    let (stage, port) = (Stage::new("nginx"), free_port());
    let (at, user) = (stage.files.display().to_string(), if is_root() { "user root;" } else { "" });
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {at}/{name};"))
        .collect();
    let config = format!(
        "{user} daemon off; worker_processes 2; pid {at}/pid; error_log {at}/error.log;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log off; sendfile on; {paths} server {{ listen 127.0.0.1:{port}; root {at}; }} }}\n"
    );
    let config = stage.file("nginx.conf", config);
    stage.large_file("large", LENGTH);
    let mut command = stage.run(&nginx);
    command.arg("-c").arg(config).arg("-p").arg(&stage.files);
    let _server = serve(&mut command, port);
    many_small(&stage, port);
    fetches(&stage, port, "nginx");
}

#[test]
pub fn curl_and_python() {
    let (Some(python), Some(_)) = (program("python3"), program("curl")) else { return };
    let (stage, port) = (Stage::new("python"), free_port());
    stage.large_file("large", LENGTH);
    let mut command = stage.run(&python);
    command.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]);
    let _server = serve(&mut command, port);
    many_small(&stage, port);
    fetches(&stage, port, "python");
}

/// A file that takes more than two seconds, since curl takes its time.
fn fetches(stage: &Stage, port: u16, what: &str) {
    let got = stage.files.join("got");
    let mut client = stage.run("curl");
    client.args(["-s", "-S", "--limit-rate", "60M", "-o"]).arg(&got).arg(format!("http://127.0.0.1:{port}/large"));
    let (ended, sockets) = stage.watch(Bounded::start(&mut client, PATIENCE));
    ended.expect("curl");
    expect_equal(&stage.files.join("large"), &got);
    sockets.expect_promoted(what);
}

/// Many requests of one client.
fn many_small(stage: &Stage, port: u16) {
    stage.file("small", "a small file\n");
    let mut client = stage.run("curl");
    client.args(["-s", "-S", "-f"]).args(vec![format!("http://127.0.0.1:{port}/small"); 200]);
    let text = Bounded::start(&mut client, PATIENCE).wait().expect("curl");
    assert_eq!(text, "a small file\n".repeat(200));
}

/// Two files are the same.
pub fn expect_equal(expected: &Path, got: &Path) {
    let (expected, got) = (fs::read(expected).expect("a file"), fs::read(got).expect("a file"));
    let differ = expected.iter().zip(&got).position(|(left, right)| left != right);
    assert!(
        differ.is_none() && expected.len() == got.len(),
        "{} and {} bytes, differ at {differ:?}",
        expected.len(),
        got.len()
    );
}
