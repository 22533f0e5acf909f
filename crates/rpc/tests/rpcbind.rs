//! Registration: with Debian's rpcbind, in a network and mount namespace of its own, and with ours.

mod every;
mod namespaces;

use std::process::Command;

use every::builder;
use every::generated::{EveryV1Client, EveryV2Client};
use sidestep_rpc::rpcbind::{self, Binder};
use sidestep_rpc::{Accepted, Directory, Error, Server};

#[test]
fn our_servers_are_found_through_rpcbind() {
    namespaces::run("our_servers_are_found_through_rpcbind", &["rpcinfo"], inside);
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
    let nobody = sidestep_rpc::Procedure { program: 100_000, version: 99, procedure: 0 };
    let client = sidestep_rpc::Client::connect("tcp:127.0.0.1:111").unwrap();
    let error = client.call(nobody, |_| Ok(()), |_| Ok(())).unwrap_err();
    assert!(matches!(error, Error::Refused(Accepted::ProgramMismatch { low: 2, high: 4 })), "{error}");
    assert_eq!(other.port(100_000, 2, rpcbind::Mapping::TCP).unwrap(), Some(rpcbind::PORT));
}

#[test]
fn our_own_rpcbind_keeps_registrations() {
    let path = std::env::temp_dir().join(format!("sidestep-rpcbind-{}.sock", std::process::id()));
    let [second, third, fourth] = Directory::default().services();
    let directory = Server::builder().service(second).service(third).service(fourth);
    let directory = directory.tcp("127.0.0.1:0").unwrap().unix(&path).unwrap().start().unwrap();
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
