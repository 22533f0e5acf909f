//! `sidestep idl`, `sidestep rpcinfo` and `sidestep rpcbind` as a user calls them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use sidestep_rpc::xdr::{Reader, Writer};
use sidestep_rpc::{Call, Refusal, Server, Service};

fn sidestep(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sidestep")).args(arguments).output().unwrap()
}

#[test]
fn a_definition_becomes_rust_and_mistakes_have_a_place() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rpc/examples/key_value/kv.x");
    let output = sidestep(&["idl", source.to_str().unwrap()]);
    assert!(output.status.success());
    assert_eq!(output.stdout, include_bytes!("../../rpc/examples/key_value/kv.rs"));

    let bad = std::env::temp_dir().join(format!("sidestep-idl-{}.x", std::process::id()));
    std::fs::write(&bad, "struct a { b c; };\nconst D;\n").unwrap();
    let output = sidestep(&["idl", bad.to_str().unwrap()]);
    std::fs::remove_file(&bad).unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(".x:2:8: error: expected `=`, found `;`"), "{said}");
}

#[test]
fn folders_and_macros_are_for_omg_idl() {
    let folder = std::env::temp_dir().join(format!("sidestep-idl-given-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("shared")).unwrap();
    std::fs::write(folder.join("shared/size.idl"), "#if WIDE && SIZE > 2\ntypedef long Row[SIZE];\n#endif\n").unwrap();
    let main = folder.join("main.idl");
    std::fs::write(&main, "#include \"size.idl\"\nstruct S { Row row; };\n").unwrap();
    let shared = folder.join("shared");
    let output =
        sidestep(&["idl", main.to_str().unwrap(), "-I", shared.to_str().unwrap(), "-D", "WIDE", "-D", "SIZE=3"]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rpc/examples/key_value/kv.x");
    let refused = ["-I", "-D"].map(|option| sidestep(&["idl", source.to_str().unwrap(), option, "a"]));
    std::fs::remove_dir_all(&folder).unwrap();
    let code = String::from_utf8(output.stdout).unwrap();
    assert!(code.contains("pub type Row = [i32; 3];"), "{code}");
    for refused in refused {
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && said.contains("-I and -D are for .idl files"), "{said}");
    }
}

struct Nothing;

impl Service for Nothing {
    fn program(&self) -> u32 {
        0x2000_0001
    }

    fn version(&self) -> u32 {
        3
    }

    fn call(&self, _: &Call<'_>, _: &mut Reader<'_>, _: &mut Writer<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}

#[test]
fn rpcinfo_tells_whether_a_program_answers() {
    let name = format!("shm:rpcinfo-{}", std::process::id());
    let server = Server::builder().service(Nothing).tcp("127.0.0.1:0").unwrap().fabric(&name).start().unwrap();
    for address in [format!("tcp:{}", server.addresses().next().unwrap()), name] {
        let output = sidestep(&["rpcinfo", &address, "536870913", "3"]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("program 536870913 version 3 at {address} answers\n"));
        let output = sidestep(&["rpcinfo", &address, "536870913", "4"]);
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("the program has versions 3 to 3"), "{said}");
        // As the definition writes it.
        assert!(sidestep(&["rpcinfo", &address, "0x20000001", "3"]).status.success());
    }
    let output = sidestep(&["rpcinfo", "unix:/nowhere", "0x20000001", "3"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "sidestep: cannot connect to unix:/nowhere: No such file or directory (os error 2)\n");
    let output = sidestep(&["rpcinfo", "unix:/nowhere", "0x123456789", "3"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("it is 0 to 4294967295, or 0x0 to 0xffffffff"), "{said}");
}

#[test]
fn rpcbind_lists_what_a_server_registers() {
    let socket = std::env::temp_dir().join(format!("sidestep-rpcbind-cli-{}.sock", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.args(["rpcbind", "--listen", "127.0.0.1:0", "--socket"]).arg(&socket).stdout(Stdio::piped());
    let mut rpcbind = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(rpcbind.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let at = format!("unix:{}", socket.display());
    let mut server = Server::builder().service(Nothing).tcp("127.0.0.1:0").unwrap().start().unwrap();
    server.register(Some(&at)).unwrap();
    let said = String::from_utf8(sidestep(&["rpcinfo", &at]).stdout).unwrap();
    drop(server);
    rpcbind.kill().unwrap();
    rpcbind.wait().unwrap();
    std::fs::remove_file(&socket).unwrap();
    assert!(line.contains("rpcbind answers"), "{line}");
    assert!(said.lines().any(|line| line.contains("536870913") && line.contains("tcp")), "{said}");
    let itself = said.lines().filter(|line| line.contains("100000"));
    assert_eq!(itself.count(), 9, "three versions on three transports: {said}");
}
