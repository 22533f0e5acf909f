//! Pieces of streams, as processes hand them over, to conversations as a network would have carried them: a handshake, bytes in
//! order, acknowledgements of what was seen, an end.
//!
//! What each process writes comes in order; what two processes write comes in any order. A piece says how far its process had read
//! before: what it had read comes before it in the capture, and is waited for, but not for ever.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::SocketAddr,
};

use sidestep_sockets::tap::record::{Kind, Record};

use super::{
    pcapng,
    segment::{ACK, FIN, PSH, SYN, Segment},
};

/// How long what a piece answers is waited for.
const HOLD_NS: u64 = 100_000_000;
/// Bytes after which the other side acknowledges what it has been sent, if it says nothing.
const QUIET: u64 = 256 << 10;
/// Conversations that are remembered: more than a user's registry has sockets. Only processes that hand over addresses which they
/// do not have make more.
const MOST: usize = 65_536;

/// All conversations of a capture.
#[derive(Debug, Default)]
pub struct Conversations {
    all: HashMap<Name, Conversation>,
    /// Those with pieces that wait: the others need not be looked at again and again.
    held: HashSet<Name>,
    /// Packets so far.
    pub packets: u64,
    /// Packets that are wanted at most.
    most: Option<u64>,
    /// Nanoseconds between the beginning of 1970 and that of the monotonic clock.
    offset: u64,
    out: Vec<u8>,
}

/// Which connection: its network namespace, and its ends in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Name(u64, SocketAddr, SocketAddr);

#[derive(Debug, Default)]
struct Conversation {
    sides: [Side; 2],
    begun: bool,
    /// Time of the last packet.
    time: u64,
}

/// What one end writes.
#[derive(Debug, Default)]
struct Side {
    /// Pieces that wait, and since when.
    waiting: VecDeque<(Record, Vec<u8>, u64)>,
    cookie: u64,
    /// Position of the first byte of the capture, once there is one: a process may be tapped later than its peer.
    base: Option<u64>,
    /// Position behind the last byte that was shown.
    next: u64,
    /// Position up to which the other side has acknowledged.
    acknowledged: u64,
    /// Position up to which nothing is waited for any more.
    given_up: u64,
    ended: bool,
}

impl Side {
    /// A piece is about to be shown: if it is the first one, the capture of this side begins with it.
    fn begin(&mut self, record: &Record) {
        self.cookie = record.cookie;
        if self.base.is_none() {
            self.base = Some(record.position);
            (self.next, self.acknowledged) = (record.position, record.position);
        }
    }

    /// The sequence number of a position.
    fn number(&self, position: u64) -> u32 {
        (position.wrapping_sub(self.base.unwrap_or(position)) as u32).wrapping_add(1)
    }

    /// The number that the other side expects next, having seen all that was shown.
    fn acknowledge(&mut self) -> u32 {
        self.acknowledged = self.next;
        self.number(self.next)
    }
}

/// A segment without bytes.
fn bare(from: SocketAddr, to: SocketAddr, sequence: u32, acknowledged: u32, flags: u8) -> Segment<'static> {
    Segment { from, to, sequence, acknowledged, flags, payload: &[], len: 0 }
}

impl Conversations {
    /// Nothing was seen yet. There will be so many packets at most.
    pub fn new(offset: u64, most: Option<u64>) -> Conversations {
        Conversations { offset, most, ..Conversations::default() }
    }

    /// Whether there are all the packets that are wanted.
    pub fn is_full(&self) -> bool {
        self.most.is_some_and(|most| self.packets >= most)
    }

    /// A piece has come, at this time of the monotonic clock.
    pub fn add(&mut self, record: Record, bytes: Vec<u8>, now: u64) {
        let (name, side) = Name::of(&record);
        if self.all.len() >= MOST && !self.all.contains_key(&name) {
            self.all.retain(|name, _| self.held.contains(name));
        }
        let conversation = self.all.entry(name).or_default();
        if conversation.is_over(side, &record) {
            *conversation = Conversation::default();
        }
        conversation.sides[side].waiting.push_back((record, bytes, now));
        self.held.insert(name);
        self.emit(name, now);
    }

    fn emit(&mut self, name: Name, now: u64) {
        let Some(conversation) = self.all.get_mut(&name) else { return };
        let over = conversation.emit(now, |time, segment, comment| {
            // A piece can make several packets.
            if self.most.is_some_and(|most| self.packets >= most) {
                return;
            }
            let (packet, len) = segment.packet();
            self.out.extend(pcapng::packet(time.saturating_add(self.offset), &packet, len, comment));
            self.packets += 1;
        });
        if conversation.sides.iter().all(|side| side.waiting.is_empty()) {
            self.held.remove(&name);
        }
        if over {
            self.all.remove(&name);
        }
    }

    /// Shows what has waited for too long at this time, or all of it.
    pub fn settle(&mut self, now: u64) {
        for name in self.held.iter().copied().collect::<Vec<_>>() {
            self.emit(name, now);
        }
    }

