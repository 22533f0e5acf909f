//! Who is let in: processes of this user and of others that are admitted, so many of each, and not too many that say nothing.

use sidestep_shm::{
    doorbell::Doorbell,
    passing::{Accepted, Credentials, Rendezvous},
};
use sidestep_sys::{discard, lock::Mutex, user};

use super::{ShmLink, session::lock};
use crate::{
    error::{CloseReason, Result},
    link::Target,
};

/// Sessions with one process, and those of them that may wait for its greeting; also with all processes that have no number
/// here. A process has one session for each name that it has connected to.
const MAX_OF_PROCESS: usize = 512;
const MAX_SILENT_OF_PROCESS: usize = 16;
/// Sessions with all processes that may wait for a greeting: for another one the oldest makes room.
const MAX_SILENT: usize = 128;
/// Sessions with all processes of one other user, and those of them that may wait for a greeting.
const MAX_OF_USER: usize = 4096;
const MAX_SILENT_OF_USER: usize = 32;
/// Connections accepted in one poll.
const ACCEPTS_A_POLL: usize = 16;

/// What a link needs to let peers in.
#[derive(Debug)]
pub(super) struct Welcome {
    /// Whose processes may be peers.
    pub(super) admits: fn(u32) -> bool,
    /// A descriptor in reserve, for turning peers away when there are no others.
    spare: Mutex<Option<Doorbell>>,
}

impl Welcome {
    pub(super) fn new(admits: fn(u32) -> bool) -> Result<Welcome> {
        Ok(Welcome { admits, spare: Mutex::new(Some(Doorbell::new()?)) })
    }
}

impl ShmLink {
    pub(super) fn accept(&self, target: &dyn Target) -> bool {
        let mut any = false;
        for _ in 0..ACCEPTS_A_POLL {
            let accepted = lock(&self.names).values().find_map(|name| {
                let accepted = name.accept(|who| self.is_welcome(who)).unwrap_or_else(|_| self.turn_away(name));
                (!matches!(accepted, Accepted::Nobody)).then_some(accepted)
            });
            let Some(accepted) = accepted else { break };
            // With no resources for another peer the lifeline closes, and the other side sees that.
            if let Accepted::Peer(lifeline) = accepted
                && let Ok(peer) = self.open(None, lifeline)
            {
                self.make_room();
                target.opened(peer);
            }
            any = true;
        }
        any
    }

    /// Whether a process that has connected may have a session: one of a user that is admitted, which has not too many already.
    fn is_welcome(&self, who: &Credentials) -> bool {
        let sessions = self.sessions.all();
        let of_process = || sessions.iter().filter(|session| session.who.pid == who.pid);
        let of_user = || sessions.iter().filter(|session| session.who.uid == who.uid);
        let crowds = || {
            of_user().count() >= MAX_OF_USER
                || of_user().filter(|session| session.is_silent()).count() >= MAX_SILENT_OF_USER
        };
        (self.welcome.admits)(who.uid)
            && of_process().count() < MAX_OF_PROCESS
            && of_process().filter(|session| session.is_silent()).count() < MAX_SILENT_OF_PROCESS
            && (user::is_own(who.uid) || !crowds())
            && !discard::is_overwhelmed()
    }

    /// Ends the session that has been silent for the longest time, if there are too many.
    fn make_room(&self) {
        let sessions = self.sessions.all();
        let mut silent = sessions.iter().filter(|session| session.is_silent());
        if let Some(oldest) = silent.next()
            && silent.count() >= MAX_SILENT
        {
            oldest.close(CloseReason::Link("it did not greet, and others are waiting"));
        }
    }

    /// No descriptor is left for another peer. With the spare one the caller is let in and turned away at once, so that it
    /// learns of it, and so that this process does not wake up for it again and again.
    fn turn_away(&self, name: &Rendezvous) -> Accepted {
        let mut spare = lock(&self.welcome.spare);
        if spare.take().is_some() {
            let _ = name.accept(|_| false);
        }
        *spare = Doorbell::new().ok();
        Accepted::Nobody
    }
}
