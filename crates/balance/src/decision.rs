//! When a site wants another server: its load has been high for some time, and another site has one that does little.
//!
//! Two parameters, as in the thesis: the *sensitivity* S, the time between two looks, is the caller's; the *history* T is how long a load
//! must stay high, so that a short burst moves nothing.

/// Thresholds and the history.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// A site with a mean load above this wants a server.
    pub high: u64,
    /// A server with a load of at most this may be taken.
    pub low: u64,
    /// T: how long the load must have been high.
    pub history_ns: u64,
}

/// What one controller has seen of its site.
#[derive(Debug, Clone, Default)]
pub struct History {
    high_since: Option<u64>,
}

/// A server, as its page shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// Which site it serves.
    pub site: u32,
    /// Its load, as it says itself.
    pub load: u64,
}

/// The load of a server that belongs to a site and does not serve it yet: its conversion has not been carried out.
pub const NOT_SERVING: u64 = u64::MAX;

impl History {
    /// Looks at all servers at a time; the donor's site, and the server to take from it, if one is wanted.
    pub fn look(&mut self, rules: &Rules, own: u32, servers: &[Server], now: u64) -> Option<usize> {
        let loads = || serving(servers, own).map(|server| u128::from(server.load));
        let count = loads().count() as u128;
        // Loads are words that others write: their sum may be anything.
        if count == 0 || loads().sum::<u128>() <= u128::from(rules.high) * count {
            self.high_since = None;
            return None;
        }
        let since = *self.high_since.get_or_insert(now);
        if now.saturating_sub(since) < rules.history_ns {
            return None;
        }
        let spare = |server: &Server| server.site != own && server.load <= rules.low && has_more(servers, server.site);
        let candidates = servers.iter().enumerate().filter(|(_, server)| spare(server));
        candidates.min_by_key(|(_, server)| server.load).map(|(at, _)| at)
    }

    /// After a conversion, or a notice of one: the load needs time to settle.
    pub fn settle(&mut self) {
        self.high_since = None;
    }
}

/// The servers that serve a site.
fn serving(servers: &[Server], site: u32) -> impl Iterator<Item = &Server> {
    servers.iter().filter(move |server| server.site == site && server.load != NOT_SERVING)
}

fn has_more(servers: &[Server], site: u32) -> bool {
    serving(servers, site).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { high: 80, low: 20, history_ns: 100 };

    fn servers(rows: &[(u32, u64)]) -> Vec<Server> {
        rows.iter().map(|(site, load)| Server { site: *site, load: *load }).collect()
    }

    #[test]
    fn a_load_that_stays_high_takes_the_idlest_server() {
        let (mut history, all) = (History::default(), servers(&[(0, 90), (0, 95), (1, 20), (1, 5), (1, 50)]));
        assert_eq!(history.look(&RULES, 0, &all, 1000), None, "it has just begun");
        assert_eq!(history.look(&RULES, 0, &all, 1099), None);
        assert_eq!(history.look(&RULES, 0, &all, 1100), Some(3));
        assert_eq!(history.look(&RULES, 1, &all, 1100), None);
    }

    #[test]
    fn a_short_burst_moves_nothing() {
        let (mut history, calm) = (History::default(), servers(&[(0, 10), (1, 0), (1, 0)]));
        let high = servers(&[(0, 99), (1, 0), (1, 0)]);
        for round in 0..10 {
            assert_eq!(history.look(&RULES, 0, &high, round * 200), None);
            assert_eq!(history.look(&RULES, 0, &high, round * 200 + 99), None);
            assert_eq!(history.look(&RULES, 0, &calm, round * 200 + 150), None);
        }
    }

    #[test]
    fn the_last_server_and_busy_ones_stay() {
        for all in [servers(&[(0, 99), (1, 0)]), servers(&[(0, 99), (1, 21), (1, 30)]), servers(&[(0, 99)])] {
            let mut history = History::default();
            history.look(&RULES, 0, &all, 0);
            assert_eq!(history.look(&RULES, 0, &all, 1000), None, "{all:?}");
        }
    }

    #[test]
    fn a_server_that_does_not_serve_yet_counts_for_nobody() {
        let mut history = History::default();
        let none = NOT_SERVING;
        for (all, wanted) in [
            (servers(&[(0, 99), (0, none), (1, 0), (1, 0)]), Some(2)),
            (servers(&[(0, 99), (1, none), (1, 0)]), None),
            (servers(&[(0, none), (1, 0), (1, 0)]), None),
            (servers(&[(0, none - 1), (0, none - 1), (1, 0), (1, 0)]), Some(2)),
        ] {
            history.settle();
            history.look(&RULES, 0, &all, 0);
            assert_eq!(history.look(&RULES, 0, &all, 1000), wanted, "{all:?}");
        }
    }
}
