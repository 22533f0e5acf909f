//! What this side has asked of a peer and not been told the end of: in order, each under the tag of its cookie.
//!
//! A write is not answered in iWARP; a read of length zero behind it is, once the write has been carried out. So every
//! answer ends all that was asked before it. What was refused is told before the answer that would end it.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    ops::Range,
};

use sidestep_iwarp::Stag;

use crate::{
    cookie::Cookie,
    error::{CloseReason, Refusal},
    link::{Outcome, Ticket},
};

/// The requests under way, and the tags they use.
#[derive(Debug, Default)]
pub(super) struct Asks {
    queue: VecDeque<Ask>,
    bindings: BTreeMap<Stag, Binding>,
    by_cookie: HashMap<Cookie, Stag>,
    /// The cookie that was used last.
    recent: Option<(Cookie, Stag)>,
    last_tag: u32,
    /// Reads of length zero under way.
    flushes: usize,
    unflushed: Unflushed,
    /// Counts uses, to find the binding that was not used for longest.
    uses: u64,
}

#[derive(Debug)]
struct Ask {
    ticket: Ticket,
    stag: Stag,
    units: Range<u64>,
    kind: Kind,
}

/// What no read of length zero was sent behind.
#[derive(Debug, Default)]
struct Unflushed {
    requests: usize,
    bytes: u64,
}

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    Map,
    Get,
    /// A read of no bytes, which only looks at the cookie.
    EmptyGet,
    Atomic,
    /// This side knows that it cannot be, unless the cookie is not good either.
    Refused(Refusal),
    /// Only to end what was asked before.
    Flush,
}

/// What an answer brings.
#[derive(Debug)]
pub(super) enum Answer {
    Flush,
    Bytes(Vec<u8>),
    Value(u64),
}

/// A tag that stands for a cookie at the peer.
#[derive(Debug)]
struct Binding {
    cookie: Cookie,
    /// What was asked under it so far.
    units: u64,
    /// From where on it was refused.
    refused: Option<(u64, Refusal)>,
    under_way: usize,
    last_use: u64,
}

/// Requests of one peer that may be under way.
pub(super) const MAX_ASKS: usize = 1024;
/// Reads of length zero that may be under way at a time; less than the depth of reads, of which some are for gets.
const MAX_FLUSHES: usize = 16;
/// One is sent behind so much, if nobody wants an answer sooner.
const FLUSHED_BYTES: u64 = 512 * 1024;
const FLUSHED_REQUESTS: usize = 16;
/// While so many are under way, whoever wants an answer waits for one of those first.
const SOON_FLUSHES: usize = 2;
/// Tags that are kept for the next use of their cookies.
const KEPT_TAGS: usize = 512;
/// Tags of the other side have the highest bit clear.
pub(super) const TAG_MASK: u32 = u32::MAX >> 1;

