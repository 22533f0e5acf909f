//! The policy alone: two ends and a clock that is a number.

use super::*;

/// How long a message takes to a peer that looks.
const STORE: u64 = 100;

/// One end: what it has learnt, and when its wait began and its look ends.
#[derive(Default)]
struct End {
    waiter: Waiter,
    began: u64,
    looks_until: u64,
    /// How long it has looked in all.
    looked: u64,
}

impl End {
    fn waits(&mut self, now: u64) {
        let looks = !self.waiter.is_resting() || self.waiter.looks_again(now, false);
        (self.began, self.looks_until) = (now, now + if looks { self.waiter.patience.look } else { 0 });
    }

    /// A message is here at `at`. When it is taken, if a wake-up takes so long.
    fn is_sent(&mut self, at: u64, wake: u64) -> u64 {
        if at <= self.looks_until && self.looks_until > self.began {
            self.looked += at - self.began;
            self.waiter.found();
            return at + STORE;
        }
        if self.looks_until > self.began {
            self.looked += self.looks_until - self.began;
            self.waiter.missed(self.looks_until);
        }
        at + wake
    }
}

/// An end to which nothing was sent for a long time, but to end each wait.
fn idle(now: &mut u64) -> End {
    let mut end = End::default();
    for _ in 0..40 {
        end.waits(*now);
        *now = end.is_sent(*now + 100_000_000, 0);
    }
    assert!(end.waiter.is_resting());
    end.looked = 0;
    end
}

#[test]
fn two_ends_that_rest_find_out_within_some_exchanges() {
    for wake in [5_000, 20_000, 40_000, 59_000] {
        let mut now = 1_000_000_000;
        let mut ends = [idle(&mut now), idle(&mut now)];
        // Both have just begun to rest for the longest time.
        let until = now + (Patience::DEFAULT.no_spin << MOST_DOUBLED);
        ends.iter_mut().for_each(|end| end.waiter.sleep_at_once_until = until);
        let mut slept = 0;
        for message in 0..200 {
            let sent = now;
            now = ends[message % 2].is_sent(sent + STORE, wake);
            ends[message % 2].waits(now);
            if now - sent > wake {
                slept = message;
            }
        }
        assert!(slept < 40, "a wake-up takes {wake} ns: still asleep at message {slept}");
    }
}

#[test]
fn ends_that_wait_for_long_look_as_rarely_as_they_rest() {
    let (mut now, begin) = (1_000_000_000, 1_000_000_000);
    let mut ends = [End::default(), End::default()];
    for _ in 0..2_000 {
        now += 1_000_000;
        for end in &mut ends {
            now = end.is_sent(now, 40_000);
            end.waits(now);
        }
    }
    for end in &ends {
        // One look a rest, and those before the first.
        let rests = (now - begin) / (Patience::DEFAULT.no_spin << MOST_DOUBLED);
        let most = (rests + 16) * Patience::DEFAULT.look;
        assert!(end.looked <= most, "looked for {} ns, at most {most}", end.looked);
    }
}

#[test]
fn quick_waits_in_vain_cost_little() {
    // A peer that works for longer than a look before each answer, whether it slept or not.
    let (mut now, begin) = (1_000_000_000, 1_000_000_000);
    let mut end = End::default();
    end.waits(now);
    for _ in 0..20_000 {
        now = end.is_sent(now + 70_000, 20_000);
        end.waits(now);
    }
    let share = end.looked as f64 / (now - begin) as f64;
    assert!(share < 0.01, "looked for {share} of the time");
}

#[test]
fn a_rest_from_yielding_holds_while_the_peer_is_on_this_core() {
    let begin = 1_000_000_000;
    let mut waiter = Waiter { move_after: u64::MAX, waited_at: begin, ..Waiter::default() };
    waiter.gave_a_slice(begin);
    let times = || (1..1_000).map(|wait| begin + wait * 50_000);
    assert!(!times().any(|now| waiter.ends_rest(now, true)));
    waiter.waited_at = begin;
    assert!(times().any(|now| waiter.ends_rest(now, false)));
}

#[test]
fn who_loses_the_core_twice_does_not_look_for_a_while() {
    let (rest, begin) = (Patience::DEFAULT.no_spin, 1_000_000_000);
    let mut waiter = Waiter::default();
    assert!(!waiter.crowd.takes_core(begin, rest), "once may be an interrupt");
    assert!(waiter.crowd.takes_core(begin + 1_000_000, rest));
    let now = begin + 1_000_000;
    assert!(waiter.is_resting());
    waiter.found();
    assert!(waiter.is_resting(), "what a brief look finds tells nothing of others that want the core");
    // Not even if waits follow each other quickly.
    assert!(!(1..rest / 1_000).any(|wait| waiter.looks_again(now + wait * 1_000, false)));
    assert!(waiter.looks_again(now + rest, false) && !waiter.is_resting());
}

#[test]
fn a_crowd_that_stays_is_looked_for_ever_more_rarely() {
    let (rest, mut now) = (Patience::DEFAULT.no_spin, 1_000_000_000);
    let mut waiter = Waiter::default();
    waiter.crowd.takes_core(now, rest);
    let mut rests = Vec::new();
    for _ in 0..12 {
        now += 1_000;
        assert!(waiter.crowd.takes_core(now, rest));
        rests.push(waiter.crowd.until - now);
        now = waiter.crowd.until;
    }
    assert_eq!((rests[0], rests[1]), (rest, 2 * rest));
    assert_eq!(rests.last(), Some(&(rest << MOST_DOUBLED)));
    // It has gone for longer than it was here.
    assert!(!waiter.crowd.takes_core(now + (rest << MOST_DOUBLED), rest));
}
