//! What `top` knows and shows, without a terminal: looks and keys go in.

use std::{collections::HashMap, collections::VecDeque, net::SocketAddr};

use clap::ValueEnum;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    census::{Census, Sighting},
    stat::select::{self, Filter, SortKey},
};

/// The state of `top`.
#[derive(Debug)]
pub struct App {
    all: Census,
    /// What fits the filter, in order.
    pub shown: Census,
    /// Bytes a second of each socket at the last looks, the present one last.
    rates: HashMap<Name, VecDeque<u64>>,
    /// Bytes a second of all sockets, one value for each look.
    pub history: VecDeque<u64>,
    /// What is sorted by.
    pub sort: SortKey,
    filters: Vec<Filter>,
    /// What has been typed of a filter, while one is typed.
    pub typed: Option<String>,
    /// What is wrong with the filter that was typed last.
    pub complaint: String,
    /// What the present filters say.
    pub filter_text: String,
    /// The first line that is shown.
    pub top: usize,
    /// Processes are shown, not sockets.
    pub by_process: bool,
    /// Nothing changes but by keys.
    pub paused: bool,
    /// The keys are explained.
    pub help: bool,
}

/// Which socket: its process and its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(u32, SocketAddr, SocketAddr);

impl Name {
    /// The name of a socket.
    pub fn of(socket: &Sighting) -> Name {
        Name(socket.record.pid, socket.record.key.local, socket.record.key.remote)
    }
}

/// Looks that are remembered of all sockets together: more than any terminal has columns.
const MOST_HISTORY: usize = 512;
/// Looks that are remembered of each socket.
pub const LOOKS: usize = 12;
/// Lines that a page has, whatever the terminal.
const PAGE: usize = 15;

impl App {
    /// Has seen nothing yet.
    pub fn new(sort: SortKey, filters: Vec<Filter>) -> App {
        let filter_text = if filters.is_empty() { String::new() } else { "from the command line".to_owned() };
        App {
            all: Census::default(),
            shown: Census::default(),
            rates: HashMap::new(),
            history: VecDeque::new(),
            sort,
            filters,
            typed: None,
            complaint: String::new(),
            filter_text,
            top: 0,
            by_process: false,
            paused: false,
            help: false,
        }
    }

    /// Takes in what was seen now.
    pub fn see(&mut self, census: Census) {
        if self.paused {
            return;
        }
        let before: HashMap<Name, u64> =
            self.all.sockets.iter().map(|socket| (Name::of(socket), select::bytes(socket))).collect();
        let passed = census.at.saturating_sub(self.all.at).max(1);
        let rate = |socket: &Sighting| {
            // One that was not there before may be old; it is seen for the first time.
            let more = select::bytes(socket).saturating_sub(*before.get(&Name::of(socket))?);
            Some((u128::from(more) * 1_000_000_000 / u128::from(passed)) as u64)
        };
        let mut known = std::mem::take(&mut self.rates);
        let mut sum = 0_u64;
        for socket in &census.sockets {
            let name = Name::of(socket);
            // A process may have a connection under two numbers.
            if self.rates.contains_key(&name) {
                continue;
            }
            let rate = rate(socket).unwrap_or(0);
            let mut rates = known.remove(&name).unwrap_or_default();
            rates.push_back(rate);
            if rates.len() > LOOKS {
                rates.pop_front();
            }
            self.rates.insert(name, rates);
            sum = sum.saturating_add(rate);
        }
        if self.all.at != 0 {
            self.history.push_back(sum);
        }
        if self.history.len() > MOST_HISTORY {
            self.history.pop_front();
        }
        self.all = census;
        self.choose();
    }

    fn choose(&mut self) {
        let mut shown = self.all.clone();
        select::select(&mut shown, &self.filters, self.sort, |socket| self.rate(socket));
        self.shown = shown;
    }

    /// Whether anything was seen at all.
    pub fn has_looked(&self) -> bool {
        self.all.at != 0
    }

    /// Bytes a second of a socket.
    pub fn rate(&self, socket: &Sighting) -> u64 {
        self.lately(socket).next_back().unwrap_or(0)
    }

    /// Bytes a second of a socket at the last looks, the present one last.
    pub fn lately(&self, socket: &Sighting) -> impl DoubleEndedIterator<Item = u64> {
        self.rates.get(&Name::of(socket)).into_iter().flatten().copied()
    }

    /// Acts on a key. `true`: the user has seen enough.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return true;
        }
        if self.typed.is_some() {
            self.type_filter(key.code);
            return false;
        }
        if self.help {
            self.help = false;
            return false;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('h' | '?') => self.help = true,
            KeyCode::Char('s') => self.sort_by(1),
            KeyCode::Char('S') => self.sort_by(-1),
            KeyCode::Char('p') => self.by_process = !self.by_process,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.typed = Some(String::new()),
            KeyCode::Down | KeyCode::Char('j') => self.top = self.top.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::PageDown => self.top = self.top.saturating_add(PAGE),
            KeyCode::PageUp => self.top = self.top.saturating_sub(PAGE),
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = usize::MAX,
            _ => {}
        }
        false
    }

    fn sort_by(&mut self, step: isize) {
        let keys = SortKey::value_variants();
        let now = keys.iter().position(|key| *key == self.sort).unwrap_or(0);
        self.sort = keys[(now as isize + step).rem_euclid(keys.len() as isize) as usize];
        self.choose();
    }

    fn type_filter(&mut self, code: KeyCode) {
        let Some(typed) = &mut self.typed else { return };
        match code {
            KeyCode::Char(letter) => typed.push(letter),
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Esc => self.typed = None,
            KeyCode::Enter => {
                let text = std::mem::take(typed);
                self.typed = None;
                match text.split_whitespace().map(str::parse).collect::<Result<Vec<Filter>, String>>() {
                    Ok(filters) => (self.filters, self.filter_text, self.complaint) = (filters, text, String::new()),
                    Err(why) => self.complaint = why,
                }
                self.top = 0;
                self.choose();
            }
            _ => {}
        }
    }
}
