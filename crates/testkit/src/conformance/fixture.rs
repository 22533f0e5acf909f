//! Where links come from.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering},
};

use sidestep_fabric::{
    Node,
    link::{
        AnyLink, LinkOptions,
        iwarp::{HostNetwork, IwarpLink, Network},
        traced::{Trace, TracedLink},
    },
};

use crate::{
    hosts::Hosts,
    links::{
        cuttable::CuttableNetwork,
        faulty::{FaultPlan, FaultyLink, When},
        sim::{LinkId, SimNet, SimOptions},
    },
};

/// Makes so many links that can reach each other.
pub type Fixture = fn(usize) -> Links;

/// Links that can reach each other, and the means to kill the process of one, where there is a better one than to cut
/// its connections.
pub struct Links {
    /// The links.
    pub links: Vec<AnyLink>,
    /// A second link for each node, of another scheme, if they are to have two.
    pub beside: Vec<AnyLink>,
    /// Kills the process of the link of this index.
    pub kill: Option<Kill>,
}

/// Kills the process of the link of an index.
pub type Kill = Box<dyn Fn(usize) + Send + Sync>;

/// Shared memory.
pub fn shm(count: usize) -> Links {
    let link = |_| AnyLink::open("shm", &LinkOptions::default()).expect("a shared-memory link");
    Links { links: (0..count).map(link).collect(), beside: Vec::new(), kill: None }
}

/// A simulated link without mapped memory.
pub fn sim_proxied(count: usize) -> Links {
    sim(count, SimOptions { max_delay: 3, seed: 11, ..SimOptions::default() })
}

/// A simulated link with mapped memory.
pub fn sim_mapped(count: usize) -> Links {
    sim(count, SimOptions { maps: true, max_delay: 3, seed: 12, ..SimOptions::default() })
}

/// A simulated link that takes little at a time.
pub fn sim_narrow(count: usize) -> Links {
    sim(count, SimOptions { max_in_flight: 8, seed: 13, ..SimOptions::default() })
}

/// Shared memory with a trace.
pub fn traced_shm(count: usize) -> Links {
    shm(count).wrapped(|link| TracedLink::new(link, Trace::new(TRACED)).into())
}

/// Shared memory with a trace that sees every store, so that nothing is mapped.
pub fn traced_shm_seeing_all(count: usize) -> Links {
    shm(count).wrapped(|link| TracedLink::new(link, Trace::new(TRACED)).see_all().into())
}

/// A simulated link with a trace.
pub fn traced_sim(count: usize) -> Links {
    sim_mapped(count).wrapped(|link| TracedLink::new(link, Trace::new(TRACED)).into())
}

/// Shared memory in a faulty link without faults.
pub fn faulty_shm(count: usize) -> Links {
    shm(count).wrapped(|link| faulty(link, FaultPlan::default()))
}

/// A simulated link that holds deliveries back, guesses wrong and wakes for nothing.
pub fn faulty_sim(count: usize) -> Links {
    let plan = FaultPlan {
        seed: 14,
        delay_polls: 3,
        spurious_news: When::PerMille(100),
        spurious_wakes: When::PerMille(100),
        ..FaultPlan::default()
    };
    sim_proxied(count).wrapped(|link| faulty(link, plan))
}

/// Shared memory that holds deliveries back.
pub fn faulty_shm_late(count: usize) -> Links {
    shm(count).wrapped(|link| faulty(link, FaultPlan { delay_polls: 5, ..FaultPlan::default() }))
}

/// iWARP over the loopback interface.
pub fn iwarp(count: usize) -> Links {
    iwarp_with(count, LinkOptions::default())
}

/// iWARP with markers as the standard has them.
pub fn iwarp_markers(count: usize) -> Links {
    iwarp_with(count, LinkOptions { markers: Some(512), ..LinkOptions::default() })
}

/// iWARP with markers so dense that many a word comes in two pieces, in small frames.
pub fn iwarp_dense(count: usize) -> Links {
    iwarp_with(count, LinkOptions { markers: Some(100), frame: 1460, ..LinkOptions::default() })
}

/// iWARP without checksums.
pub fn iwarp_plain(count: usize) -> Links {
    iwarp_with(count, LinkOptions { crc: false, ..LinkOptions::default() })
}

