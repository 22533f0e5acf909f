//! A VI whose messages a test makes, with or without regard to credits.

use std::collections::VecDeque;
use std::sync::OnceLock;

use sidestep_fabric::Node;
use sidestep_fabric::link::LinkOptions;
use sidestep_vi::{Buffer, Descriptor, Error, FlowControl, MemAttributes, NetAddress, Nic, Ptag, Vi, ViAttributes};

use super::patience;

/// How many receives are posted, and the bytes of each; sends have as much room together.
const RECEIVES: usize = 4;
const SIZE: usize = 8192;

/// A connected VI.
pub struct RawVia {
    vi: Vi,
    memory: Buffer,
    /// Receives that were posted since the other end was told.
    owed: u32,
    /// Messages that the other end has room for; `None` if the provider sees to that.
    credits: Option<u32>,
    /// Messages that were taken in on the way.
    ready: VecDeque<Vec<u8>>,
}

impl RawVia {
    fn new(nic: &Nic, ptag: Ptag, name: &str) -> Self {
        let memory = nic.allocate(2 * RECEIVES * SIZE, &MemAttributes::new(ptag)).unwrap();
        let vi = nic.create_vi(&ViAttributes::new(ptag), None, None).unwrap();
        let credits = name.starts_with("via:").then_some(RECEIVES as u32);
        let raw = Self { vi, memory, owed: 0, credits, ready: VecDeque::new() };
        (0..RECEIVES).for_each(|slot| raw.post(slot));
        raw
    }

    /// Connects to a broker by the name that its references have.
    pub fn connect(name: &str) -> Self {
        let (nic, ptag) = card();
        let raw = Self::new(&nic, ptag, name);
        let mut connecting = raw.vi.begin_connect(&NetAddress::default(), &address(name)).unwrap();
        while !connecting.poll().unwrap() {
            nic.node().progress();
            std::thread::yield_now();
        }
        raw
    }

    fn post(&self, slot: usize) {
        let segment = self.memory.segment(slot * SIZE, SIZE);
        // A connection that has ended takes none.
        let _ = self.vi.post_receive(&Descriptor::new(slot as u64, &[segment]));
    }

    /// Sends bytes in as many messages as they need, each when there is a credit for it.
    pub fn send(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(SIZE) {
            while self.credits == Some(0) {
                match self.take_in() {
                    Some(bytes) => self.ready.push_back(bytes),
                    None => return,
                }
            }
            self.credits = self.credits.map(|credits| credits - 1);
            let owed = std::mem::take(&mut self.owed);
            self.send_with(part, owed);
        }
    }

    /// Sends a message with any number as its credits, whether it may or not.
    pub fn send_with(&mut self, bytes: &[u8], credits: u32) {
        let begin = RECEIVES * SIZE;
        self.memory.write(begin, bytes).unwrap();
        let segment = self.memory.segment(begin, bytes.len());
        let descriptor = Descriptor::new(0, &[segment]).with_immediate(credits);
        let posted = match self.credits {
            Some(_) => self.vi.post_send(&descriptor),
            None => self.vi.post_send_with(&descriptor, FlowControl::Blocking, Some(patience())),
        };
        if posted.is_ok() {
            let _ = self.vi.wait_send(Some(patience()));
        }
    }

    /// The bytes of the next message that has some; none at the end.
    pub fn receive(&mut self) -> Vec<u8> {
        loop {
            let bytes = self.ready.pop_front().or_else(|| self.take_in());
            if bytes.as_ref().is_none_or(|bytes| !bytes.is_empty()) {
                return bytes.unwrap_or_default();
            }
        }
    }

    /// The next message; `None` at the end.
    fn take_in(&mut self) -> Option<Vec<u8>> {
        let received = match self.vi.wait_receive(Some(patience())) {
            Err(Error::TimedOut | Error::Fabric(sidestep_fabric::Error::TimedOut(_))) => {
                panic!("the connection does not end")
            }
            received => received.ok().filter(|received| !received.status.is_error())?,
        };
        let mut bytes = vec![0; received.len as usize];
        self.memory.read(received.token as usize * SIZE, &mut bytes).unwrap();
        self.post(received.token as usize);
        self.owed += 1;
        let given = received.immediate.unwrap_or(0);
        self.credits = self.credits.map(|credits| credits + given);
        Some(bytes)
    }
}

impl Drop for RawVia {
    fn drop(&mut self) {
        let _ = self.vi.disconnect();
    }
}

/// Where VIs are connected to.
pub struct ViaPoint {
    nic: Nic,
    ptag: Ptag,
    name: String,
}

impl ViaPoint {
    pub fn new(name: &str) -> Self {
        let (nic, ptag) = card();
        nic.listen(&address(name)).unwrap();
        Self { nic, ptag, name: name.to_owned() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn accept(&self) -> RawVia {
        let mut request = self.nic.connect_wait(&address(&self.name), Some(patience())).unwrap();
        let raw = RawVia::new(&self.nic, self.ptag, &self.name);
        request.accept(&raw.vi).unwrap();
        raw
    }
}

/// The NIC of all these VIs.
fn card() -> (Nic, Ptag) {
    static CARD: OnceLock<(Nic, Ptag)> = OnceLock::new();
    let made = CARD.get_or_init(|| {
        let node = Node::open(&["shm"], &LinkOptions::default()).unwrap();
        let nic = Nic::on(node, "shm", "raw").unwrap();
        let ptag = nic.create_ptag().unwrap();
        (nic, ptag)
    });
    made.clone()
}

fn address(name: &str) -> NetAddress {
    NetAddress::new(b"", format!("orb:{name}").as_bytes())
}
