//! Making the connections of a process for one epoch.
//!
//! Consumers listen, producers connect; every process does both at the same time, so no order between processes is needed.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use sidestep_fabric::queue::Kind as QueueKind;
use sidestep_fabric::{Channel, ChannelOptions, EventQueue, LinkOptions, Listener, Node, channel::private_of};
use sidestep_sys::clock;
use sidestep_vi::{NetAddress, Nic, Ptag};

use super::message::{Edge, GREETING, Plan};
use crate::error::{Error, Result};
use crate::graph::{CopyId, StreamSpec, Transport};
use crate::link::channel::{ChannelRx, ChannelTx, WORDS, ring_for};
use crate::link::socket::{SocketRx, SocketTx};
use crate::link::vi::{Line, ViRx, ViTx};
use crate::link::{Rx, Tx};

/// What a process has for all epochs.
#[derive(Debug, Default)]
pub(super) struct Gear {
    node: Option<Node>,
    nic: Option<(Nic, Ptag)>,
    /// Listeners so far, so that each has a name of its own.
    count: u64,
}

/// What a process listens with in one epoch.
pub(super) enum Door {
    Channel(Node, Listener),
    Socket(TcpListener, Mutex<Vec<Caller>>),
    Vi(Nic, Ptag, NetAddress),
    /// Nobody connects to this process, and it to nobody.
    Closed,
}

/// The ends that other processes have the other ends of.
#[derive(Default)]
pub(super) struct Ends {
    pub tx: HashMap<Edge, Tx>,
    pub rx: HashMap<Edge, Rx>,
}

/// Between looks whether the epoch is over.
const OVER: Duration = Duration::from_millis(50);
const OVER_NS: u64 = OVER.as_nanos() as u64;
const SLICE: Duration = Duration::from_millis(1);
/// Callers that have not said who they are.
const CALLERS: usize = 512;
/// How long a peer may take for its part of a connection that it has begun. One that takes longer is turned away.
const OPENING: Duration = Duration::from_secs(30);
const OPENING_NS: u64 = OPENING.as_nanos() as u64;

impl Plan {
    /// Every connection of the group.
    pub fn edges(&self) -> impl Iterator<Item = (Edge, CopyId, CopyId)> {
        let graph = &self.graph;
        graph.streams.iter().enumerate().flat_map(move |(stream, spec)| {
            let of = |name: &str| graph.filter_index(name).map_or((0, 0), |index| (index, graph.filters[index].copies));
            let ((from, producers), (to, consumers)) = (of(&spec.from.0), of(&spec.to.0));
            (0..producers).flat_map(move |producer| {
                (0..consumers).map(move |consumer| {
                    let edge = Edge { stream: stream as u32, producer: producer as u32, consumer: consumer as u32 };
                    (edge, CopyId { filter: from, copy: producer }, CopyId { filter: to, copy: consumer })
                })
            })
        })
    }

    /// Whether a copy runs in this process.
    pub fn is_here(&self, copy: CopyId) -> bool {
        self.graph.process_of(copy) == self.process
    }

    pub fn spec(&self, edge: Edge) -> &StreamSpec {
        &self.graph.streams[edge.stream as usize]
    }
}

