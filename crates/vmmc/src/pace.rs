//! How many packets may be under way to a node: all that there are, until some had to be sent again.
//!
//! A receiver that lacks a translation drops everything behind the packet that misses, and one whose packet buffers are full drops
//! what comes. Sending the whole window again at once costs the same drops again: so going back begins with one packet, and each
//! that is acknowledged lets two follow, up to half of what was under way when something was lost, and from there one more for
//! each round (RFC 5681 §3.1, in packets).

/// The pace of one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Packets that may be under way, in parts of a packet.
    limit: u64,
    /// From here on it rises slowly.
    turning: u64,
}

/// Parts of a packet.
const WHOLE: u64 = 256;
/// No limit that matters: the send engine has a smaller window, and answers follow requests.
const MOST: u64 = WHOLE << 16;

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace { limit: MOST, turning: MOST }
    }

    /// Whether one more may follow so many.
    pub(crate) fn allows(&self, sent: usize) -> bool {
        (sent as u64) < self.limit / WHOLE
    }

    /// So many were acknowledged.
    pub(crate) fn acknowledged(&mut self, count: usize) {
        let count = count as u64;
        let more = if self.limit < self.turning { count * WHOLE } else { count * WHOLE * WHOLE / self.limit };
        self.limit = (self.limit + more).min(MOST);
    }

    /// So many were under way, and the oldest is sent again.
    pub(crate) fn went_back(&mut self, sent: usize) {
        self.turning = (sent as u64 * WHOLE / 2).max(WHOLE);
        self.limit = WHOLE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(pace: &Pace) -> usize {
        (0..).find(|sent| !pace.allows(*sent)).unwrap()
    }

    #[test]
    fn one_packet_is_sent_again_and_then_twice_as_many_a_round_up_to_half() {
        let mut pace = Pace::new();
        assert!(pace.allows(1000));
        pace.went_back(16);
        let mut rounds = Vec::new();
        for _ in 0..6 {
            rounds.push(allowed(&pace));
            pace.acknowledged(allowed(&pace));
        }
        assert_eq!(rounds, [1, 2, 4, 8, 9, 10]);
        // A packet alone that is lost again and again stays alone.
        pace.went_back(1);
        pace.went_back(1);
        assert_eq!(allowed(&pace), 1);
        pace.acknowledged(usize::from(u16::MAX));
        assert!(allowed(&pace) > 1);
    }
}