impl Asks {
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= MAX_ASKS
    }

    /// The tag of a cookie, and whether the peer has to be told of it.
    pub(super) fn bind(&mut self, cookie: &Cookie) -> (Stag, bool) {
        self.uses += 1;
        let recent = self.recent.filter(|(known, _)| known == cookie).map(|(_, stag)| stag);
        if let Some(stag) = recent.or_else(|| self.by_cookie.get(cookie).copied())
            && let Some(binding) = self.bindings.get_mut(&stag)
        {
            binding.last_use = self.uses;
            self.recent = Some((*cookie, stag));
            return (stag, false);
        }
        loop {
            self.last_tag = self.last_tag.wrapping_add(1) & TAG_MASK;
            let stag = Stag(self.last_tag);
            if self.last_tag != 0 && !self.bindings.contains_key(&stag) {
                let binding = Binding { cookie: *cookie, units: 0, refused: None, under_way: 0, last_use: self.uses };
                self.bindings.insert(stag, binding);
                self.by_cookie.insert(*cookie, stag);
                return (stag, true);
            }
        }
    }

    /// A tag to give back before another one is bound, if there are many.
    pub(super) fn spare(&mut self) -> Option<Stag> {
        if self.bindings.len() < KEPT_TAGS {
            return None;
        }
        let idle = self.bindings.iter().filter(|(_, binding)| binding.under_way == 0);
        let (stag, _) = idle.min_by_key(|(_, binding)| binding.last_use)?;
        let stag = *stag;
        self.unbind(stag);
        Some(stag)
    }

    /// Notes a request that counts so many units.
    pub(super) fn push(&mut self, ticket: Ticket, stag: Stag, units: u64, kind: Kind) {
        let mut start = 0;
        if let Some(binding) = self.bindings.get_mut(&stag) {
            start = binding.units;
            binding.units += units;
            binding.under_way += 1;
        }
        self.queue.push_back(Ask { ticket, stag, units: start..start + units, kind });
        if kind.is_answered() {
            self.unflushed = Unflushed::default();
        } else {
            self.unflushed.requests += 1;
            self.unflushed.bytes += units;
        }
    }

    /// Whether something was asked that will not be answered before a read of length zero is sent behind it.
    pub(super) fn owes_flush(&self) -> bool {
        self.unflushed.requests > 0
    }

    /// Whether a read of length zero is to be sent, which is noted: behind a certain amount, or behind anything if the
    /// answer is wanted now.
    pub(super) fn flush(&mut self, now: bool) -> bool {
        let Unflushed { requests, bytes } = self.unflushed;
        let enough = requests >= FLUSHED_REQUESTS || bytes >= FLUSHED_BYTES;
        // Whoever waits asks again when the answers come that are under way.
        let wanted = enough || (now && self.flushes < SOON_FLUSHES);
        if requests == 0 || !wanted || self.flushes >= MAX_FLUSHES {
            return false;
        }
        self.flushes += 1;
        self.unflushed = Unflushed::default();
        self.queue.push_back(Ask { ticket: Ticket(0), stag: Stag(0), units: 0..0, kind: Kind::Flush });
        true
    }

    /// The peer did not carry out what was asked under a tag from `units` on.
    pub(super) fn refuse(&mut self, stag: Stag, units: u64, refusal: Refusal) -> Result<(), &'static str> {
        let binding = self.bindings.get_mut(&stag).ok_or("it refused what was not asked")?;
        if binding.refused.is_some() || units > binding.units {
            return Err("it refused what was not asked");
        }
        binding.refused = Some((units, refusal));
        // The next use asks again.
        self.by_cookie.remove(&binding.cookie);
        self.recent = None;
        Ok(())
    }

    /// An answer has come: ends what was asked before it. `ended` learns how; the tags that are returned are not used
    /// any more.
    pub(super) fn answered(&mut self, answer: Answer, mut ended: impl FnMut(Ticket, Outcome)) -> Vec<Stag> {
        let mut idle = Vec::new();
        while let Some(ask) = self.queue.pop_front() {
            let refused = self.release(&ask, &mut idle);
            let outcome = match (ask.kind, refused) {
                (Kind::Flush, _) => {
                    self.flushes -= 1;
                    break;
                }
                (_, Some(refusal)) => Outcome::Refused(refusal),
                (Kind::Put, None) => Outcome::Done,
                (Kind::Map, None) => Outcome::Proxied,
                (Kind::EmptyGet, None) => Outcome::Bytes(Vec::new()),
                (Kind::Refused(refusal), None) => Outcome::Refused(refusal),
                (Kind::Get | Kind::Atomic, None) => {
                    let outcome = match answer {
                        Answer::Bytes(bytes) => Outcome::Bytes(bytes),
                        Answer::Value(value) => Outcome::Value(value),
                        Answer::Flush => Outcome::Done,
                    };
                    ended(ask.ticket, outcome);
                    break;
                }
            };
            ended(ask.ticket, outcome);
            if ask.kind.is_answered() {
                break;
            }
        }
        idle
    }

    /// The connection is over: every request ends.
    pub(super) fn fail(&mut self, reason: CloseReason, mut ended: impl FnMut(Ticket, Outcome)) {
        for ask in self.queue.drain(..).filter(|ask| ask.kind != Kind::Flush) {
            ended(ask.ticket, Outcome::Closed(reason));
        }
    }

    /// The end of a request under its tag, and whether it was refused.
    fn release(&mut self, ask: &Ask, idle: &mut Vec<Stag>) -> Option<Refusal> {
        let binding = self.bindings.get_mut(&ask.stag)?;
        binding.under_way -= 1;
        let (from, refusal) = binding.refused?;
        if binding.under_way == 0 {
            self.bindings.remove(&ask.stag);
            idle.push(ask.stag);
        }
        (ask.units.end > from || ask.units.start >= from).then_some(refusal)
    }

    fn unbind(&mut self, stag: Stag) {
        if let Some(binding) = self.bindings.remove(&stag) {
            self.by_cookie.remove(&binding.cookie);
            self.recent = None;
        }
    }
}

