//! Nodes to test with: two that are connected, driven from one thread or from two.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use sidestep_fabric::{
    Aperture, CloseReason, Cookie, Endpoint, Listener, Node, RdmaQueue, Region, Result, Rights, rdma::RequestId,
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
    beside: Option<Beside>,
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
    fixture(count).into_nodes().0
}

/// A fresh name on the first link of a node.
pub fn name_on(node: &Node) -> String {
    format!("{}:{}", scheme_of(node), unique_name())
}

/// The scheme of the first link of a node.
pub fn scheme_of(node: &Node) -> &'static str {
    node.schemes().next().expect("a node has a link")
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
    let name = name_on(b);
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
        let (mut nodes, kill) = fixture(2).into_nodes();
        let (b, a) = (nodes.remove(1), nodes.remove(0));
        let (to_b, to_a, listener, name) = connect(&a, &b);
        let beside = Beside::new(&a, &b);
        Pair { to_b, to_a, listener, name, a, b, kill, beside }
    }

    /// Another connection between the two.
    pub fn another(&self) -> (Endpoint, Endpoint) {
        connect_to(&self.a, &self.b, &self.listener, &self.name)
    }

    /// Drives both nodes until `found` has an answer.
    pub fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        drive(&[&self.a, &self.b], what, || {
            self.beside.iter().for_each(Beside::step);
            found()
        })
    }

    /// Whether the link maps memory.
    pub fn maps(&self) -> bool {
        self.a.peer(self.to_b.peer()).maps()
    }

    /// Whether a node is served while its program is busy.
    pub fn is_served(&self) -> bool {
        // The thread that serves one link carries out what it finds on the others.
        self.a.schemes().any(|scheme| self.a.capabilities(scheme).is_ok_and(|link| link.served))
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
        let aperture = self.open(&region.cookie(Rights::ALL)).expect("a good cookie");
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
                self.b.peer(self.to_a.peer()).close(CloseReason::Here);
                self.b.progress();
            }
        }
    }
}

/// A connection over the second link of two nodes. Whatever happens on the first one, it carries messages and stores before,
/// meanwhile and after.
struct Beside {
    /// What goes to and fro while the nodes are driven.
    rally: Mutex<Rally>,
    to_b: Endpoint,
    to_a: Endpoint,
    region: Region,
    aperture: Aperture,
    _listener: Listener,
    nodes: [Node; 2],
}

/// How many messages have gone to and fro, and whether the next one is on its way.
#[derive(Default)]
struct Rally {
    count: u64,
    is_under_way: bool,
}

impl Beside {
    /// `None` if the nodes have one link.
    fn new(a: &Node, b: &Node) -> Option<Beside> {
        let name = format!("{}:{}", b.schemes().nth(1)?, unique_name());
        let listener = b.listen(&name).expect("a name that is free");
        let (to_b, to_a) = connect_to(a, b, &listener, &name);
        let region = Region::new(b, 64).expect("memory");
        let aperture = Aperture::begin(&to_b, &region.cookie(Rights::ALL)).expect("an open connection");
        drive(&[a, b], "an aperture", || aperture.is_open().expect("a good cookie").then_some(()));
        let (rally, nodes) = (Mutex::default(), [a.clone(), b.clone()]);
        let beside = Beside { rally, to_b, to_a, region, aperture, _listener: listener, nodes };
        beside.check(1);
        Some(beside)
    }

    /// A message goes one way and then the other, and a word is stored with each. One turn at a time: others may drive, too.
    fn step(&self) {
        let Ok(mut rally) = self.rally.try_lock() else { return };
        let ends = [(&self.to_b, &self.to_a), (&self.to_a, &self.to_b)];
        let (from, to) = ends[rally.count as usize % 2];
        if !rally.is_under_way {
            match from.post(&rally.count.to_le_bytes()) {
                Ok(()) => rally.is_under_way = true,
                Err(sidestep_fabric::Error::Full { .. }) => return,
                Err(error) => panic!("the other link stands: {error}"),
            }
            self.aperture.store64(24, rally.count).expect("the other link stands");
        } else if let Some(message) = to.poll_message().expect("the other link stands") {
            assert_eq!(message, rally.count.to_le_bytes());
            *rally = Rally { count: rally.count + 1, is_under_way: false };
        }
    }

    /// Ends what goes to and fro.
    fn rest(&self) {
        drive(&self.nodes.each_ref(), "the last message", || {
            let is_under_way = self.rally.lock().expect("no panic in a turn").is_under_way;
            if is_under_way {
                self.step();
            }
            (!is_under_way).then_some(())
        });
    }

    fn check(&self, value: u64) {
        let both = self.nodes.each_ref();
        for (from, to) in [(&self.to_b, &self.to_a), (&self.to_a, &self.to_b)] {
            from.post(&value.to_le_bytes()).expect("the other link stands");
            let message = drive(&both, "a message", || to.poll_message().expect("the other link stands"));
            assert_eq!(message, value.to_le_bytes());
        }
        self.aperture.store64(8, value).expect("the other link stands");
        drive(&both, "a store", || (contents(&self.region)[8..16] == value.to_le_bytes()).then_some(()));
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.rest();
            self.check(2);
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
    let mut random = crate::seeded::Seeded::new(seed);
    (0..len).map(|_| random.next_u64() as u8).collect()
}
