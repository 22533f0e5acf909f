//! Where the carriers of a run come from: real ones, both ends of which are in this process.

use std::{cell::RefCell, time::Instant};

use sidestep_fabric::{ChannelOptions, Listener, Node, channel::Half, queue::QueueSpec};
use sidestep_stream::carrier::{Halves, loopback, ring};
use sidestep_testkit::conformance::nodes::{PATIENCE_NS, name_on};

/// A kind of carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only its writer can end it.
    Loopback,
    /// Either end can freeze it.
    Ring,
}

/// Bytes of the least ring.
pub const RING: u64 = 4096;

/// Two nodes, which many runs share.
pub struct Supply {
    nodes: [Node; 2],
    listener: Listener,
    name: String,
}

thread_local! {
    static SUPPLY: RefCell<Option<Supply>> = const { RefCell::new(None) };
}

/// Two ends of a carrier.
pub fn make(kind: Kind, capacity: u64) -> [Halves; 2] {
    SUPPLY.with_borrow_mut(|supply| supply.get_or_insert_with(Supply::new).make(kind, capacity))
}

impl Supply {
    fn new() -> Supply {
        let nodes = [(); 2].map(|()| Node::new().expect("a node"));
        let name = name_on(&nodes[1]);
        let listener = nodes[1].listen(&name).expect("a name that is free");
        Supply { nodes, listener, name }
    }

    fn make(&self, kind: Kind, capacity: u64) -> [Halves; 2] {
        match kind {
            Kind::Loopback => loopback::pair([&self.nodes[0], &self.nodes[1]], capacity),
            Kind::Ring => self.ring(),
        }
    }

    fn ring(&self) -> [Halves; 2] {
        let [asks, answers] = &self.nodes;
        let options = ChannelOptions { capacity: RING as usize, ..ChannelOptions::default() };
        let mut own = None;
        let endpoint = asks.begin_connect_with(&self.name, |peer| {
            let half = Half::new(asks, peer, options)?;
            let spec = half.spec().to_bytes().to_vec();
            own = Some(half);
            Ok(spec)
        });
        let (endpoint, own) = (endpoint.expect("somebody listens"), own.expect("a half"));
        own.keep_with(&endpoint);
        let request = self.until(|| self.listener.poll());
        let theirs = QueueSpec::from_bytes(request.private()).expect("a ring");
        let mut joined = None;
        let accepted = request.accept_with(|endpoint| {
            let half = Half::new(answers, endpoint.peer(), options)?;
            let spec = half.spec().to_bytes().to_vec();
            half.keep_with(endpoint);
            joined = Some(ring::Joined::new(endpoint, &half, &theirs)?);
            Ok(spec)
        });
        let (accepted, joined) = (accepted.expect("an asker"), joined.expect("a ring"));
        self.until(|| (endpoint.is_connected() != Ok(false)).then_some(()));
        let spec = QueueSpec::from_bytes(&endpoint.private()).expect("a ring");
        let first = ring::Joined::new(&endpoint, &own, &spec).expect("a ring").with(endpoint);
        [first, joined.with(accepted)]
    }

    fn until<T>(&self, mut found: impl FnMut() -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(begin.elapsed().as_nanos() < u128::from(PATIENCE_NS), "the two did not meet");
            self.nodes.iter().for_each(|node| _ = node.progress_kernel());
        }
    }
}
