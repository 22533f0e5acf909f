//! The numbers that lead to a stream, the calls that use it, and its end with the last of both.

use std::sync::atomic::Ordering;

use crate::{
    engine, kernel,
    reader::Reader,
    signal::Inside,
    stream::{Stage, Stream, lock},
    table,
    writer::Writer,
};

/// A call that may sleep is under way.
#[derive(Debug)]
pub struct InUse(&'static Stream);

impl Drop for InUse {
    #[inline]
    fn drop(&mut self) {
        if self.0.users.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.orphan.load(Ordering::SeqCst) {
            self.0.end_orphan();
        }
    }
}

impl Stream {
    /// Another number leads here.
    pub fn add_number(&self, fd: i32) {
        self.had_copies.store(true, Ordering::Relaxed);
        lock(&self.numbers).push(fd);
    }

    /// Whether a single number has led here, ever.
    pub fn had_one_number(&self) -> bool {
        !self.had_copies.load(Ordering::Relaxed)
    }

    /// A number leads here no more. `true`: it was the last one.
    pub fn drop_number(&self, fd: i32) -> bool {
        let mut numbers = lock(&self.numbers);
        numbers.retain(|number| *number != fd);
        if let Some(other) = numbers.first() {
            self.fd.store(*other, Ordering::Relaxed);
        }
        numbers.is_empty()
    }

    /// Begins a call that may sleep: the anchor stays until it has ended, also if the program closes the descriptor.
    pub fn in_use(&'static self) -> InUse {
        self.users.fetch_add(1, Ordering::SeqCst);
        InUse(self)
    }

    #[cold]
    fn end_orphan(&'static self) {
        let _inside = Inside::enter();
        let _change = table::change();
        if self.users.load(Ordering::SeqCst) == 0 && self.orphan.swap(false, Ordering::SeqCst) {
            let _ = self.end();
        }
    }

    /// The program has closed its last number, which is still open. Under the lock of the table.
    pub fn close(&'static self) -> kernel::Result<()> {
        let fd = self.fd();
        if self.users.load(Ordering::SeqCst) > 0 {
            // Calls are under way. The anchor moves away, so that none of them touches a number that is used again.
            if let Ok(moved) = kernel::duplicate_high(fd) {
                self.fd.store(moved, Ordering::SeqCst);
                self.orphan.store(true, Ordering::SeqCst);
                return kernel::close(fd);
            }
        }
        self.end()
    }

    /// Its last number is about to lead elsewhere, by someone else's doing. Under the lock of the table.
    pub fn detach(&'static self, fd: i32) {
        // The other end must not find the carrier gone before the end of the stream: a copy keeps the anchor meanwhile.
        if let Ok(moved) = kernel::duplicate_high(fd) {
            self.fd.store(moved, Ordering::SeqCst);
            if self.users.load(Ordering::SeqCst) > 0 {
                self.orphan.store(true, Ordering::SeqCst);
                return;
            }
        }
        let _ = self.end();
    }

    /// Closes the anchor and gives everything back.
    fn end(&'static self) -> kernel::Result<()> {
        self.publish_counts();
        let fd = self.fd();
        let (mut reader, mut writer) = (self.reader(), self.writer());
        if self.stage() == Stage::Carried {
            reader.end(self);
            writer.end(self);
        }
        crate::custody::releasing(fd);
        sidestep_shm::descriptor::closed(fd);
        // The anchor first: who finds the carrier gone must find the end of the stream behind it.
        let closed = kernel::close(fd);
        engine::told_kernel();
        *reader = Reader::default();
        *writer = Writer::default();
        if let Some(place) = lock(&self.place).take() {
            place.engine.forget(&place.key);
            place.engine.registry.add_totals(place.engine.process, place.entry);
            place.engine.registry.remove(place.entry);
        }
        *lock(&self.inbox) = None;
        *lock(&self.carrier) = None;
        self.stage.store(Stage::Never as u8, Ordering::Release);
        table::recycle_stream(self);
        closed
    }
}
