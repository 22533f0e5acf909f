//! HTTP servers and clients of languages that bring their own: Java, whose machine calls the C library, and Go, whose static programs call
//! the kernel.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::{
    super::kit::{Stage, free_port, program, root, serve},
    report::Report,
};

/// Java's own HTTP server and client, from one source file.
pub fn java(report: &mut Report) {
    let (java, compiler) = (program("java").expect("java"), program("javac").expect("javac"));
    let stage = Stage::new("java");
    build(&stage, Command::new(compiler).args(["-d", "."]).arg(source("Web.java")));
    web(report, &stage, &java, &["-cp", ".", "Web"]);
}

/// Go's, in a program without the C library: it stays on TCP, and works.
pub fn go(report: &mut Report) {
    let go = program("go").expect("go");
    let stage = Stage::new("go");
    let mut compiler = Command::new(go);
    // Its files of the build lie in the folder of the test.
    compiler.env("CGO_ENABLED", "0").env("GOCACHE", stage.files.join("cache")).env("GOPATH", stage.files.join("path"));
    build(&stage, compiler.args(["build", "-o", "web.run"]).arg(source("web.go")));
    web(report, &stage, &stage.files.join("web.run"), &[]);
}

/// The server answers, and the client asks one after the other and several at a time.
fn web(report: &mut Report, stage: &Stage, program: &Path, arguments: &[&str]) {
    let port = free_port();
    let mut server = stage.run(program);
    let _server = serve(server.args(arguments).args(["serve", &port.to_string()]), port);
    for clients in ["1", "8"] {
        report.answer(&format!("{clients} at a time"), || {
            let mut client = stage.run(program);
            client.args(arguments).args(["ask", &port.to_string(), clients]);
            Bounded::start(&mut client, PATIENCE).wait().expect("the client")
        });
    }
}

fn source(name: &str) -> PathBuf {
    root().join("tests/programs/web").join(name)
}

fn build(stage: &Stage, command: &mut Command) {
    let output = command.current_dir(&stage.files).output().expect("it starts");
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}
