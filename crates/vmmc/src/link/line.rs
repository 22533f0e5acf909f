//! The line to one peer: a data link over the messages of the link underneath, what is asked there, and what has come in parts.

use std::collections::{BTreeMap, HashMap, VecDeque};

use sidestep_fabric::error::CloseReason;
use sidestep_fabric::link::{Link, Outcome, PeerNumber, Ticket};
use sidestep_fabric::{Error, Result};

use super::words::Word;
use crate::config::LinkConfig;
use crate::data_link::DataLink;
use crate::packet::Body;

#[derive(Debug)]
pub(super) struct Line {
    pub(super) link: DataLink,
    window: usize,
    /// What waits for the window.
    waiting: VecDeque<Vec<u8>>,
    /// Packets that the link underneath had no room for.
    stuck: VecDeque<Vec<u8>>,
    /// Requests whose end has not come.
    pub(super) asked: HashMap<Ticket, Asked>,
    /// The message of which parts have come.
    pub(super) message: Vec<u8>,
    /// The put that was refused: what comes of it is not looked at.
    pub(super) refused: Option<Ticket>,
    /// What came and was not taken, for a miss. It comes again, unless the peer is gone: then this is what it sent last.
    pub(super) passed_over: BTreeMap<u64, Word>,
    pub(super) missed: bool,
}

/// A request, as its asker keeps it.
#[derive(Debug)]
pub(super) enum Asked {
    Map,
    Put,
    Get(Vec<u8>),
    Atomic,
}

impl Line {
    pub(super) fn new(config: LinkConfig) -> Line {
        // What is lost underneath ends the line, so nothing is sent again but what was asked for.
        let link = DataLink::new(LinkConfig { nack: true, ..config });
        Line {
            link,
            window: config.window,
            waiting: VecDeque::new(),
            stuck: VecDeque::new(),
            asked: HashMap::new(),
            message: Vec::new(),
            refused: None,
            passed_over: BTreeMap::new(),
            missed: false,
        }
    }

    /// Whether so much waits that nothing more is taken.
    pub(super) fn check_room(&self) -> Result<()> {
        match self.waiting.len() < MOST_WAITING {
            true => Ok(()),
            false => Err(Error::Full { what: "what waits for the peer", limit: MOST_WAITING }),
        }
    }

    pub(super) fn say(&mut self, word: &Word) {
        self.waiting.push_back(word.emit());
    }

    /// Whether something could not be sent and is to be tried again.
    pub(super) fn is_stuck(&self) -> bool {
        !self.stuck.is_empty()
    }

    /// Sends what can be sent; with `all`, also what waits for the window.
    pub(super) fn transmit(&mut self, inner: &dyn Link, peer: PeerNumber, all: bool) -> Result<()> {
        loop {
            while let Some(packet) = self.stuck.front() {
                match inner.post(peer, packet) {
                    Ok(()) => drop(self.stuck.pop_front()),
                    Err(Error::Full { .. }) => return Ok(()),
                    Err(error) => {
                        self.stuck.clear();
                        return Err(error);
                    }
                }
            }
            while self.has_window(all)
                && let Some(word) = self.waiting.pop_front()
            {
                self.link.send(&Body::Message(word));
            }
            // The timer is not used, so the time does not matter.
            match self.link.poll_transmit(0) {
                Some(packet) => self.stuck.push_back(packet),
                None => return Ok(()),
            }
        }
    }

    /// Requests may miss, and then all behind them is sent again: few are under way. Messages and answers never do, and wait for
    /// nothing that a process which dies next would take with it.
    fn has_window(&self, all: bool) -> bool {
        let most =
            if self.waiting.front().is_some_and(|word| Word::may_miss(word)) { self.window } else { 16 * self.window };
        all || self.link.kept() < most
    }

    /// The end of the line: every request ends, once.
    pub(super) fn end(self, reason: CloseReason) -> Vec<(Ticket, Outcome)> {
        let mut tickets: Vec<Ticket> = self.asked.into_keys().collect();
        tickets.sort_unstable();
        tickets.into_iter().map(|ticket| (ticket, Outcome::Closed(reason))).collect()
    }
}

/// Words that may wait for the window of one peer.
const MOST_WAITING: usize = 4096;
