//! Polling a link: of many streams the one that was heard last is looked at first, by a read, and all of them now and then,
//! by a look at their descriptors. When that one has said nothing for a while, it is treated like the others, so that peers that
//! are silent cost other links of the node next to nothing.

use std::sync::{Arc, atomic::Ordering};

use sidestep_shm::doorbell::Tokens;
use sidestep_sys::cpu;

use super::{
    BELL, IwarpLink, TIMER,
    listeners::LISTENER,
    session::{Around, Found, Origin, Session},
};
use crate::link::{PeerNumber, Target};

/// What the thread that polls keeps from one poll to the next.
#[derive(Debug, Default)]
pub(super) struct Polling {
    tokens: Tokens,
    /// The session that was heard last: the next news is most likely its own, and a read tells sooner than a look at all
    /// descriptors.
    hot: Option<Arc<Session>>,
    /// Looks at it in a row that found nothing.
    vain: u32,
    /// When all descriptors were looked at, in ticks, and whether there was no peer.
    looked: u64,
    is_alone: bool,
    /// Polls since all descriptors were looked at, and how many of them may be.
    partial: u32,
    most_partial: u32,
    /// How often a peer was heard.
    heard: u32,
    /// Times in a row that the session was heard which was heard last.
    streak: u32,
    /// The session whose stream ends no sleep: it is the one that was heard last.
    muted: Option<Arc<Session>>,
}

/// Peers that may be in set-up; a further one takes the place of the first.
const MAX_SILENT: usize = 128;
/// Peers accepted in one poll.
const ACCEPTS_A_POLL: usize = 16;
/// Polls of one session before all descriptors are looked at again: where there are others, and where only new peers and
/// the timer can be found.
const PARTIAL_POLLS: u32 = 16;
const LONELY_POLLS: u32 = 128;
/// Looks in vain at the session that was heard last before it is one like the others: some round trips' worth.
const VAIN_LOOKS: u32 = 256;
/// Polls and ticks between looks at all descriptors while no session has been heard for a while: about 10 us at 3 GHz, as much
/// as a packet takes to come.
const SILENT_POLLS: u32 = 64;
const SILENT_TICKS: u64 = 1 << 15;
/// A session is heard so often in a row before its stream is muted: an epoll set costs whoever sends to it.
const STREAK: u32 = 32;
/// A peer is heard so often before its core is looked at again.
const HEARD_A_LOOK: u32 = 16;

impl Polling {
    /// Whether all descriptors are to be looked at though nobody was heard for a while: other links of the node need not wait
    /// for the kernel each time. A program that polls seldom finds what has come at the next poll.
    fn is_look_due(&self) -> bool {
        if self.is_alone {
            return self.partial >= PARTIAL_POLLS;
        }
        let ticks = cpu::ticks().wrapping_sub(self.looked);
        (self.partial >= SILENT_POLLS && ticks >= SILENT_TICKS) || cpu::is_long(ticks)
    }
}

impl IwarpLink {
    /// Takes in what there is: of the session that was heard last, now and then of all, and with `kernel` in any case unless
    /// that one has something.
    pub(super) fn look_around(&self, polling: &mut Polling, target: &dyn Target, kernel: bool) -> bool {
        let around = self.around();
        let mut any = self.look_at_due(target);
        polling.tokens.clear();
        if let Some(session) = polling.hot.take() {
            let found = self.look_closely(&session, around, target);
            polling.tokens.push(u64::from(session.id.0));
            if found.any {
                any = true;
                polling.vain = 0;
                polling.streak += 1;
                self.note_core(&mut polling.heard, &session);
            } else {
                polling.vain += 1;
            }
            polling.hot = Some(session).filter(|_| !found.over && polling.vain < VAIN_LOOKS);
            polling.partial += 1;
            if (found.any || !kernel) && polling.hot.is_some() && polling.partial < polling.most_partial {
                if self.holding.len() > usize::from(found.is_held) {
                    self.holding.grow_old(around, &polling.tokens);
                }
                return any;
            }
        }
        let is_silent = polling.hot.is_none() && polling.muted.is_none() && !any && !kernel;
        if is_silent && !polling.is_look_due() {
            polling.partial += 1;
            self.holding.grow_old(around, &polling.tokens);
            return false;
        }
        polling.partial = 0;
        let peers = self.sessions.read().expect("no panic in session table").len();
        polling.most_partial = if peers == 1 { LONELY_POLLS } else { PARTIAL_POLLS };
        polling.is_alone = peers == 0;
        any |= self.look_at_all(polling, target);
        // After it: the look itself may take long.
        polling.looked = cpu::ticks();
        self.holding.grow_old(around, &polling.tokens);
        // Another one is heard now, or none.
        let hot = polling.hot.as_ref().map(|session| session.id);
        if polling.muted.as_ref().is_some_and(|muted| Some(muted.id) != hot) {
            self.unmute(polling);
        }
        any
    }

