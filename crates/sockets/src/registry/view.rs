//! A registry as tools see it: attached for reading, by a mapping that the kernel refuses every write through.

use sidestep_shm::read_only::ReadOnlyMemory;

use super::{
    Identity,
    layout::{HeadField, MAGIC, VERSION},
    records::{Load, ProcessRecord, Records, SocketRecord},
};
use crate::kernel::{self, address::Key};

/// A registry that is only looked at. It changes at any moment, and stays while it is looked at.
#[derive(Debug)]
pub struct View {
    pub(super) records: Records<ReadOnlyMemory>,
}

impl View {
    /// The registry in a memory of [`LEN`](super::LEN) bytes, if it was begun as this one.
    pub(super) fn new(memory: ReadOnlyMemory, nonce: u64) -> Option<View> {
        let view = View { records: Records { words: memory } };
        is_founded(&view.records.words, nonce).then_some(view)
    }

    /// Every socket of the processes that this one can name, as it is at the moment.
    pub fn sockets(&self) -> Vec<SocketRecord> {
        self.records.sockets(kernel::pid_namespace()).collect()
    }

    /// What the process with this number has said of itself last; it may have ended since.
    pub fn process(&self, pid: u32) -> Option<ProcessRecord> {
        let pids = kernel::pid_namespace();
        let own = |record: &ProcessRecord| record.pid == pid && record.pids == pids;
        self.records.processes().filter(own).max_by_key(|record| record.since)
    }

    /// What every process has said of itself, those that have ended included until their records are needed.
    pub fn processes(&self) -> impl Iterator<Item = ProcessRecord> + '_ {
        self.records.processes()
    }

    /// The process whose socket has this key and is offered.
    pub fn find(&self, key: &Key) -> Option<Identity> {
        self.records.find(key)
    }
}

/// Whether these words were begun as the registry with this nonce.
pub(super) fn is_founded(words: &impl Load, nonce: u64) -> bool {
    let wanted = [(HeadField::Magic, MAGIC), (HeadField::Version, VERSION), (HeadField::Nonce, nonce)];
    wanted.iter().all(|(field, word)| words.load(*field as usize) == *word)
}
