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
mod shared;
pub mod timer;

pub use self::{
    halves::{Inbound, Outbound, Watch, carry},
    options::Options,
    shared::SharedNews,
};

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use sidestep_shm::Word64;
use sidestep_sys::{cpu, lock::Lock};
use sidestep_vi::{Buffer, FlowControl, MemAttributes, MemHandle, Nic, Ptag, Remote, Vi, ViAttributes, Way};

use super::{Host, reports::Reports};

use self::{
    inward::Inward,
    outward::Outward,
    packet::{Kind, Packet},
};

/// One end of a link.
#[derive(Debug)]
pub struct Link {
    nic: Nic,
    vi: Vi,
    reports: Arc<Reports>,
    /// The peer's memory is not mapped: everything travels, and what has come is found by a poll of the node.
    distant: bool,
    ptag: Ptag,
    memory: Buffer,
    options: Options,
    host: &'static Host,
    /// What the peer has read, as it writes it here by RDMA, and where this side writes it.
    board: Word64,
    theirs: OnceLock<Remote>,
    /// The word on which both agree about what this side offers, and about what the peer does.
    claim: Word64,
    peer_claim: OnceLock<Word64>,
    /// How far this side has read, for a peer that outlives this process, and the peer's word for it.
    witness: Word64,
    peer_witness: OnceLock<Word64>,
    /// The last notes that the peer left: two of its writer, one of its reader.
    notes: [AtomicU64; NOTES],
    /// Notes of this side for which there was no room.
    untold: Lock<[Option<u64>; NOTES]>,
    owes_notes: AtomicBool,
    inward: Lock<Inward>,
    outward: Lock<Outward>,
    /// Bytes that have arrived, how far they have been read here, and how far the peer has read.
    written: AtomicU64,
    position: AtomicU64,
    read: AtomicU64,
    /// Bytes that were sent; those that the peer took from where they were; those that it offers.
    sent: AtomicU64,
    lent: AtomicU64,
    offered: AtomicU64,
    /// Packets that were sent, and that the peer has read.
    sent_packets: AtomicU32,
    read_packets: AtomicU32,
    /// What was read here, and how much of that was acknowledged: packets, bytes.
    taken: AtomicU64,
    told: AtomicU64,
    /// What this side has written into the peer's memory of that, and what the peer has written here.
    posted: AtomicU64,
    heard: AtomicU64,
    /// The first packet was sent, and a handler takes what arrives.
    greeted: AtomicBool,
    handled: AtomicBool,
    /// Receives wait to be posted again.
    unposted: AtomicBool,
    /// The peer wants an acknowledgement when everything has been read.
    wanted: AtomicBool,
    /// Writes wait to be combined, and the timer knows.
    holds: AtomicBool,
    watched: AtomicBool,
    /// Whether small writes are not combined: TCP_NODELAY.
    prompt: AtomicBool,
    /// The peer's FIN has come, and the answer to ours.
    fin: AtomicBool,
    finished: AtomicBool,
    lost: AtomicBool,
    /// Acknowledgements that were sent by packets of their own.
    pub acks: AtomicU64,
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
/// Where the memory for packets begins.
const PACKETS: usize = 192;
/// Tokens of sends that are no packets of data.
const CONTROL: u64 = u64::MAX;

impl Link {
    /// One that is not connected; its receives are posted.
    pub fn new(nic: &Nic, options: Options, host: &'static Host) -> sidestep_vi::Result<Arc<Link>> {
        let ptag = nic.create_ptag()?;
        let distant = nic.is_distant();
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
        let (board, claim) = (memory.word(0)?, memory.word(offer::CLAIM)?);
        let witness = memory.word(WITNESS)?;
        let link = Link {
            nic: nic.clone(),
            vi,
            reports: Arc::default(),
            distant,
            ptag,
            memory,
            options,
            host,
            board,
            theirs: OnceLock::new(),
            claim,
            peer_claim: OnceLock::new(),
            witness,
            peer_witness: OnceLock::new(),
            notes: Default::default(),
            untold: Lock::default(),
            owes_notes: AtomicBool::new(false),
            inward: Lock::default(),
            outward: Lock::default(),
            written: AtomicU64::new(0),
            position: AtomicU64::new(0),
            read: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            lent: AtomicU64::new(0),
            offered: AtomicU64::new(0),
            sent_packets: AtomicU32::new(0),
            read_packets: AtomicU32::new(0),
            taken: AtomicU64::new(0),
            told: AtomicU64::new(0),
            posted: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            greeted: AtomicBool::new(false),
            handled: AtomicBool::new(false),
            unposted: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            holds: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            prompt: AtomicBool::new(false),
            fin: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            acks: AtomicU64::new(0),
        };
        let reports = link.reports.clone();
        link.vi.set_alert(move || reports.fire());
        for slot in 0..options.receives() {
            link.post(slot)?;
        }
        Ok(Arc::new(link))
    }

