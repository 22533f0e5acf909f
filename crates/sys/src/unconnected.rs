//! A descriptor whose stream was taken away: the number stays the program's, and whatever it is used for is refused.

// The number is given another file behind its owner's back, by a call that no safe wrapper has for a borrowed one.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::{
    io::{Errno, FdFlags, fcntl_getfd},
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};

/// A socket that was never connected, to be put in the place of one: of a kind that says so to senders and receivers alike (`ENOTCONN`),
/// without a signal.
#[derive(Debug)]
pub struct Unconnected {
    socket: OwnedFd,
}

impl Unconnected {
    /// One for later, so that it cannot be missing then.
    pub fn new() -> Result<Unconnected, Errno> {
        Ok(Unconnected { socket: socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)? })
    }

    /// Puts it in the place of a descriptor. Copies of that descriptor stay what they are.
    pub fn put_at(self, descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
        let flags = if fcntl_getfd(descriptor)?.contains(FdFlags::CLOEXEC) { libc::O_CLOEXEC } else { 0 };
        // SAFETY: two numbers of open descriptors; the second stays open, as whoever lent it wants, and is another file.
        let answer = unsafe { libc::syscall(libc::SYS_dup3, self.socket.as_raw_fd(), descriptor.as_raw_fd(), flags) };
        if answer < 0 {
            Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
        os::fd::AsFd,
    };

    use super::*;

    #[test]
    fn whoever_uses_the_number_is_refused_and_the_stream_goes_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut near = listener.accept().unwrap().0;
        let mut kept = near.try_clone().unwrap();
        Unconnected::new().unwrap().put_at(near.as_fd()).unwrap();
        assert_eq!(near.write(b"x").unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
        assert_eq!(near.read(&mut [0]).unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
        drop(near);
        kept.write_all(b"on").unwrap();
        let mut bytes = [0; 2];
        far.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"on");
    }
}
