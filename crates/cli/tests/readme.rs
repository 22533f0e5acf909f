//! The README: its programs are run as they stand there.

use std::fs;
use std::path::Path;
use std::process::Command;

use sidestep_testkit::process::PATIENCE;
use sidestep_testkit::sockets::Bounded;

#[test]
fn the_socket_program_runs_under_sidestep() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("left out: python3 is not installed");
        return;
    }
    let folder = std::env::temp_dir().join(format!("sidestep-readme-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|door| door.local_addr()).expect("a port").port();
    // As it stands there, but for a port that is free and a count that a busy machine can do.
    let program = block("python").replace("7007", &port.to_string()).replace("100_000", "2_000");
    let file = folder.join("echo.py");
    fs::write(&file, program).expect("a file");
    let run = |options: &[&str], arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
        command
            .arg("run")
            .args(options)
            .args(["--", "python3"])
            .arg(&file)
            .args(arguments)
            .env("SIDESTEP_DIR", &folder);
        command
    };
    let mut server = run(&[], &["serve"]).spawn().expect("it starts");
    let limit = std::time::Instant::now() + PATIENCE;
    let ended = loop {
        let ended = Bounded::start(&mut run(&["--verbose"], &[]), PATIENCE).wait();
        if ended.success() || std::time::Instant::now() > limit {
            break ended;
        }
        // The server does not listen yet.
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    server.kill().expect("it runs");
    server.wait().expect("it ended");
    let told = ended.stderr.clone();
    assert!(ended.expect("the client").contains("microseconds for a message and its answer"));
    assert!(told.contains("1 of 1 connections left TCP"), "{told}");
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn the_program_of_the_fabric_is_the_example() {
    let example = fs::read_to_string(root().join("crates/fabric/examples/hello.rs")).expect("an example");
    assert!(example.ends_with(&block("rust")), "README.md and crates/fabric/examples/hello.rs differ");
}

/// What the page links to is there.
#[test]
fn its_files_are_there() {
    let text = readme();
    let named = text
        .split(['`', '(', ')'])
        .filter(|word| word.starts_with("docs/") || word.starts_with("crates/") || word.starts_with("packaging/"));
    for name in named {
        assert!(root().join(name).exists(), "{name}");
    }
}

fn block(language: &str) -> String {
    let text = readme();
    let begin = format!("```{language}\n");
    text.split(&begin).nth(1).and_then(|rest| rest.split("```").next()).expect("a program").to_owned()
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("a README")
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