impl Kind {
    /// Whether the peer answers it.
    fn is_answered(self) -> bool {
        matches!(self, Kind::Get | Kind::Atomic | Kind::Flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cookie::{RegionId, Rights};

    fn cookie(key: u128) -> Cookie {
        Cookie { key, region: RegionId(1), generation: 1, len: 100, rights: Rights::ALL }
    }

    fn answered(asks: &mut Asks, answer: Answer) -> (Vec<(u64, String)>, Vec<Stag>) {
        let mut all = Vec::new();
        let idle = asks.answered(answer, |ticket, outcome| all.push((ticket.0, format!("{outcome:?}"))));
        (all, idle)
    }

    #[test]
    fn an_answer_ends_what_was_asked_before() {
        let mut asks = Asks::default();
        let (stag, new) = asks.bind(&cookie(1));
        assert!(new && !asks.bind(&cookie(1)).1);
        asks.push(Ticket(1), stag, 10, Kind::Put);
        asks.push(Ticket(2), stag, 1, Kind::Get);
        asks.push(Ticket(3), stag, 10, Kind::Put);
        assert!(!asks.flush(false) && asks.flush(true) && !asks.flush(true));
        let (ended, _) = answered(&mut asks, Answer::Bytes(vec![7]));
        assert_eq!(ended, [(1, "Done".to_string()), (2, "Bytes([7])".to_string())]);
        assert_eq!(answered(&mut asks, Answer::Flush).0, [(3, "Done".to_string())]);
    }

    #[test]
    fn answers_are_asked_for_seldom() {
        let mut asks = Asks::default();
        let (stag, _) = asks.bind(&cookie(1));
        let put = |asks: &mut Asks, bytes| {
            asks.push(Ticket(1), stag, bytes, Kind::Put);
            asks.flush(false)
        };
        assert!(!put(&mut asks, FLUSHED_BYTES - 1) && put(&mut asks, 1) && !asks.owes_flush());
        assert!(!put(&mut asks, 1) && asks.owes_flush() && asks.flush(true));
        assert_eq!((0..FLUSHED_REQUESTS).filter(|_| put(&mut asks, 1)).count(), 1);
        assert!(
            !put(&mut asks, 1) && !asks.flush(true),
            "answers are under way, and this one is asked for behind them"
        );
        let ended = [2, 1, FLUSHED_REQUESTS].map(|_| answered(&mut asks, Answer::Flush).0.len());
        assert_eq!(ended, [2, 1, FLUSHED_REQUESTS]);
        assert!(asks.flush(true));
        assert_eq!(answered(&mut asks, Answer::Flush).0.len(), 1);
        for _ in 0..MAX_FLUSHES {
            assert!(put(&mut asks, FLUSHED_BYTES));
        }
        assert!(!put(&mut asks, FLUSHED_BYTES), "so many are under way");
        answered(&mut asks, Answer::Flush);
        assert!(asks.flush(false));
    }

    #[test]
    fn a_refusal_hits_the_first_and_all_after() {
        let mut asks = Asks::default();
        let (stag, _) = asks.bind(&cookie(1));
        let (other, _) = asks.bind(&cookie(2));
        for ticket in 1..=3 {
            asks.push(Ticket(ticket), stag, 10, Kind::Put);
        }
        asks.push(Ticket(4), other, 10, Kind::Put);
        asks.push(Ticket(5), stag, 0, Kind::Map);
        asks.refuse(stag, 15, Refusal::Revoked).expect("a tag in use");
        assert!(asks.refuse(stag, 15, Refusal::Revoked).is_err() && asks.refuse(Stag(77), 0, Refusal::Forged).is_err());
        assert!(asks.flush(true));
        let (ended, idle) = answered(&mut asks, Answer::Flush);
        let words: Vec<_> = ended.iter().map(|(_, outcome)| outcome.as_str()).collect();
        assert_eq!(words, ["Done", "Refused(Revoked)", "Refused(Revoked)", "Done", "Refused(Revoked)"]);
        assert_eq!(idle, [stag]);
        assert!(asks.bind(&cookie(1)).1, "a refused cookie is asked for again");
    }

    #[test]
    fn tags_that_are_not_used_are_given_back() {
        let mut asks = Asks::default();
        let (first, _) = asks.bind(&cookie(0));
        asks.push(Ticket(1), first, 1, Kind::Put);
        for key in 1..KEPT_TAGS as u128 {
            assert_eq!(asks.spare(), None);
            asks.bind(&cookie(key));
        }
        let spared = asks.spare().expect("one that is idle");
        assert_ne!(spared, first);
        assert!(!asks.bind(&cookie(0)).1 && asks.bind(&cookie(1)).1);
    }
}
