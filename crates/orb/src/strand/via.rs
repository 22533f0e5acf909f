//! VIA: messages of at most a buffer, from registered memory to registered memory.
//!
//! The bytes of the stream go from buffer to buffer; a GIOP message begins a buffer of its own, so that a small one is sent
//! at once. A message may only be sent if a receive is posted for it. Either the two ends see to that themselves: each has
//! [`BUFFERS`] receives posted, says in the immediate data of every message how many it has posted since, and sends a message
//! without bytes when it owes more than one and has nothing else to send ([`Flow::Credits`]). Or the provider does, by its flow
//! control ([`Flow::Provider`]).

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sidestep_fabric::Node;
use sidestep_sys::clock;
use sidestep_vi::{
    Buffer, Completion, Cq, Descriptor, Error, FlowControl, MemAttributes, NetAddress, Nic, Ptag, Queue, Vi,
    ViAttributes,
};

use super::fabric::nanoseconds;
use super::{Close, Endpoint, Listener, ReceiveHalf, SendHalf, Strand, Watch, io_error};

/// Who sees to it that a receive is posted for every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Flow {
    Credits,
    Provider,
}

impl Flow {
    /// What names of such endpoints begin with in references.
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Flow::Credits => "via:",
            Flow::Provider => "via-flow:",
        }
    }
}

/// Connects to a broker by VIA.
pub(crate) fn connect_via(card: &Card, name: &str, flow: Flow, deadline: Option<Instant>) -> io::Result<Strand> {
    Connected::connect(card, name, flow, deadline).map(strand)
}

fn strand(connected: Connected) -> Strand {
    let half = Half(Arc::new(connected));
    Strand { sender: Box::new(half.clone()), receiver: Box::new(half.clone()), closer: Arc::new(half) }
}

/// Both halves are one: whoever sends may have to take in credits.
#[derive(Clone)]
struct Half(Arc<Connected>);

/// A connected VI.
struct Connected {
    vi: Vi,
    nic: Nic,
    flow: Flow,
    memory: Buffer,
    outward: Mutex<Outward>,
    /// Credits have come, or nobody takes them in any more.
    credited: Condvar,
    inward: Mutex<Inward>,
}

struct Outward {
    /// Messages that may be sent.
    credits: u32,
    /// Receives that were posted since the peer was told.
    owed: u32,
    /// The buffer that is being filled, and how far.
    slot: usize,
    filled: usize,
    busy: [bool; BUFFERS],
}

struct Inward {
    /// Buffers that have been received: which, how far it was read, and its length.
    ready: VecDeque<(usize, usize, usize)>,
    over: bool,
    /// What is told of every receive that completes, unless somebody waits for one.
    watched: Option<Cq>,
}

/// How many buffers there are in each direction, and the bytes of each.
const BUFFERS: usize = 4;
const SIZE: usize = 8192;

/// A credit that a peer is owed is kept back for the next message as long as it is the only one.
const KEPT_BACK: u32 = 1;

impl Connected {
    fn connect(card: &Card, name: &str, flow: Flow, deadline: Option<Instant>) -> io::Result<Self> {
        let strand = Self::new(card, flow).map_err(via_error)?;
        let deadline = nanoseconds(deadline).unwrap_or_else(|| clock::now() + CONNECTING_NS);
        // This fails at once if nobody listens; the provider's own wait would go on asking.
        let asked = strand.vi.begin_connect(&NetAddress::default(), &address(name, flow));
        let mut connecting = asked.map_err(via_error)?;
        while !connecting.poll().map_err(via_error)? {
            if clock::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            card.nic.node().progress();
            std::thread::sleep(ASK_AGAIN);
        }
        Ok(strand)
    }

