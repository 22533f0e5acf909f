//! The card process: turns words and packets into inputs of the card, and its outputs into answers, packets and copies.

use std::collections::{BTreeMap, HashMap, VecDeque};

use sidestep_fabric::link::LinkOptions;
use sidestep_fabric::random::Random;
use sidestep_fabric::{Channel, Error as FabricError, EventQueue, Node};
use sidestep_shm::Memory;
use sidestep_sys::clock;

use super::entrance::{Entrance, Guest};
use super::lines::{Lines, OWN};
use super::lockable::lockable;
use super::memory::Frames;
use super::thread::{Task, Thread, Told};
use super::words::{Answer, LONGEST, Word};
use super::{CardOptions, LONGEST_ADDRESS, Standing, address};
use crate::board::{Board, Kind};
use crate::card::{Card, Dma, Event, NotPosted, Post};
use crate::driver::Timing;
use crate::error::{Error, Fault, Result};
use crate::id::{Cbh, Key, ProcessId};
use crate::packet;

/// Is the card of this name until its last process has gone. Says how long its misses took.
pub fn serve(name: &str, options: CardOptions) -> Result<Timing> {
    Server::new(name, None, options)?.run()
}

/// The same for a card that others find at a name of the fabric, such as `iwarp:HOST:PORT`: also those of other hosts. Whoever
/// reaches that address may send packets; what they touch is decided by the keys of buffers.
pub fn serve_at(name: &str, place: &str, options: CardOptions) -> Result<Timing> {
    Server::new(name, Some(place), options)?.run()
}

struct Server {
    card: Card,
    frames: Frames,
    thread: Thread,
    entrance: Entrance,
    queue: EventQueue,
    users: BTreeMap<ProcessId, User>,
    lines: Lines,
    /// Deregistrations that wait for the card: who asked, and under which number.
    ending: HashMap<Cbh, (ProcessId, u64)>,
    next_process: u32,
    /// Since when nobody uses the card.
    idle_since: u64,
    board: Board,
}

struct User {
    channel: Channel,
    answers: VecDeque<Answer>,
    /// Words that were heard and whose answer has not been sent.
    owed: usize,
    /// A request that found no room.
    waiting: Option<Post>,
}

/// How long a card stays without processes: for one that comes back at once, and for the first.
const LINGERS_NS: u64 = 50_000_000;
const FIRST_NS: u64 = 5_000_000_000;
/// Words or packets that are taken from one queue before the others have their turn.
const MOST_AT_ONCE: usize = 64;
/// Answers that a process may be owed before no more of its words are heard: what a process that takes none costs the card.
const MOST_OWED: usize = 1024;
/// How soon a full queue is looked at again.
const FULL_NS: u64 = 200_000;

impl Server {
    fn new(name: &str, place: Option<&str>, options: CardOptions) -> Result<Server> {
        options.config.check()?;
        options.config.check_has_caches()?;
        let options = options.within_lockable(lockable())?;
        let card = Card::new(options.config)?;
        if let Some(place) = place.filter(|place| place.len() > LONGEST_ADDRESS) {
            let (what, must) = ("the address of a card", "at most 200 bytes long");
            return Err(Error::Parameter { what, must, value: place.to_owned() });
        }
        let scheme = place.and_then(|place| place.split(':').next()).filter(|scheme| *scheme != "shm");
        let schemes: Vec<&str> = ["shm"].into_iter().chain(scheme).collect();
        let node = Node::open(&schemes, &LinkOptions::default())?;
        let queue = EventQueue::new(&node);
        let entrance = Entrance::new(&node, name, place, &queue)?;
        let (frames, wake) = (Frames::default(), queue.attach(1));
        let line = options.config.vmh.line;
        let thread = Thread::start(frames.clone(), line, options.marks, queue.clone(), wake)?;
        Ok(Server {
            card,
            frames,
            thread,
            entrance,
            queue,
            users: BTreeMap::new(),
            lines: Lines::new(address(name), place, node),
            ending: HashMap::new(),
            next_process: 1,
            idle_since: clock::now() + FIRST_NS,
            board: Board::new(Kind::Process, name, &options.config)?,
        })
    }

