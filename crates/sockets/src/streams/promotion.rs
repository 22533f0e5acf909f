//! How a stream comes to its carrier: offered after a while, found by its peer or looking for it, carried; or staying on TCP.

use sidestep_fabric::PeerId;
use sidestep_stream::carrier::{ENDED, Halves, Outbound, Switch, Watch};
use sidestep_sys::clock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

use crate::{
    config::{Promote, config},
    descriptors::{table, unseen},
    kernel::{self, address::Key, stack},
    processes::{custody, fork},
    promotion::{engine, orders},
    registry::reason::Reason,
    streams::{Place, READ, Stage, Stream, WRITE, lock, parting},
    tap,
};

/// Turns after which a stream is offered: the second exchange has begun.
const TURNS: u32 = 3;
/// Bytes in one direction after which it is offered.
const BULK: u64 = 64 << 10;
/// Calls of a stream that stays on TCP between two tellings of its counters, and which of them is the first: a short
/// connection is not worth a place in the registry.
const TOLD_EVERY: u32 = 64;
const TOLD_FIRST: u32 = 8;
/// Tries after which the next one is soon.
const SOON: u32 = 1;
/// The most calls between two tries to find the peer.
const MOST_SKIPPED: u32 = 4096;

/// Calls without a look for the peer after a carrier that was given up soon; doubled for each one in a row.
const RESTED: u32 = 8;

/// Options that only the kernel can carry out, and what they are if nobody has set them.
const USUAL: [(i32, i32, i32); 9] = [
    (libc::SOL_SOCKET, libc::SO_PEEK_OFF, -1),
    (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, -1),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMP, 0),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPING, 0),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMP_NEW, 0),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS_NEW, 0),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPING_NEW, 0),
    (libc::IPPROTO_TCP, TCP_TX_DELAY, 0),
];
const TCP_TX_DELAY: i32 = 37;

/// How far a stream has come on the way to a carrier.
#[derive(Debug)]
pub(super) struct Promotion {
    pub stage: AtomicU8,
    /// Code of the [`Reason`] that was last given.
    pub reason: AtomicU8,
    /// Turns from reading to writing or back, times two, plus the last direction.
    turns: AtomicU32,
    /// Tries to find the peer, and calls to skip until the next.
    tries: AtomicU32,
    skip: AtomicU32,
}

impl Default for Promotion {
    fn default() -> Promotion {
        Promotion {
            stage: AtomicU8::new(Stage::Young as u8),
            reason: AtomicU8::new(Reason::Young as u8),
            turns: AtomicU32::new(0),
            tries: AtomicU32::new(0),
            skip: AtomicU32::new(0),
        }
    }
}

