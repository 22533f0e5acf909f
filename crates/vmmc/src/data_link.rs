//! The data link between two cards: go-back-N, so that packets may be lost, doubled or late, or dropped by a receiver that
//! misses something, and arrive once and in order all the same.
//!
//! - Every packet to a node has a number; the receiver takes the one it expects and no other, and keeps nothing else.
//! - An acknowledgement names the number that is expected next, and so covers all before.
//! - A packet that was taken already is acknowledged again: the acknowledgement may have been lost.
//! - What is not acknowledged when the timer ends is sent again, all of it: the oldest packet first, and the others as it is
//!   acknowledged ([`Pace`]).
//! - With [`LinkConfig::nack`] a receiver that sees a gap, or has resolved a miss, asks at once.

use std::collections::VecDeque;

use crate::config::LinkConfig;
use crate::pace::Pace;
use crate::packet::{self, Body};

/// One direction there and one back, between this card and another.
#[derive(Debug)]
pub struct DataLink {
    config: LinkConfig,
    /// What was sent and is not acknowledged, oldest first.
    kept: VecDeque<Vec<u8>>,
    /// The number of the oldest of them.
    oldest: u64,
    /// How many of them have been sent since the last going back.
    sent: usize,
    pace: Pace,
    deadline: Option<u64>,
    /// What is expected from there next.
    expected: u64,
    owes_ack: bool,
    owes_nack: bool,
    /// The gap before this number was told of.
    told: Option<u64>,
    /// Packets that were sent again.
    resent: u64,
    /// How often that began anew.
    went_back: u64,
    /// Numbers below this were sent at least once.
    highest: u64,
}

/// What is to be done with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is the next: handle it, and say [`DataLink::accept`] when it is done.
    Next,
    /// It was taken before.
    Again,
    /// Something before it is lacking.
    Early,
}

impl DataLink {
    /// A link on which nothing was sent.
    #[must_use]
    pub fn new(config: LinkConfig) -> DataLink {
        DataLink {
            config,
            kept: VecDeque::new(),
            oldest: 0,
            sent: 0,
            pace: Pace::new(),
            deadline: None,
            expected: 0,
            owes_ack: false,
            owes_nack: false,
            told: None,
            resent: 0,
            went_back: 0,
            highest: 0,
        }
    }

    /// Takes something to send.
    pub fn send(&mut self, body: &Body) {
        let number = self.oldest + self.kept.len() as u64;
        self.kept.push_back(body.emit(number));
    }

    /// Packets that are not acknowledged.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Packets that were sent more than once.
    #[must_use]
    pub fn resent(&self) -> u64 {
        self.resent
    }

    /// How often packets were sent again: one retransmission, of as many packets as were under way.
    #[must_use]
    pub fn went_back(&self) -> u64 {
        self.went_back
    }

    /// An acknowledgement has come.
    pub fn handle_ack(&mut self, now: u64, ack: u64) {
        let Some(count) = ack.checked_sub(self.oldest) else { return };
        // A number that was never given out acknowledges nothing.
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count == 0 || count > self.kept.len() {
            return;
        }
        self.kept.drain(..count);
        self.oldest += count as u64;
        self.sent = self.sent.saturating_sub(count);
        self.pace.acknowledged(count);
        self.deadline = (self.sent > 0).then(|| now + self.config.timer_ns);
    }

    /// The other side asks for everything from a number on.
    pub fn handle_nack(&mut self, now: u64, ack: u64) {
        self.handle_ack(now, ack);
        if ack == self.oldest && self.config.nack {
            self.go_back();
        }
    }

    /// A packet with a number has come.
    pub fn handle_number(&mut self, number: u64) -> Arrival {
        if number == self.expected {
            return Arrival::Next;
        }
        if number < self.expected {
            self.owes_ack = true;
            return Arrival::Again;
        }
        if self.config.nack && self.told != Some(self.expected) {
            self.told = Some(self.expected);
            self.owes_nack = true;
        }
        Arrival::Early
    }

    /// The packet that was expected has been handled.
    pub fn accept(&mut self) {
        self.expected += 1;
        self.owes_ack = true;
        self.told = None;
    }

    /// The packet that was expected is dropped for a miss: it is not asked for before [`want_again`](Self::want_again).
    pub fn pass_over(&mut self) {
        self.told = Some(self.expected);
    }

