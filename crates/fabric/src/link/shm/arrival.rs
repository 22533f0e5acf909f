//! What a peer has sent over shared memory: reports of armed words, and frames.

use std::{os::fd::OwnedFd, sync::Arc};

use sidestep_shm as shm;

use super::{
    frame::{Answer, Ask, Frame},
    session::{Session, lock},
};
use crate::{
    cookie::{RegionId, Rights},
    error::{CloseReason, Error, Result},
    link::{Mapping, Outcome, Target, Ticket},
    tripwire::Access,
};

/// Events taken from one session in one poll, so that no peer holds up the others.
const EVENTS_A_POLL: usize = 256;
const READ_BIT: u64 = 1 << 63;

/// Hands on what a peer has reported of armed words.
pub(super) fn take_events(session: &Session, target: &dyn Target) -> bool {
    let mut any = false;
    for _ in 0..EVENTS_A_POLL {
        let event = {
            let mut taker = session.taker();
            let Some(taker) = taker.as_mut() else { return any };
            if taker.take_rescan() {
                Ok(None)
            } else {
                match taker.take() {
                    Ok(Some(event)) => Ok(Some(event)),
                    Ok(None) => return any,
                    Err(error) => Err(error),
                }
            }
        };
        any = true;
        match event {
            Ok(Some(event)) => {
                let access = if event & READ_BIT == 0 { Access::Write } else { Access::Read };
                let region = RegionId((event >> 32) as u32 & !(1 << 31));
                target.fired(region, (event as u32 as usize) * shm::watch::WATCHED_WORD, access);
            }
            Ok(None) => target.fired_unknown(),
            Err(shm::Error::Peer(what)) => {
                session.close(CloseReason::Violation(what));
                return true;
            }
            Err(_) => {
                session.close(CloseReason::Violation("its event ring is broken"));
                return true;
            }
        }
    }
    any
}

/// The report of an armed word, as it lies in an event ring.
pub(super) fn event_of(region: RegionId, offset: usize, access: Access) -> u64 {
    let bit = if access == Access::Read { READ_BIT } else { 0 };
    bit | u64::from(region.0 & !(1 << 31)) << 32 | (offset / shm::watch::WATCHED_WORD) as u64 & 0xffff_ffff
}

/// Carries out one frame of a peer; `Err` says why the session cannot go on.
pub(super) fn handle(
    session: &Arc<Session>,
    bytes: &[u8],
    descriptors: &mut Vec<OwnedFd>,
    read: &mut Vec<u8>,
    target: &dyn Target,
) -> Result<(), CloseReason> {
    let frame = Frame::parse(bytes).map_err(CloseReason::Violation)?;
    if !session.has_greeted() && !matches!(frame, Frame::Hello { .. }) {
        return Err(CloseReason::Violation("it did not greet first"));
    }
    match frame {
        Frame::Hello { version, pair_len } => session.greeted(version, pair_len, descriptors),
        Frame::Post(bytes) => {
            target.message(session.id, bytes);
            Ok(())
        }
        Frame::Ask { ticket, cookie, ask } => {
            let peer = session.id;
            let mut pages = None;
            let answer = match ask {
                Ask::Map => target.grant(peer, &cookie).map(|memory| match memory {
                    Some(granted) => {
                        pages = Some(granted.descriptor);
                        Answer::Mapped(granted.len as u64)
                    }
                    None => Answer::Proxied,
                }),
                Ask::Put { offset, bytes } => target.place(peer, &cookie, offset, bytes).map(|()| Answer::Done),
                Ask::Get { offset, len } => {
                    read.resize(len as usize, 0);
                    target.fetch(peer, &cookie, offset, read).map(|()| Answer::Bytes(read))
                }
                Ask::Atomic { offset, atomic } => target.atomic(peer, &cookie, offset, atomic).map(Answer::Value),
            };
            session.reply(ticket, answer.unwrap_or_else(Answer::Refused), pages);
            Ok(())
        }
        Frame::Unnamed(name) => {
            session.unnamed(name);
            Ok(())
        }
        Frame::Pages { cookie, len } => {
            // Pages that cannot be mapped for want of descriptors or memory are asked for when they are needed.
            match descriptors.pop().map(|pages| Mapping::attach(pages, len as usize, cookie.rights())) {
                Some(Ok(pages)) => target.offered(session.id, &cookie, pages),
                Some(Err(Error::Memory(shm::Error::Foreign(what)))) => return Err(CloseReason::Violation(what)),
                _ => {}
            }
            Ok(())
        }
        Frame::Reply { ticket, answer } => {
            // Answers come in the order of the questions.
            let asked = lock(&session.unanswered).pop_front().filter(|(asked, _)| *asked == Ticket(ticket));
            let Some((_, rights)) = asked else {
                return Err(CloseReason::Violation("it answered a question that was not asked"));
            };
            let outcome = outcome_of(answer, rights, descriptors).unwrap_or_else(Outcome::Failed);
            target.completed(Ticket(ticket), outcome);
            Ok(())
        }
    }
}

fn outcome_of(answer: Answer<'_>, rights: Rights, descriptors: &mut Vec<OwnedFd>) -> Result<Outcome> {
    Ok(match answer {
        Answer::Done => Outcome::Done,
        Answer::Bytes(bytes) => Outcome::Bytes(bytes.to_vec()),
        Answer::Value(value) => Outcome::Value(value),
        Answer::Proxied => Outcome::Proxied,
        Answer::Refused(refusal) => Outcome::Refused(refusal),
        Answer::Mapped(len) => {
            let none = || shm::Error::from_errno("receive the pages of a region", rustix::io::Errno::MFILE);
            let pages = descriptors.pop().ok_or_else(none)?;
            Outcome::Mapped(Mapping::attach(pages, len as usize, rights)?)
        }
    })
}