    fn run(mut self) -> Result<Timing> {
        loop {
            let busy = self.turn()?;
            if self.is_over() {
                return Ok(self.thread.stop());
            }
            if !busy {
                self.board.show(&self.card.counters());
                self.sleep()?;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.users.is_empty() && !self.entrance.is_busy() && clock::now() > self.idle_since + LINGERS_NS
    }

    /// Looks at everything once. `true` if there was anything.
    fn turn(&mut self) -> Result<bool> {
        let mut any = self.let_in() | self.hear_users() | self.hear_cards() | self.hear_thread();
        self.card.handle_timeout(clock::now());
        any |= self.carry_out();
        Ok(any | self.answer_users())
    }

    fn sleep(&mut self) -> Result<()> {
        let now = clock::now();
        let full = self.users.values().any(|user| user.waiting.is_some() || !user.answers.is_empty());
        let open = self.lines.is_connecting() || self.entrance.is_busy();
        let soon = (full || open).then_some(now + FULL_NS);
        let end = self.users.is_empty().then_some(self.idle_since + LINGERS_NS + 1_000_000);
        let deadline = [self.card.poll_timeout(), soon, end].into_iter().flatten().min();
        match self.queue.wait(deadline) {
            Ok(_) | Err(FabricError::TimedOut(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn let_in(&mut self) -> bool {
        let guests = self.entrance.admit(&self.queue);
        let any = !guests.is_empty();
        for guest in guests {
            match guest {
                // With every number in use it is turned away.
                Guest::Card(channel) => drop(self.lines.add(channel)),
                Guest::Process(channel, memory) => self.settle_in(channel, &memory),
            }
        }
        any
    }

    fn settle_in(&mut self, channel: Channel, memory: &Memory) {
        let process = ProcessId(self.next_process);
        // Numbers are not used again; one that does not exist any more is turned away.
        let Some(next) = self.next_process.checked_add(1) else { return };
        if self.frames.attach(process, memory).is_ok() {
            self.next_process = next;
            self.thread.tell(Task::Attach(process, memory.len() as u64));
            self.card.attach(process);
            self.users.insert(process, User { channel, answers: VecDeque::new(), owed: 1, waiting: None });
            self.answer(process, Answer::Welcome { card: self.lines.own().to_owned() });
        }
    }

    /// Takes words of every process, at most so many of each that no process keeps the others waiting, and none of one that does
    /// not take its answers.
    fn hear_users(&mut self) -> bool {
        let mut any = false;
        for process in self.users.keys().copied().collect::<Vec<_>>() {
            for _ in 0..MOST_AT_ONCE {
                let Some(user) = self.users.get_mut(&process) else { break };
                if let Some(post) = user.waiting.take() {
                    if !self.post(process, post) {
                        break;
                    }
                    any = true;
                    continue;
                }
                if user.owed >= MOST_OWED {
                    // Its end does not wait for words that nobody hears.
                    if user.channel.endpoint.closed().is_some() {
                        self.dismiss(process);
                    }
                    break;
                }
                let mut buffer = [0; LONGEST];
                let word = match user.channel.receiver.try_receive_message(&mut buffer) {
                    Ok(None) if !user.channel.receiver.is_over() => break,
                    Ok(None) => None,
                    Ok(Some(len)) => Word::parse(&buffer[..len]),
                    Err(_) => None,
                };
                any = true;
                user.owed += 1;
                match word {
                    Some(Word::Post(post)) => {
                        if !self.post(process, post) {
                            break;
                        }
                    }
                    Some(word) => self.obey(process, word),
                    // It is gone, or says what no library says.
                    None => self.dismiss(process),
                }
            }
        }
        any
    }

    /// Hands a request to the card; `false` if it waits.
    fn post(&mut self, process: ProcessId, post: Post) -> bool {
        if !self.lines.leads_to(post.node) {
            // A number that no import has given out, or whose card is gone.
            self.answer(process, Answer::Completed { work: post.work, fault: Some(Fault::Unreachable) });
            return true;
        }
        let now = clock::now();
        let mut posted = self.card.post(now, process, post.clone());
        if posted == Err(NotPosted::Unmapped) && self.card.map_queue(process) {
            posted = self.card.post(now, process, post.clone());
        }
        match (posted, self.users.get_mut(&process)) {
            (Err(NotPosted::Unmapped | NotPosted::Full), Some(user)) => {
                user.waiting = Some(post);
                false
            }
            _ => true,
        }
    }

    fn obey(&mut self, process: ProcessId, word: Word) {
        match word {
            Word::Export { request, export } => {
                let key = Key(Random::key());
                self.thread.tell(Task::Register { process, request, export, key });
            }
            Word::Deregister { request, buffer } => {
                let cbh = Cbh { process, buffer };
                self.ending.insert(cbh, (process, request));
                self.thread.tell(Task::Deregister { request, cbh });
            }
            Word::Count { request } => self.thread.tell(Task::Count { process, request }),
            Word::Import { request, card } => match self.lines.find(&card, process, request) {
                Ok(Some(node)) => self.answer(process, Answer::Imported { request, node }),
                Ok(None) => {}
                Err(error) => self.answer(process, Answer::Failed { request, why: error.to_string() }),
            },
            Word::Post(_) => {}
        }
    }

    fn dismiss(&mut self, process: ProcessId) {
        if self.users.remove(&process).is_some() {
            self.thread.tell(Task::Detach(process));
            self.idle_since = clock::now();
        }
    }

    fn answer(&mut self, process: ProcessId, answer: Answer) {
        if let Some(user) = self.users.get_mut(&process) {
            user.answers.push_back(answer);
        }
    }

    fn answer_users(&mut self) -> bool {
        let mut any = false;
        for (process, user) in &mut self.users {
            while let Some(answer) = user.answers.front() {
                // A process that is gone is found when it is heard next.
                if !user.channel.sender.try_send_message(&answer.emit()).unwrap_or(true) {
                    break;
                }
                match user.answers.pop_front() {
                    Some(Answer::Notified { .. }) => self.card.notice_taken(*process),
                    _ => user.owed = user.owed.saturating_sub(1),
                }
                any = true;
            }
        }
        any
    }

    fn hear_cards(&mut self) -> bool {
        let now = clock::now();
        let mut any = false;
        for (process, answer) in self.lines.connect(&self.queue) {
            any = true;
            self.answer(process, answer);
        }
        while let Some(bytes) = self.lines.looped.pop_front() {
            any = true;
            self.card.handle_packet(now, OWN, &bytes);
        }
        let mut gone = Vec::new();
        let mut buffer = vec![0; packet::MAX_LEN];
        for (node, channel) in &mut self.lines.channels {
            for _ in 0..MOST_AT_ONCE {
                match channel.receiver.try_receive_message(&mut buffer) {
                    Ok(None) if !channel.receiver.is_over() => break,
                    Ok(Some(len)) => self.card.handle_packet(now, *node, &buffer[..len]),
                    Ok(None) | Err(_) => {
                        gone.push(*node);
                        break;
                    }
                }
                any = true;
            }
        }
        for node in gone {
            any = true;
            self.lines.remove(node);
            self.card.reset(now, node);
        }
        any
    }

    fn hear_thread(&mut self) -> bool {
        let (now, mut any) = (clock::now(), false);
        while let Ok(told) = self.thread.told.try_recv() {
            any = true;
            match told {
                Told::Fill(fill) => self.card.handle_fill(now, fill),
                Told::Registered { process, request, outcome } => {
                    let answer = match outcome {
                        Ok((cbh, key)) => Answer::Exported { request, cbh, key },
                        Err(error) => Answer::Failed { request, why: error.to_string() },
                    };
                    self.answer(process, answer);
                }
                Told::Deregistered { cbh, outcome: Ok(()), .. } => self.card.invalidate(now, cbh),
                Told::Deregistered { request, cbh, outcome: Err(error) } => {
                    self.ending.remove(&cbh);
                    self.answer(cbh.process, Answer::Failed { request, why: error.to_string() });
                }
                Told::Detached(process) => self.card.detach(now, process),
                Told::Counted { process, request, pinned, timing } => {
                    let standing = Standing::new(pinned, &self.card.counters(), timing);
                    self.answer(process, Answer::Counted { request, standing });
                }
            }
        }
        any
    }

    /// Does what the card wants.
    fn carry_out(&mut self) -> bool {
        let (now, mut any) = (clock::now(), false);
        loop {
            if let Some(Dma { engine, frame, offset, job }) = self.card.poll_dma() {
                let bytes = self.frames.copy(frame, offset, job);
                self.card.handle_dma(now, engine, bytes);
            } else if let Some(miss) = self.card.poll_miss() {
                self.thread.interrupt(miss);
            } else if let Some((node, bytes)) = self.card.poll_transmit(now) {
                self.lines.transmit(node, bytes);
            } else if let Some(event) = self.card.poll_event() {
                self.tell(event);
            } else {
                return any;
            }
            any = true;
        }
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::Completed { process, work, outcome } => {
                self.answer(process, Answer::Completed { work, fault: outcome.err() });
            }
            Event::Notified { cbh, at, len } => {
                self.answer(cbh.process, Answer::Notified { buffer: cbh.buffer, at, len });
            }
            Event::Invalidated(cbh) => {
                if let Some((process, request)) = self.ending.remove(&cbh) {
                    self.answer(process, Answer::Done { request });
                }
            }
            Event::Detached(process) => self.thread.tell(Task::Release(process)),
            Event::Message(..) => {}
        }
    }
}
