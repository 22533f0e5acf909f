//! A link: the bytes of a stream over a connected VI (the sockets of SOVIA, and the substrate over EMP).
//!
//! Every packet takes a receive that the other side has posted, so the sender has as many *credits* as there are receives
//! for data, and acknowledgements give them back. What an acknowledgement says rides in the immediate data of data that
//! goes the other way, or is told after so many packets (see [`Options`]), by a packet of its own, or
//! by an RDMA write to a word of the sender, which takes no receive.
//!
//! *Notes* are the words by which the two ends of a stream agree where its bytes go. They travel in packets of their own,
//! behind the data that was sent before them, and find room that data leaves to them.
//!
//! # Invariants
//!
//! - L1. A packet is handed to the VI only if it goes out at once ([`Vi::try_send`]). What has been sent lies in memory of the
//!   peer, and nobody has to go on with it: not a program that computes, and not one that has closed. Where the peer's memory is
//!   not mapped, it has been handed to the NIC's node, whose thread goes on with it as long as the process lives.
//! - L2. `written` never runs ahead of what can be read, and `read` not ahead of what was sent: the peer's word for it is cut.
//! - L3. Locks: `inward` before `outward`, the other way round only by a try, and no lock of the engine's inside either.

pub mod cache;
mod credit;
mod halves;
mod inward;
mod notes;
mod offer;
pub mod options;
mod outward;
pub mod packet;
mod port;
mod returning;
mod shared;
pub mod timer;

pub use self::{
    halves::{Inbound, Outbound, Watch, carry},
    options::Options,
    port::{Call, Caller, Place, Port, Refusal},
    shared::SharedNews,
};

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use sidestep_sys::{cpu, lock::Lock};
use sidestep_vi::{Buffer, FlowControl, MemAttributes, MemHandle, Nic, Ptag, Remote, Vi, ViAttributes, Way};

use super::{Host, reports::Reports};

use self::{
    credit::Words,
    inward::{Inward, Received},
    notes::Notes,
    outward::{Outward, SPARED, Sent},
    packet::{Kind, Packet},
};

/// One end of a link.
#[derive(Debug)]
pub struct Link {
    line: Line,
    options: Options,
    host: &'static Host,
    reports: Arc<Reports>,
    words: Words,
    notes: Notes,
    inward: Lock<Inward>,
    outward: Lock<Outward>,
    received: Received,
    sent: Sent,
    /// The first packet was sent, and a handler takes what arrives.
    greeted: AtomicBool,
    handled: AtomicBool,
    lost: AtomicBool,
    /// Acknowledgements that were sent by packets of their own.
    pub acks: AtomicU64,
}

/// What a link stands on.
#[derive(Debug)]
struct Line {
    nic: Nic,
    vi: Vi,
    ptag: Ptag,
    /// The words of this side, and room for packets.
    memory: Buffer,
    /// The peer's memory is not mapped: everything travels, and what has come is found by a poll of the node.
    distant: bool,
}

/// The connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

/// Notes of one side: two of its writer, one of its reader.
const NOTES: usize = 3;
const READER: usize = 2;
/// What is written to the peer's word goes from here.
const DRAFT: usize = 64;
/// Where this side leaves word how far it has read.
const WITNESS: usize = 72;
/// Where the peer writes what it has read.
const BOARD: usize = 0;
/// Where the memory for packets begins.
const PACKETS: usize = 192;
/// Tokens of sends that are no packets of data.
const CONTROL: u64 = u64::MAX;

impl Link {
    /// One that is not connected; its receives are posted.
    pub fn new(nic: &Nic, options: Options, host: &'static Host) -> sidestep_vi::Result<Arc<Link>> {
        let ptag = nic.create_ptag()?;
        let distant = nic.is_served();
        let options = if distant { options.over_a_wire() } else { options };
        let rdma = !distant;
        let attributes = ViAttributes { rdma_write: rdma, rdma_read: rdma, ..ViAttributes::new(ptag) };
        let vi = nic.create_vi(&attributes, None, None)?;
        if distant {
            // What is placed by RDMA has to be gone on with once it is there; what is carried does not.
            vi.set_way(Way::Pio);
        }
        // The peer's receives must be known before anything is sent.
        vi.set_flow_control(FlowControl::NonBlocking);
        let slots = outward::SLOTS * outward::slot_len(&options);
        let len = PACKETS + slots + options.receives() * inward::stride(&options);
        // A mapping cannot be limited: what lies here is looked at once, and whatever the peer makes of it is its own loss.
        let memory = nic.allocate(len, &MemAttributes { ptag, rdma_write: rdma, rdma_read: rdma })?;
        let link = Link {
            words: Words::new(&memory)?,
            line: Line { nic: nic.clone(), vi, ptag, memory, distant },
            options,
            host,
            reports: Arc::default(),
            notes: Notes::default(),
            inward: Lock::default(),
            outward: Lock::default(),
            received: Received::default(),
            sent: Sent::default(),
            greeted: AtomicBool::new(false),
            handled: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            acks: AtomicU64::new(0),
        };
        let reports = link.reports.clone();
        link.line.vi.set_alert(move || reports.fire());
        for slot in 0..options.receives() {
            link.post(slot)?;
        }
        Ok(Arc::new(link))
    }

    /// The VI, to be connected.
    pub fn vi(&self) -> &Vi {
        &self.line.vi
    }

    /// What tells of arrivals while nobody looks.
    pub fn reports(&self) -> &Reports {
        &self.reports
    }

