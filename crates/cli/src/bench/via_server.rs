//! A server with one completion queue and many connections to one client, and the calls one by one.

use anyhow::Result;
use sidestep_vi::{Buffer, Cq, Descriptor, MemAttributes, NetAddress, Nic, Ptag, Vi, ViAttributes};

use super::clock;
use super::control::Peer;
use super::exercise::Exercise;
use super::path::{Bench, End, Offer, Opening, Operation, Path, Wait, Work};
use super::shared;
use super::via::{check, part, point};

/// All connections in turn.
pub const SERVER: Path = Path {
    name: "via-cq",
    about: "a request and its answer over connections in turn, one completion queue; the size is the number of them",
    work: Work::Pair { open: |opening| open(opening, false), attach: |offer| attach(offer, false) },
    parts: &[part(Bench::Events, "via-cq", Operation::PingPong, Wait::Spin, CONNECTIONS)],
};

/// One of them.
pub const IDLE: Path = Path {
    name: "via-cq-idle",
    about: "the same with all connections idle but one",
    work: Work::Pair { open: |opening| open(opening, true), attach: |offer| attach(offer, true) },
    parts: &[part(Bench::Events, "via-cq-idle", Operation::PingPong, Wait::Spin, CONNECTIONS)],
};

const CONNECTIONS: &[usize] = &[1, 10, 100, 1000];
const MESSAGE: usize = 64;

fn open(opening: &mut Opening<'_>, idle: bool) -> Result<Box<dyn Exercise>> {
    let name = shared::fabric_name();
    opening.offer(&name, &[])?;
    Many::boxed(name, opening.peer(), true, idle)
}

fn attach(offer: Offer, idle: bool) -> Result<Box<dyn Exercise>> {
    Many::boxed(offer.note, offer.peer, false, idle)
}

/// As many connections as the size of the messages says; made when they are first needed.
struct Many {
    nic: Nic,
    ptag: Ptag,
    cq: Cq,
    buffer: Buffer,
    vis: Vec<Vi>,
    point: NetAddress,
    client: bool,
    idle: bool,
    next: usize,
    peer: Peer,
}

impl Many {
    fn boxed(name: String, peer: Peer, client: bool, idle: bool) -> Result<Box<dyn Exercise>> {
        let nic = Nic::open("nic0")?;
        let ptag = nic.create_ptag()?;
        let buffer = nic.allocate(4096, &MemAttributes::new(ptag))?;
        let cq = nic.create_cq(4096)?;
        Ok(Box::new(Many { ptag, cq, buffer, vis: Vec::new(), point: point(&name), client, idle, next: 0, peer, nic }))
    }

    fn connect(&mut self, count: usize) -> Result<()> {
        while self.vis.len() < count {
            let vi = self.nic.create_vi(&ViAttributes::new(self.ptag), None, Some(&self.cq))?;
            vi.post_receive(&Descriptor::new(0, &[self.buffer.segment(0, MESSAGE)]))?;
            match self.client {
                true => {
                    vi.connect(&NetAddress::default(), &self.point, clock::in_seconds(20))?;
                }
                false => self.nic.connect_wait(&self.point, clock::in_seconds(20))?.accept(&vi)?,
            }
            vi.set_user_word(self.vis.len() as u64);
            self.vis.push(vi);
        }
        Ok(())
    }
}

impl End for Many {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        self.connect(payload.len())?;
        let vi = &self.vis[self.next];
        if self.client && !self.idle {
            self.next = (self.next + 1) % payload.len();
        }
        let ends = [payload[0], payload[payload.len() - 1]];
        self.buffer.write(MESSAGE, &ends)?;
        vi.post_send(&Descriptor::new(0, &[self.buffer.segment(MESSAGE, 8)]))?;
        let mut spin = self.peer.spin();
        loop {
            match vi.poll_send() {
                Some(sent) => return check(&sent),
                None => spin.turn()?,
            }
        }
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        self.connect(payload.len())?;
        let mut spin = self.peer.spin();
        let (vi, _) = loop {
            match self.cq.poll() {
                Some(found) => break found,
                None => spin.turn()?,
            }
        };
        if let Some(received) = vi.poll_receive() {
            check(&received)?;
        }
        if !self.client {
            self.next = vi.user_word() as usize;
        }
        let (mut ends, last) = ([0; 2], payload.len() - 1);
        self.buffer.read(0, &mut ends)?;
        (payload[0], payload[last]) = (ends[0], ends[1]);
        Ok(vi.post_receive(&Descriptor::new(0, &[self.buffer.segment(0, MESSAGE)]))?)
    }
}