    /// Mutes the session that was heard last, if it alone was heard for a while. `true` if it is muted from now on.
    pub(super) fn mute(&self, polling: &mut Polling) -> bool {
        if polling.streak < STREAK || polling.muted.is_some() {
            return false;
        }
        polling.muted = polling.hot.clone().filter(|session| session.mute(self.around()));
        self.is_muted.store(polling.muted.is_some(), Ordering::SeqCst);
        polling.muted.is_some()
    }

    /// Lets the stream end sleeps again that was muted.
    pub(super) fn unmute(&self, polling: &mut Polling) {
        polling.streak = 0;
        if let Some(session) = polling.muted.take()
            && !session.unmute(self.around())
        {
            self.make_due(session);
        }
        self.is_muted.store(false, Ordering::SeqCst);
    }

    fn handle_timer(&self, target: &dyn Target) -> bool {
        self.timer.clear();
        let mut any = false;
        let all: Vec<_> = self.sessions.read().expect("no panic in session table").values().cloned().collect();
        for session in all {
            if let Some(at) = session.timeout() {
                let around = self.around();
                if at <= around.exact_now() {
                    session.handle_timeout(around);
                    any |= self.look(&session, target);
                }
                self.timer.set(session.timeout());
            }
        }
        any
    }

    fn look(&self, session: &Arc<Session>, target: &dyn Target) -> bool {
        self.look_closely(session, self.around(), target).any
    }

    /// Takes in what one session has.
    fn look_closely(&self, session: &Arc<Session>, around: Around<'_>, target: &dyn Target) -> Found {
        let found = session.poll(around, target);
        if found.holds {
            self.holding.add(session.clone());
        }
        if found.gone {
            self.remove(session);
        } else if found.over {
            self.timer.set(session.timeout());
        }
        found
    }

    /// Takes in what the sessions have that have something to report.
    fn look_at_due(&self, target: &dyn Target) -> bool {
        if !self.is_due.load(Ordering::Relaxed) || !self.is_due.swap(false, Ordering::AcqRel) {
            return false;
        }
        let due = std::mem::take(&mut *self.due.lock().expect("no panic in a list of sessions"));
        due.iter().fold(false, |any, session| self.look(session, target) | any)
    }

    /// Takes in what all descriptors have.
    fn look_at_all(&self, polling: &mut Polling, target: &dyn Target) -> bool {
        let Polling { tokens, hot, vain, streak, heard, .. } = polling;
        if self.ready.sleep(Some(0), tokens).is_err() {
            return false;
        }
        let mut any = false;
        for token in tokens.iter() {
            any |= match *token {
                BELL => self.is_due.load(Ordering::Acquire),
                TIMER => self.handle_timer(target),
                token if token & LISTENER != 0 => self.accept(token),
                peer => self.session(PeerNumber(peer as u32)).is_ok_and(|session| {
                    let found = self.look_closely(&session, self.around(), target);
                    self.note_core(heard, &session);
                    if !found.over {
                        (*streak, *vain) = (0, 0);
                        *hot = Some(session);
                    }
                    found.any
                }),
            };
        }
        any
    }

    /// Notes where a peer runs that is on this host: its packets are received on the core that sends them.
    fn note_core(&self, heard: &mut u32, session: &Session) {
        *heard = heard.wrapping_add(1);
        if *heard % HEARD_A_LOOK == 1 {
            self.peer_core.store(session.incoming_core(), Ordering::Relaxed);
        }
    }

    fn accept(&self, token: u64) -> bool {
        let mut any = false;
        for _ in 0..ACCEPTS_A_POLL {
            let Some(socket) = self.listeners().accept(token, &self.options) else { break };
            any = true;
            self.crowd_out();
            // A peer that there are no resources for is turned away by the close of its stream.
            let _ = self.add(Origin::Accepted, socket);
        }
        any
    }

    /// Gives up on the oldest peer in set-up, if there are too many.
    fn crowd_out(&self) {
        let sessions = self.sessions.read().expect("no panic in session table");
        let silent: Vec<_> = sessions.values().filter(|session| session.is_silent()).cloned().collect();
        drop(sessions);
        if silent.len() >= MAX_SILENT {
            silent[0].drop_silent();
            self.remove(&silent[0]);
        }
    }
}
