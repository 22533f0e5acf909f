//! Nodes to test with: two that are connected, driven from one thread or from two.

use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_fabric::{
    Aperture, CloseReason, Cookie, Endpoint, Listener, Node, RdmaQueue, Region, Result, link::AnyLink, rdma::RequestId,
};
use sidestep_sys::clock;

use super::fixture::{Fixture, Kill, unique_name};
pub use crate::process::PATIENCE_NS;

/// Two nodes and a connection between them: `a` asked, `b` accepted.
pub struct Pair {
    /// The end of `a`.
    pub to_b: Endpoint,
    /// The end of `b`.
    pub to_a: Endpoint,
    /// Where `b` listens.
    pub listener: Listener,
    /// Its name, with the scheme.
    pub name: String,
    /// The node that asked.
    pub a: Node,
    /// The node that accepted.
    pub b: Node,
    kill: Option<Kill>,
}

/// The deadline of a call that a correct link ends long before.
pub fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}

/// A deadline that has passed: the call only looks.
pub fn at_once() -> Option<u64> {
    Some(0)
}

/// So many nodes that can reach each other.
pub fn nodes(fixture: Fixture, count: usize) -> Vec<Node> {
    fixture(count).links.into_iter().map(|link| Node::with_link(link).expect("a node")).collect()
}

/// A fresh name with the scheme of a link.
pub fn name_on(link: &AnyLink) -> String {
    format!("{}:{}", link.as_link().capabilities().scheme, unique_name())
}

/// Drives nodes in turn until `found` has an answer.
pub fn drive<T>(nodes: &[&Node], what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        for node in nodes {
            node.progress();
        }
        if let Some(found) = found() {
            return found;
        }
        assert!(clock::now() < deadline, "this never happened: {what}");
    }
}

/// Runs `body` while another thread serves `node`.
pub fn while_serving<T>(node: &Node, body: impl FnOnce() -> T) -> T {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| node.serve(&stop).expect("a node that serves"));
        // Also when the body panics: the scope would wait forever.
        let _stop = Stop(&stop);
        body()
    })
}

/// Connects two nodes: the end of the first, the end of the second, and where it listens.
pub fn connect(a: &Node, b: &Node) -> (Endpoint, Endpoint, Listener, String) {
    let name = name_on(b.link());
    let listener = b.listen(&name).expect("a name that is free");
    let (to_b, to_a) = connect_to(a, b, &listener, &name);
    (to_b, to_a, listener, name)
}

/// Connects two nodes once more.
pub fn connect_to(a: &Node, b: &Node, listener: &Listener, name: &str) -> (Endpoint, Endpoint) {
    let to_b = a.begin_connect(name, b"").expect("a listener that is there");
    let request = drive(&[a, b], "a request for a connection", || listener.poll());
    let to_a = request.accept(b"").expect("a peer that waits");
    drive(&[a, b], "an answer", || to_b.is_connected().expect("no refusal").then_some(()));
    (to_b, to_a)
}

impl Pair {
    /// Two connected nodes.
    pub fn new(fixture: Fixture) -> Pair {
        let mut made = fixture(2);
        let b = Node::with_link(made.links.remove(1)).expect("a node");
        let a = Node::with_link(made.links.remove(0)).expect("a node");
        let (to_b, to_a, listener, name) = connect(&a, &b);
        Pair { to_b, to_a, listener, name, a, b, kill: made.kill }
    }

    /// Another connection between the two.
    pub fn another(&self) -> (Endpoint, Endpoint) {
        connect_to(&self.a, &self.b, &self.listener, &self.name)
    }

    /// Drives both nodes until `found` has an answer.
    pub fn until<T>(&self, what: &str, found: impl FnMut() -> Option<T>) -> T {
        drive(&[&self.a, &self.b], what, found)
    }

    /// Whether the link maps memory.
    pub fn maps(&self) -> bool {
        self.a.link().as_link().capabilities().maps
    }

    /// Whether a node is served while its program is busy.
    pub fn is_served(&self) -> bool {
        self.a.link().as_link().needs_service()
    }

    /// Opens a region of `b` at `a`.
    pub fn open(&self, cookie: &Cookie) -> Result<Aperture> {
        let aperture = Aperture::begin(&self.to_b, cookie)?;
        self.until("an answer about an aperture", || match aperture.is_open() {
            Ok(open) => open.then_some(Ok(())),
            Err(error) => Some(Err(error)),
        })?;
        Ok(aperture)
    }

    /// A fresh region of `b` with zeros, and `a`'s aperture to it.
    pub fn target(&self, len: usize) -> (Region, Aperture) {
        let region = Region::new(&self.b, len).expect("memory");
        let aperture = self.open(&region.cookie(sidestep_fabric::Rights::ALL)).expect("a good cookie");
        (region, aperture)
    }

    /// Drives both nodes until a request of `a` has ended.
    pub fn wait(&self, queue: &RdmaQueue, id: RequestId) -> Result<()> {
        self.until("the end of a transfer", || match queue.test(id) {
            Ok(ended) => ended.then_some(Ok(())),
            Err(error) => Some(Err(error)),
        })
    }

    /// Drives both nodes until all stores of `a` have arrived.
    pub fn flush(&self, aperture: &Aperture) -> Result<()> {
        self.until("stores to arrive", || match aperture.flush(at_once()) {
            Err(sidestep_fabric::Error::TimedOut(_)) => None,
            outcome => Some(outcome),
        })
    }

    /// Drives both nodes until everything either has posted so far has arrived.
    pub fn settle(&self) {
        let (to_b, to_a) = self.another();
        to_b.post(b"settled").expect("an open connection");
        to_a.post(b"settled").expect("an open connection");
        for end in [&to_b, &to_a] {
            self.until("a message", || end.poll_message().expect("an open connection"));
        }
    }

    /// Kills the process of `b`, as far as `a` can tell.
    pub fn kill_b(&self) {
        match &self.kill {
            Some(kill) => kill(1),
            None => {
                // The same to the peer: the kernel closes what the process held, and no message of goodbye is sent.
                self.b.link().as_link().close(self.to_a.peer(), CloseReason::Here);
                self.b.progress();
            }
        }
    }
}

/// The bytes of a region.
pub fn contents(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len()];
    region.read(0, &mut bytes).expect("the whole region");
    bytes
}

/// Bytes that differ from place to place and from seed to seed.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut random = sidestep_fabric::link::sim::Seeded::new(seed);
    (0..len).map(|_| random.next_u64() as u8).collect()
}
