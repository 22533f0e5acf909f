//! The parameters of a card, and what they may be.

use crate::budget::Budget;
use crate::error::{Error, Result};

/// What a card is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Caches in front of host tables, or static tables.
    pub mode: Mode,
    /// The cache of translations.
    pub vmh: CacheShape,
    /// The cache of buffer descriptors; its lines have one entry.
    pub cbh: CacheShape,
    /// Post queues on the card.
    pub queues: usize,
    /// Requests that one of them holds.
    pub queue_depth: usize,
    /// Packets that the card holds for sending, and again so many that it has received.
    pub packets: usize,
    /// The data link.
    pub link: LinkConfig,
    /// All the memory that the card may have, in bytes.
    pub memory: Option<usize>,
}

/// How the tables are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// miNI: tables on the host, small caches on the card.
    Cached,
    /// The baseline: everything on the card, pages pinned while they are registered.
    Static,
}

/// A cache: how many entries, how many in a line, how many lines in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheShape {
    /// C: entries in all.
    pub entries: usize,
    /// L: entries of a line.
    pub line: usize,
    /// A: lines of a set.
    pub ways: usize,
}

/// The data link between two cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkConfig {
    /// What is not acknowledged after so long is sent again.
    pub timer_ns: u64,
    /// Whether a receiver asks for what it lacks, instead of waiting for the timer.
    pub nack: bool,
    /// Packets to one node that wait for an answer.
    pub window: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mode: Mode::Cached,
            vmh: CacheShape { entries: 16 * 1024, line: 64, ways: 4 },
            cbh: CacheShape { entries: 512, line: 1, ways: 4 },
            queues: 8,
            queue_depth: 64,
            packets: 24,
            link: LinkConfig::default(),
            memory: None,
        }
    }
}

impl Default for LinkConfig {
    fn default() -> LinkConfig {
        LinkConfig { timer_ns: 250_000, nack: false, window: 16 }
    }
}

impl LinkConfig {
    /// Packets to one node that the card keeps at most: its own requests, and answers to those of the other card.
    ///
    /// Answers that the other card has not taken are at most two for each request of its window (a refused message is refused
    /// once for every packet); those that it has taken are acknowledged when they are sent again, as the oldest. So between two cards
    /// of equal windows three windows are never exceeded; there is room for one whose window is larger.
    #[must_use]
    pub fn most_kept(&self) -> usize {
        4 * self.window + 256
    }
}

impl CacheShape {
    /// Lines in all.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.entries / self.line
    }

    /// Sets.
    #[must_use]
    pub fn sets(&self) -> usize {
        self.lines() / self.ways
    }

    /// Whether it can be built.
    pub fn check(&self, what: &'static str) -> Result<()> {
        let bad = |must| Err(Error::Parameter { what, must, value: format!("{self}") });
        if !self.line.is_power_of_two() || !self.entries.is_power_of_two() || !self.ways.is_power_of_two() {
            return bad("powers of two for entries, line and ways");
        }
        if self.ways < 2 {
            return bad("at least 2 ways: sending and receiving each hold a line of a set");
        }
        if self.line > 1024 || self.entries > 1 << 24 {
            return bad("at most 2^24 entries in lines of at most 1024");
        }
        if self.line.saturating_mul(self.ways) > self.entries {
            return bad("at least one set: as many entries as a line times the ways");
        }
        Ok(())
    }
}

impl std::fmt::Display for CacheShape {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "C {} L {} A {}", self.entries, self.line, self.ways)
    }
}

impl Config {
    /// The baseline.
    #[must_use]
    pub fn baseline() -> Config {
        Config { mode: Mode::Static, ..Config::default() }
    }