    fn new(card: &Card, flow: Flow) -> Result<Self, Error> {
        let memory = card.nic.allocate(2 * BUFFERS * SIZE, &MemAttributes::new(card.ptag))?;
        let vi = card.nic.create_vi(&ViAttributes::new(card.ptag), None, None)?;
        let outward = Outward { credits: BUFFERS as u32, owed: 0, slot: 0, filled: 0, busy: [false; BUFFERS] };
        let inward = Inward { ready: VecDeque::with_capacity(BUFFERS), over: false, watched: None };
        let (outward, inward) = (Mutex::new(outward), Mutex::new(inward));
        let strand = Self { vi, nic: card.nic.clone(), flow, memory, outward, credited: Condvar::new(), inward };
        (0..BUFFERS).try_for_each(|slot| strand.post(slot))?;
        Ok(strand)
    }

    /// Posts the receive of a buffer.
    fn post(&self, slot: usize) -> Result<(), Error> {
        self.vi.post_receive(&Descriptor::new(slot as u64, &[self.memory.segment(slot * SIZE, SIZE)]))
    }

    fn outward(&self) -> MutexGuard<'_, Outward> {
        self.outward.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inward(&self) -> MutexGuard<'_, Inward> {
        self.inward.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is in the buffer that is being filled.
    fn send_buffer(&self, deadline: Option<Instant>) -> io::Result<()> {
        let mut outward = self.await_credit(deadline)?;
        let (slot, filled) = (outward.slot, std::mem::take(&mut outward.filled));
        let segment = self.memory.segment((BUFFERS + slot) * SIZE, filled);
        let descriptor = Descriptor::new(slot as u64, &[segment]).with_immediate(std::mem::take(&mut outward.owed));
        outward.busy[slot] = true;
        outward.slot = (slot + 1) % BUFFERS;
        drop(outward);
        match self.flow {
            Flow::Credits => self.vi.post_send(&descriptor),
            Flow::Provider => self.vi.post_send_with(&descriptor, FlowControl::Blocking, nanoseconds(deadline)),
        }
        .map_err(via_error)?;
        self.await_buffer(deadline)
    }

    /// Waits until the next buffer can be filled.
    fn await_buffer(&self, deadline: Option<Instant>) -> io::Result<()> {
        loop {
            while let Some(sent) = self.vi.poll_send() {
                self.note_sent(&sent)?;
            }
            let outward = self.outward();
            if !outward.busy[outward.slot] {
                return Ok(());
            }
            drop(outward);
            let sent = self.vi.wait_send(nanoseconds(deadline)).map_err(via_error)?;
            self.note_sent(&sent)?;
        }
    }

    fn note_sent(&self, sent: &Completion) -> io::Result<()> {
        if sent.status.is_error() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if let Some(busy) = self.outward().busy.get_mut(sent.token as usize) {
            *busy = false;
        }
        Ok(())
    }

