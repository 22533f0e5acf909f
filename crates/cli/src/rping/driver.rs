//! One iWARP connection over one TCP connection, in the thread that calls.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;
use rustix::rand::{GetRandomFlags, getrandom};
use sidestep_iwarp::{
    Agreement, BufferId, Completion, Config, Connection, Event, Gather, MemoryTable, Outcome, Region, Rights, Source,
    SourceSlice, Stag, TaggedOffset, Transport, Vectors, WorkId,
};

/// A connection with everything it works on.
#[derive(Debug)]
pub struct Driver {
    /// The engine.
    pub connection: Connection,
    /// What the peer may touch.
    pub table: MemoryTable,
    /// The bytes behind it.
    pub memory: Vectors,
    /// The stream; it does not block.
    pub socket: TcpStream,
    config: Config,
    gather: Gather,
    /// Output that the stream has not taken. It is copied once, so that what is sent is what was summed.
    output: Vec<u8>,
    /// Input that the engine has not consumed.
    input: Vec<u8>,
    completions: VecDeque<Completion>,
    events: VecDeque<Event>,
    begin: Instant,
    next_number: u64,
    peer_done: bool,
    writable: bool,
    finished: bool,
}

impl Driver {
    /// The end that speaks first.
    pub fn initiate(socket: TcpStream, config: Config, private_data: &[u8]) -> Result<Self> {
        let connection = Connection::initiate(config.clone(), private_data, Duration::ZERO)?;
        Self::new(socket, connection, config)
    }

    /// The end that waits for a request.
    pub fn respond(socket: TcpStream, config: Config) -> Result<Self> {
        let connection = Connection::respond(config.clone(), Duration::ZERO);
        Self::new(socket, connection, config)
    }

    fn new(socket: TcpStream, connection: Connection, config: Config) -> Result<Self> {
        socket.set_nonblocking(true).context("setting the socket to non-blocking")?;
        socket.set_nodelay(true).context("setting TCP_NODELAY")?;
        Ok(Self {
            connection,
            table: MemoryTable::new(),
            memory: Vectors::default(),
            socket,
            config,
            gather: Gather::new(),
            output: Vec::new(),
            input: Vec::new(),
            completions: VecDeque::new(),
            events: VecDeque::new(),
            begin: Instant::now(),
            next_number: 1,
            peer_done: false,
            writable: true,
            finished: false,
        })
    }

    /// A fresh name for something posted.
    pub fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Registers memory; its tagged offset begins at zero.
    pub fn register(&mut self, bytes: Vec<u8>, rights: Rights) -> Result<Stag> {
        let identity = self.config.identity;
        let region = Region {
            base: TaggedOffset(0),
            length: bytes.len() as u64,
            rights,
            domain: identity.domain,
            stream: Some(identity.stream),
        };
        let mut word = [0; 4];
        let stag = self.table.register(region, || {
            // Without randomness the number stays zero, which the table refuses.
            let _ = getrandom(&mut word[..], GetRandomFlags::empty());
            u32::from_ne_bytes(word)
        })?;
        self.memory.regions.insert(stag, bytes);
        Ok(stag)
    }

    /// Posts a buffer for one message.
    pub fn post_receive(&mut self, capacity: u32) -> Result<WorkId> {
        let work = WorkId(self.number());
        self.memory.receives.insert(work, vec![0; capacity as usize]);
        self.connection.post_receive(work, capacity)?;
        Ok(work)
    }

    /// Names bytes that are to be sent.
    pub fn source(&mut self, bytes: &[u8]) -> SourceSlice {
        let id = BufferId(self.number());
        self.memory.buffers.insert(id, bytes.to_vec());
        SourceSlice { source: Source::Buffer(id), offset: 0, len: bytes.len() as u32 }
    }

    /// Waits until set-up is over.
    pub fn wait_established(&mut self, limit: Duration) -> Result<(Agreement, Vec<u8>)> {
        match self.wait_event(Some(Instant::now() + limit))? {
            Some(Event::Established { private_data, agreement }) => Ok((agreement, private_data)),
            Some(event) => bail!("set-up failed: {}", describe(&event)),
            None => bail!("set-up took longer than {limit:?}"),
        }
    }

