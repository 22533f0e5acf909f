//! How a stream comes to a link: who asks connects a VI to the process of the peer, and names the stream by the
//! discriminator of its own address; who is asked accepts, if it has that stream. Then both tell where their boards are.
//!
//! The NIC is that of the engine's own node, on shared memory, or one on iWARP, whose node then wakes whoever sleeps at the
//! engine's.

use std::{sync::Arc, time::Duration};

use sidestep_shm::lock::Mutex;

use sidestep_fabric::{Error, Node, link::iwarp::IwarpOptions};
use sidestep_vi::{Connecting, ConnectionRequest, NetAddress, Nic};

use super::{
    Engine, short_of,
    wire::{Where, Wire},
};
use crate::{
    address::Key,
    carrier::{Carrier, Parts, Way},
    config::{self, Device, config},
    ends::{Incoming, Outgoing},
    kernel::{self, Mask},
    reason::Reason,
    registry::{Identity, VERSION},
    sovia::Link,
    stream::{Place, Stage, Stream, lock},
    table,
};

/// The VIA side of an engine.
#[derive(Debug)]
pub struct Exchange {
    nic: Nic,
    address: NetAddress,
    /// How other processes are found, unless by their identity.
    wire: Option<Wire>,
    pending: Mutex<Vec<Pending>>,
}

/// A link on its way to its stream.
#[derive(Debug)]
struct Pending {
    stream: u32,
    key: Key,
    link: Arc<Link>,
    /// On the side that asked, until it was answered.
    connecting: Option<Connecting>,
}

/// How long a connection between two NICs may take to be made.
const SETUP: Duration = Duration::from_secs(1);

impl Exchange {
    /// Of an engine with this identity, if its streams are to go over VIA.
    pub fn start(node: &Node, identity: Identity) -> Option<Exchange> {
        if config().carrier == config::Carrier::Ring {
            return None;
        }
        let (nic, address, wire) = match config().nic {
            Device::Shm => {
                let nic = Nic::on(node.clone(), "sockets").ok()?;
                let address = address_of(identity);
                nic.listen(&address).ok()?;
                (nic, address, None)
            }
            Device::Iwarp => {
                let nic = Nic::on(iwarp_node()?, "sockets").ok()?;
                let (wire, address) = Wire::listen(&nic)?;
                node.accompany(nic.node());
                (nic, address, Some(wire))
            }
        };
        Some(Exchange { nic, address, wire, pending: Mutex::default() })
    }

    /// Ends the thread of the NIC's node.
    pub fn end_threads(&self) {
        self.nic.node().end_service();
    }

    /// How other processes are found, if that is asked for.
    pub fn wire(&self) -> Option<&Wire> {
        self.wire.as_ref()
    }

    /// Asks the process at the other end of a stream. `false`: it does not speak VIA, or this one has no link to spare.
    pub fn ask(&self, node: &Node, place: &Place, stream: &Stream, identity: Identity) -> bool {
        if lock(&self.pending).iter().any(|pending| pending.key == place.key) {
            return true;
        }
        let (remote, secret) = match self.wire.as_ref().map(|wire| wire.find(node, identity)) {
            None => (address_of(identity), None),
            Some(Where::At(address, secret)) => (address, Some(secret)),
            Some(Where::Asked) => {
                stream.try_soon();
                return true;
            }
            Some(Where::Nowhere) => return false,
        };
        // Without memory for a link, or a VI, there may be some for rings; if not, that tells both ends.
        let Ok(link) = Link::new(&self.nic, config().sovia) else { return false };
        let local = NetAddress::new(&[], &discriminator(&place.key, secret));
        let Ok(connecting) = link.vi().begin_connect(&local, &remote) else {
            self.wire.iter().for_each(|wire| wire.forget(identity));
            return self.wire.is_some();
        };
        let pending = Pending { stream: stream.index, key: place.key, link, connecting: Some(connecting) };
        lock(&self.pending).push(pending);
        true
    }

    /// A stream needs no link any more: the peer may have its end already, and is told.
    pub fn forget(&self, key: &Key) {
        lock(&self.pending).retain(|pending| pending.key != *key);
    }

    /// Takes up requests and answers that have come.
    pub fn pump(&self, engine: &Engine) {
        if self.wire.is_some() {
            self.nic.node().progress_kernel();
        }
        while let Ok(Some(request)) = self.nic.poll_request(&self.address) {
            self.answer(engine, request);
        }
        self.see_to_pending(engine);
    }