impl Promotion {
    pub fn begin(&self) {
        self.stage.store(Stage::Young as u8, Ordering::Relaxed);
        self.reason.store(Reason::Young as u8, Ordering::Relaxed);
        [&self.turns, &self.tries, &self.skip].iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

impl Stream {
    /// Called by every call that goes to the kernel: counts turns and bytes, and sees to the promotion.
    #[inline]
    pub fn passes(&self, direction: usize) {
        match self.stage() {
            Stage::Young => {
                if self.turns_old(direction) {
                    stack::on_own(|| self.offer());
                }
            }
            Stage::Offered => {
                stack::on_own(|| self.pursue());
                engine::see_to_service();
            }
            Stage::Carried => {
                if !self.uses_carrier_both_ways() {
                    orders::look_now();
                }
                self.see_parting();
            }
            Stage::Off => {
                orders::look_now();
                self.see_to_answer();
                self.stay_slowly();
            }
            Stage::Never => self.stay_slowly(),
        }
    }

    /// A call of a stream that stays on TCP.
    #[inline]
    fn stay_slowly(&self) {
        if self.family.has_heirloom.load(Ordering::Relaxed) {
            self.take_over();
        }
        let calls = self.promotion.skip.fetch_add(1, Ordering::Relaxed);
        if calls % TOLD_EVERY == TOLD_FIRST {
            self.see_to_answer();
            self.review_order();
            self.tell_of_staying();
        }
    }

    /// What one thread decides by an order, another one may not know of when it tells its own reason, or the order may be over.
    #[cold]
    fn review_order(&self) {
        let Some(place) = self.known_place().filter(|_| self.stage() == Stage::Off) else { return };
        if !place.engine.is_off(&place.key) {
            self.turn_on();
        } else if self.reason() != Reason::TurnedOff {
            self.set_reason(Reason::TurnedOff);
        }
    }

    /// The peer may be about to agree to what this side asked for before it decided to stay on TCP: it waits for a word.
    #[cold]
    fn see_to_answer(&self) {
        if let Some(place) = self.known_place() {
            stack::on_own(|| _ = place.engine.pump());
        }
    }

    /// Writes counters and reason of a stream that stays on TCP where `stat` looks. It may have been decided before the
    /// stream was known there.
    #[cold]
    fn tell_of_staying(&self) {
        if self.known_place().is_none() && self.place().is_some() {
            self.set_reason(self.reason());
        }
        self.publish_counts();
    }

    /// Counts a turn of a young stream, and says whether it is old enough for an offer. A call may be counted twice. One that
    /// the program has shut down on this side has had its last turn: what is still to come is mostly its end.
    #[inline]
    pub fn turns_old(&self, direction: usize) -> bool {
        let turns = self.promotion.turns.load(Ordering::Relaxed);
        if turns & 1 != direction as u32 || turns == 0 {
            self.promotion.turns.store((turns & !1) + 2 + direction as u32, Ordering::Relaxed);
        }
        turns / 2 >= TURNS && !self.ends.is_shut.load(Ordering::Relaxed)
            || self.over_tcp(direction) >= BULK
            || config().promote == Promote::Eager
    }

    /// Makes the offer: from now on a peer may ask, or this side looks for one.
    #[cold]
    fn offer(&self) {
        if !self.origin.connected.load(Ordering::Relaxed) || !self.is_established() {
            return;
        }
        let Some(place) = self.place() else { return self.stay(Reason::Resources) };
        if config().promote == Promote::Never || !config().allows(&place.key) {
            return self.stay(Reason::Rule);
        }
        if self.origin.foreign.load(Ordering::Relaxed) {
            return self.stay(Reason::Passed);
        }
        if unseen::may_wait() {
            return self.stay(Reason::UnseenWaits);
        }
        if self.promotion.stage.compare_exchange(0, Stage::Offered as u8, Ordering::AcqRel, Ordering::Acquire).is_err()
        {
            return;
        }
        self.set_reason(Reason::PeerUnknown);
        self.await_peer(&place);
        self.pursue();
    }

    /// Whether `connect` has done its work: until then there are no addresses to offer it under.
    fn is_established(&self) -> bool {
        !matches!(kernel::state(self.fd()), Ok(kernel::TCP_SYN_SENT | kernel::TCP_CLOSE))
    }

    /// An offer stands: if the other end is to ask, it may from now on.
    pub(super) fn await_peer(&self, place: &Place) {
        if !place.key.asks() {
            place.engine.await_peer(place, self);
        }
    }

    /// The next look for the peer is at once.
    pub(super) fn begin_tries(&self) {
        self.promotion.tries.store(0, Ordering::Relaxed);
        self.promotion.skip.store(0, Ordering::Relaxed);
    }

    /// So many carriers in a row were given up soon after they came, as in a program that forks all the time: from the second one on
    /// the next look for the peer is some calls later, and twice as many each time. Who asked for moves at random has them.
    pub(super) fn rest(&self, brief: u32) {
        if brief > 1 && !matches!(config().promote, Promote::Random(_)) {
            let calls = RESTED.checked_shl(brief).unwrap_or(MOST_SKIPPED);
            self.promotion.skip.store(calls.min(MOST_SKIPPED), Ordering::Relaxed);
        }
    }

    /// While an offer stands: sees to what has arrived, and looks for the peer now and then.
    #[cold]
    fn pursue(&self) {
        let skip = self.promotion.skip.load(Ordering::Relaxed);
        let Some(place) = self.known_place() else { return };
        orders::look(&place.engine);
        if place.engine.is_off(&place.key) {
            return self.stay(Reason::TurnedOff);
        }
        if place.engine.pump() {
            self.publish_counts();
        }
        if !place.key.asks() || self.stage() != Stage::Offered {
            return;
        }
        if skip > 0 {
            self.promotion.skip.store(skip - 1, Ordering::Relaxed);
            return;
        }
        let tries = self.promotion.tries.fetch_add(1, Ordering::Relaxed);
        self.promotion.skip.store((1 << tries.min(12)).min(MOST_SKIPPED) - 1, Ordering::Relaxed);
        place.engine.ask(&place, self);
        if self.stays() {
            // Another thread has decided so meanwhile, and has not seen the question.
            place.engine.forget(&place.key);
        }
    }

    /// The peer has been asked something else first, and will have answered soon.
    pub fn try_soon(&self) {
        self.promotion.tries.store(SOON, Ordering::Relaxed);
        self.promotion.skip.store((1 << SOON) - 1, Ordering::Relaxed);
    }

    /// Whether an option is set that only the kernel can carry out: one that leaves, by the list of the preload library.
    /// A socket may have got it before it was connected, or from its listener.
    pub fn has_odd_options(&self) -> bool {
        let fd = self.fd();
        let differs = |level, name, usual: i32| kernel::option(fd, level, name).is_ok_and(|value| value != usual);
        let mut protocol = [0; 16];
        let layered = kernel::read_option(fd, libc::IPPROTO_TCP, libc::TCP_ULP, &mut protocol).is_ok_and(|len| len > 0);
        let signals = kernel::control(fd, libc::F_GETFL, 0).is_ok_and(|flags| flags & libc::O_ASYNC as usize != 0);
        layered && protocol[0] != 0
            || signals
            || kernel::has_filter(fd)
            || USUAL.iter().any(|(level, name, usual)| differs(*level, *name, *usual))
    }

    /// Options that the program set before this library looked.
    fn read_options(&self) {
        let fd = self.fd();
        for (direction, name) in [(READ, libc::SO_RCVTIMEO), (WRITE, libc::SO_SNDTIMEO)] {
            let mut time = [0; 16];
            if kernel::read_option(fd, libc::SOL_SOCKET, name, &mut time) == Ok(16) {
                self.set_timeout_option(direction, &time);
            }
        }
        if let Ok(bytes) = kernel::option(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT) {
            self.record.shared().set_low_water(bytes.max(1) as u32);
        }
        let tells_unread = kernel::option(fd, libc::IPPROTO_TCP, libc::TCP_INQ).is_ok_and(|value| value != 0);
        self.tells_unread.store(tells_unread, Ordering::Relaxed);
    }

    /// A carrier has been made for the connection with this key: the directions take it up at their next calls. `guest`: who is at its
    /// other end, if of another user.
    pub fn carried(&self, key: &Key, parts: Halves, guest: Option<PeerId>) {
        // No fork and no change of user from here on: a child that has come meanwhile holds the socket, too.
        let _change = table::change();
        // The program may have closed the connection since both ends agreed, and this may be another one by now.
        let is_meant = |place: &Place| place.key == *key && self.stage() == Stage::Offered;
        let place = self.known_place().filter(is_meant);
        let Some(place) = place else { return parting::decline(parts) };
        if !custody::is_sole_holder(place.cookie) {
            self.set_reason(Reason::OtherHolder);
            return parting::decline(parts);
        }
        if self.is_standard() {
            self.set_reason(Reason::Standard);
            return parting::decline(parts);
        }
        if !self.had_one_number() && !matches!(self.counts_all_bytes(), Ok(Some(true))) {
            // It may have been standard input since both ends agreed, and libc has read from it. Perhaps later.
            return parting::decline(parts);
        }
        self.read_options();
        let prompt = kernel::option(self.fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY).is_ok_and(|value| value != 0);
        parts.carrier.watch().set_prompt(prompt);
        if let Some(place) = self.known_place()
            && let Some(peer) = place.engine.registry.peer_of(&place.key.reversed())
        {
            let _ = parts.carrier.peer.set(peer);
        }
        if let Some(guest) = guest {
            let _ = parts.carrier.teller.set(guest);
        }
        self.carriage.since.store(clock::now(), Ordering::Relaxed);
        *lock(&self.carriage.carrier) = Some(parts.carrier.clone());
        *lock(&self.carriage.inbox) = Some(parts);
        let (offered, carried) = (Stage::Offered as u8, Stage::Carried as u8);
        if self.promotion.stage.compare_exchange(offered, carried, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            // Another thread has decided meanwhile that it stays on TCP.
            *lock(&self.carriage.carrier) = None;
            let parts = lock(&self.carriage.inbox).take();
            return parts.into_iter().for_each(parting::decline);
        }
        place.engine.registry.set_willing(place.entry, false);
        if let Some(carrier) = self.carrier() {
            place.engine.registry.set_carrier(place.entry, carrier.capabilities());
        }
        tap::consider(self, &place);
        self.set_reason(Reason::Promoted);
        // SeqCst: a `vfork` says that it lends and then looks for carriers, this stores the carrier and looks for such a word. So does
        // whoever carries out what was ordered.
        fence(Ordering::SeqCst);
        if fork::has_lent() || place.engine.is_off(&place.key) {
            self.carriage.parting.store(true, Ordering::SeqCst);
        }
        // SeqCst: a shutdown sees the carrier, or this sees the shutdown and says so in the writer's stead.
        if self.ends.sends_no_more.load(Ordering::SeqCst)
            && let Some(sender) = lock(&self.carriage.inbox).as_mut().and_then(|parts| parts.outbound.as_mut())
        {
            let _ = sender.set_note(Switch::note(0), ENDED);
        }
    }

    /// It is not turned off by hand any more: if it was, it may be offered again.
    pub fn turn_on(&self) {
        let (off, young) = (Stage::Off as u8, Stage::Young as u8);
        if self.promotion.stage.compare_exchange(off, young, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.set_reason(Reason::Young);
        }
    }

    /// It stays on TCP, for this reason.
    #[cold]
    pub fn stay(&self, reason: Reason) {
        // What has a carrier leaves it by itself, also if that has come just now.
        let next = |stage| match reason {
            _ if stage == Stage::Carried as u8 => None,
            // Turning it on changes nothing about what else keeps it there.
            Reason::TurnedOff => (stage != Stage::Never as u8).then_some(Stage::Off as u8),
            _ => Some(Stage::Never as u8),
        };
        let stage = &self.promotion.stage;
        if stage.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_err() {
            return;
        }
        if let Some(place) = self.known_place() {
            place.engine.forget(&place.key);
            place.engine.registry.set_willing(place.entry, false);
        }
        self.set_reason(reason);
    }
}
