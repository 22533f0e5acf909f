//! The other end of a VI: which process it is, where that runs, and how this side reaches its memory.

use std::sync::Arc;

use sidestep_fabric::PeerId;
use sidestep_shm::{Word64, attach::Attachment};

use crate::{
    descriptor::Remote,
    entry::ReachWay,
    trunk::Window,
    vi::{Vi, item},
};

impl Vi {
    /// The process at the other end, to be asked about at the NIC's node ([`crate::Nic::node`]).
    pub fn peer(&self) -> Option<PeerId> {
        self.core.first_trunk().map(|trunk| trunk.peer)
    }

    /// The core on which the peer last ran.
    #[inline]
    pub fn peer_core(&self) -> u32 {
        self.core.first_trunk().map_or(u32::MAX, |trunk| trunk.peer_core())
    }

    /// Whether memory of the peer can be written and read by this side alone.
    pub fn reaches(&self, remote: &Remote, len: u32) -> bool {
        let mut state = self.core.lock();
        let Some(line) = state.line.as_mut() else { return false };
        match item::reach(line, remote, len) {
            Some((ReachWay::Window(number), _)) => line.route.trunk.window(number).is_some(),
            Some((ReachWay::Attached { .. }, _)) => true,
            None => false,
        }
    }

    /// A word of the peer's memory, if this side has that mapped.
    pub fn peer_word(&self, remote: &Remote) -> Option<Word64> {
        let mut state = self.core.lock();
        let line = state.line.as_mut()?;
        let (ReachWay::Window(number), offset) = item::reach(line, remote, 8)? else { return None };
        let Window::Mapped(aperture) = line.route.trunk.window(number)? else { return None };
        aperture.word64(offset).ok().flatten()
    }

    /// Where this side copies from memory of the peer's program, if it can.
    #[inline]
    pub fn attachment(&self) -> Option<&Arc<Attachment>> {
        self.core.first_trunk()?.attachment()
    }

    /// A mark behind everything that was sent to this peer, for [`has_landed`](Self::has_landed).
    pub fn mark(&self) -> u64 {
        self.core.first_trunk().map_or(0, |trunk| trunk.outward().mark())
    }

    /// Whether everything that was sent before a mark lies in memory of the peer: always, where that is mapped.
    pub fn has_landed(&self, mark: u64) -> bool {
        self.core.first_trunk().is_none_or(|trunk| {
            trunk.poll(false);
            trunk.outward().has_landed(mark)
        })
    }
}
