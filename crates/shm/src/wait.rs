//! How long to look before sleeping: the one waiting policy.
//!
//! Measured on two cores (docs/fabric.md): a sleeping peer on the other core costs 30-50 us to wake, a spinning
//! one 0.1 us; two spinners on *one* core cost a whole time slice per hand-over, a yield 2 us; and a yield beside
//! a busy third program costs a time slice too. So:
//!
//! - the peer's core is mine: yield, for about as long as a wake-up takes; if a yield lasted a slice, or if yields
//!   go on being answered, the kernel keeps together what need not be: one moves to another core, if one idles.
//!   If none does, after a yield that lasted a slice: sleep at once for a while;
//! - the peer runs elsewhere: spin for about as long as a wake-up takes, and offer the core every few microseconds: the
//!   answer may need a third program first, which waits for this very core. After several spins in a row for
//!   nothing, sleep at once for a while, and for twice as long if the next spin is for nothing, too;
//! - two ends that both sleep at once wake each other for every message, though each would find the other's answer by
//!   looking. So a rest from looking ends early if waits follow each other about as fast as wake-ups do;
//! - a thread that loses its core while it looks takes it from others that have work to do, and a wake-up is cheap where no
//!   core idles: after two such losses in short order, sleep at once for a while, however well looking pays otherwise.

use crate::sync::spin_loop;
use sidestep_sys::{clock, cpu};

/// The limits of the policy, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// How long to spin or yield before sleeping.
    pub look: u64,
    /// A yield longer than this was a time slice given away.
    pub long_yield: u64,
    /// After a long yield: how long to sleep at once.
    pub no_yield: u64,
    /// After this many looks in a row for nothing ...
    pub misses: u32,
    /// ... how long to sleep at once.
    pub no_spin: u64,
}

impl Patience {
    /// The default: as patient as a wake-up is dear.
    pub const DEFAULT: Patience =
        Patience { look: 60_000, long_yield: 300_000, no_yield: 100_000_000, misses: 8, no_spin: 2_000_000 };
    /// Sleeps at once, always.
    pub const NONE: Patience = Patience { look: 0, ..Patience::DEFAULT };
}

impl Default for Patience {
    fn default() -> Self {
        Patience::DEFAULT
    }
}

/// A rest from looking is doubled so often: 2 ms become 64.
const MOST_DOUBLED: u32 = 5;
/// A wait that begins within so many looks' time of the one before is quick.
const QUICK_LOOKS: u64 = 3;
/// Quick waits in a row that end a rest early; twice as many after every such end for nothing, so often.
const FEW_QUICK: u32 = 4;
const MOST_EARLY: u32 = 5;
/// Looks of a busy pair without a clock, and of one that rests from looking: about an answer's time.
const BRIEF_LOOKS: u32 = 64;
const RESTING_LOOKS: u32 = 16;
/// Looks between two looks at the clock, and so many of those between two offers of the core: some 4 us.
const LOOKS_PER_TURN: u32 = 16;
const TURNS_PER_OFFER: u32 = 4;
/// Yields before the clock is looked at.
const FIRST_YIELDS: u32 = 8;
/// Answered yields after which one end moves away, the other later: they must not follow each other.
const TOGETHER: u32 = 128;
/// Only if one came at least this often.
const BUSY_NS: u64 = 50_000;
/// Two losses of the core within this time are no coincidence: an interrupt, or a kernel thread, comes some times a second.
const LOST_TWICE_NS: u64 = 10_000_000;
/// How long to stay where a move led to, at first; twice as long after every move that the next one follows soon.
const STAY_NS: u64 = 1_000_000;
const MOST_STAYS: u32 = 8;

/// What one waiter has learnt.
#[derive(Debug, Clone, Default)]
pub struct Waiter {
    patience: Patience,
    misses: u32,
    /// Times in a row that looking was given up; each doubles the next.
    given_up: u32,
    sleep_at_once_until: u64,
    /// That is because a yield lasted a time slice.
    by_yield: bool,
    /// While looking rests: when the last wait began, how many in a row were quick, and how often they ended it for nothing.
    waited_at: u64,
    quick: u32,
    early: u32,
    crowd: Crowd,
    /// Answered yields since the last try to move away, and when that was.
    together: u32,
    counted_since: u64,
    /// When the next try may be made, and how many came soon after the one before.
    move_after: u64,
    moves: u32,
}