    /// The NIC of it.
    pub fn nic(&self) -> &Nic {
        &self.line.nic
    }

    /// How it works.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// After the VI was connected, until it is true: greets the peer, and hears whether it has done so.
    pub fn is_ready(self: &Arc<Self>) -> bool {
        if self.handled.load(Ordering::Relaxed) {
            return true;
        }
        self.line.vi.catch_up();
        self.absorb_waiting();
        if !self.greeted.load(Ordering::Relaxed) {
            // The peer's receives may not be known yet.
            self.greeted.store(self.greet() == Ok(true), Ordering::Relaxed);
        }
        let ready = self.words.theirs.get().is_some() && self.greeted.load(Ordering::Relaxed);
        if ready && self.options.handler {
            self.handled.store(true, Ordering::Relaxed);
            timer::handle(self);
        }
        ready
    }

    fn greet(&self) -> Result<bool, Lost> {
        let board = [self.line.memory.address(), u64::from(self.line.memory.handle().0)];
        self.push(Kind::Wakeup, &packet::note(board))
    }

    /// Whether the connection is over.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether the peer may be on another host, so that its memory is not mapped.
    pub fn is_distant(&self) -> bool {
        self.line.distant
    }

    /// Whether everything that was sent, the last note too, lies in memory of the peer. The mark is kept by the caller from one
    /// call to the next.
    pub fn has_arrived(&self, mark: &mut Option<u64>) -> bool {
        if mark.is_none() && !self.go_on() {
            return false;
        }
        self.line.vi.has_landed(*mark.get_or_insert_with(|| self.line.vi.mark()))
    }

    /// Sees whether the connection stands.
    pub fn check(&self) -> bool {
        self.look_at_wire();
        if !self.line.vi.is_connected() {
            self.absorb();
            self.lost.store(true, Ordering::Relaxed);
        }
        !self.is_lost()
    }

    /// Sends what waits for room: writes that are held, notes. `true`: nothing does.
    pub fn go_on(&self) -> bool {
        if self.sent.holds.load(Ordering::Relaxed) && !self.flush() {
            return false;
        }
        if self.notes.owed.load(Ordering::Relaxed) {
            let _ = self.tell_notes(&mut self.notes.own.lock(), Kind::Note);
        }
        !self.notes.owed.load(Ordering::Relaxed)
    }

    /// Wakes the peer, and says nothing. If it has not taken what was sent before, that wakes it as well: notes need the room.
    pub fn nudge(&self) {
        let _ = self.push_with(Kind::Wakeup, &[], SPARED);
    }

    /// Whether small writes go out one by one: TCP_NODELAY.
    pub fn set_prompt(&self, prompt: bool) {
        self.sent.prompt.store(prompt, Ordering::Relaxed);
        if prompt && self.sent.holds.load(Ordering::Relaxed) {
            self.flush();
        }
    }

    /// Has the next arrival make news at the node; look again after this.
    pub fn arm(&self) {
        self.line.vi.arm();
    }

    /// Before a sleep, and after `arm`: takes everything that has come, also if another thread is at it, and owes nothing.
    pub fn settle(&self) {
        self.look_at_wire();
        if !self.handled.load(Ordering::Relaxed) {
            self.line.vi.catch_up();
            self.absorb_waiting();
        }
        self.go_on();
        if self.owes() {
            self.acknowledge(&mut self.inward.lock());
        }
    }

    /// Where the peer last ran.
    #[inline]
    pub fn peer_core(&self) -> u32 {
        if self.line.distant {
            let own = cpu::current_core();
            let shared = self.line.vi.peer().is_some_and(|peer| self.line.nic.node().peer(peer).shares_core(own));
            return if shared { own } else { u32::MAX };
        }
        self.line.vi.peer_core()
    }

    /// Over a wire: lets what has come into memory. In a process that has shut itself in, the node's own thread does that.
    #[inline]
    fn look_at_wire(&self) {
        if self.line.distant && !(self.host.is_sandboxed)() {
            self.line.nic.node().progress_served();
        }
    }

    /// Sends a packet that is no data, and with it what was read. `false`: no room.
    fn push(&self, kind: Kind, bytes: &[u8]) -> Result<bool, Lost> {
        self.push_with(kind, bytes, 0)
    }

    /// The same, if so much room is left to others.
    fn push_with(&self, kind: Kind, bytes: &[u8], spared: usize) -> Result<bool, Lost> {
        let read = self.take_owed();
        let packet = Packet { kind, wants: false, read };
        let mut sent = self.line.vi.send_inline(bytes, packet.to_bits(), spared);
        if sent == Ok(false) {
            // The peer may have told of more receives.
            self.line.vi.progress();
            sent = self.line.vi.send_inline(bytes, packet.to_bits(), spared);
        }
        if sent != Ok(true) {
            self.give_back(read);
        }
        sent.map_err(|_| self.lose())
    }

    fn lose(&self) -> Lost {
        if !self.line.vi.is_connected() {
            self.lost.store(true, Ordering::Relaxed);
        }
        Lost
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.line.vi.retire();
        self.outward.lock().cache.clear(&self.line.nic);
        let _ = self.line.nic.deregister(self.line.memory.address(), self.line.memory.handle());
        let _ = self.line.nic.destroy_ptag(self.line.ptag);
    }
}

/// Where acknowledgements can be written, as the first packet says.
fn greeting([address, handle]: [u64; 2]) -> Remote {
    Remote { address, handle: MemHandle(handle as u32) }
}
