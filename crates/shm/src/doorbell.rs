//! Doorbells inside a process, and the sleep that doorbells and lifelines end.
//!
//! A doorbell is an eventfd, for waking other threads; between processes see [`crate::pair_bell`]. It is never read: it lies in the sleeper's private epoll set,
//! edge-triggered, so every ring is one edge in every set that holds it. Nobody can take a ring away from
//! another thread, and there is nothing to block on. A lifeline lies in the same set, level-triggered.

use std::{
    ops::Deref,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    event::{EventfdFlags, Timespec, epoll, eventfd},
    io::Errno,
};

use crate::{Error, Result};
use sidestep_sys::{clock, descriptor::keep};

/// Rung to wake another thread.
#[derive(Debug)]
pub struct Doorbell {
    descriptor: OwnedFd,
}

/// A private epoll set to sleep on.
#[derive(Debug)]
pub struct Sleeper {
    set: OwnedFd,
}

/// What ended a sleep: the tokens of the descriptors that had news; empty after a time-out or a signal. It allocates nothing:
/// threads sleep where a program may not allow that.
#[derive(Debug, Clone)]
pub struct Tokens {
    all: [u64; Tokens::MOST],
    count: usize,
}

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
        Ok(Sleeper { set: keep(set) })
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
        epoll::add(&self.set, descriptor, epoll::EventData::new_u64(token), flags)
            .map_err(|errno| Error::from_errno("add to an epoll set", errno))
    }
}

impl AsFd for Sleeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
