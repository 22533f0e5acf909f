//! How each end of a connection proves to the other that it holds it, before bytes leave TCP.
//!
//! That two processes have the same user says nothing about who holds a connection, and neither does the registry, which any
//! process of the user can write. What only a holder can do is to change the socket; what the kernel tells everybody is one
//! of the values that a holder can change (SO_MAX_PACING_RATE, by `sock_diag`). So a socket has a *notice*: a number on
//! it that only its holder can write, and everybody on the host can read by the addresses of the connection.
//!
//! The notice says who speaks for the connection. Who asks writes the number of the lifeline that it asks over
//! (`Lifeline::caller`); who is asked writes the number of its rendezvous. Both are numbers of names that the kernel gives
//! to one socket at a time, and tells to the other side itself: so nobody can pass on the question or the answer
//! of another as its own. A descriptor of the connection is not passed: whoever got it would have the connection, before it has
//! proven anything; and a connection whose descriptor lies in the queue of a process that does not look does not end when
//! its program closes it.
//!
//! The notice is a rate far above what any machine reaches. It is taken back when the other side has seen it.

use sidestep_shm::passing::MAX_NUMBER;
use sidestep_sys::lock::Mutex;

use crate::{
    kernel::{
        self, SO_MAX_PACING_RATE,
        address::Key,
        diag::{Diag, Told},
    },
    streams::lock,
};

/// What a notice says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Who speaks on the lifeline with this number asks for this connection.
    Asker(u64),
    /// Who listens at the rendezvous with this number answers for it.
    Asked(u64),
}

/// Reads the notices of other processes.
#[derive(Debug, Default)]
pub struct Board {
    diag: Mutex<Option<Diag>>,
}

const MARK: u64 = 1 << 62;
const ASKED: u64 = 1 << 61;
const NO_RATE: u64 = u64::MAX;

impl Notice {
    fn rate(self) -> Option<u64> {
        let (number, bit) = match self {
            Notice::Asker(number) => (number, 0),
            Notice::Asked(number) => (number, ASKED),
        };
        (number <= MAX_NUMBER).then_some(MARK | bit | number)
    }

    /// What a rate says, if it is a notice.
    pub fn of_rate(rate: u64) -> Option<Notice> {
        let number = rate & MAX_NUMBER;
        let notice = if rate & ASKED != 0 { Notice::Asked(number) } else { Notice::Asker(number) };
        (notice.rate() == Some(rate)).then_some(notice)
    }

    /// Puts it on a socket of this process. `false`: the program uses what it would be written to.
    pub fn put(self, fd: i32) -> bool {
        let Some(rate) = self.rate() else { return false };
        let now = kernel::option64(fd, libc::SOL_SOCKET, SO_MAX_PACING_RATE);
        now.is_ok_and(|now| now == NO_RATE || is_notice(now)) && set(fd, rate)
    }
}

/// Takes a notice back, if there is one.
pub fn take_back(fd: i32) {
    if kernel::option64(fd, libc::SOL_SOCKET, SO_MAX_PACING_RATE).is_ok_and(is_notice) {
        set(fd, NO_RATE);
    }
}

impl Board {
    /// What the kernel tells of the socket with this key, which is another process's.
    pub fn look(&self, key: &Key) -> Option<Told> {
        let mut diag = lock(&self.diag);
        if !diag.as_ref().is_some_and(|diag| diag.covers(key)) {
            // The first question, or a thread that is in another network namespace than the one before.
            *diag = Diag::open().filter(|diag| diag.covers(key));
        }
        diag.as_ref().and_then(|diag| diag.ask(key))
    }

    /// Whether the socket with this key, which is another process's, has this notice.
    pub fn has(&self, key: &Key, notice: Notice) -> bool {
        self.look(key).is_some_and(|told| Some(told.rate) == notice.rate())
    }
}

fn is_notice(rate: u64) -> bool {
    rate != NO_RATE && rate & MARK != 0
}

fn set(fd: i32, rate: u64) -> bool {
    kernel::set_option(fd, libc::SOL_SOCKET, SO_MAX_PACING_RATE, &rate.to_ne_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        os::fd::AsRawFd,
    };

    use super::*;

    #[test]
    fn a_notice_is_read_by_the_other_end_until_it_is_taken_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        let board = Board::default();
        let key = Key::of(far.as_raw_fd()).unwrap().reversed();
        assert!(!board.has(&key, Notice::Asker(7)));
        assert!(Notice::Asker(7).put(near.as_raw_fd()));
        assert!(board.has(&key, Notice::Asker(7)));
        assert_eq!(board.look(&key).and_then(|told| Notice::of_rate(told.rate)), Some(Notice::Asker(7)));
        assert!(!board.has(&key, Notice::Asked(7)) && !board.has(&key, Notice::Asker(8)));
        assert!(!board.has(&key.reversed(), Notice::Asker(7)), "the other end has none");
        take_back(near.as_raw_fd());
        assert!(!board.has(&key, Notice::Asker(7)));
    }

    #[test]
    fn a_rate_of_the_programs_own_stays() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(set(near.as_raw_fd(), 1_000_000));
        assert!(!Notice::Asker(7).put(near.as_raw_fd()));
        take_back(near.as_raw_fd());
        assert_eq!(kernel::option64(near.as_raw_fd(), libc::SOL_SOCKET, SO_MAX_PACING_RATE), Ok(1_000_000));
        assert!(!Notice::Asker(MAX_NUMBER + 1).put(near.as_raw_fd()));
        assert_eq!([1_000_000, NO_RATE, 0].map(Notice::of_rate), [None; 3]);
    }
}
