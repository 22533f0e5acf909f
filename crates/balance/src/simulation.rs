//! Bursts of requests for three sites of eight nodes, under virtual time (figures 10.11 and 10.12 of the thesis): with fixed servers, with more
//! than enough of them, and with servers that move.
//!
//! Only requests and the time are simulated: what moves a server are [`decision`](crate::decision) and
//! [`protocol`](crate::protocol), on words of memory here.

use std::collections::BTreeMap;

use crate::{
    decision::{History, Rules, Server},
    protocol::{Conversion, Next, Operation, Outcome, Setting, Word, server_word, site_of},
};

/// What is simulated.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    /// Requests of a burst; the sites have one after the other.
    pub burst: u64,
    /// Requests a second of one node.
    pub rate: u64,
    /// S: time between two looks.
    pub sensitivity_ns: u64,
    /// T: how long a load must stay high.
    pub history_ns: u64,
}

/// How servers are given to sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Three, three and two, for ever.
    Rigid,
    /// Six for each, as if there were eighteen.
    OverProvisioned,
    /// They move.
    Moving,
}

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub struct Result {
    /// Requests a second, over all bursts.
    pub throughput: f64,
    /// Nodes at work for the site that has the burst, on the average of the time.
    pub nodes: f64,
    /// Servers that moved.
    pub conversions: u64,
}

/// The nodes of the thesis: eight, of three sites.
const SITES: [u16; 8] = [0, 0, 0, 1, 1, 1, 2, 2];
const BURSTS: u64 = 30;

/// Runs it.
pub fn run(scheme: Scheme, parameters: &Parameters) -> Result {
    let Parameters { burst, rate, sensitivity_ns, history_ns } = *parameters;
    let rules = Rules { high: 80, low: 20, history_ns };
    let mut centre = Centre::new();
    let (mut now, mut busy, mut conversions) = (0, 0.0, 0);
    for round in 0..BURSTS {
        let (site, mut left, mut history) = ((round % 3) as u16, burst as f64, History::default());
        while left > 0.0 {
            let nodes = if scheme == Scheme::OverProvisioned { 6 } else { centre.nodes_of(site) };
            left -= nodes as f64 * rate as f64 * sensitivity_ns as f64 / 1e9;
            busy += nodes as f64 * sensitivity_ns as f64;
            now += sensitivity_ns;
            if scheme != Scheme::Moving {
                continue;
            }
            let wanted = history.look(&rules, u32::from(site), &centre.servers(site), now);
            if wanted.is_some_and(|wanted| centre.convert(site, wanted as u16)) {
                conversions += 1;
                history.settle();
            }
        }
    }
    let seconds = now as f64 / 1e9;
    Result { throughput: (BURSTS * burst) as f64 / seconds, nodes: busy / now as f64, conversions }
}

/// The words of all pages.
struct Centre {
    words: BTreeMap<Word, u64>,
    turn: u64,
}

impl Centre {
    fn new() -> Centre {
        let servers = SITES.iter().enumerate().map(|(at, site)| (Word::Server(at as u16), server_word(*site, 0)));
        Centre { words: servers.collect(), turn: 0 }
    }

    fn nodes_of(&self, site: u16) -> usize {
        self.words.iter().filter(|(word, held)| matches!(word, Word::Server(_)) && site_of(**held) == site).count()
    }

    /// As pages show them while this site has a burst.
    fn servers(&self, loaded: u16) -> Vec<Server> {
        let server = |at: u16| {
            let site = site_of(self.words[&Word::Server(at)]);
            Server { site: u32::from(site), load: if site == loaded { 100 } else { 0 } }
        };
        (0..SITES.len() as u16).map(server).collect()
    }

    /// Converts a server, by the protocol; whether it was.
    fn convert(&mut self, site: u16, wanted: u16) -> bool {
        self.turn += 1;
        let donor = site_of(self.words[&Word::Server(wanted)]);
        let setting = Setting { servers: SITES.len() as u16, others: vec![] };
        let mut conversion = Conversion::new(setting, site, (site, donor, wanted), self.turn, 0);
        loop {
            match conversion.next() {
                Next::Do(operation) => {
                    let held = self.perform(operation);
                    conversion.done(held);
                }
                Next::Wait(_) => return false,
                Next::End(outcome) => return outcome == Outcome::Converted(wanted),
            }
        }
    }

    fn perform(&mut self, operation: Operation) -> u64 {
        let (word, change): (Word, &dyn Fn(u64) -> u64) = match &operation {
            Operation::Load(word) => (*word, &|held| held),
            Operation::CompareSwap { word, expected, new } => {
                (*word, &move |held| if held == *expected { *new } else { held })
            }
            Operation::FetchAdd { word, value } => (*word, &move |held| held.wrapping_add(*value)),
        };
        let held = self.words.entry(word).or_default();
        let before = *held;
        *held = change(before);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(burst: u64) -> Parameters {
        Parameters { burst, rate: 8667, sensitivity_ns: 1_000_000, history_ns: 10_000_000 }
    }

    /// Long bursts are served nearly as by too many servers, and the site with the burst never has more than six.
    #[test]
    fn long_bursts_get_nearly_all_servers() {
        let of = |scheme, burst| run(scheme, &parameters(burst));
        let (rigid, over) = (of(Scheme::Rigid, 16384), of(Scheme::OverProvisioned, 16384));
        assert!((1.9..2.4).contains(&(over.throughput / rigid.throughput)), "{rigid:?} {over:?}");
        let moving = of(Scheme::Moving, 16384);
        assert!(moving.throughput > 0.85 * over.throughput && moving.throughput < over.throughput, "{moving:?}");
        assert!(moving.nodes > 5.0 && moving.nodes <= 6.0, "{moving:?}");
        let short = of(Scheme::Moving, 512);
        assert!(short.throughput < 1.1 * of(Scheme::Rigid, 512).throughput, "{short:?}");
        let all: Vec<f64> = [512, 1024, 2048, 4096, 8192].map(|burst| of(Scheme::Moving, burst).throughput).to_vec();
        assert!(all.is_sorted(), "{all:?}");
    }

    /// A history longer than any burst moves nothing: the same as fixed servers.
    #[test]
    fn a_long_history_is_rigid() {
        let patient = Parameters { history_ns: 10_000_000_000, ..parameters(4096) };
        let (moving, rigid) = (run(Scheme::Moving, &patient), run(Scheme::Rigid, &patient));
        assert_eq!((moving.conversions, moving.throughput), (0, rigid.throughput));
    }
}