    /// The VI, to be connected.
    pub fn vi(&self) -> &Vi {
        &self.vi
    }

    /// What tells of arrivals while nobody looks.
    pub fn reports(&self) -> &Reports {
        &self.reports
    }

    /// The NIC of it.
    pub fn nic(&self) -> &Nic {
        &self.nic
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
        self.vi.catch_up();
        self.absorb_waiting();
        if !self.greeted.load(Ordering::Relaxed) {
            // The peer's receives may not be known yet.
            self.greeted.store(self.greet() == Ok(true), Ordering::Relaxed);
        }
        let ready = self.theirs.get().is_some() && self.greeted.load(Ordering::Relaxed);
        if ready && self.options.handler {
            self.handled.store(true, Ordering::Relaxed);
            timer::handle(self);
        }
        ready
    }

    fn greet(&self) -> Result<bool, Lost> {
        let [low, high] = [self.memory.address(), u64::from(self.memory.handle().0)].map(u64::to_le_bytes);
        self.push(Kind::Wakeup, &[low, high].concat())
    }

    /// Whether the connection is over.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether the peer may be on another host, so that its memory is not mapped.
    pub fn is_distant(&self) -> bool {
        self.distant
    }

    /// Whether everything that was sent, the last note too, lies in memory of the peer. The mark is kept by the caller from one
    /// call to the next.
    pub fn has_arrived(&self, mark: &mut Option<u64>) -> bool {
        if mark.is_none() && !self.go_on() {
            return false;
        }
        self.vi.has_landed(*mark.get_or_insert_with(|| self.vi.mark()))
    }

    /// Sees whether the connection stands.
    pub fn check(&self) -> bool {
        self.look_at_wire();
        if !self.vi.is_connected() {
            self.absorb();
            self.lost.store(true, Ordering::Relaxed);
        }
        !self.is_lost()
    }

    /// Sends what waits for room: writes that are held, notes. `true`: nothing does.
    pub fn go_on(&self) -> bool {
        if self.holds.load(Ordering::Relaxed) && !self.flush() {
            return false;
        }
        if self.owes_notes.load(Ordering::Relaxed) {
            let _ = self.tell_notes(&mut self.untold.lock(), Kind::Note);
        }
        !self.owes_notes.load(Ordering::Relaxed)
    }

    /// Wakes the peer, and says nothing.
    pub fn nudge(&self) {
        let _ = self.push(Kind::Wakeup, &[]);
    }

    /// Whether small writes go out one by one: TCP_NODELAY.
    pub fn set_prompt(&self, prompt: bool) {
        self.prompt.store(prompt, Ordering::Relaxed);
        if prompt && self.holds.load(Ordering::Relaxed) {
            self.flush();
        }
    }

    /// Has the next arrival make news at the node; look again after this.
    pub fn arm(&self) {
        self.vi.arm();
    }

    /// Before a sleep, and after `arm`: takes everything that has come, also if another thread is at it, and owes nothing.
    pub fn settle(&self) {
        self.look_at_wire();
        if !self.handled.load(Ordering::Relaxed) {
            self.vi.catch_up();
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
        if self.distant {
            let own = cpu::current_core();
            let shared = self.vi.peer().is_some_and(|peer| self.nic.node().peer(peer).shares_core(own));
            return if shared { own } else { u32::MAX };
        }
        self.vi.peer_core()
    }

    /// Over a wire: lets what has come into memory. In a process that has shut itself in, the node's own thread does that.
    #[inline]
    fn look_at_wire(&self) {
        if self.distant && !(self.host.is_sandboxed)() {
            self.nic.node().progress_served();
        }
    }

    /// Sends a packet that is no data, and with it what was read. `false`: no room.
    fn push(&self, kind: Kind, bytes: &[u8]) -> Result<bool, Lost> {
        let read = self.take_owed();
        let packet = Packet { kind, wants: false, read };
        let mut sent = self.vi.send_inline(bytes, packet.to_bits(), 0);
        if sent == Ok(false) {
            // The peer may have told of more receives.
            self.vi.progress();
            sent = self.vi.send_inline(bytes, packet.to_bits(), 0);
        }
        if sent != Ok(true) {
            self.give_back(read);
        }
        sent.map_err(|_| self.lose())
    }

    fn lose(&self) -> Lost {
        if !self.vi.is_connected() {
            self.lost.store(true, Ordering::Relaxed);
        }
        Lost
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.vi.retire();
        self.outward.lock().cache.clear(&self.nic);
        let _ = self.nic.deregister(self.memory.address(), self.memory.handle());
        let _ = self.nic.destroy_ptag(self.ptag);
    }
}

/// Bytes of the first packet, and of a note: two words.
const NOTE: usize = 16;

/// Where acknowledgements can be written, as the first packet says.
fn greeting([address, handle]: [u64; 2]) -> Remote {
    Remote { address, handle: MemHandle(handle as u32) }
}
