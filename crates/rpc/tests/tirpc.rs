//! Interoperation with libtirpc: programs in C made with rpcgen from the same `.x` file, in both directions.

mod every;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use every::generated::*;
use every::{FORBIDDEN, PANIC, builder, everything, list, tree};
use sidestep_rpc::{Accepted, AuthError, Client, ClientOptions, Credential, Denied, Error, Procedure};

/// The programs in C, in a folder of their own that is removed in the end; `None` where they cannot be made.
struct Programs {
    folder: PathBuf,
}

impl Programs {
    fn make(name: &str) -> Option<Programs> {
        let tools = ["rpcgen", "cc"].map(|tool| Command::new(tool).arg("--version").output().is_ok());
        if tools.contains(&false) || !Path::new("/usr/include/tirpc/rpc/rpc.h").is_file() {
            eprintln!("left out: rpcgen, cc and libtirpc are not all installed");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("sidestep-tirpc-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let programs = Programs { folder };
        std::fs::write(programs.path("every.x"), include_str!("../../idl/tests/every_type.x")).unwrap();
        for (kind, file) in [("-h", "every.h"), ("-c", "xdr.c"), ("-l", "client_stub.c"), ("-m", "server_stub.c")] {
            programs.run(Command::new("rpcgen").args(["-N", "-M", kind, "-o", file, "every.x"]));
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tirpc").join(format!("{name}.c"));
        let mut compiler = Command::new("cc");
        compiler.args(["-w", "-O1", "-I/usr/include/tirpc", "-I.", "-o", name]).arg(source);
        programs.run(compiler.args([&format!("{name}_stub.c"), "xdr.c", "-ltirpc"]));
        Some(programs)
    }

    fn run(&self, command: &mut Command) -> String {
        let output = command.current_dir(&self.folder).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn clients_of_libtirpc_call_our_server() {
    let Some(programs) = Programs::make("client") else { return };
    let path = programs.path("ours.sock");
    let server = builder().ordered().tcp("127.0.0.1:0").unwrap().udp("127.0.0.1:0").unwrap().unix(&path).unwrap();
    let server = server.start().unwrap();
    let ports: Vec<String> = server.addresses().map(|address| address.port().to_string()).collect();
    for (kind, address) in [("tcp", &*ports[0]), ("udp", &*ports[1]), ("unix", path.to_str().unwrap())] {
        let said = programs.run(Command::new("./client").args([kind, address]));
        assert_eq!(said, "every type is the same\n", "{kind}");
    }
}

#[test]
fn our_client_calls_servers_of_libtirpc() {
    let Some(programs) = Programs::make("server") else { return };
    let path = programs.path("theirs.sock");
    let mut command = Command::new(programs.path("server"));
    let mut server = Running(command.arg(&path).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (tcp, udp) = line.trim().split_once(' ').expect("two ports");
    for address in [format!("tcp:127.0.0.1:{tcp}"), format!("udp:127.0.0.1:{udp}"), format!("unix:{}", path.display())]
    {
        for credential in [Credential::none(), Credential::sys()] {
            let options = ClientOptions { credential, ..ClientOptions::default() };
            let client = Client::connect_with(&address.parse().unwrap(), options).unwrap();
            every_type_is_the_same(&EveryV1Client::new(client.clone()));
            errors_are_those_of_the_standard(&EveryV1Client::new(client));
        }
    }
    let client = EveryV1Client::connect(&format!("tcp:127.0.0.1:{tcp}")).unwrap();
    for _ in 0..1000 {
        client.batch_add(-3).unwrap();
    }
    assert_eq!(client.count().unwrap(), 3000);
    // Several fragments.
    let long = Answer::Default(1, "x".repeat(1_000_000));
    assert_eq!(client.echo_answer(&long).unwrap(), long);
    // Many at a time: libtirpc replies in order.
    let pending: Vec<_> = (0..100).map(|number| client.begin_echo_numbers(&[number]).unwrap()).collect();
    for (number, pending) in pending.into_iter().enumerate() {
        assert_eq!(pending.wait().unwrap(), [number as i32]);
    }
}

fn every_type_is_the_same(client: &EveryV1Client) {
    client.every_null().unwrap();
    assert_eq!(client.echo_all(&everything()).unwrap(), everything());
    for outcome in [Outcome::Red(-1), Outcome::Green("g".into()), Outcome::Blue("".into())] {
        assert_eq!(client.echo_outcome(&outcome).unwrap(), outcome);
    }
    for answer in
        [Answer::Case0(Some(everything())), Answer::Case0(None), Answer::CaseMinus1, Answer::Default(17, "x".into())]
    {
        assert_eq!(client.echo_answer(&answer).unwrap(), answer);
    }
    for flag in [Flag::True(i64::MIN), Flag::False] {
        assert_eq!(client.echo_flag(&flag).unwrap(), flag);
    }
    assert_eq!(client.echo_string("hello").unwrap(), "hello");
    assert_eq!(client.echo_list(&list(&[1, 2])).unwrap(), list(&[1, 2]));
    assert_eq!(client.echo_tree(&tree()).unwrap(), tree());
    assert_eq!(client.echo_numbers(&[]).unwrap(), []);
    assert_eq!(EveryV2Client::new(client.client().clone()).sum(-1, 43).unwrap(), 42);
}

fn errors_are_those_of_the_standard(client: &EveryV1Client) {
    let call = |program, version, procedure| {
        let procedure = Procedure { program, version, procedure };
        client.client().call(procedure, |out| out.u32(7), |_| Ok(())).unwrap_err()
    };
    let program = EveryV1Client::PROGRAM;
    assert!(matches!(call(program + 1, 1, 0), Error::Refused(Accepted::ProgramUnavailable)));
    assert!(matches!(call(program, 7, 0), Error::Refused(Accepted::ProgramMismatch { low: 1, high: 2 })));
    assert!(matches!(call(program, 1, 99), Error::Refused(Accepted::ProcedureUnavailable)));
    assert!(matches!(call(program, 1, 1), Error::Refused(Accepted::GarbageArguments)));
    assert!(matches!(client.echo_string(PANIC).unwrap_err(), Error::Refused(Accepted::SystemError)));
    assert!(matches!(client.echo_string(FORBIDDEN).unwrap_err(), Error::Denied(Denied::AuthError(AuthError::TooWeak))));
    client.every_null().unwrap();
}
