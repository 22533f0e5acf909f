//! Two ends of a carrier of each kind.

use std::{
    io::IoSlice,
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use sidestep_fabric::{Aperture, ChannelOptions, Node, channel::Half, queue::QueueSpec};
use sidestep_stream::carrier::{
    AnyInbound, AnyOutbound, Capabilities, Carrier, Halves, Host, Inbound, Outbound, Watch, loopback, ring,
    via::{self, Link, Options, packet::Packet},
};
use sidestep_sys::clock;
use sidestep_testkit::{
    conformance::nodes::{PATIENCE_NS, name_on},
    sockets::judge::Random,
};
use sidestep_vi::{NetAddress, Nic};

/// One end.
pub struct End {
    pub carrier: Arc<Carrier>,
    pub out: AnyOutbound,
    pub inward: AnyInbound,
}

/// Does some harm from this end.
pub type Attack = Box<dyn FnMut(&mut End, &mut Random)>;

/// Two of them, the second of which can do harm to the first.
pub struct Pair {
    pub ends: Vec<End>,
    nodes: Vec<Node>,
    pub attack: Attack,
}

impl End {
    fn new(halves: Halves) -> End {
        let (out, inward) = (halves.outbound.expect("a half"), halves.inbound.expect("a half"));
        End { carrier: halves.carrier, out, inward }
    }

    pub fn capabilities(&self) -> Capabilities {
        self.carrier.capabilities()
    }

    /// Sends bytes, as one part; how many were taken.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        self.out.send(&[IoSlice::new(bytes)], false).expect("the peer is there")
    }

    /// All that is there, up to so many bytes.
    pub fn receive(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let count = self.inward.receive(&mut bytes).expect("a peer that keeps to the protocol");
        if count == 0 {
            self.carrier.watch().found_nothing();
        }
        bytes.truncate(count);
        bytes
    }
}

impl Pair {
    fn new(halves: [Halves; 2], nodes: &[&Node], attack: Attack) -> Pair {
        let nodes = nodes.iter().map(|node| (*node).clone()).collect();
        Pair { ends: halves.into_iter().map(End::new).collect(), nodes, attack }
    }

    /// The two ends.
    pub fn both(&mut self) -> (&mut End, &mut End) {
        let (first, second) = self.ends.split_at_mut(1);
        (&mut first[0], &mut second[0])
    }

    /// Lets both ends see what has come.
    pub fn look(&self) {
        self.nodes.iter().for_each(|node| _ = node.progress_kernel());
        self.ends.iter().for_each(|end| end.carrier.watch().settle());
    }

    /// Looks until `found` has an answer.
    pub fn until<T>(&mut self, what: &str, mut found: impl FnMut(&mut Pair) -> Option<T>) -> T {
        let deadline = clock::now() + PATIENCE_NS;
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            assert!(clock::now() < deadline, "this never happened: {what}");
            self.look();
        }
    }
}

/// Rings of the least size.
pub fn ring() -> Pair {
    const CAPACITY: usize = 4096;
    let options = ChannelOptions { capacity: CAPACITY, ..ChannelOptions::default() };
    let [asks, answers] = [(); 2].map(|()| Node::new().expect("a node"));
    let name = name_on(&answers);
    let listener = answers.listen(&name).expect("a name that is free");
    let mut own = None;
    let endpoint = asks.begin_connect_with(&name, |peer| {
        let half = Half::new(&asks, peer, options)?;
        let spec = half.spec().to_bytes().to_vec();
        own = Some(half);
        Ok(spec)
    });
    let (endpoint, own) = (endpoint.expect("somebody listens"), own.expect("a half"));
    own.keep_with(&endpoint);
    let until = clock::now() + PATIENCE_NS;
    let request = loop {
        assert!(clock::now() < until, "nobody asked");
        asks.progress_kernel();
        answers.progress_kernel();
        if let Some(request) = listener.poll() {
            break request;
        }
    };
    let theirs = QueueSpec::from_bytes(request.private()).expect("a ring");
    let mut joined = None;
    let accepted = request.accept_with(|endpoint| {
        let half = Half::new(&answers, endpoint.peer(), options)?;
        let spec = half.spec().to_bytes().to_vec();
        half.keep_with(endpoint);
        joined = Some(ring::Joined::new(endpoint, &half, &theirs)?);
        Ok(spec)
    });
    let (accepted, joined) = (accepted.expect("an asker"), joined.expect("a ring"));
    while endpoint.is_connected() == Ok(false) {
        assert!(clock::now() < until, "no answer");
        asks.progress_kernel();
        answers.progress_kernel();
    }
    let spec = QueueSpec::from_bytes(&endpoint.private()).expect("a ring");
    // The words of the block, and the bytes of the ring behind them.
    let victim = Aperture::open(&accepted, &theirs.cookie, Some(0)).expect("a block that was sent ahead");
    let attack = move |_: &mut End, random: &mut Random| {
        let at = random.of(&[0x00, 0x08, 0x10, 0x18, 0x20, 0x80, 0x88, 0x90, 0x100, 0x200]);
        let value = match random.below(4) {
            0 => random.number(),
            1 => random.below(CAPACITY as u64 * 2),
            2 => 1 << random.below(64),
            _ => random.below(CAPACITY as u64) | 1 << (60 + random.below(4)),
        };
        let _ = victim.store64(theirs.offset as usize + at, value);
    };
    let first = ring::Joined::new(&endpoint, &own, &spec).expect("a ring").with(endpoint);
    Pair::new([first, joined.with(accepted)], &[&asks, &answers], Box::new(attack))
}

