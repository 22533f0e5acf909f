//! Registration: with Debian's rpcbind, in a network and mount namespace of its own, and with ours.

mod every;
mod namespaces;

use std::process::Command;

use every::builder;
use every::generated::{EveryV1Client, EveryV2Client};
use sidestep_rpc::rpcbind::{self, Binder};
use sidestep_rpc::{Accepted, Client, Directory, Error, Procedure, Server, ServerBuilder, xdr};

#[test]
fn our_servers_are_found_through_rpcbind() {
    namespaces::run("our_servers_are_found_through_rpcbind", &["rpcbind", "rpcinfo"], inside);
}

fn inside() {
    let (program, path) = (EveryV1Client::PROGRAM, "/run/every.sock");
    let server = builder().tcp("0.0.0.0:0").unwrap().udp("0.0.0.0:0").unwrap().unix(path).unwrap();
    let mut server = server.tcp("[::1]:0").unwrap().start().unwrap();
    assert!(matches!(rpcbind::connect("127.0.0.1", program, 1, "tcp"), Err(Error::NotRegistered { .. })));
    server.register(None).unwrap();

    for network in ["tcp", "udp"] {
        let client = rpcbind::connect("127.0.0.1", program, 2, network).unwrap();
        assert_eq!(EveryV2Client::new(client).sum(1, 2).unwrap(), 3);
        let flag = if network == "tcp" { "-t" } else { "-u" };
        let (program, version) = (program.to_string(), "1");
        let output = Command::new("rpcinfo").args([flag, "127.0.0.1", &program, version]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("ready and waiting"), "{said} {}", String::from_utf8_lossy(&output.stderr));
    }
    let binder = Binder::local().unwrap();
    let listed: Vec<_> = binder.list().unwrap().into_iter().filter(|entry| entry.program == program).collect();
    assert_eq!(listed.len(), 8, "two versions on four transports: {listed:#?}");
    for network in ["tcp6", "local"] {
        let found = binder.address(program, 1, network).unwrap().expect("it is registered");
        let address = rpcbind::address(network, &found).expect("an address");
        EveryV1Client::connect(&address.to_string()).unwrap().every_null().unwrap();
    }
    // A second server of the same user takes the registration over.
    let mut second = builder().tcp("0.0.0.0:0").unwrap().start().unwrap();
    second.register(None).unwrap();
    drop(second);
    drop(server);
    assert!(binder.list().unwrap().iter().all(|entry| entry.program != program));

    let other = Binder::connect("tcp:127.0.0.1:111").unwrap();
    let nobody = Procedure { program: 100_000, version: 99, procedure: 0 };
    let client = Client::connect("tcp:127.0.0.1:111").unwrap();
    let error = client.call(nobody, |_| Ok(()), |_| Ok(())).unwrap_err();
    assert!(matches!(error, Error::Refused(Accepted::ProgramMismatch { low: 2, high: 4 })), "{error}");
    assert_eq!(other.port(100_000, 2, rpcbind::Mapping::TCP).unwrap(), Some(rpcbind::PORT));
}

fn serving(directory: &Directory) -> ServerBuilder {
    directory.services().into_iter().fold(Server::builder(), ServerBuilder::service)
}

#[test]
fn our_own_rpcbind_keeps_registrations() {
    let path = std::env::temp_dir().join(format!("sidestep-rpcbind-{}.sock", std::process::id()));
    let directory = serving(&Directory::default()).tcp("127.0.0.1:0").unwrap().unix(&path).unwrap().start().unwrap();
    let at = format!("unix:{}", path.display());
    let program = EveryV1Client::PROGRAM;

    let mut server = builder().tcp("0.0.0.0:0").unwrap().udp("0.0.0.0:0").unwrap().start().unwrap();
    server.register(Some(&at)).unwrap();
    let ports: Vec<_> = server.addresses().map(|address| address.port()).collect();
    let binder = Binder::connect(&format!("tcp:{}", directory.addresses().next().unwrap())).unwrap();
    assert_eq!(binder.port(program, 1, rpcbind::Mapping::TCP).unwrap(), Some(ports[0]));
    assert_eq!(binder.port(program, 2, rpcbind::Mapping::UDP).unwrap(), Some(ports[1]));
    assert_eq!(binder.port(program + 1, 1, rpcbind::Mapping::TCP).unwrap(), None);
    assert_eq!(binder.list().unwrap().len(), 4);
    // What one user has registered over the UNIX socket, a stranger on loopback neither replaces nor takes back.
    let mine = binder.list().unwrap().remove(0);
    assert!(!binder.set(&mine).unwrap());
    assert!(!binder.unset(program, 1, "").unwrap());
    drop(server);
    assert_eq!(binder.list().unwrap(), []);
}

