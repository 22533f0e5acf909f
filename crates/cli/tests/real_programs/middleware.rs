//! ONC RPC made with rpcgen and libtirpc, CORBA made with omniORB, gRPC of Python and of C++.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use sidestep_testkit::{
    process::{PATIENCE, full},
    sockets::Bounded,
};

use super::kit::{Stage, free_port, program, root, serve, start, wait_until};

#[test]
pub fn onc_rpc() {
    let (Some(_), Some(_)) = (program("rpcgen"), program("cc")) else { return };
    if !PathBuf::from("/usr/include/tirpc/rpc/rpc.h").is_file() {
        eprintln!("left out: libtirpc is not installed");
        return;
    }
    let (stage, port) = (Stage::new("rpc"), free_port());
    copy(&stage, "rpc");
    for (kind, file) in [("-h", "echo.h"), ("-c", "echo_xdr.c"), ("-l", "echo_clnt.c"), ("-m", "echo_svc.c")] {
        make(&stage, Command::new("rpcgen").args(["-C", kind, "-o", file, "echo.x"]));
    }
    for (name, stub) in [("server", "echo_svc.c"), ("client", "echo_clnt.c")] {
        let (out, source) = (format!("{name}.run"), format!("{name}.c"));
        let mut compiler = Command::new("cc");
        make(
            &stage,
            compiler.args(["-O1", "-I/usr/include/tirpc", "-o", &out, &source, stub, "echo_xdr.c", "-ltirpc"]),
        );
    }
    let _server = serve(stage.run(stage.files.join("server.run")).arg(port.to_string()), port);
    let mut client = stage.run(stage.files.join("client.run"));
    let (ended, sockets) = stage.watch(Bounded::start(client.args([&port.to_string(), "2500"]), PATIENCE));
    assert!(ended.expect("the client").contains("median_ns"));
    sockets.expect_promoted("ONC RPC");
}

#[test]
pub fn omniorb() {
    let (Some(_), Some(_)) = (program("omniidl"), program("c++")) else { return };
    let (stage, port) = (Stage::new("corba"), free_port());
    copy(&stage, "corba");
    make(&stage, Command::new("omniidl").args(["-bcxx", "echo.idl"]));
    for name in ["server", "client"] {
        let (out, source) = (format!("{name}.run"), format!("{name}.cc"));
        let mut compiler = Command::new("c++");
        make(&stage, compiler.args(["-o", &out, &source, "echoSK.cc", "-lomniORB4", "-lomnithread"]));
    }
    let reference = stage.files.join("reference");
    let mut command = stage.run(stage.files.join("server.run"));
    command.arg(&reference).args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
    let mut server = start(&mut command);
    wait_until(&mut server, || reference.is_file());
    let mut client = stage.run(stage.files.join("client.run"));
    let (ended, sockets) = stage.watch(Bounded::start(client.arg(&reference).arg("2500"), PATIENCE));
    assert!(ended.expect("the client").contains("median_ns"));
    sockets.expect_promoted("omniORB");
}

/// gRPC of Python: unary calls and streams in both directions.
#[test]
pub fn grpc_python() {
    // The first one may be the user's own, without the packages of the system.
    let pythons = program("python3").into_iter().chain([PathBuf::from("/usr/bin/python3")]);
    let has_grpc = |python: &PathBuf| {
        Command::new(python).args(["-c", "import grpc"]).output().is_ok_and(|output| output.status.success())
    };
    let Some(python) = pythons.into_iter().find(has_grpc) else {
        eprintln!("left out: python3-grpcio is not installed");
        return;
    };
    let stage = Stage::new("grpc-python");
    copy(&stage, "grpc");
    grpc(&stage, "gRPC of Python", &python, Some("echo.py"));
}

/// The same in C++, with generated code.
#[test]
pub fn grpc_cpp() {
    if !full() {
        // The compiler needs a quarter of a minute.
        eprintln!("left out: only in ./test full");
        return;
    }
    let (Some(_), Some(_), Some(plugin)) = (program("c++"), program("protoc"), program("grpc_cpp_plugin")) else {
        return;
    };
    if !PathBuf::from("/usr/include/grpcpp/grpcpp.h").is_file() {
        eprintln!("left out: libgrpc++-dev is not installed");
        return;
    }
    let stage = Stage::new("grpc-cpp");
    copy(&stage, "grpc");
    let plugin = format!("--plugin=protoc-gen-grpc={}", plugin.display());
    make(&stage, Command::new("protoc").args(["--cpp_out=.", "--grpc_out=.", &plugin, "echo.proto"]));
    let sources = ["echo.cc", "echo.pb.cc", "echo.grpc.pb.cc"];
    let libraries = ["-Wl,--copy-dt-needed-entries", "-lgrpc++", "-lgrpc", "-lprotobuf", "-lgpr"];
    make(&stage, Command::new("c++").args(["-std=c++17", "-o", "echo.run"]).args(sources).args(libraries));
    grpc(&stage, "gRPC of C++", &stage.files.join("echo.run"), None);
}

/// The client computes the same under Sidestep and without, and its connection is promoted.
fn grpc(stage: &Stage, what: &str, echo: &Path, script: Option<&str>) {
    let client = |mut command: Command, port: u16, seconds: &str| {
        command.args(script).args(["call", &port.to_string(), seconds]).current_dir(&stage.files);
        Bounded::start(&mut command, PATIENCE)
    };
    let plain = {
        let port = free_port();
        let mut server = Command::new(echo);
        server.args(script).args(["serve", &port.to_string()]).current_dir(&stage.files);
        let _server = serve(&mut server, port);
        client(Command::new(echo), port, "0").wait().expect("the plain client")
    };
    let port = free_port();
    let mut server = stage.run(echo);
    let _server = serve(server.args(script).args(["serve", &port.to_string()]), port);
    let (ended, sockets) = stage.watch(client(stage.run(echo), port, "1"));
    assert_eq!(ended.expect("the client"), plain, "{what}");
    sockets.expect_promoted_again(what);
}

fn copy(stage: &Stage, folder: &str) {
    for entry in std::fs::read_dir(root().join("tests/programs").join(folder)).expect("sources") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, stage.files.join(path.file_name().expect("a name"))).expect("a copy");
    }
}

fn make(stage: &Stage, command: &mut Command) {
    let output = command.current_dir(&stage.files).output().expect("it starts");
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}
