//! VIs on the side of a server: a thread waits for them at each address.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use sidestep_sys::clock;
use sidestep_vi::ConnectionRequest;

use super::Limits;
use super::dispatch::Dispatcher;
use super::lines::{Inbound, Line, Lines};
use super::service::Peer;
use crate::client::lock;
use crate::via::{Card, Inward, Outward, ViaLine};
use crate::{Address, Error};

/// Addresses of VIs that a server listens on, and the connections that were made. They end with it.
pub(super) struct Vis {
    lines: Arc<Lines>,
    listening: Vec<JoinHandle<()>>,
}

struct ViLine {
    outward: Mutex<Outward>,
    line: Arc<ViaLine>,
}

/// How late a thread that listens sees that the server stops.
const LOOK_AGAIN_NS: u64 = 100_000_000;

/// After a failure to wait for clients.
const LISTEN_PAUSE: Duration = Duration::from_millis(10);

impl Line for ViLine {
    fn send(&self, frame: &[u8]) {
        let _ = lock(&self.outward).send(frame);
    }

    fn close(&self) {
        self.line.close();
    }
}

impl Inbound for Inward {
    #[inline]
    fn receive(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        Inward::receive(self, None, &mut take).map(|_| ())
    }
}

impl Vis {
    pub fn start(dispatcher: Arc<Dispatcher>, addresses: &[Address], limits: &Limits) -> Result<Self, Error> {
        let mut vis = Vis { lines: Arc::new(Lines::new(dispatcher, limits)), listening: Vec::new() };
        for address in addresses {
            if let Err(source) = vis.listen(address) {
                vis.stop();
                return Err(Error::Setup { what: "listen on", address: address.to_string(), source });
            }
        }
        Ok(vis)
    }

    fn listen(&mut self, address: &Address) -> io::Result<()> {
        let card = Card::open(address)?;
        card.listen()?;
        let lines = self.lines.clone();
        let thread = std::thread::Builder::new().name("rpc listener".to_owned());
        self.listening.push(thread.spawn(move || listen(&card, &lines))?);
        Ok(())
    }

    pub fn open(&self) -> usize {
        self.lines.open()
    }

    pub fn stop(&mut self) {
        self.lines.begin_stop();
        for thread in self.listening.drain(..) {
            let _ = thread.join();
        }
        self.lines.stop();
    }
}

fn listen(card: &Card, lines: &Arc<Lines>) {
    while !lines.is_stopping() {
        match card.wait_request(clock::now() + LOOK_AGAIN_NS) {
            // A client that cannot be served finds its connection rejected or ended.
            Ok(Some(request)) => drop(accept(card, lines, request)),
            Ok(None) => {}
            Err(_) => std::thread::sleep(LISTEN_PAUSE),
        }
    }
}

fn accept(card: &Card, lines: &Arc<Lines>, request: ConnectionRequest) -> io::Result<()> {
    if lines.is_full() {
        // Dropping it rejects.
        return Ok(());
    }
    let (line, client) = card.accept(request)?;
    let inward = line.inward(lines.max_message());
    let outward = Mutex::new(line.outward());
    lines.serve(Arc::new(ViLine { outward, line }), inward, Peer::Fabric { client })
}
