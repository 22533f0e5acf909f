//! A network whose streams can all be cut at once, as the kernel does when a process dies.

use std::{
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, Weak},
};

use rustix::net::{Shutdown, shutdown};
use sidestep_fabric::link::iwarp::Network;

/// Another network, with the streams of one link.
#[derive(Debug)]
pub struct CuttableNetwork {
    inner: Arc<dyn Network>,
    streams: Mutex<Vec<Weak<OwnedFd>>>,
}

impl CuttableNetwork {
    /// The streams of a link on this network.
    pub fn new(inner: Arc<dyn Network>) -> Arc<CuttableNetwork> {
        Arc::new(CuttableNetwork { inner, streams: Mutex::default() })
    }

    /// Ends every stream of the link.
    pub fn cut(&self) {
        for stream in self.streams.lock().expect("no panic with streams").iter().filter_map(Weak::upgrade) {
            // One that has ended needs no end.
            let _ = shutdown(&*stream, Shutdown::Both);
        }
    }
}

impl Network for CuttableNetwork {
    fn socket(&self, address: &SocketAddr) -> io::Result<OwnedFd> {
        self.inner.socket(address)
    }

    fn listen_at(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        self.inner.listen_at(address)
    }

    fn connect_to(&self, address: SocketAddr) -> Vec<SocketAddr> {
        self.inner.connect_to(address)
    }

    fn opened(&self, stream: &Arc<OwnedFd>) {
        self.inner.opened(stream);
        self.streams.lock().expect("no panic with streams").push(Arc::downgrade(stream));
    }
}
