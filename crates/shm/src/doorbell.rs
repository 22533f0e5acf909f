//! Doorbells inside a process, and the sleep that doorbells and lifelines end.
//!
//! A doorbell is an eventfd, for waking other threads; between processes see [`crate::pair_bell`]. It is never read: it lies in the sleeper's private epoll set,
//! edge-triggered, so every ring is one edge in every set that holds it. Nobody can take a ring away from
//! another thread, and there is nothing to block on. A lifeline lies in the same set, level-triggered.

use std::{
    ops::Deref,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
};

use rustix::{
    event::{EventfdFlags, Timespec, epoll, eventfd},
    io::Errno,
};

use crate::{Error, Result};
use sidestep_sys::{
    clock,
    descriptor::keep,
    lock::{Mutex, MutexGuard},
};

/// Rung to wake another thread.
#[derive(Debug)]
pub struct Doorbell {
    descriptor: OwnedFd,
}

/// An epoll set to sleep on: a private one, or one of the program's, in which ours lie beside its own.
#[derive(Debug)]
pub struct Sleeper {
    set: OwnedFd,
    within: Option<Box<Within>>,
}

/// What lies in a set that is the program's. A set inside that set would do, too, but the kernel forgets on the way from one
/// to the other that who rings is about to sleep, and wakes the sleeper on another core.
#[derive(Debug)]
struct Within {
    /// The upper half of every token of ours.
    mark: u32,
    added: Mutex<Vec<RawFd>>,
}

/// What ended a sleep: the tokens of the descriptors that had news; empty after a time-out or a signal. It allocates nothing:
/// threads sleep where a program may not allow that.
#[derive(Debug, Clone)]
pub struct Tokens {
    all: [u64; Tokens::MOST],
    count: usize,
}

/// From here on, the lower halves of tokens that are not of peers.
const LAST_TOKENS: u32 = u32::MAX - 15;

impl Tokens {
    /// How many one sleep tells of; those that are left end the next one at once.
    const MOST: usize = 64;

    /// None.
    pub const fn new() -> Tokens {
        Tokens { all: [0; Tokens::MOST], count: 0 }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds one, as long as there is room.
    pub fn push(&mut self, token: u64) {
        if let Some(place) = self.all.get_mut(self.count) {
            (*place, self.count) = (token, self.count + 1);
        }
    }
}

impl Default for Tokens {
    fn default() -> Tokens {
        Tokens::new()
    }
}

impl Deref for Tokens {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.all[..self.count]
    }
}

impl Doorbell {
    /// A new doorbell.
    pub fn new() -> Result<Doorbell> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::from_errno("make a doorbell", errno))?;
        Ok(Doorbell { descriptor: keep(descriptor) })
    }

    /// Rings. A bell that cannot take another ring has woken its sleeper already.
    pub fn ring(&self) {
        let _ = rustix::io::write(&self.descriptor, &1u64.to_ne_bytes());
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Sleeper {
    /// An empty set.
    pub fn new() -> Result<Sleeper> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|errno| Error::from_errno("make an epoll set", errno))?;
        Ok(Sleeper { set: keep(set), within: None })
    }

    /// A set of the program's, of which this is a copy. Its tokens have `mark` for their upper half, by which whoever waits in
    /// it knows them ([`token`](Self::token)); [`sleep`](Self::sleep) is not for it. What was added is taken out at the end.
    pub fn within(set: OwnedFd, mark: u32) -> Sleeper {
        Sleeper { set, within: Some(Box::new(Within { mark, added: Mutex::default() })) }
    }

    /// Whether nothing but what was added here lies in the set.
    pub fn is_private(&self) -> bool {
        self.within.is_none()
    }

    /// The token behind what a wait in a set of the program's has told; `None`: it is not of a sleeper with this mark.
    pub fn token(told: u64, mark: u32) -> Option<u64> {
        let low = told as u32;
        // The last ones, which are not of peers, are counted from the end.
        let whole = if low >= LAST_TOKENS { u64::MAX - u64::from(u32::MAX - low) } else { u64::from(low) };
        ((told >> 32) as u32 == mark).then_some(whole)
    }

    /// Adds a doorbell: every ring from now on ends a sleep.
    pub fn add_doorbell(&self, doorbell: BorrowedFd<'_>, token: u64) -> Result<()> {
        self.add(doorbell, token, epoll::EventFlags::IN | epoll::EventFlags::ET)
    }

    /// Adds a descriptor that ends a sleep while it is readable or hung up.
    pub fn add_level(&self, descriptor: BorrowedFd<'_>, token: u64) -> Result<()> {
        self.add(descriptor, token, epoll::EventFlags::IN | epoll::EventFlags::RDHUP)
    }

    /// Adds a descriptor that ends a sleep only when its other end is gone.
    pub fn add_hang_up(&self, descriptor: BorrowedFd<'_>, token: u64) -> Result<()> {
        self.add(descriptor, token, epoll::EventFlags::RDHUP)
    }

    /// Whether a descriptor added with [`add_level`](Self::add_level) shall also end a sleep when it is writable.
    pub fn want_writable(&self, descriptor: BorrowedFd<'_>, token: u64, wanted: bool) -> Result<()> {
        let mut flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        if wanted {
            flags |= epoll::EventFlags::OUT;
        }
        epoll::modify(&self.set, descriptor, epoll::EventData::new_u64(token), flags)
            .map_err(|errno| Error::from_errno("change an epoll set", errno))
    }

    /// Takes a descriptor out of the set.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.set, descriptor);
        if let Some(within) = &self.within {
            within.added().retain(|added| *added != descriptor.as_raw_fd());
        }
    }

    /// Sleeps until a descriptor has news, the deadline (nanoseconds of [`clock::now`]) passes, or a signal
    /// arrives. A deadline in the past only looks.
    pub fn sleep(&self, deadline: Option<u64>, tokens: &mut Tokens) -> Result<()> {
        tokens.clear();
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_sub(clock::now());
            Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 }
        });
        let mut events = [std::mem::MaybeUninit::uninit(); Tokens::MOST];
        match epoll::wait(&self.set, &mut events[..], timeout.as_ref()) {
            Ok((events, _)) => {
                events.iter().for_each(|event| tokens.push(event.data.u64()));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::from_errno("sleep on an epoll set", errno)),
        }
    }

    fn add(&self, descriptor: BorrowedFd<'_>, token: u64, flags: epoll::EventFlags) -> Result<()> {
        let (token, flags) = match &self.within {
            None => (token, flags),
            // Always by edges: the program must not be woken again by what it does not see to.
            Some(within) => (u64::from(within.mark) << 32 | u64::from(token as u32), flags | epoll::EventFlags::ET),
        };
        epoll::add(&self.set, descriptor, epoll::EventData::new_u64(token), flags)
            .map_err(|errno| Error::from_errno("add to an epoll set", errno))?;
        if let Some(within) = &self.within {
            within.added().push(descriptor.as_raw_fd());
        }
        Ok(())
    }
}

impl Within {
    fn added(&self) -> MutexGuard<'_, Vec<RawFd>> {
        self.added.lock().expect("no panic while adding")
    }
}

impl Drop for Sleeper {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let Some(within) = &self.within else { return };
        for number in within.added().drain(..) {
            // SAFETY: only a number for the kernel, which finds nothing in the set behind one that has been closed meanwhile.
            let _ = epoll::delete(&self.set, unsafe { BorrowedFd::borrow_raw(number) });
        }
    }
}

impl AsFd for Sleeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
