//! The numbers that lead to a stream, the calls that use it, and its end with the last of both.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use sidestep_sys::lock::Mutex;

use crate::{
    descriptors::table::{self, Change},
    kernel::{self, signal::Inside},
    processes::custody,
    promotion::engine,
    readiness::{
        asking,
        jump::{self, Note, What},
    },
    streams::{READ, STANDARD, Stage, Stream, lock, reader::Reader, writer::Writer},
};

/// The numbers that lead to a stream, and the calls that use it.
#[derive(Debug)]
pub(super) struct Names {
    /// A descriptor number of the anchor.
    pub fd: AtomicI32,
    /// All descriptor numbers of the program that lead here, if there were ever several: else there is the one above.
    numbers: Mutex<Vec<i32>>,
    had_copies: AtomicBool,
    /// Calls that are asleep, or in the kernel, and use the anchor.
    users: AtomicU32,
    /// The program has closed it; the last user closes the anchor.
    orphan: AtomicBool,
}

impl Default for Names {
    fn default() -> Names {
        Names {
            fd: AtomicI32::new(-1),
            numbers: Mutex::default(),
            had_copies: AtomicBool::new(false),
            users: AtomicU32::new(0),
            orphan: AtomicBool::new(false),
        }
    }
}

impl Names {
    pub fn begin(&self, fd: i32) {
        self.fd.store(fd, Ordering::Relaxed);
        self.had_copies.store(false, Ordering::Relaxed);
        self.users.store(0, Ordering::Relaxed);
        self.orphan.store(false, Ordering::Relaxed);
    }
}