impl Gear {
    /// Listens, if the process has connections with others. The address is for the others.
    pub fn listen(&mut self, plan: &Plan) -> Result<(Door, String)> {
        if !plan.edges().any(|(_, from, to)| plan.is_here(from) != plan.is_here(to)) {
            return Ok((Door::Closed, String::new()));
        }
        self.count += 1;
        let own = format!("filters-{}-{}-{}", std::process::id(), self.count, number(&plan.key));
        match plan.graph.transport {
            Transport::Tcp => {
                let host = plan.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
                let listener = TcpListener::bind((host, 0)).map_err(Error::system("a listening socket"))?;
                listener.set_nonblocking(true).map_err(Error::system("a listening socket"))?;
                let address = listener.local_addr().map_err(Error::system("a listening socket"))?.to_string();
                Ok((Door::Socket(listener, Mutex::default()), address))
            }
            Transport::Vi => {
                let (nic, ptag) = self.nic()?;
                let address = NetAddress::new(&[], own.as_bytes());
                nic.listen(&address)?;
                Ok((Door::Vi(nic, ptag, address), own))
            }
            Transport::Channel => {
                let node = self.node(plan.address.is_some())?;
                let (listener, name) = match plan.address {
                    None => {
                        let name = format!("shm:{own}");
                        (node.listen(&name)?, name)
                    }
                    Some(host) => listen_iwarp(&node, host, &own)?,
                };
                Ok((Door::Channel(node, listener), name))
            }
        }
    }

    fn node(&mut self, distant: bool) -> Result<Node> {
        if let Some(node) = self.node.as_ref().filter(|node| !distant || node.schemes().any(|scheme| scheme == "iwarp"))
        {
            return Ok(node.clone());
        }
        let schemes: &[&str] = if distant { &["shm", "iwarp"] } else { &["shm"] };
        let node = Node::open(schemes, &LinkOptions::default())?;
        self.node = Some(node.clone());
        Ok(node)
    }

    fn nic(&mut self) -> Result<(Nic, Ptag)> {
        if self.nic.is_none() {
            let nic = Nic::on(self.node(false)?, "shm", "filters")?;
            let ptag = nic.create_ptag()?;
            self.nic = Some((nic, ptag));
        }
        self.nic.clone().ok_or(Error::Cancelled)
    }
}

/// Someone who has connected, and what was heard so far.
pub(super) struct Caller {
    stream: TcpStream,
    greeting: Vec<u8>,
}

enum Heard {
    Nothing,
    Greeting,
}

