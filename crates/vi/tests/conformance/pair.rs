//! Two NICs and what connects them.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use sidestep_fabric::CloseReason;
use sidestep_testkit::{
    conformance::{
        fixture::{Fixture, Kill, unique_name},
        nodes::scheme_of,
    },
    process::PATIENCE_NS,
};
use sidestep_vi::{
    Buffer, Completion, Cq, Descriptor, MemAttributes, NetAddress, Nic, Ptag, Reliability, Vi, ViAttributes, clock,
};

/// One side.
pub struct Side {
    pub nic: Nic,
    pub ptag: Ptag,
    pub vi: Vi,
}

/// Two sides; `a` connects to `b`.
pub struct Pair {
    pub a: Side,
    pub b: Side,
    pub address: NetAddress,
    kill: Option<Kill>,
}

/// What a pair is made of.
pub struct Options {
    pub reliability: Reliability,
    pub remote: bool,
    pub connect: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { reliability: Reliability::Delivery, remote: true, connect: true }
    }
}

pub fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}

pub fn in_ms(ms: u64) -> Option<u64> {
    Some(clock::now() + ms * 1_000_000)
}

pub fn address() -> NetAddress {
    NetAddress::new(&[127, 0, 0, 1], unique_name().as_bytes())
}

pub fn pair(fixture: Fixture) -> Pair {
    Pair::new(fixture, Options::default())
}

impl Side {
    pub fn attributes(&self, options: &Options) -> ViAttributes {
        ViAttributes {
            reliability: options.reliability,
            rdma_write: options.remote,
            rdma_read: options.remote && options.reliability != Reliability::Unreliable,
            ..ViAttributes::new(self.ptag)
        }
    }

    pub fn buffer(&self, len: usize) -> Buffer {
        let attributes = MemAttributes { rdma_write: true, rdma_read: true, ..MemAttributes::new(self.ptag) };
        self.nic.allocate(len, &attributes).expect("memory")
    }

    pub fn filled(&self, len: usize, seed: u8) -> Buffer {
        let buffer = self.buffer(len.max(1));
        buffer.write(0, &pattern(len, seed)).expect("room");
        buffer
    }

    pub fn another(&self, options: &Options, send: Option<&Cq>, receive: Option<&Cq>) -> Vi {
        self.nic.create_vi(&self.attributes(options), send, receive).expect("a VI")
    }
}

impl Pair {
    pub fn new(fixture: Fixture, options: Options) -> Pair {
        let (mut nodes, kill) = fixture(2).into_nodes();
        let mut side = || {
            let node = nodes.remove(0);
            let nic = Nic::on(node.clone(), scheme_of(&node), "nic0").expect("a NIC");
            let ptag = nic.create_ptag().expect("a tag");
            let vi = {
                let attributes = ViAttributes {
                    reliability: options.reliability,
                    rdma_write: options.remote,
                    rdma_read: options.remote && options.reliability != Reliability::Unreliable,
                    ..ViAttributes::new(ptag)
                };
                nic.create_vi(&attributes, None, None).expect("a VI")
            };
            Side { nic, ptag, vi }
        };
        let (a, b) = (side(), side());
        let pair = Pair { a, b, address: address(), kill };
        if options.connect {
            pair.join(&pair.a.vi, &pair.b.vi);
        }
        pair
    }

    /// Connects two VIs.
    pub fn join(&self, from: &Vi, to: &Vi) {
        self.asking(
            || {
                let mut request = self.b.nic.connect_wait(&self.address, soon()).expect("a request");
                request.accept(to).expect("accepted");
            },
            || from.connect(&address(), &self.address, soon()).expect("connected"),
        );
    }

    /// Does `there` in another thread, which serves `b` until `here` is done: memory that is not mapped needs that.
    pub fn asking<T>(&self, there: impl FnOnce() + Send, here: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                there();
                self.b.nic.node().serve(&done).expect("a node that serves");
            });
            let outcome = here();
            done.store(true, Ordering::Release);
            other.join().expect("no panic at the other side");
            outcome
        })
    }

    /// Lets both sides go on until there is an answer.
    pub fn until<T>(&self, what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
        let deadline = clock::now() + PATIENCE_NS;
        loop {
            if let Some(answer) = answer() {
                return answer;
            }
            for side in [&self.a, &self.b] {
                side.nic.node().progress();
                side.vi.progress();
            }
            assert!(clock::now() < deadline, "this never happened: {what}");
        }
    }

    /// The next completed receive.
    pub fn received(&self, vi: &Vi) -> Completion {
        self.until("a receive", || vi.poll_receive())
    }

    /// The next completed send.
    pub fn sent(&self, vi: &Vi) -> Completion {
        self.until("a send", || vi.poll_send())
    }

    /// Lets both sides settle: what was posted has reached the other.
    pub fn settle(&self) {
        for _ in 0..2000 {
            for side in [&self.a, &self.b] {
                side.nic.node().progress();
                side.vi.progress();
            }
        }
        self.settle_stream();
    }

    /// Where a node is also served by a thread of its own, polls may find nothing though something is here. What goes
    /// both ways on the stream of the two arrives after everything that was posted before.
    pub fn settle_stream(&self) {
        let (a, b) = (self.a.nic.node(), self.b.nic.node());
        let discriminator = String::from_utf8_lossy(&self.address.discriminator);
        let (true, Some((socket, _))) = (self.a.nic.is_distant(), discriminator.split_once('/')) else {
            return;
        };
        let name = format!("iwarp:{socket}/settle");
        let Ok(listener) = b.listen(&name) else { return };
        // A connection that is over has nothing to settle.
        let Ok(to_b) = a.begin_connect(&name, b"") else { return };
        let Ok(to_a) = listener.wait(soon()).and_then(|request| request.accept(b"")) else { return };
        let _ = to_b.wait_connected(soon());
        for (from, to) in [(&to_b, &to_a), (&to_a, &to_b)] {
            let _ = from.post(b"settled").and_then(|()| to.wait_message(soon()));
        }
        for side in [&self.a, &self.b] {
            side.vi.progress();
        }
    }

    /// Kills the process of `b`, as far as `a` can tell.
    pub fn kill_b(&self) {
        match &self.kill {
            Some(kill) => kill(1),
            None => {
                let node = self.b.nic.node();
                if let Some(peer) = self.b.vi.peer() {
                    node.peer(peer).close(CloseReason::Here);
                }
                node.progress();
            }
        }
    }
}

pub fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8) ^ seed).collect()
}

pub fn contents(buffer: &Buffer, offset: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    buffer.read(offset, &mut bytes).expect("in range");
    bytes
}

pub fn one(token: u64, buffer: &Buffer, len: usize) -> Descriptor {
    Descriptor::new(token, &[buffer.segment(0, len)])
}
