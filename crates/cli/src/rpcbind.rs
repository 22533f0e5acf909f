//! `sidestep rpcbind`: where the RPC programs of this host listen.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::{fs::PermissionsExt, net::UnixStream};

use anyhow::{Context, Result};
use sidestep_rpc::{Directory, Server};

use crate::options::Rpcbind;

/// Serves until it is killed.
pub fn run(options: &Rpcbind) -> Result<()> {
    // A socket that nobody listens on was left behind.
    if let Err(error) = UnixStream::connect(&options.socket)
        && error.kind() == ErrorKind::ConnectionRefused
    {
        fs::remove_file(&options.socket).with_context(|| options.socket.display().to_string())?;
    }
    let directory = Directory::default();
    let server = directory.services().into_iter().fold(Server::builder(), |server, service| server.service(service));
    let server = server.unix(&options.socket)?.tcp(&options.listen)?;
    // Any user may register.
    fs::set_permissions(&options.socket, Permissions::from_mode(0o666))?;
    let server = server.udp(&options.listen)?.start()?;
    directory.list_itself(&server);
    // If the port was to be any, they are two.
    let mut sockets: Vec<String> = server.addresses().map(|address| address.to_string()).collect();
    sockets.dedup();
    println!("rpcbind answers on {} and {}", sockets.join(", "), options.socket.display());
    loop {
        std::thread::park();
        // Nothing unparks this thread, and if something does, the server goes on.
        let _ = &server;
    }
}
