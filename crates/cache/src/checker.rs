//! How a proxy learns which version a document has: by a read of the application's memory, by a question to it, or not at all.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream as StdStream,
    os::fd::AsFd,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sidestep_extended::{CompletionQueue, Error as ExtendedError, Remote, Socket, Stack, in_milliseconds};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufStream},
    net::TcpStream,
};

use crate::{
    Error, Result,
    versions::{SLOTS, Slot, Version},
};

/// How hits are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By a one-sided read of the version.
    OneSided,
    /// By a question over TCP, which the application answers.
    TwoSided,
    /// Not at all. Answers may be old.
    Unchecked,
}

/// What is known of a document at one moment. Two that are equal are of the same document, unless an update was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Which run of the application: versions begin anew with it.
    pub instance: u64,
    /// The version.
    pub version: Version,
}

/// Knows the versions of an application's documents.
#[derive(Debug)]
pub struct Checker {
    mode: Mode,
    /// Where the application's module listens.
    address: String,
    table: RwLock<Option<Table>>,
    is_connecting: AtomicBool,
    lines: tokio::sync::Mutex<Vec<BufStream<TcpStream>>>,
}

/// The application's table of versions.
#[derive(Debug)]
struct Table {
    remote: Remote,
    socket: Socket,
    _queue: CompletionQueue,
    _stack: Stack,
    _stream: StdStream,
}

/// How long an application may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries to find one that is gone.
const PAUSE: Duration = Duration::from_millis(100);

impl Checker {
    /// For the application whose module listens at this address.
    pub fn new(mode: Mode, address: &str) -> Arc<Checker> {
        let checker = Arc::new(Checker {
            mode,
            address: address.to_string(),
            table: RwLock::new(None),
            is_connecting: AtomicBool::new(false),
            lines: tokio::sync::Mutex::default(),
        });
        if mode == Mode::OneSided && checker.connect().is_err() {
            checker.connect_later();
        }
        checker
    }

    /// Whether it checks in this way, and by this module.
    pub fn is_for(&self, mode: Mode, address: &str) -> bool {
        self.mode == mode && self.address == address
    }

    /// What a document is now. `None`: it cannot be known, and nothing may be answered out of the cache.
    pub async fn check(self: &Arc<Self>, path: &str) -> Option<Checked> {
        match self.mode {
            Mode::OneSided | Mode::Unchecked => self.check_at(Slot::of(path)),
            Mode::TwoSided => tokio::time::timeout(PATIENCE, self.ask(path)).await.ok()?,
        }
    }

    /// Whether to check takes a question to the application, and time.
    pub fn asks(&self) -> bool {
        self.mode == Mode::TwoSided
    }

    /// What the document is now whose version lies there, if that takes no question.
    pub fn check_at(self: &Arc<Self>, slot: Slot) -> Option<Checked> {
        match self.mode {
            Mode::Unchecked => Some(Checked { instance: 0, version: Version(0) }),
            Mode::OneSided => self.read(slot),
            Mode::TwoSided => None,
        }
    }

    fn read(self: &Arc<Self>, slot: Slot) -> Option<Checked> {
        let outcome = {
            let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
            table.as_ref()?.read(slot)
        };
        if outcome.is_err() {
            // The application has gone, or taken its table back.
            let gone = self.table.write().unwrap_or_else(PoisonError::into_inner).take();
            drop(gone);
            self.connect_later();
        }
        outcome.ok()
    }

    /// Tries until there is an application.
    fn connect_later(self: &Arc<Self>) {
        if self.is_connecting.swap(true, Ordering::AcqRel) {
            return;
        }
        let checker = Arc::downgrade(self);
        std::thread::spawn(move || {
            while let Some(checker) = checker.upgrade() {
                if checker.connect().is_ok() {
                    return checker.is_connecting.store(false, Ordering::Release);
                }
                drop(checker);
                std::thread::sleep(PAUSE);
            }
        });
    }

    fn connect(&self) -> Result<()> {
        let table = Table::open(&self.address)?;
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Some(table);
        Ok(())
    }

    async fn ask(&self, path: &str) -> Option<Checked> {
        let free = self.lines.lock().await.pop();
        let mut line = match free {
            Some(line) => line,
            None => {
                let stream = TcpStream::connect(&self.address).await.ok()?;
                stream.set_nodelay(true).ok()?;
                BufStream::new(stream)
            }
        };
        let mut answer = String::new();
        line.write_all(format!("VERSION {path}\n").as_bytes()).await.ok()?;
        line.flush().await.ok()?;
        line.read_line(&mut answer).await.ok()?;
        let (instance, version) = answer.trim_end().split_once(' ')?;
        let checked = Checked { instance: instance.parse().ok()?, version: Version(version.parse().ok()?) };
        self.lines.lock().await.push(line);
        Some(checked)
    }
}

impl Table {
    fn open(address: &str) -> Result<Table> {
        let failed = |source| Error::Application { address: address.to_string(), source };
        let stream = StdStream::connect(address).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        (&stream).write_all(b"TABLE\n").map_err(failed)?;
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer).map_err(failed)?;
        if answer != "TABLE\n" {
            return Err(Error::NoModule(address.to_string()));
        }
        let stack = Stack::new()?;
        let queue = stack.completion_queue()?;
        let deadline = in_milliseconds(PATIENCE.as_millis() as u64);
        let socket = stack.enable(stream.as_fd(), &queue, deadline)?;
        let remote = socket.import(Some(deadline))?;
        if remote.len() != SLOTS * 8 {
            return Err(Error::NoModule(address.to_string()));
        }
        Ok(Table { remote, socket, _queue: queue, _stack: stack, _stream: stream })
    }

    fn read(&self, slot: Slot) -> Result<Checked, ExtendedError> {
        let mut word = [0; 8];
        self.socket.get(&self.remote, slot.offset(), &mut word)?;
        Ok(Checked { instance: self.remote.tag(), version: Version(u64::from_le_bytes(word)) })
    }
}
