//! How processes find each other's NICs where these are reached over a network: every process listens on a port of this host,
//! and tells it, with a secret, to those who ask over shared memory.
//!
//! Anybody on the host can connect to a port; only processes of this user are answered over shared memory, and so know the
//! secret. A request without it is refused.

use std::collections::HashMap;

use sidestep_shm::lock::Mutex;

use sidestep_fabric::{Endpoint, Error, Node, Request};
use sidestep_vi::{NetAddress, Nic};

use crate::{
    registry::{Identity, VERSION},
    stream::lock,
};

/// The way to the NICs of other processes.
#[derive(Debug)]
pub struct Wire {
    own: Spot,
    known: Mutex<HashMap<Identity, Found>>,
}

/// Where a process is reached, and what it wants to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    port: u16,
    secret: u64,
}

#[derive(Debug)]
enum Found {
    Asked(Endpoint),
    At(Spot),
    Nowhere,
}

/// What is known of another process.
#[derive(Debug, PartialEq, Eq)]
pub enum Where {
    /// It has not answered yet.
    Asked,
    /// It is reached there, with this secret.
    At(NetAddress, u64),
    /// It has no such NIC.
    Nowhere,
}

/// The second word of a question; the first one of a stream's is 0.
const QUESTION: u64 = 1;
/// Where ports are tried: those that are given to anybody.
const FIRST_PORT: u64 = 49_152;
const PORTS: u64 = 11_000;
const TRIES: usize = 64;
/// Processes that are remembered.
const MOST_KNOWN: usize = 1024;

impl Wire {
    /// Listens, and says where.
    pub fn listen(nic: &Nic) -> Option<(Wire, NetAddress)> {
        let secret = random()?;
        (0..TRIES).find_map(|_| {
            let spot = Spot { port: (FIRST_PORT + random()? % PORTS) as u16, secret };
            nic.listen(&spot.address()).ok()?;
            Some((Wire { own: spot, known: Mutex::default() }, spot.address()))
        })
    }

    /// What a request must say.
    pub fn secret(&self) -> u64 {
        self.own.secret
    }

    /// Where another process is; asks it if that is not known.
    pub fn find(&self, node: &Node, identity: Identity) -> Where {
        let mut known = lock(&self.known);
        let spot = match known.get(&identity) {
            Some(Found::At(spot)) => *spot,
            Some(Found::Nowhere) => return Where::Nowhere,
            Some(Found::Asked(endpoint)) => match endpoint.is_connected() {
                Ok(false) => return Where::Asked,
                Err(Error::Refused { private }) => {
                    let found = read_spot(&private).map_or(Found::Nowhere, Found::At);
                    known.insert(identity, found);
                    drop(known);
                    return self.find(node, identity);
                }
                _ => {
                    // It is gone, or another one by now.
                    known.remove(&identity);
                    return Where::Asked;
                }
            },
            None => {
                if known.len() >= MOST_KNOWN {
                    known.clear();
                }
                let name = format!("shm:{}", identity.name());
                if let Ok(endpoint) = node.begin_connect(&name, &words([VERSION, QUESTION])) {
                    known.insert(identity, Found::Asked(endpoint));
                }
                return Where::Asked;
            }
        };
        Where::At(spot.address(), spot.secret)
    }

    /// It was not there: the next look asks again.
    pub fn forget(&self, identity: Identity) {
        lock(&self.known).remove(&identity);
    }
}

impl Spot {
    fn address(&self) -> NetAddress {
        NetAddress::new(&[127, 0, 0, 1], format!("127.0.0.1:{}/sockets", self.port).as_bytes())
    }
}

/// Whether a request asks where this process is reached.
pub fn is_question(request: &Request) -> bool {
    request.private() == words([VERSION, QUESTION])
}

/// Answers it, if this process has such a NIC. One message: there is nothing to connect.
pub fn answer(request: Request, wire: Option<&Wire>) {
    let spot = wire.map(|wire| words([u64::from(wire.own.port), wire.own.secret]));
    // A process that cannot be told is gone.
    let _ = request.refuse(&spot.unwrap_or_default());
}

fn read_spot(bytes: &[u8]) -> Option<Spot> {
    let (port, secret) = bytes.split_at_checked(8)?;
    let port = u64::from_le_bytes(port.try_into().ok()?).try_into().ok()?;
    Some(Spot { port, secret: u64::from_le_bytes(secret.try_into().ok()?) })
}

fn words(words: [u64; 2]) -> Vec<u8> {
    words.map(u64::to_le_bytes).concat()
}

fn random() -> Option<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_where() {
        let spot = Spot { port: 50_000, secret: 7 << 40 };
        assert_eq!(read_spot(&words([50_000, 7 << 40])), Some(spot));
        assert_eq!(spot.address().discriminator, b"127.0.0.1:50000/sockets");
        for bytes in [&words([70_000, 1])[..], &[0; 9], &[]] {
            assert_eq!(read_spot(bytes), None);
        }
    }
}
