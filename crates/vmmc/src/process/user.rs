//! A process that uses a card: export, import, send, fetch, notifications, deregister.

use std::collections::{HashMap, VecDeque};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use sidestep_fabric::random::Random;
use sidestep_fabric::{Channel, Error as FabricError, Node};
use sidestep_shm::passing::Lifeline;
use sidestep_shm::{Memory, Span};
use sidestep_sys::clock;

use super::handlers::Handlers;
use super::start::Started;
use super::words::{Answer, LONGEST, Word};
use super::{PROCESS, Standing, address, memory_address, word_queue};
use crate::card::{INLINE, Operation, Post, Source};
use crate::driver::Export;
use crate::error::{Error, Fault, Result};
use crate::id::{Address, BufferId, Cbh, Key, NodeId, PAGE, ProcessId, Work};
use crate::vmh::table::MOST_PAGES;

/// How a process comes to its card.
#[derive(Debug)]
pub struct Attach<'a> {
    /// The name of the card.
    pub name: &'a str,
    /// Bytes of memory for buffers, sources and destinations: whole pages.
    pub memory: usize,
    /// What is started if no card of that name is there: see [`card_command`](super::card_command).
    pub start: Option<Command>,
}

/// A process on its card. Dropping it detaches it.
#[derive(Debug)]
pub struct Process {
    pub(super) channel: Channel,
    memory: Memory,
    span: Span,
    card: String,
    next: u64,
    completed: HashMap<Work, Option<Fault>>,
    answers: HashMap<u64, Answer>,
    notices: VecDeque<Notice>,
    pub(super) handlers: Handlers,
    started: Option<Started>,
}

/// A buffer that this process has exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    id: BufferId,
    handle: Handle,
}

/// What another process needs to use a buffer. Who has it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    card: String,
    cbh: Cbh,
    key: Key,
}

/// A buffer of another process that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    pub(super) node: NodeId,
    pub(super) cbh: Cbh,
    pub(super) key: Key,
}

/// Something was sent into a buffer, and its sender wants it known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// The buffer.
    pub buffer: BufferId,
    /// Where in it.
    pub at: u64,
    /// How much.
    pub len: u64,
}

/// How long a card may take to be there.
const START_NS: u64 = 30_000_000_000;

