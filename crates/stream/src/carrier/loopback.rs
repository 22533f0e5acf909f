//! A carrier within one process, in ordinary memory: the least that fulfils the contract, for tests of what stands on carriers.

use std::{
    collections::VecDeque,
    io::IoSlice,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
};

use sidestep_fabric::{EventQueue, Node, event::SourceId};
use sidestep_sys::{cpu, lock::Lock};

use super::{AnyInbound, AnyOutbound, AnyWatch, Capabilities, Carrier, Fault, Halves, Kind, Result, reports::Reports};

/// The sending half.
#[derive(Debug)]
pub struct Outbound {
    end: Arc<End>,
    capacity: u64,
}

/// The receiving half.
#[derive(Debug)]
pub struct Inbound(Arc<End>);

/// What comes for an end.
#[derive(Debug)]
pub struct Watch(Arc<End>);

/// One of two ends. The peer is told when it goes.
#[derive(Debug)]
struct End {
    /// Where this end writes, and where it reads.
    out: Arc<Lane>,
    inward: Arc<Lane>,
    /// This end, and the other one, are gone.
    gone: [Arc<AtomicBool>; 2],
}

/// One direction.
#[derive(Debug)]
struct Lane {
    bytes: Lock<VecDeque<u8>>,
    capacity: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
    /// Two of the writer, one of the reader.
    notes: [AtomicU64; 3],
    arrival: Bell,
    space: Bell,
}

/// Who is told of news.
#[derive(Debug)]
struct Bell {
    node: Node,
    armed: AtomicBool,
    reports: Reports,
}

/// Two ends, whose waits are at these nodes; each direction takes so many bytes.
pub fn pair(nodes: [&Node; 2], capacity: u64) -> [Halves; 2] {
    let [first, second] = nodes;
    let lanes = [Lane::new(second, first, capacity), Lane::new(first, second, capacity)].map(Arc::new);
    let gone = [false; 2].map(AtomicBool::new).map(Arc::new);
    [0, 1].map(|side| {
        let [out, inward] = [side, 1 - side].map(|lane| lanes[lane].clone());
        let gone = [side, 1 - side].map(|side| gone[side].clone());
        let end = Arc::new(End { out, inward, gone });
        Halves {
            carrier: Arc::new(Carrier::new(nodes[side], AnyWatch::Loopback(Watch(end.clone())), capacity)),
            outbound: Some(AnyOutbound::Loopback(Outbound { end: end.clone(), capacity })),
            inbound: Some(AnyInbound::Loopback(Inbound(end))),
        }
    })
}

impl Lane {
    fn new(reader: &Node, writer: &Node, capacity: u64) -> Lane {
        Lane {
            bytes: Lock::default(),
            capacity: AtomicU64::new(capacity),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            notes: Default::default(),
            arrival: Bell::new(reader),
            space: Bell::new(writer),
        }
    }
}

impl Bell {
    fn new(node: &Node) -> Bell {
        Bell { node: node.clone(), armed: AtomicBool::new(false), reports: Reports::default() }
    }

    fn arm(&self) {
        // SeqCst here and in `ring`: who armed finds what was stored before, or who stored finds it armed.
        self.armed.store(true, SeqCst);
        self.reports.arm();
    }

    fn ring(&self) {
        if self.armed.swap(false, SeqCst) {
            self.node.wake();
        }
        self.reports.fire();
    }
}

impl End {
    fn peer_is_gone(&self) -> bool {
        self.gone[1].load(SeqCst)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.gone[0].store(true, SeqCst);
        self.out.arrival.node.wake();
    }
}

