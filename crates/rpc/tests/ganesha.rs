//! Our client and nfs-ganesha, a server of NFS that others have written, over TCP: in the long form (`./test rpc_full`), as
//! it takes seconds to start, and where it is installed. Both are in namespaces of their own, with Debian's rpcbind.

// Its binding to RDMA is for the test with the kernel's server.
#[allow(dead_code)]
mod nfs;

mod namespaces;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nfs::{Nfs, mount};
use sidestep_rpc::{Address, AuthSys, Client, ClientOptions, Credential};

#[test]
fn our_client_reads_and_writes_files_of_nfs_ganesha() {
    if std::env::var_os("SIDESTEP_FULL").is_none_or(|value| value == "0") {
        eprintln!("left out: it is for `./test rpc_full`");
        return;
    }
    namespaces::run("our_client_reads_and_writes_files_of_nfs_ganesha", &["rpcbind", "ganesha.nfsd"], inside);
}

/// The server, which ends with the test, and its files.
struct Ganesha {
    process: Child,
    folder: std::path::PathBuf,
}

impl Drop for Ganesha {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn serve() -> Ganesha {
    std::fs::create_dir_all("/run/ganesha").unwrap();
    // On a disk: its files have handles there.
    let folder = std::env::temp_dir().join(format!("sidestep-ganesha-{}", std::process::id()));
    let export = folder.join("export");
    std::fs::create_dir_all(export.join("folder")).unwrap();
    std::fs::write(export.join("hello"), "hello over TCP\n").unwrap();
    let config = folder.join("config");
    let text = format!(
        "NFS_CORE_PARAM {{ Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false; MNT_Port = 20048; }}\n\
         EXPORT {{ Export_Id = 1; Path = {}; Pseudo = /export; Access_Type = RW; Squash = No_Root_Squash;\n\
         Protocols = 3; Transports = TCP; SecType = sys; FSAL {{ Name = VFS; }} }}\n",
        export.display()
    );
    std::fs::write(&config, text).unwrap();
    let process = Command::new("ganesha.nfsd")
        .args(["-F", "-p", "/run/ganesha.pid", "-f"])
        .arg(&config)
        .arg("-L")
        .arg(folder.join("log"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Ganesha { process, folder }
}

/// Connects once somebody listens.
fn connect(address: &str) -> Client {
    let address: Address = address.parse().unwrap();
    let credential = Credential::from_sys(&AuthSys::new(0, b"host", 0, 0, &[]));
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let options = ClientOptions { credential: credential.clone(), ..ClientOptions::default() };
        match Client::connect_with(&address, options) {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < limit, "nobody listens on {address}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn inside() {
    let ganesha = serve();
    let nfs = Nfs(connect("tcp:127.0.0.1:2049"));
    nfs.null().unwrap();
    let export = ganesha.folder.join("export");
    let root = mount(&connect("tcp:127.0.0.1:20048"), export.to_str().unwrap()).unwrap();
    assert_eq!(nfs.attributes(&root).unwrap().kind, 2);
    let names = nfs.names(&root).unwrap();
    assert!(["hello", "folder"].iter().all(|name| names.iter().any(|found| found == name)), "{names:?}");
    let hello = nfs.lookup(&root, "hello").unwrap();
    assert_eq!(nfs.read(&hello, 0, 100).unwrap(), (b"hello over TCP\n".to_vec(), true));
    assert!(nfs.lookup(&root, "nothing").is_err());
    // Larger than any buffer on the way.
    let bytes: Vec<u8> = (0..500_000u32).map(|at| (at ^ (at >> 8)) as u8).collect();
    assert_eq!(nfs.write(&hello, 0, &bytes).unwrap() as usize, bytes.len());
    assert_eq!(nfs.attributes(&hello).unwrap().size, bytes.len() as u64);
    let (found, _) = nfs.read(&hello, 0, 500_000).unwrap();
    assert!(found == bytes[..found.len()] && found.len() > 100_000, "{} bytes", found.len());
}
