//! When to nudge a peer that may have lost its first wake-up.

use std::time::Duration;

/// A few segments that do nothing but arrive, with growing pauses, until the peer says something.
#[derive(Debug)]
pub(crate) struct Nudge {
    /// Not set before the first FPDU is out.
    at: Option<Duration>,
    pause: Duration,
    left: u32,
}

impl Nudge {
    pub(crate) fn new(pause: Duration) -> Self {
        Self { at: None, pause, left: NUDGES }
    }

    /// The first FPDU is out.
    pub(crate) fn arm(&mut self, now: Duration) {
        if self.left == NUDGES && self.at.is_none() {
            self.at = Some(now + self.pause);
        }
    }

    /// When the next nudge is due.
    pub(crate) fn at(&self) -> Option<Duration> {
        self.at
    }

    /// Whether a nudge is due; if so, the next one is planned.
    pub(crate) fn is_due(&mut self, now: Duration) -> bool {
        if self.at.is_none_or(|at| at > now) {
            return false;
        }
        self.left -= 1;
        self.pause *= 2;
        self.at = (self.left > 0).then(|| now + self.pause);
        true
    }
}

/// After so many nudges a peer that says nothing has nothing to say.
const NUDGES: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let pause = Duration::from_millis(10);
        let mut nudge = Nudge::new(pause);
        assert!(!nudge.is_due(Duration::from_secs(9)), "nothing was sent yet");
        let mut now = Duration::from_secs(9);
        nudge.arm(now);
        nudge.arm(now + pause);
        for count in 0..NUDGES {
            let at = nudge.at().unwrap();
            assert_eq!(at - now, pause * (1 << count));
            assert!(!nudge.is_due(at - Duration::from_nanos(1)));
            assert!(nudge.is_due(at));
            now = at;
        }
        assert_eq!(nudge.at(), None);
        nudge.arm(now);
        assert_eq!(nudge.at(), None);
    }
}
