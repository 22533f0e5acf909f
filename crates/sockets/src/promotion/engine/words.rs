//! What two ends say to each other before a stream has a carrier: little-endian words, the first of which is the version of all
//! of them. What a peer sent is read here, and nothing else looks at it.
//!
//! | message | words after the version |
//! |---|---|
//! | hello: who asks for rings | 0, six of the key of who asks, the ring of who asks |
//! | answer to it | the ring of who was asked |
//! | question: who asks for a ticket | 1, six of the key |
//! | ticket | two of the ticket, the port or 0 |
//! | discriminator of a VI | two of the ticket |

use sidestep_fabric::queue::{Kind, QueueSpec};
use sidestep_wire::cursor::little::{Reader, Writer};

use crate::kernel::address::Key;

/// Raised by every change of what two ends say to each other.
pub const HANDSHAKE: u64 = 3;
/// The second words.
const HELLO: u64 = 0;
const QUESTION: u64 = 1;
/// What is answered by a process without a NIC, in place of a ticket.
pub const NO_NIC: &[u8] = &[0];

/// What names a stream to the NIC of its other end.
pub type Ticket = [u64; 2];

/// Asks for rings.
pub fn hello(key: &Key, spec: &QueueSpec) -> Vec<u8> {
    let mut bytes = with_key(HELLO, key);
    bytes.extend_from_slice(&spec.to_bytes());
    bytes
}

/// Reads that: the key of who asks, and its ring.
pub fn read_hello(bytes: &[u8]) -> Option<(Key, QueueSpec)> {
    let mut fields = begin(bytes)?;
    let key = read_key(HELLO, &mut fields)?;
    Some((key, stream_spec(fields.rest())?))
}

/// Answers it.
pub fn answer(spec: &QueueSpec) -> Vec<u8> {
    [&words(&[HANDSHAKE])[..], &spec.to_bytes()].concat()
}

/// Reads an answer: the ring of who was asked.
pub fn read_answer(bytes: &[u8]) -> Option<QueueSpec> {
    stream_spec(begin(bytes)?.rest())
}

/// Asks for a ticket.
pub fn question(key: &Key) -> Vec<u8> {
    with_key(QUESTION, key)
}

/// Reads that: the key of who asks.
pub fn read_question(bytes: &[u8]) -> Option<Key> {
    let mut fields = begin(bytes)?;
    let key = read_key(QUESTION, &mut fields)?;
    fields.end().ok()?;
    Some(key)
}

/// Gives a ticket, and a port; 0: the process is found by its name.
pub fn ticket(ticket: &Ticket, port: u16) -> Vec<u8> {
    words(&[HANDSHAKE, ticket[0], ticket[1], port.into()])
}

/// Reads that.
pub fn read_ticket(bytes: &[u8]) -> Option<(Ticket, u16)> {
    let mut fields = begin(bytes)?;
    let ticket = read_words(&mut fields)?;
    let [port] = read_words(&mut fields)?;
    fields.end().ok()?;
    Some((ticket, u16::try_from(port).ok()?))
}

/// Names a stream by its ticket, in the address of a VI.
pub fn discriminator(ticket: &Ticket) -> Vec<u8> {
    words(&[HANDSHAKE, ticket[0], ticket[1]])
}

/// Reads that.
pub fn read_discriminator(bytes: &[u8]) -> Option<Ticket> {
    let mut fields = begin(bytes)?;
    let ticket = read_words(&mut fields)?;
    fields.end().ok()?;
    Some(ticket)
}

fn with_key(second: u64, key: &Key) -> Vec<u8> {
    let mut bytes = words(&[HANDSHAKE, second]);
    bytes.extend(words(&key.to_words()));
    bytes
}

fn read_key(second: u64, fields: &mut Reader<'_>) -> Option<Key> {
    (fields.u64().ok()? == second).then_some(())?;
    Some(Key::from_words(read_words(fields)?))
}

/// The fields behind the version, if it is ours.
fn begin(bytes: &[u8]) -> Option<Reader<'_>> {
    let mut fields = Reader::new(bytes);
    (fields.u64().ok()? == HANDSHAKE).then_some(fields)
}

fn words(words: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(words.len() * 8 + QueueSpec::WIRE_LEN);
    let mut writer = Writer::new(&mut bytes);
    for word in words {
        writer.u64(*word);
    }
    bytes
}

fn read_words<const N: usize>(fields: &mut Reader<'_>) -> Option<[u64; N]> {
    let mut words = [0; N];
    for word in &mut words {
        *word = fields.u64().ok()?;
    }
    Some(words)
}

fn stream_spec(bytes: &[u8]) -> Option<QueueSpec> {
    QueueSpec::from_bytes(bytes).ok().filter(|spec| spec.kind == Kind::Stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_tickets_and_discriminators_come_back() {
        let key = Key { namespace: 7, local: "127.0.0.1:4000".parse().unwrap(), remote: "[::1]:80".parse().unwrap() };
        assert_eq!(read_question(&question(&key)), Some(key));
        assert_eq!(read_question(&question(&key)[..60]), None);
        assert_eq!(read_question(&[&question(&key)[..], &[0]].concat()), None);
        assert_eq!(read_question(&[0; 64]), None);
        let bytes = discriminator(&[7 << 40, 8]);
        assert_eq!(read_discriminator(&bytes), Some([7 << 40, 8]));
        assert_eq!(read_discriminator(&bytes[..20]), None);
        assert_eq!(read_ticket(&ticket(&[1, 2], 50_000)), Some(([1, 2], 50_000)));
        assert_eq!(read_ticket(&words(&[HANDSHAKE, 1, 2, 70_000])), None);
        assert_eq!(read_ticket(NO_NIC), None);
        assert_eq!(read_hello(&question(&key)), None);
    }
}
