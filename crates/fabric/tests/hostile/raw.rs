//! A peer without the library: the handshake by hand, then anything at all.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sidestep_fabric::{
    Cookie,
    link::shm::frame::{Frame, MAX_FRAME, VERSION},
    protocol::{EndpointId, Message},
    queue::{Kind, QueueSpec},
};
use sidestep_shm::{
    Memory,
    pair_bell::Ringer,
    passing::{Lifeline, Received},
    watch::watch_len,
};
use sidestep_testkit::seeded::Seeded;

/// One connection by hand.
pub struct Raw {
    pub line: Lifeline,
    /// Own pair memory, which the victim writes.
    pub ours: Memory,
    /// The victim's pair memory and doorbell.
    pub theirs: Memory,
    pub their_bell: Ringer,
}

/// A queue by hand: what the victim gave out of its memory.
pub struct RawQueue {
    /// The whole region the victim's block lies in, with its armed bits.
    pub victim: Memory,
    pub victim_spec: QueueSpec,
    /// The own region, which the victim has mapped.
    pub own: Memory,
    pub own_spec: QueueSpec,
}

/// Bytes of the own region's data.
pub const REGION: usize = 64 * 1024;

impl Raw {
    /// Connects and greets, with a doorbell of the caller's choice.
    pub fn connect(name: &str, bell: BorrowedFd<'_>) -> Option<Raw> {
        let line = Lifeline::connect(name, |_| true).ok()?;
        let mut descriptors = Vec::new();
        let hello = receive(&line, &mut descriptors, 5_000)?;
        let Ok(Frame::Hello { pair_len, .. }) = Frame::parse(&hello) else { panic!("no greeting") };
        let ours = Memory::create("hostile-pair", pair_len as usize).unwrap();
        let pages = ours.descriptor().unwrap();
        send(&line, Frame::Hello { version: VERSION, pair_len }, &[pages.as_fd(), bell])?;
        let their_bell = Ringer::attach(descriptors.pop()?).unwrap();
        let theirs = Memory::attach(descriptors.pop()?, pair_len as usize).unwrap();
        Some(Raw { line, ours, theirs, their_bell })
    }

    /// Sends a frame; `None` once the victim has cut the line.
    pub fn send(&self, frame: Frame<'_>, descriptors: &[BorrowedFd<'_>]) -> Option<bool> {
        send(&self.line, frame, descriptors)
    }

    /// Sends a message between nodes.
    pub fn post(&self, message: Message<'_>) -> Option<bool> {
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        self.send(Frame::Post(&bytes), &[])
    }

    /// Makes a channel as the library would, with a region that has every armed bit set if `armed`.
    pub fn channel(&self, name: &str, armed: bool) -> Option<RawQueue> {
        let bits = watch_len(REGION);
        let total = (REGION + 2 * bits).next_multiple_of(64);
        let own = Memory::create("hostile-region", total).unwrap();
        if armed {
            own.span(REGION, total - REGION).unwrap().copy_in(0, &vec![0xff; total - REGION]).unwrap();
        }
        let own_spec = QueueSpec { cookie: cookie(3), offset: 0, capacity: 16 * 1024, kind: Kind::Stream };
        let pages = own.descriptor().unwrap();
        self.send(Frame::Pages { cookie: own_spec.cookie, len: total as u64 }, &[pages.as_fd()])?;
        let private = own_spec.to_bytes();
        self.post(Message::Connect { from: EndpointId { slot: 1, session: 1 }, name, private: &private })?;
        let mut victim = None;
        loop {
            let mut descriptors = Vec::new();
            let frame = receive(&self.line, &mut descriptors, 5_000)?;
            match Frame::parse(&frame) {
                Ok(Frame::Pages { len, .. }) => {
                    victim = Some(Memory::attach(descriptors.pop()?, len as usize).unwrap());
                }
                Ok(Frame::Post(bytes)) => {
                    if let Ok(Message::Accept { private, .. }) = Message::parse(bytes) {
                        let victim_spec = QueueSpec::from_bytes(private.get(..QueueSpec::WIRE_LEN)?).ok()?;
                        return Some(RawQueue { victim: victim?, victim_spec, own, own_spec });
                    }
                }
                _ => {}
            }
        }
    }
}

/// A well-formed cookie of a region that only the hostile side knows.
pub fn cookie(region: u8) -> Cookie {
    let mut bytes = [0; Cookie::WIRE_LEN];
    bytes[16] = region;
    bytes[24..32].copy_from_slice(&(REGION as u64).to_le_bytes());
    bytes[32] = 7;
    Cookie::from_bytes(&bytes).unwrap()
}

/// A descriptor of any kind but the right one, and now and then the right one.
pub fn any_descriptor(random: &mut Seeded) -> OwnedFd {
    use rustix::fs::MemfdFlags;
    match random.below(8) {
        0 => rustix::pipe::pipe().unwrap().0,
        1 => Lifeline::pair().unwrap().0.into_fd(),
        2 => std::fs::File::open("/dev/null").unwrap().into(),
        3 => std::fs::File::open("/proc/self/exe").unwrap().into(),
        4 => {
            let file = rustix::fs::memfd_create("unsealed", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
            rustix::fs::ftruncate(&file, random.below(1 << 18)).unwrap();
            file
        }
        5 => rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap(),
        6 => sidestep_shm::memfd::create_sealed("sealed", random.below(1 << 16) as usize + 1).unwrap(),
        _ => sidestep_shm::memfd::create_sealed("sealed", REGION + 2 * watch_len(REGION)).unwrap(),
    }
}

pub fn send(line: &Lifeline, frame: Frame<'_>, descriptors: &[BorrowedFd<'_>]) -> Option<bool> {
    let mut bytes = Vec::new();
    frame.emit(&mut bytes);
    line.send(&bytes, descriptors).ok()
}

/// The next frame; `None` if the line is cut or nothing comes.
pub fn receive(line: &Lifeline, descriptors: &mut Vec<OwnedFd>, limit_ms: i64) -> Option<Vec<u8>> {
    let mut buffer = vec![0; MAX_FRAME];
    loop {
        match line.receive(&mut buffer, descriptors).ok()? {
            Received::Message(len) => {
                buffer.truncate(len);
                return Some(buffer);
            }
            Received::Empty => {
                let limit = Timespec { tv_sec: limit_ms / 1000, tv_nsec: limit_ms % 1000 * 1_000_000 };
                if poll(&mut [PollFd::new(line, PollFlags::IN)], Some(&limit)).ok()? == 0 {
                    return None;
                }
            }
            _ => return None,
        }
    }
}