/// iWARP links of this host.
pub fn iwarp_with(count: usize, options: LinkOptions) -> Links {
    let host: Arc<dyn Network> = Arc::new(HostNetwork);
    iwarp_links(options, (0..count).map(|_| host.clone()))
}

/// A link on each of these networks; a dead process is one whose streams have been cut.
fn iwarp_links(options: LinkOptions, networks: impl Iterator<Item = Arc<dyn Network>>) -> Links {
    let networks: Vec<_> = networks.map(CuttableNetwork::new).collect();
    let on = |network: &Arc<CuttableNetwork>| IwarpLink::on(options, network.clone()).expect("an iWARP link");
    let links = networks.iter().map(|network| AnyLink::Iwarp(Box::new(on(network)))).collect();
    Links { links, beside: Vec::new(), kill: Some(Box::new(move |index| networks[index].cut())) }
}

/// iWARP between two hosts; on one, if two cannot be made here, which is said.
pub fn iwarp_two_hosts(count: usize) -> Links {
    static HOSTS: OnceLock<Option<Hosts>> = OnceLock::new();
    let hosts = HOSTS.get_or_init(|| {
        let made = Hosts::with_cable();
        made.map_err(|why| eprintln!("skipped: two hosts cannot be made here ({why}); this runs on one")).ok()
    });
    match hosts {
        None => iwarp(count),
        Some(hosts) => iwarp_links(LinkOptions::default(), (0..count).map(|index| hosts.network(index % 2))),
    }
}

/// iWARP in a faulty link that holds deliveries back.
pub fn faulty_iwarp(count: usize) -> Links {
    iwarp(count).wrapped(|link| faulty(link, FaultPlan { delay_polls: 3, ..FaultPlan::default() }))
}

/// iWARP with a trace.
pub fn traced_iwarp(count: usize) -> Links {
    iwarp(count).wrapped(|link| TracedLink::new(link, Trace::new(TRACED)).into())
}

/// Shared memory, on nodes that are on iWARP too.
pub fn shm_and_iwarp(count: usize) -> Links {
    shm(count).beside(iwarp(count))
}

/// iWARP, on nodes that are on shared memory too.
pub fn iwarp_and_shm(count: usize) -> Links {
    iwarp(count).beside(shm(count))
}

/// A simulated link with mapped memory, on nodes that are also on one without.
pub fn two_sims(count: usize) -> Links {
    sim_mapped(count).beside(sim(count, SimOptions { scheme: "sim2", max_delay: 2, seed: 15, ..SimOptions::default() }))
}

/// Links of a simulated network.
pub fn sim(count: usize, options: SimOptions) -> Links {
    let net = SimNet::new(options);
    let links: Vec<_> = (0..count).map(|_| net.link().expect("a simulated link")).collect();
    let ids: Vec<LinkId> = links.iter().map(|link| link.id()).collect();
    let kill: Kill = Box::new(move |index| net.kill(ids[index]));
    Links { links: links.into_iter().map(AnyLink::other).collect(), beside: Vec::new(), kill: Some(kill) }
}

/// A link with faults.
pub fn faulty(link: AnyLink, plan: FaultPlan) -> AnyLink {
    FaultyLink::new(link, plan).expect("a faulty link").into()
}

impl Links {
    /// The same links, each wrapped in another.
    pub fn wrapped(self, wrap: impl Fn(AnyLink) -> AnyLink) -> Links {
        Links { links: self.links.into_iter().map(wrap).collect(), ..self }
    }

    /// The same links, with one of the others beside each.
    pub fn beside(self, other: Links) -> Links {
        Links { beside: other.links, ..self }
    }

    /// A node on each of the links, and on the one beside it.
    pub fn into_nodes(self) -> (Vec<Node>, Option<Kill>) {
        let mut beside = self.beside.into_iter();
        let node = |link| Node::with_links([link].into_iter().chain(beside.next()).collect()).expect("a node");
        (self.links.into_iter().map(node).collect(), self.kill)
    }
}

/// A name that no other test uses at the same time, without its scheme. It is good for every link: an address of the
/// loopback interface that belongs to this process, and a port.
pub fn unique_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let [high, middle, low, _] = std::process::id().to_le_bytes().map(u32::from);
    let port = 10_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 20_000;
    format!("127.{}.{middle}.{high}:{port}/c", 64 + low)
}

const TRACED: usize = 1024;
