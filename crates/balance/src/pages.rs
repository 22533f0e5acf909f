//! The state pages: one in the memory of each node, which the others read and change by themselves.
//!
//! | offset | word |
//! |---|---|
//! | 0 | load of the server |
//! | 8 | site and generation of the server; the site of a node that is none is [`NO_SITE`] |
//! | 16 | counter of the controller |
//! | 24 | lock of the site that has the number of this node |

use std::{
    io::Read,
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    thread,
    time::Duration,
};

use sidestep_extended::{CompletionQueue, Region, Remote, Rights, Socket, Stack, in_milliseconds};

use crate::{
    Error, Result,
    config::Config,
    decision::Server,
    protocol::{Operation, Word, server_word, site_of},
};

/// The page of this node.
#[derive(Debug, Clone)]
pub struct Page {
    stack: Stack,
    region: Arc<Region>,
}

/// The pages of all nodes, as one of them reaches them.
#[derive(Debug)]
pub struct Pages {
    own: usize,
    page: Page,
    addresses: Vec<String>,
    lines: Mutex<Vec<Option<Line>>>,
}

/// The page of another node.
#[derive(Debug)]
struct Line {
    remote: Remote,
    socket: Socket,
    _queue: CompletionQueue,
    _stream: TcpStream,
}

/// The site of what is no server, or cannot be reached.
pub const NO_SITE: u16 = u16::MAX;
const LOAD: usize = 0;
const SERVER: usize = 8;
const COUNTER: usize = 16;
const LOCK: usize = 24;
const PAGE: usize = 4096;
const PATIENCE_MS: u64 = 2_000;

impl Page {
    /// The page of a server of a site, or of none.
    pub fn new(site: Option<u16>) -> Result<Page> {
        let stack = Stack::new()?;
        let region = stack.register(PAGE, Rights::ALL)?;
        region.word64(SERVER)?.store(server_word(site.unwrap_or(NO_SITE), 0), Ordering::Release);
        Ok(Page { stack, region: Arc::new(region) })
    }

    /// Says the server's load.
    pub fn set_load(&self, load: u64) -> Result<()> {
        self.region.word64(LOAD)?.store(load, Ordering::Release);
        Ok(())
    }

    /// The server's site, which others change.
    pub fn site(&self) -> Result<u16> {
        Ok(site_of(self.region.word64(SERVER)?.load(Ordering::Acquire)))
    }

    /// Lets whoever connects reach the page, for as long as the connection stands.
    pub fn lend(&self, listener: TcpListener) {
        let page = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let page = page.clone();
                thread::spawn(move || page.lend_to(&stream));
            }
        });
    }

    fn lend_to(&self, mut stream: &TcpStream) {
        let Ok(queue) = self.stack.completion_queue() else { return };
        let enabled = self.stack.enable(stream.as_fd(), &queue, in_milliseconds(PATIENCE_MS));
        let Ok(socket) = enabled else { return };
        if socket.export(&self.region, Rights::ALL, 0).is_ok() {
            // Nothing comes: it ends.
            let _ = stream.read(&mut [0]);
        }
    }
}

impl Pages {
    /// The pages of all nodes, for this one.
    pub fn new(config: &Config, own: usize, page: Page) -> Pages {
        let addresses: Vec<String> = config.node.iter().map(|node| node.address.clone()).collect();
        let lines = Mutex::new(addresses.iter().map(|_| None).collect());
        Pages { own, page, addresses, lines }
    }

    /// Every node as a server; one that is none or cannot be reached has no site, and a load that nobody wants.
    pub fn servers(&self) -> Vec<Server> {
        let read = |node| -> Result<Server> {
            let far = |line: &Line| {
                let mut bytes = [0; 16];
                line.socket.get(&line.remote, LOAD, &mut bytes)?;
                Ok(bytes)
            };
            let here = || {
                let mut bytes = [0; 16];
                self.page.region.read(LOAD, &mut bytes)?;
                Ok(bytes)
            };
            let bytes = self.with(node, far, here)?;
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            Ok(Server { site: u32::from(site_of(word(SERVER))), load: word(LOAD) })
        };
        let gone = Server { site: u32::from(NO_SITE), load: u64::MAX };
        let server = |node| read(node).ok().filter(|server| server.site != u32::from(NO_SITE)).unwrap_or(gone);
        (0..self.addresses.len()).map(server).collect()
    }

    /// Carries out an operation; what its word held before. A server that cannot be reached belongs to nobody, and nobody can change it.
    pub fn perform(&self, operation: Operation) -> Result<u64> {
        let word = match operation {
            Operation::Load(word) | Operation::CompareSwap { word, .. } | Operation::FetchAdd { word, .. } => word,
        };
        let (node, offset) = match word {
            Word::Server(node) => (node, SERVER),
            Word::Counter(node) => (node, COUNTER),
            Word::Lock(site) => (site, LOCK),
        };
        let node = usize::from(node);
        let outcome = self.with(
            node,
            |line| {
                Ok(match operation {
                    Operation::Load(_) => {
                        let mut bytes = [0; 8];
                        line.socket.get(&line.remote, offset, &mut bytes)?;
                        u64::from_le_bytes(bytes)
                    }
                    Operation::CompareSwap { expected, new, .. } => {
                        line.socket.compare_swap(&line.remote, offset, expected, new)?
                    }
                    Operation::FetchAdd { value, .. } => line.socket.fetch_add(&line.remote, offset, value)?,
                })
            },
            || {
                let word = self.page.region.word64(offset)?;
                Ok(match operation {
                    Operation::Load(_) => word.load(Ordering::Acquire),
                    Operation::CompareSwap { expected, new, .. } => word.compare_swap(expected, new),
                    Operation::FetchAdd { value, .. } => word.fetch_add(value, Ordering::AcqRel),
                })
            },
        );
        match (word, outcome) {
            (Word::Server(_), Err(_)) => Ok(server_word(NO_SITE, 0)),
            // Who cannot be told has died.
            (Word::Counter(_), Err(_)) => Ok(0),
            (_, outcome) => outcome,
        }
    }

    /// Does something with the page of a node: by its line, or here.
    fn with<T>(
        &self,
        node: usize,
        far: impl FnOnce(&Line) -> Result<T>,
        here: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if node == self.own {
            return here();
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.get_mut(node).ok_or_else(|| Error::Config(format!("there is no node {node}")))?;
        if line.is_none() {
            *line = Some(Line::open(&self.page.stack, &self.addresses[node])?);
        }
        let outcome = line.as_ref().map_or_else(|| Err(Error::Gone(self.addresses[node].clone())), far);
        if outcome.is_err() {
            // It is connected to again when it is next needed.
            *line = None;
        }
        outcome
    }
}

impl Line {
    fn open(stack: &Stack, address: &str) -> Result<Line> {
        let gone = |_| Error::Gone(address.to_string());
        let parsed = address.parse().map_err(|_| Error::Config(format!("{address} is not an address and a port")))?;
        let stream = TcpStream::connect_timeout(&parsed, Duration::from_millis(PATIENCE_MS)).map_err(gone)?;
        let queue = stack.completion_queue()?;
        let deadline = in_milliseconds(PATIENCE_MS);
        let socket = stack.enable(stream.as_fd(), &queue, deadline)?;
        let remote = socket.import(Some(deadline))?;
        if remote.len() != PAGE {
            return Err(Error::Gone(address.to_string()));
        }
        Ok(Line { remote, socket, _queue: queue, _stream: stream })
    }
}