    /// Whether a card can be built so; the error names what to change.
    pub fn check(&self) -> Result<()> {
        self.vmh.check("the VMH cache")?;
        self.cbh.check("the CBH cache")?;
        let within = |what, value: usize, least: usize, most: usize, must| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(Error::Parameter { what, must, value: value.to_string() }),
        };
        within("the line of the CBH cache", self.cbh.line, 1, 1, "1: ids of buffers lie near each other by chance")?;
        within("the post queues", self.queues, 1, 1024, "1 to 1024")?;
        within("the depth of a post queue", self.queue_depth, 1, 4096, "1 to 4096")?;
        within("the packets", self.packets, 2, 65536, "2 to 65536")?;
        within("the window", self.link.window, 1, self.packets, "1 to the number of packets")?;
        let timer = self.link.timer_ns;
        if !(1_000..=10_000_000_000).contains(&timer) {
            let (what, must) = ("the timer of the data link", "1 us to 10 s; 200 to 300 us was found best");
            return Err(Error::Parameter { what, must, value: format!("{timer} ns") });
        }
        let need = Budget::of(self).total();
        match self.memory {
            Some(memory) if memory < need => Err(Error::Budget { memory, need }),
            _ => Ok(()),
        }
    }

    /// Whether it has caches, which a card process and a link want.
    pub(crate) fn check_has_caches(&self) -> Result<()> {
        match self.mode {
            Mode::Cached => Ok(()),
            Mode::Static => Err(Error::Parameter {
                what: "the mode of a card",
                must: "caches: static tables are a baseline that simulated cards alone have",
                value: "static tables".to_owned(),
            }),
        }
    }

    /// The same card with the largest caches that a budget has room for.
    pub fn within(self, memory: usize) -> Result<Config> {
        self.within_keeping(memory, false, false)
    }

    /// The same, but if they are kept with lines of this length, and with this cache of buffers.
    pub fn within_keeping(mut self, memory: usize, line: bool, buffers: bool) -> Result<Config> {
        self.memory = Some(memory);
        let is_smallest = |shape: &CacheShape| shape.entries <= shape.line * shape.ways;
        while Budget::of(&self).total() > memory {
            // The larger of the two gives way first.
            let budget = Budget::of(&self);
            match (is_smallest(&self.vmh), buffers || is_smallest(&self.cbh)) {
                (false, true) => self.vmh.entries /= 2,
                (false, false) if budget.vmh >= budget.cbh => self.vmh.entries /= 2,
                (_, false) => self.cbh.entries /= 2,
                (true, true) if self.vmh.line > 1 && !line => {
                    self.vmh.line /= 2;
                    self.vmh.entries /= 2;
                }
                (true, true) if self.packets > 4 => {
                    self.packets /= 2;
                    self.link.window = self.link.window.min(self.packets);
                }
                (true, true) if self.queues > 1 => self.queues /= 2,
                (true, true) => return Err(Error::Budget { memory, need: budget.total() }),
            }
        }
        self.check()?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(config: Config) -> String {
        config.check().unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_the_remedy() {
        Config::default().check().unwrap();
        Config::baseline().check().unwrap();
        let with = |vmh| Config { vmh, ..Config::default() };
        assert!(refused(with(CacheShape { entries: 64, line: 8, ways: 1 })).contains("at least 2 ways"));
        assert!(refused(with(CacheShape { entries: 100, line: 8, ways: 2 })).contains("powers of two"));
        assert!(refused(with(CacheShape { entries: 8, line: 8, ways: 2 })).contains("at least one set"));
        let line = CacheShape { entries: 64, line: 2, ways: 2 };
        assert!(refused(Config { cbh: line, ..Config::default() }).contains("the line of the CBH cache"));
        let link = LinkConfig { timer_ns: 3, ..LinkConfig::default() };
        assert!(refused(Config { link, ..Config::default() }).contains("200 to 300 us"));
        assert!(refused(Config { queues: 0, ..Config::default() }).contains("post queues"));
        let small = refused(Config { memory: Some(10_000), ..Config::default() });
        assert!(small.contains("10000") && small.contains("smaller"), "{small}");
    }

    #[test]
    fn caches_shrink_to_a_budget() {
        let small = Config::default().within(330 * 1024).unwrap();
        assert!(small.vmh.entries < 16 * 1024 && Budget::of(&small).total() <= 330 * 1024);
        let tiny = Config::default().within(130 * 1024).unwrap();
        assert!(tiny.packets < 24);
        assert!(matches!(Config::default().within(1024), Err(Error::Budget { .. })));
    }
}
