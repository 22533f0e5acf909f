//! Debian's rpcbind and rpcinfo, in a network and mount namespace of their own.

mod every;

use std::path::Path;
use std::process::Command;

use every::builder;
use every::generated::{EveryV1Client, EveryV2Client};
use sidestep_rpc::rpcbind::{self, Binder};
use sidestep_rpc::{Accepted, Error};

const INSIDE: &str = "SIDESTEP_RPCBIND_INSIDE";

/// What the namespaces are prepared with: an empty /run, a loopback interface, and an rpcbind that ends with them.
const PREPARE: &str = "mount -t tmpfs none /run && ip link set lo up && mkdir -p /run/rpcbind && { rpcbind -f & } &&
    for i in $(seq 500); do [ -S /run/rpcbind.sock ] && break; sleep 0.02; done; \"$@\"; status=$?; kill $!; exit $status";

#[test]
fn our_servers_are_found_through_rpcbind() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let here =
        |name: &str| ["/usr/sbin", "/sbin", "/usr/bin"].iter().any(|folder| Path::new(folder).join(name).exists());
    if !rustix::process::geteuid().is_root() || !["rpcbind", "rpcinfo", "unshare", "ip"].iter().all(|name| here(name)) {
        eprintln!("left out: it takes root, rpcbind, rpcinfo, unshare and ip");
        return;
    }
    let output = Command::new("unshare")
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", PREPARE, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "our_servers_are_found_through_rpcbind", "--nocapture"])
        .env(INSIDE, "1")
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{said}");
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
