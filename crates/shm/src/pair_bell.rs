//! The doorbell between two processes that do not trust each other: a pipe.
//!
//! An eventfd would do, but for one thing: whoever holds it shares its flags, and could make a write to it block. A pipe
//! can be opened again by its writer ([`Ringer::attach`]), which gives flags of its own that nobody else can reach; and
//! a full pipe refuses a byte instead of waiting. The sleeper's end lies in its private epoll set, edge-triggered: every
//! byte is one edge, and bytes are only taken out now and then, so that the pipe never fills up.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fs::{Mode, OFlags, fchmod},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
};

use crate::{Error, Result};
use sidestep_sys::{descriptor, discard::discard, procfs};

/// The sleeper's side.
#[derive(Debug)]
pub struct PairBell {
    reader: OwnedFd,
    /// For the peer.
    writer: OwnedFd,
    sleeps: AtomicU32,
}

/// The side of who wakes.
#[derive(Debug)]
pub struct Ringer {
    writer: OwnedFd,
}

/// A peer rings once per sleep; the pipe holds 65,536 rings and is emptied long before.
const SLEEPS_PER_DRAIN: u32 = 1024;

impl PairBell {
    /// A new bell.
    pub fn new() -> Result<PairBell> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(|errno| Error::from_errno("make a doorbell", errno))?;
        let (reader, writer) = (descriptor::keep(reader), descriptor::keep(writer));
        Ok(PairBell { reader, writer, sleeps: AtomicU32::new(0) })
    }

    /// What the peer needs to ring.
    pub fn for_peer(&self) -> BorrowedFd<'_> {
        self.writer.as_fd()
    }

    /// Lets a peer of another user open it again, who has its descriptor; nobody else can.
    pub fn admit_others(&self) -> Result<()> {
        fchmod(&self.writer, Mode::from_raw_mode(0o666)).map_err(|errno| Error::from_errno("share a doorbell", errno))
    }

    /// Called before each sleep: empties the pipe now and then. An edge that is taken out with its byte was there before
    /// the sleeper's last look, which sees what it was about.
    pub fn before_sleep(&self) {
        if self.sleeps.fetch_add(1, Ordering::Relaxed) % SLEEPS_PER_DRAIN == SLEEPS_PER_DRAIN - 1 {
            let mut bytes = [0; 512];
            while matches!(rustix::io::read(&self.reader, &mut bytes), Ok(count) if count == bytes.len()) {}
        }
    }
}

impl AsFd for PairBell {
    /// The end to sleep on.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

impl Ringer {
    /// The bell of a peer; anything but the writing end of a pipe is refused. It is opened again, so that the peer cannot
    /// make a ring block.
    pub fn attach(received: OwnedFd) -> Result<Ringer> {
        let foreign = |_| Error::Foreign("the doorbell is not the writing end of a pipe");
        if !procfs::is_pipe(&received) {
            discard([received]);
            return Err(foreign(Errno::INVAL));
        }
        // For reading too: a pipe without a reader would kill who writes by SIGPIPE, after the peer's death.
        match procfs::open_again(&received, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC) {
            Ok(writer) => Ok(Ringer { writer: descriptor::keep(writer) }),
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
                Err(Error::from_errno("open a peer's doorbell", errno))
            }
            Err(errno) => Err(foreign(errno)),
        }
    }

    /// Rings. A bell that cannot take another ring has woken its sleeper already.
    pub fn ring(&self) {
        let _ = rustix::io::write(&self.writer, &[1]);
    }
}

impl AsFd for Ringer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.writer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::fcntl_setfl;

    use super::*;
    use crate::doorbell::{Doorbell, Sleeper, Tokens};

    fn dup(descriptor: BorrowedFd<'_>) -> OwnedFd {
        descriptor.try_clone_to_owned().unwrap()
    }

    #[test]
    fn every_ring_is_an_edge_also_beyond_what_the_pipe_holds() {
        let bell = PairBell::new().unwrap();
        let ringer = Ringer::attach(dup(bell.for_peer())).unwrap();
        let sleeper = Sleeper::new().unwrap();
        sleeper.add_doorbell(bell.as_fd(), 7).unwrap();
        let mut tokens = Tokens::new();
        for round in 0..200_000 {
            bell.before_sleep();
            ringer.ring();
            sleeper.sleep(Some(0), &mut tokens).unwrap();
            assert_eq!(*tokens, [7], "round {round}");
            sleeper.sleep(Some(0), &mut tokens).unwrap();
            assert!(tokens.is_empty(), "round {round}");
        }
    }

    #[test]
    fn a_peer_cannot_make_a_ring_block() {
        let bell = PairBell::new().unwrap();
        let ringer = Ringer::attach(dup(bell.for_peer())).unwrap();
        // The peer clears the flag of what it shares, and fills the pipe.
        while rustix::io::write(bell.for_peer(), &[0; 4096]).is_ok() {}
        fcntl_setfl(bell.for_peer(), OFlags::empty()).unwrap();
        fcntl_setfl(bell.as_fd(), OFlags::empty()).unwrap();
        ringer.ring();
    }

    #[test]
    fn a_ring_for_someone_dead_is_no_broken_pipe() {
        let bell = PairBell::new().unwrap();
        let ringer = Ringer::attach(dup(bell.for_peer())).unwrap();
        drop(bell);
        assert_eq!(rustix::io::write(ringer.as_fd(), &[1]), Ok(1));
    }

    #[test]
    fn other_descriptors_are_refused() {
        let bell = PairBell::new().unwrap();
        assert!(matches!(Ringer::attach(dup(Doorbell::new().unwrap().as_fd())), Err(Error::Foreign(_))));
        let memory = crate::Memory::create("test", 4096).unwrap();
        let pages = memory.descriptor().unwrap();
        assert!(matches!(Ringer::attach(dup(pages.as_fd())), Err(Error::Foreign(_))));
        drop(bell);
    }
}