    /// Waits until a message may be sent, and takes the credit for it.
    fn await_credit(&self, deadline: Option<Instant>) -> io::Result<MutexGuard<'_, Outward>> {
        let mut outward = self.outward();
        if self.flow == Flow::Provider {
            return Ok(outward);
        }
        // The last credit is only for a message that gives some back: else both ends could wait for each other.
        while !(outward.credits > 1 || outward.credits == 1 && outward.owed > 0) {
            if let Ok(mut inward) = self.inward.try_lock() {
                drop(outward);
                if !self.take_in(&mut inward, deadline)? {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                drop(inward);
                outward = self.outward();
                continue;
            }
            // Whoever takes messages in takes credits in, too.
            outward = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => self.credited.wait(outward).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
                Some(left) => self.credited.wait_timeout(outward, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        outward.credits -= 1;
        Ok(outward)
    }

    /// Takes in a message, waiting for it if need be; false at the end.
    fn take_in(&self, inward: &mut Inward, deadline: Option<Instant>) -> io::Result<bool> {
        if inward.over {
            return Ok(false);
        }
        let received = match self.vi.poll_receive() {
            Some(received) => received,
            None if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            None => {
                // A queue that reports elsewhere cannot be waited for. Nothing is missed: whoever waits looks again.
                if inward.watched.is_some() {
                    self.vi.move_to(Queue::Receive, None);
                }
                let received = self.vi.wait_receive(nanoseconds(deadline));
                if inward.watched.is_some() {
                    self.vi.move_to(Queue::Receive, inward.watched.as_ref());
                }
                received.map_err(via_error)?
            }
        };
        let slot = received.token as usize;
        if received.status.is_error() || slot >= BUFFERS {
            inward.over = true;
            return Ok(false);
        }
        // A peer that gives more credits than there are buffers ends its own connection by using them.
        let given = received.immediate.unwrap_or(0).min(BUFFERS as u32);
        if given > 0 {
            let mut outward = self.outward();
            outward.credits = (outward.credits + given).min(BUFFERS as u32);
            self.credited.notify_all();
        }
        match (received.len as usize).min(SIZE) {
            0 => self.give_back(slot)?,
            len => inward.ready.push_back((slot, 0, len)),
        }
        Ok(true)
    }

    /// Copies out what has been received.
    fn take_out(&self, inward: &mut Inward, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        let (slot, at, len) = loop {
            match inward.ready.front() {
                Some(first) => break *first,
                None => {
                    if !self.take_in(inward, deadline)? {
                        return Ok(0);
                    }
                }
            }
        };
        let count = into.len().min(len - at);
        self.memory.read(slot * SIZE + at, &mut into[..count]).map_err(via_error)?;
        inward.ready[0].1 += count;
        if at + count == len {
            inward.ready.pop_front();
            self.give_back(slot)?;
        }
        Ok(count)
    }

    /// Posts a receive again, and tells the peer when it is time.
    fn give_back(&self, slot: usize) -> io::Result<()> {
        self.post(slot).map_err(via_error)?;
        if self.flow == Flow::Provider {
            return Ok(());
        }
        let mut outward = self.outward();
        outward.owed += 1;
        if outward.owed > KEPT_BACK && outward.credits > 0 {
            // If there is no room for it now, the next message tells.
            match self.vi.send_inline(&[], outward.owed, 0) {
                Ok(true) => (outward.owed, outward.credits) = (0, outward.credits - 1),
                Ok(false) => {}
                Err(error) => return Err(via_error(error)),
            }
        }
        Ok(())
    }
}

impl SendHalf for Half {
    fn send(&mut self, bytes: &[u8], more: bool, deadline: Option<Instant>) -> io::Result<()> {
        self.0.send(bytes, more, deadline)
    }
}

impl ReceiveHalf for Half {
    fn receive(&mut self, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        self.0.receive(into, deadline)
    }

    fn has_news(&mut self) -> bool {
        self.0.vi.has_arrivals()
    }

    fn attach(&mut self, watch: &Watch, token: u64) -> io::Result<()> {
        let Watch::Via(completions) = watch else { return Err(io::ErrorKind::Unsupported.into()) };
        self.0.vi.set_user_word(token);
        self.0.vi.move_to(Queue::Receive, Some(&completions.queue));
        self.0.inward().watched = Some(completions.queue.clone());
        Ok(())
    }
}

impl Close for Half {
    fn close(&self) {
        // It may be over already.
        let _ = self.0.vi.disconnect();
        self.0.credited.notify_all();
    }
}

impl Connected {
    fn send(&self, bytes: &[u8], more: bool, deadline: Option<Instant>) -> io::Result<()> {
        let mut outward = self.outward();
        let may_send = self.flow == Flow::Provider || outward.credits > 1;
        let is_small = outward.filled == 0 && !more && bytes.len() <= Vi::INLINE;
        if is_small && may_send && self.vi.send_inline(bytes, outward.owed, 0).map_err(via_error)? {
            outward.owed = 0;
            outward.credits = outward.credits.saturating_sub(u32::from(self.flow == Flow::Credits));
            return Ok(());
        }
        drop(outward);
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut outward = self.outward();
            let count = rest.len().min(SIZE - outward.filled);
            let at = (BUFFERS + outward.slot) * SIZE + outward.filled;
            self.memory.write(at, &rest[..count]).map_err(via_error)?;
            outward.filled += count;
            rest = &rest[count..];
            if outward.filled == SIZE {
                drop(outward);
                self.send_buffer(deadline)?;
            }
        }
        if more || self.outward().filled == 0 {
            return Ok(());
        }
        self.send_buffer(deadline)
    }

    fn receive(&self, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        let received = self.take_out(&mut self.inward(), into, deadline);
        if self.flow == Flow::Credits {
            // A sender that found somebody here looks for its credits itself from now on.
            let _outward = self.outward();
            self.credited.notify_all();
        }
        received
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.vi.retire();
        // The peer could write it until now, so it is never used for another connection.
        let _ = self.nic.deregister(self.memory.address(), self.memory.handle());
    }
}

/// Accepts connections under a name.
pub(crate) struct ViaListener {
    card: Card,
    name: String,
    flow: Flow,
    closed: AtomicBool,
}

/// The NIC of a broker, on its own node of the fabric, and the tag of its memory.
#[derive(Clone)]
pub(crate) struct Card {
    nic: Nic,
    ptag: Ptag,
}

impl Card {
    pub(crate) fn new(node: &Node) -> io::Result<Self> {
        let nic = Nic::on(node.clone(), "shm", "orb").map_err(via_error)?;
        let ptag = nic.create_ptag().map_err(via_error)?;
        Ok(Self { nic, ptag })
    }
}

/// How late a listener sees that it was closed.
const LOOK_AGAIN_NS: u64 = 200_000_000;

/// How long to wait for an answer, and between looks for it.
const CONNECTING_NS: u64 = 10_000_000_000;
const ASK_AGAIN: Duration = Duration::from_micros(20);

/// How many completions a watch is meant to hold: every buffer of many connections.
const COMPLETIONS: usize = 16 * 1024;

impl ViaListener {
    pub(crate) fn new(card: Card, name: &str, flow: Flow) -> io::Result<Self> {
        card.nic.listen(&address(name, flow)).map_err(via_error)?;
        Ok(Self { card, name: name.to_owned(), flow, closed: AtomicBool::new(false) })
    }
}

impl Listener for ViaListener {
    fn accept(&self) -> io::Result<Strand> {
        let address = address(&self.name, self.flow);
        loop {
            if self.closed.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::NotConnected.into());
            }
            match self.card.nic.connect_wait(&address, Some(clock::now() + LOOK_AGAIN_NS)) {
                Ok(mut request) => {
                    let connected = Connected::new(&self.card, self.flow).map_err(via_error)?;
                    request.accept(&connected.vi).map_err(via_error)?;
                    return Ok(strand(connected));
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(via_error(error)),
            }
        }
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::Via { name: self.name.clone(), flow: self.flow }
    }

    fn watch(&self) -> io::Result<Watch> {
        let queue = self.card.nic.create_cq(COMPLETIONS).map_err(via_error)?;
        Ok(Watch::via(queue, self.card.nic.node().clone()))
    }
}

/// Endpoints with different flow control are different endpoints.
fn address(name: &str, flow: Flow) -> NetAddress {
    NetAddress::new(b"", format!("orb:{}{name}", flow.scheme()).as_bytes())
}

fn is_timeout(error: &Error) -> bool {
    matches!(error, Error::TimedOut | Error::Fabric(sidestep_fabric::Error::TimedOut(_)))
}

fn via_error(error: Error) -> io::Error {
    match error {
        Error::Fabric(error) => io_error(error),
        Error::TimedOut => io::ErrorKind::TimedOut.into(),
        error @ (Error::NoMatch | Error::NotReachable | Error::Rejected) => {
            io::Error::new(io::ErrorKind::ConnectionRefused, error)
        }
        error @ Error::State { .. } => io::Error::new(io::ErrorKind::ConnectionReset, error),
        error => io::Error::other(error),
    }
}