    /// Waits for the completion of `work`; `None` if the deadline passes first.
    pub fn wait_completion(&mut self, work: WorkId, deadline: Option<Instant>) -> Result<Option<Outcome>> {
        loop {
            if let Some(at) = self.completions.iter().position(|done| done.work == work) {
                let done = self.completions.remove(at);
                return Ok(done.map(|done| done.outcome));
            }
            if self.peer_done && self.memory.receives.contains_key(&work) {
                bail!("{}", self.end_reason());
            }
            if !self.turn(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Waits for the next event; `None` if the deadline passes first.
    pub fn wait_event(&mut self, deadline: Option<Instant>) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if !self.turn(deadline)? {
                return Ok(None);
            }
        }
    }

    /// What ended the connection, in words.
    pub fn end_reason(&mut self) -> String {
        let told = self.events.iter().find(|event| !matches!(event, Event::Closed));
        told.map_or_else(|| "the connection is closed".to_owned(), describe)
    }

    /// Whether the peer closed in good order.
    pub fn has_ended_well(&self) -> bool {
        self.events.contains(&Event::PeerClosed)
    }

    /// Closes in good order, and waits until the peer has closed too.
    pub fn close(&mut self, limit: Duration) -> Result<()> {
        self.connection.close(self.now());
        let deadline = Instant::now() + limit;
        while !self.is_closed() {
            if !self.turn(Some(deadline))? {
                bail!("the peer did not close its end within {limit:?}");
            }
        }
        Ok(())
    }

    /// Whether everything is over.
    pub fn is_closed(&self) -> bool {
        matches!(self.connection.transport(), Transport::Close | Transport::Reset)
    }

    /// The time of this connection.
    pub fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Sends what there is to send, waits for the stream or the clock, takes what came. Returns whether
    /// the deadline is still to come.
    pub fn turn(&mut self, deadline: Option<Instant>) -> Result<bool> {
        self.connection.handle_timeout(self.now());
        self.transmit()?;
        if self.collect() {
            return Ok(true);
        }
        if self.is_closed() {
            bail!("{}", self.end_reason());
        }
        let now = Instant::now();
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Ok(false);
        }
        let timer = self.connection.poll_timeout().map(|at| self.begin + at);
        self.wait([deadline, timer].into_iter().flatten().min())?;
        self.receive()?;
        self.collect();
        Ok(true)
    }

    /// Sleeps until the stream is ready or the time has come.
    fn wait(&self, until: Option<Instant>) -> Result<()> {
        let mut interest = PollFlags::empty();
        if !self.peer_done {
            interest |= PollFlags::IN;
        }
        if !self.output.is_empty() {
            interest |= PollFlags::OUT;
        }
        let pause = until.map(|until| until.saturating_duration_since(Instant::now()));
        // Rounded up to a millisecond, so that the time has come when the wait is over.
        let pause = pause.map(|pause| Timespec::try_from(pause + Duration::from_millis(1))).transpose()?;
        match poll(&mut [PollFd::new(&self.socket, interest)], pause.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("waiting for the socket"),
        }
    }

    /// Hands output to the stream until there is none left or the stream takes no more.
    fn transmit(&mut self) -> Result<()> {
        loop {
            if self.output.is_empty() {
                let now = self.now();
                let Self { connection, table, memory, gather, output, .. } = self;
                connection.poll_transmit(now, BUDGET, table, memory, gather);
                memory.collect(gather, output);
            }
            if self.output.is_empty() || !self.writable {
                break;
            }
            match self.socket.write(&self.output) {
                Ok(count) => {
                    self.output.drain(..count);
                    self.connection.handle_transmitted(self.now(), count as u64);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The peer is gone. What it said before may still be there to read.
                Err(_) => self.writable = false,
            }
        }
        self.follow_transport()
    }

    fn follow_transport(&mut self) -> Result<()> {
        match self.connection.transport() {
            Transport::Open => {}
            Transport::Finish if !self.finished => {
                self.finished = true;
                // A peer that is gone needs no goodbye.
                let _ = self.socket.shutdown(Shutdown::Write);
            }
            Transport::Finish | Transport::Close => {}
            Transport::Reset => set_socket_linger(&self.socket, Some(Duration::ZERO)).context("setting SO_LINGER")?,
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<()> {
        while !self.peer_done {
            let kept = self.input.len();
            self.input.resize(kept + READ_SIZE, 0);
            let read = self.socket.read(&mut self.input[kept..]);
            self.input.truncate(kept + *read.as_ref().unwrap_or(&0));
            let now = self.now();
            match read {
                Ok(0) => {
                    self.peer_done = true;
                    self.connection.handle_end(now);
                }
                Ok(_) => {
                    let Self { connection, table, memory, input, .. } = self;
                    let consumed = connection.handle_input(now, input, table, memory);
                    input.drain(..consumed);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.peer_done = true;
                    self.writable = false;
                    self.connection.handle_end(now);
                }
            }
        }
        if self.peer_done && !self.writable {
            self.connection.reset();
        }
        Ok(())
    }

    /// Takes what the engine reports; returns whether there was anything.
    fn collect(&mut self) -> bool {
        let before = self.completions.len() + self.events.len();
        while let Some(completion) = self.connection.poll_completion() {
            self.completions.push_back(completion);
        }
        while let Some(event) = self.connection.poll_event() {
            self.events.push_back(event);
        }
        self.completions.len() + self.events.len() > before
    }
}

/// An event in words.
pub fn describe(event: &Event) -> String {
    match event {
        Event::Requested { revision, .. } => format!("a request in revision {}", revision.number()),
        Event::Established { .. } => "the connection is established".to_owned(),
        Event::Rejected { .. } => "the peer refused the connection".to_owned(),
        Event::FallBack { revision } => format!("the peer speaks revision {} only", revision.number()),
        Event::SetupFailed(failure) => failure.to_string(),
        Event::PeerClosed => "the peer closed the connection".to_owned(),
        Event::PeerTerminated(terminate) => format!("the peer ended the connection: {terminate}"),
        Event::Failed(fault) => format!("the peer broke the protocol: {fault}"),
        Event::Lost { unanswered, .. } => format!("the connection was lost with {unanswered} reads under way"),
        Event::Closed => "the connection is closed".to_owned(),
    }
}

/// How much is gathered at a time.
const BUDGET: u64 = 256 * 1024;
const READ_SIZE: usize = 128 * 1024;
