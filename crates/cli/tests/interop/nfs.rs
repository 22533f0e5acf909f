//! NFS over RDMA: our client and the kernel's server, the kernel's client and our server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sidestep_rpc::xdr::{Reader, Writer};
use sidestep_rpc::{AuthSys, Binding, Call, Client, ClientOptions, Credential, Refusal, Server, Service};

use crate::guest::Guest;
use crate::nfs_calls::{BINDING, Nfs, PROGRAM};
use crate::report::Report;

/// The root of the file system with the number 0: version 1, a number, no file behind it.
const ROOT: [u8; 8] = [1, 0, 1, 0, 0, 0, 0, 0];

pub fn run(report: &mut Report, guest: &mut Guest) {
    let (inside, outside) = guest.reserve_port();
    report.case("nfs", "the kernel's server is put to work", "server", || {
        let output = guest.run(&format!("serve-nfs {inside}"))?;
        ensure!(output.contains(&format!("rdma {inside}")), "{}{}", output.trim(), guest.kernel_log()?);
        Ok(String::new())
    });
    for (name, binding, reply_chunk) in
        [("no chunks", Binding::NONE, 0), ("reply chunks", Binding::NONE, 80 << 10), ("write chunks", BINDING, 0)]
    {
        let connect = || -> Result<Nfs> {
            let credential = Credential::from_sys(&AuthSys::new(0, b"host", 0, 0, &[]));
            let timeout = Duration::from_secs(20);
            let options = ClientOptions { binding, reply_chunk, credential, timeout, ..ClientOptions::default() };
            let address = format!("rdma:127.0.0.1:{outside}").parse()?;
            Ok(Nfs(Client::connect_with(&address, options).context("connecting")?))
        };
        report.case("nfs", format!("100 null calls, {name}"), "server", || {
            let nfs = connect()?;
            (0..100).try_for_each(|_| nfs.null())?;
            Ok(String::new())
        });
        report.case("nfs", format!("attributes, names, lookup, a small file, {name}"), "server", || {
            let nfs = connect()?;
            let root = nfs.attributes(&ROOT)?;
            ensure!(root.kind == 2, "{root:?}");
            let names = nfs.names(&ROOT)?;
            for name in ["hello", "numbers", "folder"] {
                ensure!(names.iter().any(|found| found == name), "{name} in {names:?}");
            }
            let hello = nfs.lookup(&ROOT, "hello")?;
            let (bytes, end) = nfs.read(&hello, 0, 100)?;
            ensure!(bytes == b"hello over RDMA\n" && end, "{bytes:?} {end}");
            ensure!(nfs.lookup(&ROOT, "nothing").is_err(), "a file that is not there");
            Ok(String::new())
        });
        if reply_chunk == 0 && name == "no chunks" {
            continue;
        }
        report.case("nfs", format!("a file of 230 KB, 64 KiB at a time, {name}"), "server", || {
            let nfs = connect()?;
            let expected: String = (1..=40_000).map(|number| format!("{number}\n")).collect();
            let numbers = nfs.lookup(&ROOT, "numbers")?;
            ensure!(nfs.attributes(&numbers)?.size == expected.len() as u64, "another size");
            let mut found = Vec::new();
            loop {
                let (bytes, end) = nfs.read(&numbers, found.len() as u64, 64 << 10)?;
                found.extend(bytes);
                if end {
                    break;
                }
            }
            ensure!(found == expected.as_bytes(), "other bytes");
            Ok(String::new())
        });
        report.case("nfs", format!("64 KiB are written and read again, {name}"), "server", || {
            let nfs = connect()?;
            let file = nfs.lookup(&ROOT, "hello")?;
            let bytes: Vec<u8> = (0..65_535u32).map(|at| (at ^ (at >> 8)) as u8).collect();
            let written = nfs.write(&file, 100, &bytes)?;
            ensure!(written as usize == bytes.len(), "{written} bytes were written");
            let (found, _) = nfs.read(&file, 100, 64 << 10)?;
            ensure!(found == bytes, "other bytes");
            // As it was.
            guest.run("echo hello over RDMA >/export/hello")?;
            Ok(String::new())
        });
    }
    report.case("nfs", "the kernel calls procedure 0 of our server", "client", || kernel_calls(guest));
}

/// NFS version 4 as far as a kernel gets before it asks for anything.
struct Nothing {
    nulls: Arc<AtomicUsize>,
    others: Arc<AtomicUsize>,
}

impl Service for Nothing {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        4
    }

    fn call(&self, call: &Call<'_>, _: &mut Reader<'_>, _: &mut Writer<'_>) -> Result<(), Refusal> {
        if call.procedure == 0 {
            self.nulls.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
        self.others.fetch_add(1, Ordering::SeqCst);
        Err(Refusal::ProcedureUnavailable)
    }
}

fn kernel_calls(guest: &Guest) -> Result<String> {
    let (nulls, others) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let service = Nothing { nulls: nulls.clone(), others: others.clone() };
    let server = Server::builder().service(service).rdma("127.0.0.1:0")?.start()?;
    let port = server.addresses().next().context("an address")?.port();
    let options = format!("vers=4.0,proto=rdma,port={port},addr=10.0.2.2,clientaddr=10.0.2.15,retrans=1,timeo=50");
    let output = guest.run(&format!("mount -t nfs4 -o {options} 10.0.2.2:/ /mnt"))?;
    if nulls.load(Ordering::SeqCst) == 0 {
        bail!("no null call; mount says {}; the kernel says {}", output.trim(), guest.kernel_log()?);
    }
    let (nulls, others) = (nulls.load(Ordering::SeqCst), others.load(Ordering::SeqCst));
    Ok(format!("{nulls} null calls, and {others} others, which were refused"))
}