/// A call that may sleep is under way.
#[derive(Debug)]
pub struct InUse(&'static Stream, Note);

impl Drop for InUse {
    #[inline]
    fn drop(&mut self) {
        let _inside = Inside::enter();
        if jump::strike(self.1) {
            self.0.drop_user();
        }
    }
}

/// A call uses the stream and sits in the kernel for one direction, from its beginning to its end.
#[derive(Debug)]
pub struct Passing(&'static Stream, usize, Note);

impl Passing {
    /// The call has carried so many bytes.
    pub fn end(self, bytes: usize) {
        let _inside = Inside::enter();
        if jump::strike(self.2) {
            self.0.count(self.1, bytes);
            self.0.leave_kernel(self.1);
            self.0.drop_user();
            has_waited(self.1);
        }
        std::mem::forget(self);
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        Passing(self.0, self.1, self.2).end(0);
    }
}

/// A call sits in the kernel for one direction.
#[derive(Debug)]
pub struct InKernel(&'static Stream, usize, Note);

impl InKernel {
    /// The call has carried so many bytes.
    pub fn end(self, bytes: usize) {
        let _inside = Inside::enter();
        if jump::strike(self.2) {
            self.0.count(self.1, bytes);
            self.0.leave_kernel(self.1);
            has_waited(self.1);
        }
        std::mem::forget(self);
    }
}

impl Drop for InKernel {
    fn drop(&mut self) {
        InKernel(self.0, self.1, self.2).end(0);
    }
}

/// A call that may wait has ended: if it was to read, the thread has had its answer.
fn has_waited(direction: usize) {
    if direction == READ {
        asking::awaits();
    }
}

impl Stream {
    /// Another number leads here.
    pub fn add_number(&self, fd: i32) {
        let mut numbers = lock(&self.names.numbers);
        if !self.names.had_copies.swap(true, Ordering::Relaxed) {
            numbers.clear();
            numbers.push(self.fd());
        }
        numbers.push(fd);
    }

    /// Whether a single number has led here, ever.
    pub fn had_one_number(&self) -> bool {
        !self.names.had_copies.load(Ordering::Relaxed)
    }

    /// Its number was chosen by another program, which may have copied it there.
    pub fn set_inherited(&self) {
        self.names.had_copies.store(true, Ordering::Relaxed);
        *lock(&self.names.numbers) = vec![self.fd()];
    }

    /// Whether it was copied to standard input, output or error, which libc reads and writes by itself. A socket that the program
    /// itself made there, because it had closed them, is one like others.
    pub fn is_standard(&self) -> bool {
        !self.had_one_number() && lock(&self.names.numbers).iter().any(|fd| *fd <= STANDARD)
    }

    /// A number leads here no more. `true`: it was the last one.
    pub fn drop_number(&self, fd: i32) -> bool {
        if self.had_one_number() {
            return true;
        }
        let mut numbers = lock(&self.names.numbers);
        numbers.retain(|number| *number != fd);
        if let Some(other) = numbers.first() {
            self.names.fd.store(*other, Ordering::Relaxed);
        }
        numbers.is_empty()
    }

    /// Begins a call that may sleep: the anchor stays until it has ended, also if the program closes the descriptor.
    pub fn in_use(&'static self) -> InUse {
        let _inside = Inside::enter();
        self.names.users.fetch_add(1, Ordering::SeqCst);
        InUse(self, jump::note(What::Use(self)))
    }

    /// A call has ended. Inside.
    pub fn drop_user(&'static self) {
        if self.names.users.fetch_sub(1, Ordering::SeqCst) == 1 && self.names.orphan.load(Ordering::SeqCst) {
            self.end_orphan();
        }
    }

    /// Begins a call that sits in the kernel for a direction, without a lock.
    pub fn in_kernel(&'static self, direction: usize) -> InKernel {
        let _inside = Inside::enter();
        self.enter_kernel(direction);
        InKernel(self, direction, jump::note(What::InKernel(self, direction)))
    }

    /// Both of these at once, for a call that does nothing else.
    pub fn in_passing(&'static self, direction: usize) -> Passing {
        let _inside = Inside::enter();
        self.names.users.fetch_add(1, Ordering::SeqCst);
        self.enter_kernel(direction);
        Passing(self, direction, jump::note_each([What::Use(self), What::InKernel(self, direction)].into_iter()))
    }

    /// A call that sat in the kernel was left by a jump. What the kernel carried last may not have been counted: the kernel has.
    #[cold]
    pub fn left_kernel(&'static self, direction: usize) {
        let others = self.leave_kernel(direction) != 1;
        if let Some(_both) = self.try_both()
            && !others
            && let Ok(Some((read, written))) = kernel::counts::of(self.fd())
        {
            self.recover_tcp(direction, [read, written][direction]);
        }
    }

    #[cold]
    fn end_orphan(&'static self) {
        let _inside = Inside::enter();
        let change = table::change();
        if self.names.users.load(Ordering::SeqCst) == 0 && self.names.orphan.swap(false, Ordering::SeqCst) {
            let _ = self.end(Some(change));
        }
    }

    /// The program has closed its last number, which is still open and leads nowhere by now. Under the lock of the table,
    /// which is given back before anything is waited for.
    pub fn close(&'static self, change: Change) -> kernel::Result<()> {
        let fd = self.fd();
        if self.names.users.load(Ordering::SeqCst) > 0 {
            // Calls are under way. The anchor moves away, so that none of them touches a number that is used again.
            if let Ok(moved) = kernel::duplicate_high(fd) {
                self.names.fd.store(moved, Ordering::SeqCst);
                self.names.orphan.store(true, Ordering::SeqCst);
                return kernel::close(fd);
            }
        }
        self.end(Some(change))
    }

    /// Its last number is about to lead elsewhere, by someone else's doing. Under the lock of the table.
    pub fn detach(&'static self, fd: i32) {
        // The other end must not find the carrier gone before the end of the stream: a copy keeps the anchor meanwhile.
        if let Ok(moved) = kernel::duplicate_high(fd) {
            self.names.fd.store(moved, Ordering::SeqCst);
            if self.names.users.load(Ordering::SeqCst) > 0 {
                self.names.orphan.store(true, Ordering::SeqCst);
                return;
            }
        }
        // A copy is closed: nothing is waited for.
        let _ = self.end(None);
    }

    /// Its last number was closed unseen, past the library, and the anchor with it. Under the lock of the table.
    pub fn lose(&'static self) {
        // Whatever has the number now is not touched.
        self.names.fd.store(-1, Ordering::SeqCst);
        if self.names.users.load(Ordering::SeqCst) > 0 {
            self.names.orphan.store(true, Ordering::SeqCst);
        } else {
            let _ = self.end(None);
        }
    }

    /// Before this process closes its last descriptor, or ends: tells the peer of the end, unless other holders go on.
    pub fn tell_end(&self, reader: &mut Reader, writer: &mut Writer) {
        if self.family.shared.load(Ordering::Relaxed) && self.has_others() {
            // Neither a reset nor the peer's word for the end: the stream goes on.
            reader.surrender(self);
        } else if self.stage() == Stage::Carried {
            reader.unshare(self);
            reader.end(self);
            writer.end(self);
        }
        if self.heirloom().is_some_and(|heirloom| heirloom.unread() > 0) && !self.has_others() {
            // Bytes that nobody will read are a reset, as on TCP.
            kernel::reset_at_close(self.fd());
        }
    }

    /// Closes the anchor and gives everything back. Nobody finds the stream any more: no number leads to it, no set has it,
    /// and it is not used again before this has ended.
    ///
    /// With SO_LINGER the kernel's `close` waits for the peer. It is made without the lock of the table, so that other
    /// threads go on. The number is free as soon as it begins; whoever is given it next finds that it leads nowhere.
    fn end(&'static self, change: Option<Change>) -> kernel::Result<()> {
        if self.has_stayed_young() {
            return self.end_young(change);
        }
        self.publish_counts();
        let fd = self.fd();
        let cookie = kernel::cookie(fd).ok();
        {
            let (mut reader, mut writer) = (self.reader(), self.writer());
            self.tell_end(&mut reader, &mut writer);
        }
        // A call that is under way in another thread uses nothing of the record any more (C4).
        self.reader().disinherit();
        self.forget_heirloom();
        custody::releasing(fd);
        sidestep_sys::descriptor::closed(fd);
        let again = change.is_some();
        drop(change);
        // The anchor first: who finds the carrier gone must find the end of the stream behind it.
        let closed = kernel::close(fd);
        engine::told_kernel();
        let (ring, carrier) = (self.reader().take_ring(), self.carrier());
        self.retire(cookie, ring, carrier);
        *self.reader() = Reader::default();
        *self.writer() = Writer::default();
        let place = lock(&self.place).take();
        if let Some(place) = place {
            place.engine.forget(&place.key);
            place.engine.registry.add_totals(place.engine.process, place.entry);
            place.engine.registry.remove(place.entry);
        }
        self.carriage.end();
        self.promotion.stage.store(Stage::Never as u8, Ordering::Release);
        // Under the lock, so that no process forks with the list half changed.
        let _change = again.then(table::change);
        table::recycle_stream(self);
        closed
    }
}