impl Process {
    /// Attaches this process to the card of a name, which is started if it is not there.
    pub fn attach(mut how: Attach<'_>) -> Result<Process> {
        if how.memory == 0 || how.memory % PAGE != 0 || (how.memory / PAGE) as u64 > MOST_PAGES {
            let (what, must) = ("the memory of a process", "whole pages of 4096 bytes, at least one, at most 256 GiB");
            return Err(Error::Parameter { what, must, value: how.memory.to_string() });
        }
        let (deadline, mut started) = (clock::now() + START_NS, None);
        loop {
            match Process::try_attach(&how) {
                Ok(mut process) => {
                    process.started = started;
                    return Ok(process);
                }
                Err(error) if clock::now() > deadline => return Err(error),
                Err(error) if !is_absent(&error) => return Err(error),
                Err(error) => {
                    let Some(command) = &mut how.start else { return Err(error) };
                    // One that has ended found another of its name, or the last one was just going.
                    let is_up = match &mut started {
                        Some(started) => Started::is_up(started)?,
                        None => false,
                    };
                    if !is_up {
                        started = Some(Started::new(command)?);
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
    }

    fn try_attach(how: &Attach<'_>) -> Result<Process> {
        let memory = Memory::create_sparse("sidestep-vmmc", how.memory)?;
        let descriptor = memory.descriptor().ok_or(Error::Protocol("memory without a descriptor"))?;
        let sign = Random::key().to_ne_bytes();
        let line = Lifeline::connect(&memory_address(how.name), |who| sidestep_sys::user::is_own(who.uid))?;
        let said = [&sign[..], &(how.memory as u64).to_le_bytes()].concat();
        let node = Node::new()?;
        let private = [&[PROCESS][..], &sign].concat();
        let deadline = Some(clock::now() + START_NS);
        let card = address(how.name);
        let channel = Channel::connect(&node, &card, word_queue(), &private, deadline)?;
        // The card lets the lifeline in now; before that the kernel keeps descriptors out.
        while !is_sent(line.send(&said, &[descriptor.as_fd()]))? {
            if deadline.is_some_and(|deadline| clock::now() > deadline) {
                return Err(Error::TimedOut);
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        let span = memory.span(0, memory.len())?;
        let mut process = Process {
            channel,
            memory,
            span,
            card,
            next: 1,
            completed: HashMap::new(),
            answers: HashMap::new(),
            notices: VecDeque::new(),
            handlers: Handlers::default(),
            started: None,
        };
        // The first answer is the welcome.
        loop {
            process.hear(deadline)?;
            if let Some(Answer::Welcome { card }) = process.answers.remove(&0) {
                process.card = card;
                return Ok(process);
            }
        }
    }

    /// The number of the card process, if this process has started it.
    #[must_use]
    pub fn card_process(&self) -> Option<u32> {
        self.started.as_ref().map(Started::id)
    }

    /// The memory that the card was given.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Writes into the own memory.
    pub fn write(&self, address: Address, bytes: &[u8]) -> Result<()> {
        Ok(self.span.copy_in(address.0 as usize, bytes)?)
    }

    /// Reads the own memory.
    pub fn read(&self, address: Address, bytes: &mut [u8]) -> Result<()> {
        Ok(self.span.copy_out(address.0 as usize, bytes)?)
    }

    /// Lets others use a range of the memory, who have its [handle](Buffer::handle). See also [`export_with`](Self::export_with).
    pub fn export(&mut self, export: Export) -> Result<Buffer> {
        let request = self.ask(|request| Word::Export { request, export })?;
        match request {
            Answer::Exported { cbh, key, .. } => {
                Ok(Buffer { id: cbh.buffer, handle: Handle { card: self.card.clone(), cbh, key } })
            }
            _ => Err(Error::Protocol("another answer to an export")),
        }
    }

    /// Ends that. When it returns, nothing reads or writes the buffer, and its key is worth nothing.
    pub fn deregister(&mut self, buffer: Buffer) -> Result<()> {
        let ended = self.ask(|request| Word::Deregister { request, buffer: buffer.id }).map(drop);
        // What was sent before the end is told.
        self.run_handlers();
        self.handlers.forget(buffer.id);
        ended
    }

    /// Makes a buffer usable here.
    pub fn import(&mut self, handle: &Handle) -> Result<Remote> {
        match self.ask(|request| Word::Import { request, card: handle.card.clone() })? {
            Answer::Imported { node, .. } => Ok(Remote { node, cbh: handle.cbh, key: handle.key }),
            _ => Err(Error::Protocol("another answer to an import")),
        }
    }

    /// Starts to send bytes of the own memory, which must stay until it has ended.
    pub fn post_send(&mut self, source: Address, len: u64, to: &Remote, at: u64, notify: bool) -> Result<Work> {
        let source = match len <= INLINE as u64 {
            true => {
                let mut bytes = vec![0; len as usize];
                self.read(source, &mut bytes)?;
                Source::Inline(bytes)
            }
            false => Source::Memory(source),
        };
        self.post(to, at, len, Operation::Send { source, notify })
    }

    /// Starts to fetch bytes into the own memory.
    pub fn post_fetch(&mut self, from: &Remote, at: u64, len: u64, destination: Address) -> Result<Work> {
        self.post(from, at, len, Operation::Fetch { destination })
    }

    /// Waits for the end of something that was posted.
    pub fn wait(&mut self, work: Work, deadline: Option<u64>) -> Result<()> {
        loop {
            self.run_handlers();
            if let Some(fault) = self.completed.remove(&work) {
                return fault.map_or(Ok(()), |fault| Err(fault.into()));
            }
            self.hear(deadline)?;
        }
    }

    /// Sends, and waits for its end.
    pub fn send(&mut self, source: Address, len: u64, to: &Remote, at: u64, notify: bool) -> Result<()> {
        let work = self.post_send(source, len, to, at, notify)?;
        self.wait(work, None)
    }

    /// Fetches, and waits for its end.
    pub fn fetch(&mut self, from: &Remote, at: u64, len: u64, destination: Address) -> Result<()> {
        let work = self.post_fetch(from, at, len, destination)?;
        self.wait(work, None)
    }

    /// The next notification of a buffer without a function for them; waits for it.
    pub fn wait_notice(&mut self, deadline: Option<u64>) -> Result<Notice> {
        loop {
            self.run_handlers();
            if let Some(notice) = self.notices.pop_front() {
                return Ok(notice);
            }
            self.hear(deadline)?;
        }
    }

    /// What the card says of itself.
    pub fn standing(&mut self) -> Result<Standing> {
        match self.ask(|request| Word::Count { request })? {
            Answer::Counted { standing, .. } => Ok(standing),
            _ => Err(Error::Protocol("another answer to a count")),
        }
    }

    fn post(&mut self, to: &Remote, at: u64, len: u64, operation: Operation) -> Result<Work> {
        let work = Work(self.number());
        let Remote { node, cbh, key } = *to;
        self.say(&Word::Post(Post { work, node, cbh, key, at, len, operation }))?;
        Ok(work)
    }

    fn ask(&mut self, word: impl FnOnce(u64) -> Word) -> Result<Answer> {
        let request = self.number();
        self.say(&word(request))?;
        loop {
            match self.answers.remove(&request) {
                Some(Answer::Failed { why, .. }) => return Err(Error::Card(why)),
                Some(answer) => return Ok(answer),
                None => self.hear(None)?,
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Says something; hears the card while its queue is full, so that neither waits for the other.
    fn say(&mut self, word: &Word) -> Result<()> {
        let bytes = word.emit();
        loop {
            if self.channel.sender.try_send_message(&bytes).map_err(gone)? {
                return Ok(());
            }
            match self.hear(Some(clock::now() + 1_000_000)) {
                Ok(()) | Err(Error::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the next answer; waits for it.
    pub(super) fn hear(&mut self, deadline: Option<u64>) -> Result<()> {
        let mut buffer = [0; LONGEST];
        let len = self.channel.receiver.receive_message(&mut buffer, deadline).map_err(gone)?;
        match Answer::parse(&buffer[..len]).ok_or(Error::Protocol("an answer that is none"))? {
            Answer::Completed { work, fault } => drop(self.completed.insert(work, fault)),
            Answer::Notified { buffer, at, len } => {
                self.notices.extend(self.handlers.take(Notice { buffer, at, len }));
            }
            answer => {
                let request = match &answer {
                    Answer::Exported { request, .. }
                    | Answer::Done { request }
                    | Answer::Imported { request, .. }
                    | Answer::Failed { request, .. }
                    | Answer::Counted { request, .. } => *request,
                    Answer::Completed { .. } | Answer::Notified { .. } | Answer::Welcome { .. } => 0,
                };
                self.answers.insert(request, answer);
            }
        }
        Ok(())
    }
}

impl Buffer {
    /// Its number, which [`Notice::buffer`] has.
    #[must_use]
    pub fn id(&self) -> BufferId {
        self.id
    }

    /// What others need to use it.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Handle {
    /// As bytes, to be given to another process.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.cbh.process.0.to_le_bytes().to_vec();
        bytes.extend(self.cbh.buffer.0.to_le_bytes());
        bytes.extend(self.key.0.to_le_bytes());
        bytes.extend(self.card.as_bytes());
        bytes
    }

    /// From bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Handle> {
        let (process, rest) = bytes.split_first_chunk()?;
        let (buffer, rest) = rest.split_first_chunk()?;
        let (key, card) = rest.split_first_chunk()?;
        let cbh =
            Cbh { process: ProcessId(u32::from_le_bytes(*process)), buffer: BufferId(u32::from_le_bytes(*buffer)) };
        let card = String::from_utf8(card.to_vec()).ok()?;
        Some(Handle { card, cbh, key: Key(u128::from_le_bytes(*key)) })
    }
}

/// Whether no card is there, or the one that was is going.
fn is_absent(error: &Error) -> bool {
    matches!(
        error,
        Error::Memory(sidestep_shm::Error::NobodyListens(_) | sidestep_shm::Error::System { .. })
            | Error::Fabric(FabricError::NobodyListens(_) | FabricError::Closed(_) | FabricError::Refused { .. })
            | Error::Fabric(FabricError::Memory(sidestep_shm::Error::NobodyListens(_)))
            | Error::CardGone
    )
}

fn is_sent(sent: sidestep_shm::Result<bool>) -> sidestep_shm::Result<bool> {
    match sent {
        Err(sidestep_shm::Error::System { source, .. }) if source == rustix::io::Errno::PERM => Ok(false),
        sent => sent,
    }
}

fn gone(error: FabricError) -> Error {
    match error {
        FabricError::Closed(_) => Error::CardGone,
        FabricError::TimedOut(_) => Error::TimedOut,
        error => error.into(),
    }
}
