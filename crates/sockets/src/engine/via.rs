//! How a stream comes to a link: who asks connects a VI to the process of the peer, and names the stream by the
//! discriminator of its own address; who is asked accepts, if it has that stream. Then both tell where their boards are.

use std::sync::{Arc, Mutex};

use sidestep_vi::{Connecting, ConnectionRequest, NetAddress, Nic};

use super::Engine;
use crate::{
    address::Key,
    carrier::{Carrier, Parts, Way},
    config::{self, config},
    ends::{Incoming, Outgoing},
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

impl Exchange {
    /// Of an engine with this identity, if its streams are to go over VIA.
    pub fn start(node: &sidestep_fabric::Node, identity: Identity) -> Option<Exchange> {
        if config().carrier != config::Carrier::Via {
            return None;
        }
        let nic = Nic::on(node.clone(), "sockets").ok()?;
        let address = address_of(identity);
        nic.listen(&address).ok()?;
        Some(Exchange { nic, address, pending: Mutex::default() })
    }

    /// Asks the process at the other end of a stream. `false`: it does not speak VIA.
    pub fn ask(&self, place: &Place, stream: &Stream, identity: Identity) -> bool {
        if lock(&self.pending).iter().any(|pending| pending.key == place.key) {
            return true;
        }
        let link = match Link::new(&self.nic, config().sovia) {
            Ok(link) => link,
            Err(_) => {
                stream.set_reason(Reason::Resources);
                return true;
            }
        };
        let local = NetAddress::new(&[], &discriminator(&place.key));
        let Ok(connecting) = link.vi().begin_connect(&local, &address_of(identity)) else { return false };
        let pending = Pending { stream: stream.index, key: place.key, link, connecting: Some(connecting) };
        lock(&self.pending).push(pending);
        true
    }

    /// Takes up requests and answers that have come.
    pub fn pump(&self, engine: &Engine) {
        while let Ok(Some(request)) = self.nic.poll_request(&self.address) {
            self.answer(engine, request);
        }
        let waiting = std::mem::take(&mut *lock(&self.pending));
        let kept: Vec<_> = waiting.into_iter().filter_map(|pending| go_on(engine, pending)).collect();
        lock(&self.pending).extend(kept);
    }

    fn answer(&self, engine: &Engine, mut request: ConnectionRequest) {
        let Some(own) = read_discriminator(&request.remote().discriminator).map(|key| key.reversed()) else { return };
        let Some(stream) = engine.awaiting(&own) else { return };
        let Ok(link) = Link::new(&self.nic, config().sovia) else { return stream.set_reason(Reason::Resources) };
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
        stream.carried(parts(&pending.link));
        return None;
    }
    pending.link.check().then_some(pending)
}

fn parts(link: &Arc<Link>) -> Parts {
    let options = link.options();
    let carrier = Carrier::new(Way::Via(link.clone()), u64::from(options.window) * options.chunk as u64);
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

fn discriminator(key: &Key) -> Vec<u8> {
    [VERSION].iter().chain(&key.to_words()).flat_map(|word| word.to_le_bytes()).collect()
}

fn read_discriminator(bytes: &[u8]) -> Option<Key> {
    let (version, key) = bytes.split_at_checked(8)?;
    if version != VERSION.to_le_bytes() {
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
        let bytes = discriminator(&key);
        assert!(bytes.len() <= sidestep_vi::MAX_DISCRIMINATOR);
        assert_eq!(read_discriminator(&bytes), Some(key));
        assert_eq!(read_discriminator(&bytes[..50]), None);
        assert_eq!(read_discriminator(&[0; 56]), None);
    }
}
