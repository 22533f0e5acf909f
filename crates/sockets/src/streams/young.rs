//! A stream that is too young to be promoted, the only kind that a short connection ever is: its calls are the kernel's, and
//! there is nothing else to begin or to end.

use std::sync::atomic::Ordering;

use crate::{
    descriptors::table::{self, Change},
    kernel::{self, signal::Inside},
    processes::custody,
    promotion::engine,
    streams::{READ, Stream, WRITE},
};

impl Stream {
    /// A call that does not wait: one of the kernel's, under the lock of its direction. So it is over before the direction is
    /// opened for a ring, announces a switch, or is used again. `None`: the stream has grown older meanwhile, or the number
    /// leads elsewhere.
    #[inline]
    pub fn call_at_once(
        &self,
        fd: i32,
        direction: usize,
        call: impl FnOnce(i32) -> kernel::Result<usize>,
    ) -> Option<kernel::Result<usize>> {
        let _inside = Inside::enter();
        let _reader = (direction == READ).then(|| self.reader.lock());
        let _writer = (direction == WRITE).then(|| self.writer.lock());
        if !self.is_young() || !table::slot(fd).is_some_and(|slot| slot.is(self)) {
            return None;
        }
        let outcome = call(self.fd());
        if let Ok(bytes) = outcome {
            self.count(direction, bytes);
        }
        Some(outcome)
    }

    /// The program shuts the writing direction down. `None`: the stream has grown older.
    pub fn shut_young(&self) -> Option<kernel::Result<()>> {
        let _writer = self.writer.lock();
        // SeqCst: this sees an offer, or whoever takes up its carrier sees that nothing more is sent.
        self.ends.sends_no_more.store(true, Ordering::SeqCst);
        if !self.is_young() {
            return None;
        }
        self.ends.writes_over.store(true, Ordering::Relaxed);
        self.ends.is_shut.store(true, Ordering::Relaxed);
        self.edges.stirs.fetch_add(1, Ordering::Relaxed);
        let outcome = kernel::shutdown(self.fd(), libc::SHUT_WR);
        engine::told_kernel();
        Some(outcome)
    }

    /// Waits for calls that are under way: each is short, and later ones find that the number leads elsewhere. `true`: the
    /// stream has never been more than young.
    pub(super) fn has_stayed_young(&self) -> bool {
        !self.has_grown() && {
            drop((self.reader.lock(), self.writer.lock()));
            !self.has_grown()
        }
    }

    /// The end of such a stream: there is nothing to give back but itself. It may be used again before the anchor is closed,
    /// which is a descriptor like any other by then.
    pub(super) fn end_young(&'static self, change: Option<Change>) -> kernel::Result<()> {
        let fd = self.fd();
        custody::releasing(fd);
        sidestep_sys::descriptor::closed(fd);
        table::recycle_stream(self);
        drop(change);
        let closed = kernel::close(fd);
        engine::told_kernel();
        closed
    }
}