/// Only what is a procedure of its version looks at its arguments.
#[test]
fn what_our_own_rpcbind_does_not_do_is_no_procedure() {
    let directory = serving(&Directory::default()).tcp("127.0.0.1:0").unwrap().start().unwrap();
    let client = Client::connect(&format!("tcp:{}", directory.addresses().next().unwrap())).unwrap();
    let refused = |version, procedure| {
        let procedure = Procedure { program: 100_000, version, procedure };
        match client.call(procedure, |out| out.u32(7), |_| Ok(())) {
            Err(Error::Refused(state)) => state,
            other => panic!("version {version}, procedure {procedure:?}: {other:?}"),
        }
    };
    let first_without_arguments = [4, 6, 12];
    for (version, own) in [(2, 1..=4), (3, 1..=6), (4, 1..=12)] {
        for procedure in 0..=14 {
            let is_conversion_or_call = matches!(procedure, 5 | 7 | 8 | 10);
            let is_there = procedure == 0 || own.contains(&procedure) && !is_conversion_or_call;
            let expected = if is_there { Accepted::GarbageArguments } else { Accepted::ProcedureUnavailable };
            assert_eq!(refused(version, procedure), expected, "version {version}, procedure {procedure}");
        }
    }
    for procedure in first_without_arguments {
        let procedure = Procedure { program: 100_000, version: 4, procedure };
        client.call(procedure, |_| Ok(()), |input| input.fixed(input.rest().len()).map(|_| ())).unwrap();
    }
}

#[test]
fn rpcinfo_understands_our_own_rpcbind() {
    namespaces::run("rpcinfo_understands_our_own_rpcbind", &["rpcinfo"], asked_by_rpcinfo);
}

/// What Debian's rpcinfo prints, with one space between words. It must understand every answer.
fn rpcinfo(arguments: &str) -> Vec<String> {
    let output = Command::new("rpcinfo").args(arguments.split(' ')).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "rpcinfo {arguments}: {said}");
    said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn asked_by_rpcinfo() {
    let directory = Directory::default();
    let server = serving(&directory).tcp("0.0.0.0:111").unwrap().udp("0.0.0.0:111").unwrap();
    let server = server.unix("/run/rpcbind.sock").unwrap().start().unwrap();
    directory.list_itself(&server);
    let mut every = builder().tcp("0.0.0.0:2000").unwrap().udp("0.0.0.0:2001").unwrap().start().unwrap();
    every.register(None).unwrap();
    let program = EveryV1Client::PROGRAM;
    let has = |arguments: &str, lines: &[&str]| {
        let said = rpcinfo(arguments);
        for line in lines {
            let line = line.replace("PROGRAM", &program.to_string());
            assert!(said.contains(&line), "rpcinfo {arguments} does not say `{line}`: {said:#?}");
        }
    };
    // Version 2, versions 3 and 4, and the short form of that.
    let of_itself = ["100000 2 tcp 111 portmapper", "100000 4 udp 111 portmapper"];
    has("-p 127.0.0.1", &[&of_itself[..], &["PROGRAM 1 tcp 2000", "PROGRAM 2 udp 2001"]].concat());
    let of_itself = ["100000 4 tcp 0.0.0.0.0.111 portmapper 0", "100000 3 local /run/rpcbind.sock portmapper 0"];
    has("127.0.0.1", &[&of_itself[..], &["PROGRAM 1 tcp 0.0.0.0.7.208 - 0"]].concat());
    has("-s 127.0.0.1", &["100000 2,3,4 local,udp,tcp portmapper 0", "PROGRAM 2,1 udp,tcp - 0"]);
    // GETADDR and null calls, over both transports; the list of addresses is that of the caller's family.
    has("-T tcp 127.0.0.1 100000", &["program 100000 version 2 ready and waiting"]);
    has(&format!("-T udp 127.0.0.1 {program} 2"), &["program PROGRAM version 2 ready and waiting"]);
    has(
        &format!("-l 127.0.0.1 {program} 1"),
        &["PROGRAM 1 inet/tcp/cots_ord 127.0.0.1.7.208 -", "PROGRAM 1 inet/udp/clts 127.0.0.1.7.209 -"],
    );
    has("-m 127.0.0.1", &["PORTMAP (version 2) statistics", "RPCBIND (version 4) statistics"]);
    // Somebody of the same user takes a registration back.
    has(&format!("-d {program} 1"), &[]);
    let binder = Binder::local().unwrap();
    assert_eq!(binder.address(program, 1, "tcp").unwrap(), None);
    assert!(binder.address(program, 2, "tcp").unwrap().is_some());
    // Of another version than asked for, only the procedure that says so tells an address.
    let ask = |procedure| {
        let entry = binder.list().unwrap().into_iter().find(|entry| entry.program == program).unwrap();
        let entry = rpcbind::Entry { version: 1, ..entry };
        let procedure = Procedure { program: 100_000, version: 4, procedure };
        let client = Client::connect("tcp:127.0.0.1:111").unwrap();
        client.call(procedure, |out| out.value(&entry), |input| Ok(input.string(xdr::UNBOUNDED)?.to_owned())).unwrap()
    };
    assert_eq!((ask(3).as_str(), ask(9).as_str()), ("127.0.0.1.7.208", ""));
}