impl Caller {
    /// `None` once the caller is gone.
    fn listen(&mut self) -> Option<Heard> {
        let mut bytes = [0; GREETING];
        while self.greeting.len() < GREETING {
            match self.stream.read(&mut bytes[self.greeting.len()..]) {
                Ok(0) => return None,
                Ok(count) => self.greeting.extend_from_slice(&bytes[self.greeting.len()..][..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Some(Heard::Nothing),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(Heard::Greeting)
    }
}

/// Takes a port that is free: the link does not choose one.
fn listen_iwarp(node: &Node, host: IpAddr, own: &str) -> Result<(Listener, String)> {
    let first = (std::process::id() * 7) % 20_000;
    let mut failure = None;
    for step in 0..200 {
        let port = 20_000 + ((first + step * 37) % 20_000) as u16;
        let name = format!("iwarp:{}/{own}", SocketAddr::new(host, port));
        match node.listen(&name) {
            Ok(listener) => return Ok((listener, name)),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.map_or(Error::Cancelled, Error::Fabric))
}

/// Connects, but does not wait for a host that does not answer when the epoch is over.
fn connect_tcp(address: &str, over: &AtomicBool) -> Result<TcpStream> {
    let address: SocketAddr = address.parse().map_err(|_| Error::Misuse(format!("{address:?} is no address")))?;
    let (sender, connected) = channel();
    let connect = move || drop(sender.send(TcpStream::connect_timeout(&address, OPENING)));
    std::thread::Builder::new().name("connecting".into()).spawn(connect).map_err(Error::system("a thread"))?;
    while !over.load(Ordering::SeqCst) {
        match connected.recv_timeout(OVER) {
            Ok(connected) => return connected.map_err(Error::system("a connection")),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Err(Error::Cancelled)
}

fn number(key: &[u8; 16]) -> u32 {
    key.iter().fold(0, |number: u32, byte| number.wrapping_mul(31).wrapping_add(u32::from(*byte)))
}

impl Door {
    /// Makes all connections with other processes.
    pub fn connect(
        &self,
        plan: &Plan,
        addresses: &std::collections::BTreeMap<String, String>,
        over: &AtomicBool,
    ) -> Result<Ends> {
        let mut ends = Ends::default();
        let outward: Vec<(Edge, CopyId)> = plan
            .edges()
            .filter(|(_, from, to)| plan.is_here(*from) && !plan.is_here(*to))
            .map(|(edge, _, to)| (edge, to))
            .collect();
        let inward: HashMap<Edge, CopyId> = plan
            .edges()
            .filter(|(_, from, to)| plan.is_here(*to) && !plan.is_here(*from))
            .map(|(edge, from, _)| (edge, from))
            .collect();
        let (accepted, made) = std::thread::scope(|scope| {
            let accepting = scope.spawn(|| {
                let accepted = self.accept_all(plan, &inward, over);
                if accepted.is_err() {
                    over.store(true, Ordering::SeqCst);
                }
                accepted
            });
            let made = outward.into_iter().try_fold(HashMap::new(), |mut made, (edge, to)| {
                let process = plan.graph.process_of(to);
                let address = addresses.get(&process).map_or("", String::as_str);
                made.insert(edge, self.ask(plan, edge, address, plan.graph.copy_name(to), over)?);
                Ok(made)
            });
            if made.is_err() {
                over.store(true, Ordering::SeqCst);
            }
            (accepting.join().unwrap_or(Err(Error::Cancelled)), made)
        });
        (ends.tx, ends.rx) = match (made, accepted) {
            (Err(Error::Cancelled), Err(error)) | (Err(error), _) | (_, Err(error)) => return Err(error),
            (Ok(made), Ok(accepted)) => (made, accepted),
        };
        Ok(ends)
    }

    fn accept_all(&self, plan: &Plan, wanted: &HashMap<Edge, CopyId>, over: &AtomicBool) -> Result<HashMap<Edge, Rx>> {
        let mut found = HashMap::new();
        while found.len() < wanted.len() {
            if over.load(Ordering::SeqCst) {
                return Err(Error::Cancelled);
            }
            let fresh = |edge: &Edge| wanted.get(edge).filter(|_| !found.contains_key(edge)).copied();
            if let Some((edge, rx)) = self.accept(plan, &fresh)? {
                found.insert(edge, rx);
            }
        }
        Ok(found)
    }

    /// The next connection, if one comes soon and belongs here.
    fn accept(&self, plan: &Plan, fresh: &dyn Fn(&Edge) -> Option<CopyId>) -> Result<Option<(Edge, Rx)>> {
        let known = |bytes: &[u8]| {
            let edge = plan.greeted(bytes)?;
            // First whether there is such a connection: whoever knows the key can still say any number.
            let producer = fresh(&edge)?;
            Some((edge, plan.spec(edge), plan.graph.copy_name(producer)))
        };
        match self {
            Door::Closed => Err(Error::Cancelled),
            Door::Channel(_, listener) => {
                let request = match listener.wait(Some(clock::now() + OVER_NS)) {
                    Ok(request) => request,
                    Err(sidestep_fabric::Error::TimedOut(_)) => return Ok(None),
                    Err(error) => return Err(error.into()),
                };
                let Some((edge, spec, peer)) = known(private_of(&request)) else { return Ok(None) };
                let options = ChannelOptions { capacity: ring_for(spec.buffer, spec.queue), kind: QueueKind::Stream };
                let channel = Channel::accept(request, options, b"", Some(clock::now() + OPENING_NS))?;
                Ok(Some((edge, Rx::Channel(Box::new(ChannelRx::new(channel, spec.buffer, peer))))))
            }
            Door::Socket(listener, callers) => {
                let mut callers = callers.lock().map_err(|_| Error::Cancelled)?;
                if let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).map_err(Error::system("a socket"))?;
                    callers.push(Caller { stream, greeting: Vec::new() });
                    // Whoever connects and says nothing keeps nobody out.
                    if callers.len() > CALLERS {
                        callers.remove(0);
                    }
                }
                let mut found = None;
                let mut at = 0;
                while found.is_none() && at < callers.len() {
                    match callers[at].listen() {
                        Some(Heard::Nothing) => at += 1,
                        Some(Heard::Greeting) => {
                            let caller = callers.remove(at);
                            found = known(&caller.greeting).map(|who| (who, caller.stream));
                        }
                        None => drop(callers.remove(at)),
                    }
                }
                let Some(((edge, spec, peer), stream)) = found else {
                    std::thread::sleep(SLICE);
                    return Ok(None);
                };
                Ok(Some((edge, Rx::Socket(Box::new(SocketRx::new(stream, spec.buffer, peer)?)))))
            }
            Door::Vi(nic, ptag, address) => {
                let Some(mut request) = nic.poll_request(address)? else {
                    nic.node().progress();
                    std::thread::sleep(SLICE / 20);
                    return Ok(None);
                };
                let Some((edge, spec, peer)) = known(&request.remote().discriminator) else { return Ok(None) };
                let line = Line::consuming(nic, *ptag, spec.buffer, spec.queue)?;
                request.accept(&line.vi)?;
                Ok(Some((edge, Rx::Vi(Box::new(ViRx::new(line, spec.buffer, peer))))))
            }
        }
    }

    /// Connects to a consumer.
    fn ask(&self, plan: &Plan, edge: Edge, address: &str, peer: String, over: &AtomicBool) -> Result<Tx> {
        let (spec, greeting) = (plan.spec(edge), plan.greeting(edge));
        match self {
            Door::Closed => Err(Error::Cancelled),
            Door::Channel(node, _) => {
                let options = ChannelOptions { capacity: WORDS, kind: QueueKind::Stream };
                let events = EventQueue::new(node);
                let mut connecting = Channel::begin_connect(node, address, options, &greeting)?;
                connecting.attach(&events, 0);
                loop {
                    if let Some(channel) = connecting.poll()? {
                        return Ok(Tx::Channel(Box::new(ChannelTx::new(channel, peer))));
                    }
                    if over.load(Ordering::SeqCst) {
                        return Err(Error::Cancelled);
                    }
                    // Time that has passed is another look.
                    let _ = events.wait(Some(clock::now() + OVER_NS));
                }
            }
            Door::Socket(..) => {
                let mut stream = connect_tcp(address, over)?;
                stream.write_all(&greeting).map_err(Error::system("a connection"))?;
                Ok(Tx::Socket(Box::new(SocketTx::new(stream, spec.buffer, peer)?)))
            }
            Door::Vi(nic, ptag, _) => {
                let line = Line::producing(nic, *ptag, spec.buffer, spec.queue)?;
                let own = NetAddress::new(&[], &greeting);
                let mut connecting = line.vi.begin_connect(&own, &NetAddress::new(&[], address.as_bytes()))?;
                while !connecting.poll()? {
                    if over.load(Ordering::SeqCst) {
                        return Err(Error::Cancelled);
                    }
                    nic.node().progress();
                    std::thread::sleep(SLICE / 20);
                }
                drop(connecting);
                Ok(Tx::Vi(Box::new(ViTx::new(line, peer))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses at which a listener's queue is full drop what comes, as a host that is gone does.
    #[test]
    fn an_address_that_does_not_answer_is_left_with_the_epoch() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        // One has room.
        let waiting = TcpStream::connect(address).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let connecting = scope.spawn(|| connect_tcp(&address.to_string(), &over));
            std::thread::sleep(Duration::from_millis(5));
            over.store(true, Ordering::SeqCst);
            assert!(matches!(connecting.join().unwrap(), Err(Error::Cancelled)));
        });
        drop((waiting, listener));
        assert!(matches!(connect_tcp("a name", &AtomicBool::new(false)), Err(Error::Misuse(_))));
    }
}