    /// Goes on with links on their way.
    pub fn see_to_pending(&self, engine: &Engine) {
        let waiting = std::mem::take(&mut *lock(&self.pending));
        if waiting.is_empty() {
            return;
        }
        let kept: Vec<_> = waiting.into_iter().filter_map(|pending| go_on(engine, pending)).collect();
        lock(&self.pending).extend(kept);
    }

    fn answer(&self, engine: &Engine, mut request: ConnectionRequest) {
        let secret = self.wire.as_ref().map(Wire::secret);
        let asked = read_discriminator(&request.remote().discriminator, secret);
        let Some(own) = asked.map(|key| key.reversed()) else { return };
        let Some(stream) = engine.awaiting(&own) else { return };
        let link = match Link::new(&self.nic, config().sovia) {
            Ok(link) => link,
            Err(sidestep_vi::Error::Fabric(Error::Memory(error))) => return short_of(stream, &error),
            Err(_) => return stream.set_reason(Reason::Resources),
        };
        if request.accept(link.vi()).is_ok() {
            lock(&self.pending).push(Pending { stream: stream.index, key: own, link, connecting: None });
        }
    }
}

/// One look at a link on its way. `Some`: it is not there yet.
fn go_on(engine: &Engine, mut pending: Pending) -> Option<Pending> {
    let stream = table::stream_at(pending.stream)?;
    // The number may lead to another connection by now.
    let same = stream.known_place().is_some_and(|place| place.key == pending.key);
    if !same || stream.stage() != Stage::Offered {
        return None;
    }
    if let Some(connecting) = &mut pending.connecting {
        match connecting.poll() {
            Ok(false) => return Some(pending),
            Ok(true) => pending.connecting = None,
            Err(_) => {
                // Refused, or gone: the next try comes later.
                stream.set_reason(Reason::Refused);
                return None;
            }
        }
    }
    if pending.link.is_ready() {
        engine.forget(&pending.key);
        stream.carried(parts(&engine.node, &pending.link));
        return None;
    }
    pending.link.check().then_some(pending)
}

fn parts(node: &Node, link: &Arc<Link>) -> Parts {
    let options = link.options();
    let carrier = Carrier::new(node, Way::Via(link.clone()), u64::from(options.window) * options.chunk as u64);
    Parts {
        carrier: Arc::new(carrier),
        sender: Some(Outgoing::Via(link.clone())),
        receiver: Some(Incoming::Via(link.clone(), 0)),
    }
}

fn address_of(Identity(words): Identity) -> NetAddress {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    NetAddress::new(&[], &bytes)
}

/// A node on iWARP. Its thread hears no signals: they are the program's.
fn iwarp_node() -> Option<Node> {
    let before = kernel::block(Mask::ALL);
    let node = Node::iwarp(IwarpOptions { setup_timeout: SETUP, ..IwarpOptions::default() });
    kernel::set_mask(before);
    node.ok()
}

fn discriminator(key: &Key, secret: Option<u64>) -> Vec<u8> {
    let words = [VERSION].into_iter().chain(key.to_words()).chain(secret);
    words.flat_map(|word| word.to_le_bytes()).collect()
}

fn read_discriminator(bytes: &[u8], secret: Option<u64>) -> Option<Key> {
    let (version, rest) = bytes.split_at_checked(8)?;
    let (key, told) = rest.split_at_checked(48)?;
    let wanted: Vec<u8> = secret.iter().flat_map(|word| word.to_le_bytes()).collect();
    if version != VERSION.to_le_bytes() || told != wanted {
        return None;
    }
    let words = key.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    Some(Key::from_words(words.collect::<Vec<_>>().try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discriminator_names_a_stream() {
        let key = Key { namespace: 7, local: "127.0.0.1:4000".parse().unwrap(), remote: "[::1]:80".parse().unwrap() };
        for secret in [None, Some(77)] {
            let bytes = discriminator(&key, secret);
            assert!(bytes.len() <= sidestep_vi::MAX_DISCRIMINATOR);
            assert_eq!(read_discriminator(&bytes, secret), Some(key));
            assert_eq!(read_discriminator(&bytes, Some(78)), None);
            assert_eq!(read_discriminator(&bytes[..50], secret), None);
            assert_eq!(read_discriminator(&vec![0; bytes.len()], secret), None);
        }
    }
}