/// What one waiter knows of others that want its core.
#[derive(Debug, Clone, Default)]
struct Crowd {
    /// When the core was last lost while looking.
    lost_at: u64,
    /// Looking is left to threads that have a core to themselves, until then at the least.
    is_here: bool,
    until: u64,
    /// Times in a row that this was so; each doubles the next.
    times: u32,
}

impl Crowd {
    /// The core was lost while looking. `true`: do not look for a while, which is `rest` at first.
    fn takes_core(&mut self, now: u64, rest: u64) -> bool {
        let soon = now.saturating_sub(std::mem::replace(&mut self.lost_at, now)) < LOST_TWICE_NS;
        // A crowd that has been gone for as long as it was here is another one.
        let again = now.saturating_sub(self.until) < rest << self.times;
        if !soon && !again {
            return false;
        }
        self.times = if again { (self.times + 1).min(MOST_DOUBLED) } else { 0 };
        (self.is_here, self.until) = (true, now + (rest << self.times));
        true
    }

    /// Whether it is still here, as far as anyone knows.
    fn stays(&mut self, now: u64) -> bool {
        self.is_here &= now < self.until;
        self.is_here
    }
}

impl Waiter {
    /// A waiter with other limits than the default.
    pub fn with(patience: Patience) -> Waiter {
        Waiter { patience, ..Waiter::default() }
    }

    /// Looks for news as long as that is likely to pay. `true` if `news` was; `false`: sleep now.
    ///
    /// `peer_core` tells where the peer last ran; it is asked again now and then, since either may move.
    #[inline]
    pub fn look(&mut self, deadline: Option<u64>, peer_core: impl Fn() -> u32, mut news: impl FnMut() -> bool) -> bool {
        self.look_briefly(&peer_core, &mut news) || self.look_longer(deadline, peer_core, news)
    }

    /// The first part of [`look`](Self::look): most news of a busy pair is here within a few hundred nanoseconds, and
    /// needs no clock.
    #[inline]
    pub fn look_briefly(&mut self, peer_core: impl Fn() -> u32, mut news: impl FnMut() -> bool) -> bool {
        if peer_core() != cpu::current_core() {
            let looks = if self.is_resting() { RESTING_LOOKS } else { BRIEF_LOOKS };
            for _ in 0..looks {
                if news() {
                    self.found();
                    return true;
                }
                spin_loop();
            }
        }
        false
    }

    /// Whether looking did not pay lately, so that a sleep is likely.
    #[inline]
    pub fn is_resting(&self) -> bool {
        self.sleep_at_once_until != 0 || self.crowd.is_here
    }

    #[inline(never)]
    fn look_longer(
        &mut self,
        deadline: Option<u64>,
        peer_core: impl Fn() -> u32,
        mut news: impl FnMut() -> bool,
    ) -> bool {
        if self.is_resting() && !self.looks_again(clock::now(), peer_core() == cpu::current_core()) {
            return news();
        }
        // A peer on this core mostly answers within a few yields. No clock for those: it lies in pages of its own, which
        // are far away after each switch. The processor's counter tells a yield that lasted a time slice.
        if self.patience.look > 0 && peer_core() == cpu::current_core() {
            for _ in 0..FIRST_YIELDS {
                let before = cpu::ticks();
                rustix::thread::sched_yield();
                if cpu::is_long(cpu::ticks().wrapping_sub(before)) {
                    self.gave_a_slice(clock::now());
                    return news();
                }
                if news() {
                    self.found_together();
                    return true;
                }
            }
        }
        let start = clock::now();
        let end = deadline.unwrap_or(u64::MAX).min(start.saturating_add(self.patience.look));
        let (mut now, mut ticks) = (start, cpu::ticks());
        let (mut turns, mut has_lost_core) = (0, false);
        while now < end {
            if peer_core() == cpu::current_core() {
                rustix::thread::sched_yield();
                let after = clock::now();
                if after - now > self.patience.long_yield {
                    self.gave_a_slice(after);
                    return news();
                }
                if news() {
                    self.found_together();
                    return true;
                }
                (now, ticks) = (after, cpu::ticks());
            } else {
                for _ in 0..LOOKS_PER_TURN {
                    if news() {
                        self.found();
                        return true;
                    }
                    spin_loop();
                    let before = std::mem::replace(&mut ticks, cpu::ticks());
                    has_lost_core |= cpu::is_switch(ticks.wrapping_sub(before));
                }
                now = clock::now();
                turns += 1;
                if turns % TURNS_PER_OFFER == 0 {
                    rustix::thread::sched_yield();
                    let after = clock::now();
                    if after - now > self.patience.long_yield {
                        self.gave_a_slice(after);
                        return news();
                    }
                    (now, ticks) = (after, cpu::ticks());
                }
            }
        }
        if !has_lost_core || !self.crowd.takes_core(now, self.patience.no_spin) {
            self.missed(now);
        }
        news()
    }

