//! For a layer above that waits by itself: sends that go out at once or not at all, and what it needs to sleep.
//!
//! Such a layer sleeps on news of the NIC's node ([`crate::Nic::node`]), together with whatever else it waits for. It does,
//! in this order: [`Vi::arm`]; its announcement to the node that it sleeps; [`Vi::catch_up`], and a look at what it waits
//! for; the sleep.

use std::sync::Arc;

use sidestep_fabric::PeerId;
use sidestep_shm::{Word64, attach::Attachment};

use crate::{
    code::ViState,
    cq::Queue,
    descriptor::{Descriptor, Remote},
    entry::{LINE, LONG, ReachWay},
    error::{Error, Result},
    nic::Nic,
    trunk::Window,
    vi::{
        FlowControl, Vi, Way,
        item::{self, DIRECT_MIN},
        send::{SMALL, SPARED_RECEIVES},
        state::{Alert, State},
    },
};

impl Vi {
    /// Sends a small message from memory that is not registered, if it goes out now: it has when this returns, and no
    /// completion follows. `false`: it is too long ([`Vi::INLINE`]), no receive is known, or there is no room.
    #[inline]
    pub fn send_inline(&self, bytes: &[u8], immediate: u32, spared: usize) -> Result<bool> {
        let mut state = self.core.lock();
        if state.status != ViState::Connected {
            return Err(Error::State { is: state.status });
        }
        let fill = |place: &mut [u8]| {
            place.copy_from_slice(bytes);
            true
        };
        let Some(outlet) = state.outlet() else { return Ok(false) };
        match outlet.put(bytes.len(), Some(immediate), FlowControl::NonBlocking, spared, fill) {
            Ok(sent) => Ok(sent),
            Err(loss) => {
                state.lose(loss);
                Err(Error::State { is: state.status })
            }
        }
    }

    /// The longest message that can be sent inline.
    pub const INLINE: usize = SMALL;

    /// Posts a send if it goes out now, all of it. `false`: no receive is known at the other side, or there is no room on the
    /// way; nothing has changed then. `spared` bytes of that room, if it is not 0, and some
    /// of the receives are left to others.
    #[inline]
    pub fn try_send(&self, descriptor: &Descriptor, spared: usize) -> Result<bool> {
        let mut state = self.core.lock();
        if state.status != ViState::Connected {
            return Err(Error::State { is: state.status });
        }
        let total: usize = descriptor.segments.iter().map(|segment| segment.len as usize).sum();
        if !state.goes_at_once(total, spared) {
            return Ok(false);
        }
        state.post_send(descriptor, FlowControl::NonBlocking)?;
        Ok(true)
    }

    /// Whether a send of so many bytes would go out now.
    pub fn may_send(&self, total: usize, spared: usize) -> bool {
        self.core.lock().goes_at_once(total, spared)
    }

    /// Whether a look at the receive queue may find something. Takes no lock.
    #[inline]
    pub fn has_arrivals(&self) -> bool {
        match self.core.first_trunk() {
            Some(trunk) => self.core.is_ready(Queue::Receive) || trunk.has_news(),
            None => true,
        }
    }

    /// Whether more has arrived than word of a few receives, which comes behind most messages. Takes no lock.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.core.first_trunk().is_none_or(|trunk| trunk.arrived() > LINE as u64)
    }

    /// Whether sends have not completed.
    pub fn has_sends(&self) -> bool {
        self.core.lock().sends.is_busy()
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

    /// Hears of every receive that completes, from whoever takes what has arrived: it is told under the lock of the VI, and calls
    /// nothing of it.
    pub fn set_alert(&self, alert: impl Fn() + Send + Sync + 'static) {
        self.core.lock().port.alert = Some(Box::new(Alert(Box::new(alert))));
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

    /// From now on the next arrival from this peer, and the next room, is news of the node. Look again after this.
    pub fn arm(&self) {
        if let Some(trunk) = self.core.first_trunk() {
            trunk.arm();
        }
    }

    /// Takes what has arrived, also if another thread is at it: then it waits for that one.
    pub fn catch_up(&self) {
        if let Some(trunk) = self.core.first_trunk() {
            trunk.touch();
            trunk.poll(true);
        }
    }

    /// Sees to connections of the NIC that have ended. `false`: this one has.
    pub fn is_connected(&self) -> bool {
        self.state() == ViState::Connected
    }

    /// The process at the other end, to be asked about at the NIC's node ([`Nic::node`]).
    pub fn peer(&self) -> Option<PeerId> {
        self.core.first_trunk().map(|trunk| trunk.peer)
    }

    /// The core on which the peer last ran.
    #[inline]
    pub fn peer_core(&self) -> u32 {
        self.core.first_trunk().map_or(u32::MAX, |trunk| trunk.peer_core())
    }
}

impl Nic {
    /// Whether something may have arrived for some VI. Takes no lock of one.
    #[inline]
    pub fn has_arrivals(&self) -> bool {
        self.core.trunks.list().iter().any(|trunk| trunk.has_news())
    }

    /// Takes what has arrived for any VI.
    pub fn take_arrivals(&self) {
        self.core.trunks.poll(|| false);
    }

    /// Has the next arrival from any peer be news of the node; look again after this, with [`catch_up`](Self::catch_up).
    pub fn arm(&self) {
        self.core.trunks.list().iter().for_each(|trunk| trunk.arm());
    }

    /// Takes everything that has arrived for any VI, also if another thread is at it.
    pub fn catch_up(&self) {
        self.core.trunks.list().iter().for_each(|trunk| trunk.poll(true));
    }
}

impl State {
    /// Whether a message can be sent whole: a receive is known, nothing waits in front of it, and there is room.
    #[inline]
    fn goes_at_once(&mut self, total: usize, spared: usize) -> bool {
        if self.sends.is_busy() || !self.may_send() {
            return false;
        }
        let Some(line) = &self.line else { return false };
        if spared > 0 && line.credits.len() <= SPARED_RECEIVES {
            return false;
        }
        let place = line.credits.front().and_then(|credit| credit.place);
        let placed = total >= DIRECT_MIN as usize
            && self.way != Way::Pio
            && place.is_some_and(|(window, _)| line.route.trunk.window(window).is_some());
        let carried = if placed { 0 } else { total };
        line.route.trunk.outward().has_room(carried + LONG + 2 * LINE + spared).unwrap_or(false)
    }
}