    /// What is to be written to the capture.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

impl Name {
    /// The conversation of a piece, and which of its sides has written it.
    fn of(record: &Record) -> (Name, usize) {
        let (local, remote) = (record.key.local, record.key.remote);
        let side = usize::from(local > remote);
        (Name(record.key.namespace, local.min(remote), local.max(remote)), side)
    }
}

impl Conversation {
    /// Whether this side was another connection's, whose addresses this one has got.
    fn is_over(&self, side: usize, record: &Record) -> bool {
        let side = &self.sides[side];
        side.cookie != 0 && side.cookie != record.cookie
    }

    /// Shows what can be shown. `true`: it is over.
    fn emit(&mut self, now: u64, mut show: impl FnMut(u64, &Segment<'_>, Option<&str>)) -> bool {
        while let Some(side) = self.ready(now) {
            let Some((record, bytes, _)) = self.sides[side].waiting.pop_front() else { break };
            self.time = self.time.max(record.time);
            if !self.begun {
                self.begin(&record, &mut show);
            }
            self.sides[side].begin(&record);
            match record.kind {
                Kind::Bytes => self.show(side, &record, &bytes, &mut show),
                Kind::End => self.end(side, &record, &mut show),
            }
            let other = &mut self.sides[1 - side];
            other.given_up = other.given_up.max(record.read);
        }
        self.begun && self.sides.iter().all(|side| side.ended && side.waiting.is_empty())
    }

    /// The side whose next piece can be shown, if there is one: all that its process had read has been shown, or was waited for.
    /// Of two, the one that was written first.
    fn ready(&self, now: u64) -> Option<usize> {
        let front = |side: usize| self.sides[side].waiting.front();
        let rank = |side: usize| {
            let (record, _, since) = front(side)?;
            let other = &self.sides[1 - side];
            let follows = self.begun && other.next.max(other.given_up) >= record.read;
            (follows || now.saturating_sub(*since) >= HOLD_NS).then_some((!follows, record.time))
        };
        (0..2).filter(|side| rank(*side).is_some()).min_by_key(|side| rank(*side))
    }

    /// The handshake, as if it had been made just before the first piece. The end with the higher port is the client.
    fn begin(&mut self, record: &Record, show: &mut impl FnMut(u64, &Segment<'_>, Option<&str>)) {
        self.begun = true;
        let (client, server) = match record.key.asks() {
            true => (record.key.local, record.key.remote),
            false => (record.key.remote, record.key.local),
        };
        show(self.time, &bare(client, server, 0, 0, SYN), None);
        show(self.time, &bare(server, client, 0, 1, SYN | ACK), None);
        show(self.time, &bare(client, server, 1, 1, ACK), None);
    }

    /// A piece of a side.
    fn show(
        &mut self,
        side: usize,
        record: &Record,
        bytes: &[u8],
        show: &mut impl FnMut(u64, &Segment<'_>, Option<&str>),
    ) {
        let next = self.sides[side].next;
        let end = record.position.saturating_add(record.len);
        if end <= next || self.sides[side].ended {
            return;
        }
        // Bytes that were shown before are not shown again.
        let skip = next.saturating_sub(record.position);
        let missing = record.position.saturating_sub(next);
        let comment = (missing > 0).then(|| {
            format!("{missing} bytes before this went over TCP, or were lost: the capture does not have them")
        });
        let payload = bytes.get(skip as usize..).unwrap_or(&[]);
        let (from, to) = (record.key.local, record.key.remote);
        let segment = Segment {
            from,
            to,
            sequence: self.sides[side].number(record.position + skip),
            acknowledged: self.sides[1 - side].acknowledge(),
            flags: ACK | PSH,
            payload,
            len: (record.len - skip) as usize,
        };
        show(self.time, &segment, comment.as_deref());
        self.sides[side].next = end;
        if end - self.sides[side].acknowledged >= QUIET {
            let acknowledged = self.sides[side].acknowledge();
            let sequence = self.sides[1 - side].number(self.sides[1 - side].next);
            show(self.time, &bare(to, from, sequence, acknowledged, ACK), None);
        }
    }

    /// The end of a side. If it is the second one, the other acknowledges it.
    fn end(&mut self, side: usize, record: &Record, show: &mut impl FnMut(u64, &Segment<'_>, Option<&str>)) {
        if std::mem::replace(&mut self.sides[side].ended, true) {
            return;
        }
        let (from, to) = (record.key.local, record.key.remote);
        let sequence = self.sides[side].number(self.sides[side].next);
        let acknowledged = self.sides[1 - side].acknowledge();
        show(self.time, &bare(from, to, sequence, acknowledged, FIN | ACK), None);
        // The end has a number, too.
        self.sides[side].next += 1;
        if self.sides[1 - side].ended {
            let acknowledged = self.sides[side].acknowledge();
            let sequence = self.sides[1 - side].number(self.sides[1 - side].next);
            show(self.time, &bare(to, from, sequence, acknowledged, ACK), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use sidestep_sockets::address::Key;

    use super::*;

    const CLIENT: &str = "127.0.0.1:4000";
    const SERVER: &str = "127.0.0.1:80";

    fn piece(from: &str, time: u64, position: u64, read: u64, bytes: &[u8]) -> (Record, Vec<u8>) {
        let to = if from == CLIENT { SERVER } else { CLIENT };
        let key = Key { namespace: 1, local: from.parse().unwrap(), remote: to.parse().unwrap() };
        let kind = if bytes.is_empty() { Kind::End } else { Kind::Bytes };
        let len = bytes.len() as u64;
        (Record { kind, key, cookie: 1, time, pid: 1, position, read, len, kept: len }, bytes.to_vec())
    }

    /// What the capture has: who sent, sequence number, acknowledged, flags, bytes.
    fn shown(mut conversations: Conversations) -> Vec<(u16, u32, u32, u8, Vec<u8>)> {
        let bytes = conversations.take();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let (mut at, mut all) = (0, Vec::new());
        while at < bytes.len() {
            let packet = &bytes[at + 28..at + 28 + word(at + 20)];
            let number = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
            let head = 20 + usize::from(packet[32] >> 4) * 4;
            all.push((number(20) >> 16, number(24), number(28), packet[33], packet[head..].to_vec()));
            at += word(at + 4);
        }
        all.into_iter().map(|(port, a, b, c, d)| (port as u16, a, b, c, d)).collect()
    }

    /// Positions begin anywhere; an answer that is handed over before its question comes behind it.
    #[test]
    fn answers_come_behind_questions() {
        let mut all = Conversations::new(0, None);
        // Of one process they come in order.
        let pieces = [
            piece(CLIENT, 1, 100, 50, b"who?"),
            piece(SERVER, 2, 50, 104, b"you..."),
            piece(SERVER, 4, 56, 108, b"again"),
            piece(CLIENT, 3, 104, 56, b"what"),
        ];
        pieces.into_iter().for_each(|(record, bytes)| all.add(record, bytes, 1));
        let ends = [piece(CLIENT, 5, 108, 61, b""), piece(SERVER, 6, 61, 108, b"")];
        ends.into_iter().for_each(|(record, bytes)| all.add(record, bytes, 1));
        all.settle(HOLD_NS + 1);
        assert!(all.all.is_empty(), "both have ended");
        let (client, server) = (4000, 80);
        let expected = [
            (client, 0, 0, SYN, &b""[..]),
            (server, 0, 1, SYN | ACK, b""),
            (client, 1, 1, ACK, b""),
            (client, 1, 1, ACK | PSH, b"who?"),
            (server, 1, 5, ACK | PSH, b"you..."),
            (client, 5, 7, ACK | PSH, b"what"),
            (server, 7, 9, ACK | PSH, b"again"),
            (client, 9, 12, FIN | ACK, b""),
            (server, 12, 10, FIN | ACK, b""),
            (client, 10, 13, ACK, b""),
        ];
        let expected: Vec<_> = expected.map(|(port, a, b, c, d)| (port, a, b, c, d.to_vec())).into();
        assert_eq!(shown(all), expected);
    }

    /// What is missing stays missing, what came twice is shown once, and nothing is acknowledged that was not shown.
    #[test]
    fn gaps_stay_gaps() {
        let mut all = Conversations::new(0, None);
        let pieces = [
            piece(CLIENT, 1, 0, 0, b"abc"),
            piece(CLIENT, 2, 10, 0, b"def"),
            piece(CLIENT, 3, 11, 0, b"efg"),
            piece(SERVER, 4, 0, 900, b"x"),
        ];
        pieces.into_iter().for_each(|(record, bytes)| all.add(record, bytes, 1));
        all.settle(HOLD_NS + 1);
        let data: Vec<_> = shown(all).into_iter().filter(|packet| !packet.4.is_empty()).collect();
        let expected = [(4000, 1, 1, &b"abc"[..]), (4000, 11, 1, b"def"), (4000, 14, 1, b"g"), (80, 1, 15, b"x")];
        assert_eq!(data, expected.map(|(port, a, b, bytes)| (port, a, b, ACK | PSH, bytes.to_vec())));
    }

    /// The first packets of a piece that makes more of them than are wanted.
    #[test]
    fn there_are_no_more_packets_than_are_wanted() {
        let mut all = Conversations::new(0, Some(5));
        let pieces = [piece(CLIENT, 1, 0, 0, b"who?"), piece(SERVER, 2, 0, 4, b"you"), piece(CLIENT, 3, 4, 3, b"me")];
        pieces.into_iter().for_each(|(record, bytes)| all.add(record, bytes, 1));
        all.settle(u64::MAX);
        assert!(all.is_full() && all.packets == 5);
        assert_eq!(shown(all).len(), 5, "a handshake and two pieces");
        let mut two = Conversations::new(0, Some(2));
        let (record, bytes) = piece(CLIENT, 1, 0, 0, b"who?");
        two.add(record, bytes, 1);
        two.settle(u64::MAX);
        assert_eq!((two.packets, shown(two).len()), (2, 2));
    }
}