    /// A wait begins while looking rests, for whatever reason: whether it is time to look again.
    fn looks_again(&mut self, now: u64, together: bool) -> bool {
        !self.crowd.stays(now) && (self.sleep_at_once_until == 0 || self.ends_rest(now, together))
    }

    /// A wait begins while looking rests because it did not pay: whether it is time to look again.
    fn ends_rest(&mut self, now: u64, together: bool) -> bool {
        let took = now.saturating_sub(std::mem::replace(&mut self.waited_at, now));
        if now < self.sleep_at_once_until {
            if took > QUICK_LOOKS * self.patience.look || (self.by_yield && together) {
                self.quick = 0;
                return false;
            }
            self.quick += 1;
            if self.quick < FEW_QUICK << self.early {
                return false;
            }
            self.early = (self.early + 1).min(MOST_EARLY);
        }
        self.quick = 0;
        self.sleep_at_once_until = 0;
        true
    }

    /// A look was for nothing.
    fn missed(&mut self, now: u64) {
        self.misses += 1;
        // Whoever looked in vain after a rest has no use for looking: one miss is enough then.
        if self.misses >= self.patience.misses || self.given_up > 0 {
            if self.given_up == 0 {
                self.early = 0;
            }
            self.misses = 0;
            self.by_yield = false;
            self.sleep_at_once_until = now + (self.patience.no_spin << self.given_up.min(MOST_DOUBLED));
            self.given_up += 1;
        }
    }

    fn found(&mut self) {
        self.misses = 0;
        self.given_up = 0;
        self.sleep_at_once_until = 0;
    }

    /// A yield was answered: the peer runs on this core, and nobody else wants it.
    fn found_together(&mut self) {
        self.found();
        self.together += 1;
        // Where this lies in memory differs from process to process.
        let odd = std::ptr::from_ref(self).addr() as u32 >> 4 & 3;
        if self.together < TOGETHER + odd * (TOGETHER / 4) {
            return;
        }
        let (count, now) = (std::mem::take(&mut self.together), clock::now());
        let since = std::mem::replace(&mut self.counted_since, now);
        // A pair that mostly sleeps is best off on one core: waking a neighbour is cheap.
        if now - since <= u64::from(count) * BUSY_NS {
            self.move_away(now);
        }
    }

    /// A yield lasted a time slice: someone works on this core, be it the peer itself. On another core there may be room;
    /// if not, it is not worth yielding for a while.
    #[cold]
    fn gave_a_slice(&mut self, now: u64) {
        if !self.move_away(now) {
            self.by_yield = true;
            self.sleep_at_once_until = now + self.patience.no_yield;
        }
    }

    /// Tries another core, if the last try is long enough ago.
    #[cold]
    fn move_away(&mut self, now: u64) -> bool {
        if now < self.move_after {
            return false;
        }
        let soon = now - self.move_after < 1000 * STAY_NS;
        self.moves = if soon { (self.moves + 1).min(MOST_STAYS) } else { 0 };
        self.move_after = now + (STAY_NS << self.moves);
        cpu::move_away()
    }
}

/// The core by which to wait for several peers: this thread's own, if one of them was there last, since that one may need it
/// to go on, whoever else may write first; else that of none.
#[inline]
pub fn nearest_core(peers: impl IntoIterator<Item = u32>) -> u32 {
    let own = cpu::current_core();
    if peers.into_iter().any(|core| core == own) { own } else { u32::MAX }
}

#[cfg(test)]
mod tests;
