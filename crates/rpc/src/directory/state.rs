//! What a directory knows: registrations, and what it was asked.

use sidestep_wire::rpcbind::{Lookup, Statistics, VERSIONS};

use crate::rpcbind::Entry;

#[derive(Debug, Default)]
pub(super) struct State {
    entries: Vec<Entry>,
    /// Of versions 2, 3 and 4.
    statistics: [Statistics; VERSIONS],
}

/// Which address somebody asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub program: u32,
    pub version: u32,
    pub network: &'a str,
    /// No other version will do.
    pub exact: bool,
}

/// More registrations are refused.
const MAX_REGISTRATIONS: usize = 4096;

/// The longest network identifier and address that are taken: a path of a UNIX socket is shorter, and the list of all
/// registrations fits into a message.
const MAX_NETWORK: usize = 64;
const MAX_ADDRESS: usize = 256;

/// Lookups of further programs are not counted: anybody may ask for any.
const MAX_LOOKUPS: usize = 256;

/// Who registered over a loopback address.
pub(super) const UNKNOWN: &str = "unknown";

impl State {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn statistics(&self) -> &[Statistics; VERSIONS] {
        &self.statistics
    }

    /// Registers, unless another registration is in the way.
    pub fn set(&mut self, entry: Entry) -> bool {
        let taken = self.entries.iter().any(|other| {
            (other.program, other.version, &other.network) == (entry.program, entry.version, &entry.network)
        });
        let too_long = entry.network.len() > MAX_NETWORK || entry.address.len() > MAX_ADDRESS;
        if taken || too_long || self.entries.len() >= MAX_REGISTRATIONS {
            return false;
        }
        self.entries.push(entry);
        true
    }

    /// Takes back what the caller may: its own, and what belongs to nobody; root everything.
    pub fn unset(&mut self, program: u32, version: u32, networks: &[&str], caller: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| {
            let meant = (entry.program, entry.version) == (program, version)
                && (networks.is_empty() || networks.contains(&&*entry.network));
            let may = caller == "0" || entry.owner == caller || entry.owner == UNKNOWN;
            !(meant && may)
        });
        self.entries.len() < before
    }

    /// Where a program listens: this version, or else any, so that the caller can be told of the versions there.
    pub fn find(&self, Question { program, version, network, exact }: Question<'_>) -> Option<String> {
        let mut of_program = self.entries.iter().filter(|entry| entry.program == program && entry.network == network);
        let any = of_program.clone().next().filter(|_| !exact);
        let same = of_program.find(|entry| entry.version == version);
        same.or(any).map(|entry| entry.address.clone())
    }

    pub fn note_call(&mut self, of: u32, procedure: u32) {
        if let Some(statistics) = self.of(of)
            && let Some(calls) = statistics.calls.get_mut(procedure as usize)
        {
            *calls = calls.wrapping_add(1);
        }
    }

    pub fn note_set(&mut self, of: u32, is_set: bool) {
        if let Some(statistics) = self.of(of) {
            statistics.registered = statistics.registered.wrapping_add(is_set.into());
        }
    }

    pub fn note_unset(&mut self, of: u32, is_unset: bool) {
        if let Some(statistics) = self.of(of) {
            statistics.taken_back = statistics.taken_back.wrapping_add(is_unset.into());
        }
    }

    pub fn note_lookup(&mut self, of: u32, Question { program, version, network, .. }: Question<'_>, found: bool) {
        let Some(statistics) = self.of(of) else { return };
        let is_same =
            |lookup: &Lookup| (lookup.program, lookup.version, lookup.network.as_str()) == (program, version, network);
        let lookups = &mut statistics.lookups;
        let at = lookups.iter().position(is_same).unwrap_or_else(|| {
            if lookups.len() < MAX_LOOKUPS {
                lookups.push(Lookup { program, version, found: 0, missed: 0, network: network.to_owned() });
            }
            lookups.len() - 1
        });
        if let Some(lookup) = lookups.get_mut(at).filter(|lookup| is_same(lookup)) {
            let count = if found { &mut lookup.found } else { &mut lookup.missed };
            *count = count.wrapping_add(1);
        }
    }

    /// What one version was asked.
    fn of(&mut self, version: u32) -> Option<&mut Statistics> {
        self.statistics.get_mut(version.checked_sub(2)? as usize)
    }
}
