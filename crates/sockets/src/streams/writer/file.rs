//! Files that are sent: what the kernel has of them in memory goes straight into a ring.

use std::sync::atomic::Ordering;

use sidestep_shm::cached::CachedFile;
use sidestep_stream::carrier::Outbound;

use super::{BROKEN, Step, Writer};
use crate::{kernel::Result, registry::reason::Reason, streams::Stream};

impl Writer {
    /// Reads a file straight into the ring, if all that [`step`](Self::step) sees to has been seen to. Zero: `step` must do it.
    pub fn push_file(
        &mut self,
        stream: &Stream,
        file: &CachedFile,
        offset: Option<u64>,
        count: usize,
    ) -> Result<usize> {
        let plain = self.may_give_way() || stream.carriage.tapped.load(Ordering::Relaxed);
        if self.ring.is_none() || plain || self.step(stream, &[], true)? != Step::Sent(0) {
            return Ok(0);
        }
        let Some(ring) = &mut self.ring else { return Ok(0) };
        let outcome = ring.send_file(file, offset, count);
        let Some(count) = self.pushed(outcome)? else {
            // The file may have been read on: these bytes are on their way, and go over TCP.
            self.back = self.ring.as_mut().map_or(Ok(Vec::new()), Outbound::recall).map_err(|_| BROKEN)?;
            let count = self.back.len();
            self.close(stream, Reason::Demoted)?;
            return Ok(count);
        };
        if count > 0 {
            self.patience.moved();
            self.look_after(stream)?;
        }
        Ok(count)
    }

    /// Whether a file that is sent without waiting must wait for space. Servers that send files so go on when they are told of
    /// space, and do not rely on how much a connection takes: the ring gives way only if its reader stands still for long.
    pub fn is_full_for_file(&mut self, stream: &Stream) -> Result<bool> {
        let within = || stream.record().writing().is_within();
        if !within() || self.may_give_way() || self.space() > 0 || self.is_frozen()? {
            return Ok(false);
        }
        self.adopt_larger();
        self.check(stream)?;
        let Some(carrier) = self.carrier.as_ref().filter(|_| within()) else { return Ok(false) };
        Ok(!self.patience.has_stalled(carrier, false) && self.space() == 0)
    }
}
