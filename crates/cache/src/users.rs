//! Which user is at the other end of a UNIX socket, and whose may change documents.

use std::{io, os::unix::net::UnixStream};

use sidestep_sys::user;
use tokio::{net::UnixStream as Asked, runtime::Runtime};

/// The users who may change documents: that of this process, root, and those that were named.
#[derive(Debug, Default)]
pub struct Users {
    named: Vec<u32>,
}

/// Asks the kernel who made the other end of a socket. The standard library cannot, and tokio does so in a runtime only.
#[derive(Debug)]
pub(crate) struct PeerUser(Runtime);

const ROOT: u32 = 0;

impl Users {
    /// Also these, by number. One that stands for all users without a number here is not let in.
    pub fn also(named: &[u32]) -> Users {
        Users { named: named.iter().copied().filter(|named| *named != user::overflow()).collect() }
    }

    /// Whether a user, as the kernel shows it, is one of them.
    pub fn have(&self, uid: u32) -> bool {
        uid == ROOT || user::is_own(uid) || self.named.contains(&uid)
    }
}

impl PeerUser {
    /// Takes a descriptor or two.
    pub(crate) fn new() -> io::Result<PeerUser> {
        Ok(PeerUser(tokio::runtime::Builder::new_current_thread().enable_io().build()?))
    }

    /// The user who called `connect` or `listen` for the other end.
    pub(crate) fn of(&self, stream: &UnixStream) -> io::Result<u32> {
        let _inside = self.0.enter();
        stream.set_nonblocking(true)?;
        let peer = Asked::from_std(stream.try_clone()?)?.peer_cred()?;
        stream.set_nonblocking(false)?;
        Ok(peer.uid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_root_and_named_users_are_let_in() {
        let (own, overflow) = (rustix::process::geteuid().as_raw(), user::overflow());
        let users = Users::also(&[12_345, overflow]);
        for (uid, expected) in [(own, true), (ROOT, true), (12_345, true), (12_346, false), (overflow, false)] {
            assert_eq!(users.have(uid), expected || user::is_own(uid), "{uid}");
        }
        assert!(!Users::default().have(12_345));
    }

    #[test]
    fn the_kernel_tells_who_is_at_the_other_end() {
        let (one, other) = UnixStream::pair().unwrap();
        let asked = PeerUser::new().unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert_eq!((asked.of(&one).unwrap(), asked.of(&other).unwrap()), (own, own));
    }
}