    /// What a dropped packet lacked is there now.
    pub fn want_again(&mut self) {
        self.owes_nack |= self.config.nack;
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: u64) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            // Nobody says that what was lacking is there now; a receiver that asks has what it needs.
            self.pace.went_back(self.sent);
            self.go_back();
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        self.deadline
    }

    /// The next packet to put on the wire.
    pub fn poll_transmit(&mut self, now: u64) -> Option<Vec<u8>> {
        if self.owes_nack {
            (self.owes_nack, self.owes_ack) = (false, false);
            return Some(packet::bare(self.expected, true));
        }
        if self.pace.allows(self.sent)
            && let Some(next) = self.kept.get(self.sent)
        {
            let mut bytes = next.clone();
            packet::set_ack(&mut bytes, self.expected);
            let number = self.oldest + self.sent as u64;
            if number < self.highest {
                self.resent += 1;
            }
            self.highest = self.highest.max(number + 1);
            self.sent += 1;
            self.owes_ack = false;
            self.deadline.get_or_insert(now + self.config.timer_ns);
            return Some(bytes);
        }
        if self.owes_ack {
            self.owes_ack = false;
            return Some(packet::bare(self.expected, false));
        }
        None
    }

    fn go_back(&mut self) {
        self.went_back += u64::from(self.sent > 0);
        self.sent = 0;
        self.deadline = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    fn message(number: u8) -> Body {
        Body::Message(vec![number])
    }

    fn take(link: &mut DataLink, bytes: &[u8]) -> Arrival {
        match packet::parse(bytes).unwrap() {
            Packet::Numbered { number, ack, .. } => {
                link.handle_ack(0, ack);
                link.handle_number(number)
            }
            Packet::Ack(ack) => {
                link.handle_ack(0, ack);
                Arrival::Again
            }
            Packet::Nack(ack) => {
                link.handle_nack(0, ack);
                Arrival::Again
            }
        }
    }

    #[test]
    fn a_drop_is_sent_again_with_all_that_followed() {
        let config = LinkConfig { timer_ns: 100, ..LinkConfig::default() };
        let (mut one, mut two) = (DataLink::new(config), DataLink::new(config));
        (0..3).for_each(|number| one.send(&message(number)));
        let first: Vec<_> = std::iter::from_fn(|| one.poll_transmit(0)).collect();
        assert_eq!(take(&mut two, &first[0]), Arrival::Next);
        two.accept();
        assert_eq!(take(&mut two, &first[2]), Arrival::Early);
        let ack = two.poll_transmit(0).unwrap();
        assert_eq!(packet::parse(&ack), Some(Packet::Ack(1)));
        take(&mut one, &ack);
        assert_eq!(one.kept(), 2);
        assert_eq!(one.poll_transmit(0), None);
        assert_eq!(one.poll_timeout(), Some(100));
        one.handle_timeout(99);
        assert_eq!(one.poll_transmit(99), None);
        // The oldest alone, as often as it takes; the rest follows when it is acknowledged.
        for now in [100, 200] {
            one.handle_timeout(now);
            let again: Vec<_> = std::iter::from_fn(|| one.poll_transmit(now)).collect();
            assert_eq!(again, first[1..2]);
        }
        assert_eq!(take(&mut two, &first[1]), Arrival::Next);
        two.accept();
        let ack = two.poll_transmit(200).unwrap();
        take(&mut one, &ack);
        let rest: Vec<_> = std::iter::from_fn(|| one.poll_transmit(200)).collect();
        assert_eq!(rest, first[2..]);
        assert_eq!((one.resent(), one.went_back()), (3, 2));
    }

    #[test]
    fn what_was_taken_is_acknowledged_again() {
        let (mut one, mut two) = (DataLink::new(LinkConfig::default()), DataLink::new(LinkConfig::default()));
        one.send(&message(1));
        let bytes = one.poll_transmit(0).unwrap();
        assert_eq!(take(&mut two, &bytes), Arrival::Next);
        two.accept();
        assert!(two.poll_transmit(0).is_some(), "an acknowledgement, which is lost");
        assert_eq!(take(&mut two, &bytes), Arrival::Again);
        let ack = two.poll_transmit(0).unwrap();
        take(&mut one, &ack);
        assert_eq!((one.kept(), one.poll_timeout()), (0, None));
        one.handle_ack(0, 99);
        assert_eq!(one.kept(), 0);
    }

    #[test]
    fn a_nack_is_told_once_a_gap() {
        let config = LinkConfig { nack: true, ..LinkConfig::default() };
        let (mut one, mut two) = (DataLink::new(config), DataLink::new(config));
        (0..3).for_each(|number| one.send(&message(number)));
        let first: Vec<_> = std::iter::from_fn(|| one.poll_transmit(0)).collect();
        assert_eq!(take(&mut two, &first[1]), Arrival::Early);
        assert_eq!(take(&mut two, &first[2]), Arrival::Early);
        let nack = two.poll_transmit(0).unwrap();
        assert_eq!(packet::parse(&nack), Some(Packet::Nack(0)));
        assert_eq!(two.poll_transmit(0), None);
        take(&mut one, &nack);
        assert_eq!(one.poll_transmit(0).as_deref(), Some(&first[0][..]));
    }
}
