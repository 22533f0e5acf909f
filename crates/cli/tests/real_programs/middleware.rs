//! ONC RPC made with rpcgen and libtirpc, CORBA made with omniORB.

use std::{path::PathBuf, process::Command};

use sidestep_testkit::sockets::Bounded;

use super::kit::{LIMIT, Stage, free_port, program, root, serve, start, wait_until};

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
    let (ended, sockets) = stage.watch(Bounded::start(client.args([&port.to_string(), "2500"]), LIMIT));
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
    let (ended, sockets) = stage.watch(Bounded::start(client.arg(&reference).arg("2500"), LIMIT));
    assert!(ended.expect("the client").contains("median_ns"));
    sockets.expect_promoted("omniORB");
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
