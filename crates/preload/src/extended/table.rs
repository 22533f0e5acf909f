//! What the extended sockets of this process are, by the numbers that a C program knows them by.
//!
//! A forked child begins with an empty table; the parent's is left alone, with all that it holds.

use std::{
    collections::HashMap,
    os::fd::BorrowedFd,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicPtr, AtomicU32, Ordering},
    },
};

use libc::c_int;
use sidestep_extended::{Completion, CompletionQueue, Error, Options, Region, Remote, Socket, Stack};
use sidestep_sys::{
    lock::{Guard, Lock},
    slab::Slab,
};

/// The table of one process.
pub struct Table {
    stack: OnceLock<Stack>,
    generation: u32,
    entries: Lock<Entries>,
}

/// Its entries.
#[derive(Default)]
pub struct Entries {
    /// By descriptor: a look-up is one load, since operations take tens of nanoseconds.
    sockets: Vec<Option<Arc<Socket>>>,
    pub queues: HashMap<c_int, CompletionQueue>,
    /// By numbers that are given out once.
    pub regions: Slab<Region, u64>,
    pub remotes: Slab<Arc<Remote>, u64>,
    /// Descriptors of sockets, by their number in completions.
    numbers: HashMap<u64, c_int>,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());
/// How many descriptors the table knows: `close` looks at this alone where there are none.
static KNOWN: AtomicU32 = AtomicU32::new(0);

/// The table of this process.
pub fn table() -> &'static Table {
    let generation = sidestep_extended::generation();
    let now = TABLE.load(Ordering::Acquire);
    // SAFETY: null, or a table that was leaked below.
    match unsafe { now.as_ref() } {
        Some(table) if table.generation == generation => table,
        _ => renew(now, generation),
    }
}

#[cold]
fn renew(before: *mut Table, generation: u32) -> &'static Table {
    let made = Table { stack: OnceLock::new(), generation, entries: Lock::default() };
    let made = Box::into_raw(Box::new(made));
    KNOWN.store(0, Ordering::Relaxed);
    match TABLE.compare_exchange(before, made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it is never freed: a child's parent goes on with it, and other threads may be in it.
        Ok(_) => unsafe { &*made },
        Err(other) => {
            // SAFETY: nobody else has seen this one.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: as for `Ok`; what another thread has put there is of this process.
            unsafe { &*other }
        }
    }
}

/// A descriptor is closed, or becomes another file's.
#[inline]
pub fn closed(fd: c_int) {
    if KNOWN.load(Ordering::Relaxed) > 0 {
        forget(fd..=fd);
    }
}

/// The same for all of a range.
pub fn closed_range(first: u32, last: u32) {
    if KNOWN.load(Ordering::Relaxed) > 0 {
        forget(c_int::try_from(first).unwrap_or(c_int::MAX)..=c_int::try_from(last).unwrap_or(c_int::MAX));
    }
}

#[cold]
fn forget(fds: std::ops::RangeInclusive<c_int>) {
    // A child of `vfork` has this memory, and closes descriptors of its own.
    if sidestep_sockets::signal::is_inside() || crate::child::runs() {
        return;
    }
    let _inside = sidestep_sockets::signal::Inside::enter();
    let mut entries = table().entries();
    let first = (*fds.start()).max(0) as usize;
    let known = entries.sockets.iter_mut().enumerate().skip(first).take_while(|(fd, _)| fds.contains(&(*fd as c_int)));
    let gone: Vec<_> = known.filter_map(|(_, socket)| socket.take()).collect();
    let queues: Vec<_> = entries.queues.extract_if(|fd, _| fds.contains(fd)).collect();
    entries.numbers.retain(|_, fd| !fds.contains(fd));
    count(&entries);
    // Ended without the lock: the peer is told.
    drop(entries);
    drop((gone, queues));
}

fn count(entries: &Entries) {
    KNOWN.store((entries.numbers.len() + entries.queues.len()) as u32, Ordering::Relaxed);
}

impl Table {
    /// The stack, made when it is first needed.
    pub fn stack(&self) -> Result<&Stack, Error> {
        if self.stack.get().is_none() {
            let _ = self.stack.set(Stack::with(Options::from_environment()?)?);
        }
        Ok(self.stack.get().expect("set above, by this thread or another"))
    }

    /// The entries, until the guard is dropped: nothing that waits may be done meanwhile.
    #[inline]
    pub fn entries(&self) -> Guard<'_, Entries> {
        self.entries.lock()
    }

    pub fn add_socket(&self, fd: c_int, socket: Socket) {
        let mut entries = self.entries();
        entries.numbers.retain(|_, known| *known != fd);
        entries.numbers.insert(socket.number(), fd);
        let place = fd.max(0) as usize;
        if entries.sockets.len() <= place {
            entries.sockets.resize(place + 1, None);
        }
        let before = entries.sockets[place].replace(Arc::new(socket));
        count(&entries);
        drop(entries);
        drop(before);
    }

    pub fn add_queue(&self, fd: c_int, queue: CompletionQueue) {
        let mut entries = self.entries();
        entries.queues.insert(fd, queue);
        count(&entries);
    }

    /// The descriptor that a completion is of; -1 if it is closed.
    pub fn fd_of(&self, completion: &Completion) -> c_int {
        self.entries().numbers.get(&completion.socket).copied().unwrap_or(-1)
    }
}

impl Entries {
    /// The extended socket of a descriptor.
    #[inline]
    pub fn socket(&self, fd: c_int) -> Option<&Arc<Socket>> {
        self.sockets.get(usize::try_from(fd).ok()?)?.as_ref()
    }
}

/// A descriptor of the program's, for the length of a call.
pub fn borrowed(fd: c_int) -> Option<BorrowedFd<'static>> {
    // SAFETY: P4: a number that is not -1; the kernel says what it is.
    (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
}