/// Links as they are for programs.
pub fn via() -> Pair {
    links(["nic0"; 2], "")
}

/// Links with few credits and small packets, each acknowledged by another.
pub fn via_packets() -> Pair {
    links(["nic0"; 2], "window=3,acks=2,no-piggyback,no-apart,chunk=2048,rendezvous=4096")
}

/// Links that keep the bounds of writes.
pub fn via_datagrams() -> Pair {
    links(["nic0"; 2], "datagram")
}

/// Links over iWARP.
pub fn via_far() -> Pair {
    links(["iwarp"; 2], "window=8,acks=4")
}

fn links(names: [&str; 2], words: &str) -> Pair {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let nics = names.map(|name| Nic::open(name).expect("a NIC"));
    let address = if names[0] == "iwarp" {
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address");
        NetAddress::new(&[127, 0, 0, 1], format!("{free}/carriers").as_bytes())
    } else {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        NetAddress::new(&[], format!("carriers-{}-{number}", std::process::id()).as_bytes())
    };
    nics[1].listen(&address).expect("the address is free");
    let options = Options::parse(words).expect("options that exist");
    let links = nics.each_ref().map(|nic| Link::new(nic, options, &Host::PLAIN).expect("memory for a link"));
    let asks = links[0].vi().begin_connect(&NetAddress::new(&[], b"asks"), &address);
    let mut asks = asks.expect("somebody listens");
    let until = clock::now() + PATIENCE_NS;
    let mut connected = [false; 2];
    while connected != [true; 2] || links.each_ref().map(|link| link.is_ready()) != [true; 2] {
        assert!(clock::now() < until, "the two did not meet");
        nics.iter().for_each(|nic| _ = nic.node().progress_kernel());
        if let Some(mut request) = nics[1].poll_request(&address).expect("a listener") {
            request.accept(links[1].vi()).expect("two that agree");
            connected[1] = true;
        }
        connected[0] = connected[0] || asks.poll().expect("nobody refuses");
    }
    let hostile = links[1].clone();
    let attack = move |_: &mut End, random: &mut Random| {
        let bytes: Vec<u8> = (0..random.of(&[0, 7, 16, 16, 24])).map(|_| random.number() as u8).collect();
        let mut bits = random.number() as u32;
        if let Some(packet) = Packet::from_bits(bits).filter(|_| random.one_in(2)) {
            bits = packet.to_bits();
        }
        let _ = hostile.vi().send_inline(&bytes, bits, 0);
    };
    let halves = [0, 1].map(|at| via::carry(nics[at].node(), &links[at]));
    Pair::new(halves, &[nics[0].node(), nics[1].node()], Box::new(attack))
}

/// Within one process.
pub fn loopback() -> Pair {
    let nodes = [(); 2].map(|()| Node::new().expect("a node"));
    let halves = loopback::pair([&nodes[0], &nodes[1]], 4096);
    let attack = |peer: &mut End, random: &mut Random| {
        let _ = peer.out.set_note(random.below(2) as usize, random.number());
        let _ = peer.inward.set_note(random.number());
    };
    Pair::new(halves, &[&nodes[0], &nodes[1]], Box::new(attack))
}