impl super::Outbound for Outbound {
    fn send(&mut self, parts: &[IoSlice<'_>], _patient: bool) -> Result<usize> {
        if self.end.peer_is_gone() {
            return Err(Fault::Closed);
        }
        let mut count = 0;
        for part in parts {
            let part = &part[..part.len().min(self.space())];
            let mut bytes = self.end.out.bytes.lock();
            bytes.extend(part);
            self.end.out.written.fetch_add(part.len() as u64, SeqCst);
            count += part.len();
        }
        self.end.out.arrival.ring();
        Ok(count)
    }

    fn position(&self) -> u64 {
        self.end.out.written.load(SeqCst)
    }

    fn space(&mut self) -> usize {
        let held = self.end.out.bytes.lock().len();
        (self.capacity as usize).saturating_sub(held)
    }

    fn set_note(&mut self, which: usize, note: u64) -> Result<()> {
        self.end.out.notes[which & 1].store(note, SeqCst);
        self.end.out.arrival.ring();
        Ok(())
    }

    fn adopt_larger(&mut self) -> Option<u64> {
        let larger = self.end.out.capacity.load(SeqCst);
        (larger > self.capacity).then(|| {
            self.capacity = larger;
            larger
        })
    }

    fn witness(&self) -> Option<u64> {
        Some(self.end.out.read.load(SeqCst))
    }
}

impl super::Inbound for Inbound {
    fn receive(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let count = self.peek(0, bytes)?;
        self.consume(count)?;
        Ok(count)
    }

    fn peek(&mut self, skip: usize, bytes: &mut [u8]) -> Result<usize> {
        let there = self.0.inward.bytes.lock();
        let count = there.len().saturating_sub(skip).min(bytes.len());
        bytes.iter_mut().zip(there.iter().skip(skip)).for_each(|(place, byte)| *place = *byte);
        Ok(count)
    }

    fn consume(&mut self, count: usize) -> Result<()> {
        let mut bytes = self.0.inward.bytes.lock();
        let count = count.min(bytes.len());
        bytes.drain(..count);
        drop(bytes);
        if count > 0 {
            self.0.inward.read.fetch_add(count as u64, SeqCst);
            self.0.inward.space.ring();
        }
        Ok(())
    }

    fn available(&mut self) -> usize {
        self.0.inward.bytes.lock().len()
    }

    fn has_news(&mut self) -> bool {
        self.available() > 0
    }

    fn position(&mut self) -> u64 {
        self.0.inward.read.load(SeqCst)
    }

    /// The peer sees every read.
    fn testify(&mut self) -> (u64, *const u8) {
        (self.position(), std::ptr::null())
    }

    fn set_note(&mut self, note: u64) -> Result<()> {
        self.0.inward.notes[READER].store(note, SeqCst);
        self.0.inward.space.ring();
        Ok(())
    }

    fn capacity(&mut self) -> usize {
        self.0.inward.capacity.load(SeqCst) as usize
    }

    fn grow(&mut self, bytes: usize) -> bool {
        self.0.inward.capacity.fetch_max(bytes as u64, SeqCst) < bytes as u64
    }
}

impl super::Watch for Watch {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: Kind::Loopback,
            grows: true,
            freezes: false,
            holds_back: false,
            lends: false,
            packets: false,
            far: false,
        }
    }

    fn written(&self) -> u64 {
        self.0.inward.written.load(SeqCst)
    }

    fn read(&self) -> u64 {
        self.0.out.read.load(SeqCst)
    }

    fn writer_note(&self, which: usize) -> u64 {
        self.0.inward.notes[which & 1].load(SeqCst)
    }

    fn reader_note(&self) -> u64 {
        self.0.out.notes[READER].load(SeqCst)
    }

    fn peer_core(&self) -> u32 {
        cpu::current_core()
    }

    fn stands(&self) -> bool {
        !self.0.peer_is_gone()
    }

    fn arm_arrival(&self) {
        self.0.inward.arrival.arm();
    }

    fn arm_space(&self) {
        self.0.out.space.arm();
    }

    fn attach(&self, news: &EventQueue, token: u64) -> Vec<SourceId> {
        let bells = [(&self.0.inward.arrival, token), (&self.0.out.space, token + 1)];
        let attach = |(bell, token): (&Bell, u64)| {
            let source = news.attach(token);
            bell.reports.tell(news, source);
            source
        };
        bells.map(attach).to_vec()
    }

    fn detach(&self, news: &EventQueue, source: SourceId) {
        news.detach(source);
        [&self.0.inward.arrival, &self.0.out.space].iter().for_each(|bell| bell.reports.forget(news, source));
    }

    fn nudge(&self) {
        self.0.out.arrival.node.wake();
    }
}

/// The reader's note.
const READER: usize = 2;
