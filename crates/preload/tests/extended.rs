//! Extended sockets from C: a program that is linked with the library, alone and with the library before it.

mod programs;

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use sidestep_testkit::{
    hosts::{Host, Hosts},
    process::PATIENCE,
};

#[test]
fn a_linked_program_has_extended_sockets() {
    let program = programs::compile_linked("extended");
    for promote in [None, Some("never"), Some("default"), Some("eager")] {
        let output = programs::run(&program, promote);
        let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(output.status.success() && said[0] == "extended\n", "{promote:?}: {}\n{said:?}", output.status);
    }
}

/// Also where the library has had the connection for itself until then.
#[test]
fn a_linked_program_extends_in_place() {
    let program = programs::compile_linked("in_place");
    for promote in [None, Some("never"), Some("default"), Some("eager")] {
        let output = programs::run(&program, promote);
        let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(output.status.success() && said[0] == "in place\n", "{promote:?}: {}\n{said:?}", output.status);
    }
}

#[test]
fn the_example_runs() {
    let program = programs::compile_example("prices");
    let output = programs::run(&program, None);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let expected = "the client reads without the server: yes\n\
                    the client may not write: the cookie is refused: it allows read, not write\n\
                    the price is 120\n";
    assert_eq!(said, expected);
}

/// The example on a host, in one of its two roles; the port of the library is in its environment.
fn on_host(host: &Host, program: &Path, role: &str) -> Command {
    let id = host.id().to_string();
    let mut command = Command::new("nsenter");
    command.args(["--target", &id, "--net", "timeout", "-k", "1", "300"]).arg(program);
    command.args(["10.77.0.1", "8000", role]).env("SIDESTEP_EXTENDED_PORT", "7471").env_remove("LD_PRELOAD");
    command
}

#[test]
fn the_example_runs_between_hosts() {
    let hosts = match Hosts::with_cable() {
        Ok(hosts) => hosts,
        Err(why) => return println!("skipped: two hosts cannot be made here: {why}"),
    };
    let program = programs::compile_example("prices");
    let mut server = on_host(hosts.host(0), &program, "server").stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let client = loop {
        let client = on_host(hosts.host(1), &program, "client").output().unwrap();
        // The server may not listen yet.
        if client.status.code() != Some(2) {
            break client;
        }
        assert!(began.elapsed() < PATIENCE, "the server does not listen");
        std::thread::sleep(Duration::from_millis(10));
    };
    let said = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success(), "{said}{}", String::from_utf8_lossy(&client.stderr));
    let expected = "the client reads without the server: no\n\
                    the client may not write: the cookie is refused: it allows read, not write\n\
                    the price is 120\n";
    assert_eq!(said, expected);
    assert!(server.wait().unwrap().success());
}
