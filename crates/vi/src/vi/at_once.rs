//! Sends that go out at once or not at all: for callers that keep their messages themselves while there is no room.

use crate::{
    code::ViState,
    descriptor::Descriptor,
    entry::{LINE, LONG},
    error::{Error, Result},
    vi::{
        FlowControl, Vi, Way,
        item::DIRECT_MIN,
        send::{SMALL, SPARED_RECEIVES},
        state::State,
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

    /// Whether sends have not completed.
    pub fn has_sends(&self) -> bool {
        self.core.lock().sends.is_busy()
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
