//! What a word makes the node do, and the answer.

use sidestep_fabric::cookie::Cookie;
use sidestep_fabric::error::Refusal;
use sidestep_fabric::link::{Outcome, PeerNumber, Target, Ticket};

use super::line::{Asked, Line};
use super::lookup::Caches;
use super::words::{Ask, Word};
use super::{Delivery, MOST_MESSAGE};
use crate::card::{Counters, Path};

/// Whether the card has what a word needs.
pub(super) fn is_there(
    caches: &mut Caches,
    counters: &mut Counters,
    target: &dyn Target,
    peer: PeerNumber,
    word: &Word,
) -> bool {
    let Word::Ask { cookie, ask, .. } = word else { return true };
    let (range, path) = match ask {
        Ask::Map => return true,
        Ask::Put { offset, bytes, .. } => ((*offset, bytes.len() as u64), Path::Receive),
        Ask::Get { offset, len, .. } => ((*offset, u64::from(*len)), Path::Send),
        Ask::Atomic { offset, .. } => ((*offset, 8), Path::Receive),
    };
    let is_genuine = || match ask {
        Ask::Get { .. } => target.fetch(peer, cookie, 0, &mut []).is_ok(),
        _ => target.place(peer, cookie, 0, &[]).is_ok(),
    };
    caches.find(cookie, range, path, counters, is_genuine)
}

/// Does what a word says.
pub(super) fn perform(
    line: &mut Line,
    target: &dyn Target,
    peer: PeerNumber,
    word: Word,
) -> Result<Vec<Delivery>, &'static str> {
    let completed = |ticket, outcome| vec![Delivery::Completed(ticket, outcome)];
    Ok(match word {
        Word::Message { last, bytes } => {
            line.message.extend(bytes);
            if line.message.len() > MOST_MESSAGE {
                return Err("a message that is longer than any");
            }
            if !last {
                return Ok(Vec::new());
            }
            vec![Delivery::Message(std::mem::take(&mut line.message))]
        }
        Word::Ask { ticket, cookie, ask } => {
            if let Some(answer) = answer(line, target, peer, ticket, &cookie, ask) {
                line.say(&answer);
            }
            Vec::new()
        }
        Word::Done { ticket, refusal } => match (line.asked.remove(&ticket), refusal) {
            (None, _) => Vec::new(),
            (Some(_), Some(refusal)) => completed(ticket, Outcome::Refused(refusal)),
            (Some(Asked::Map), None) => completed(ticket, Outcome::Proxied),
            (Some(Asked::Put), None) => completed(ticket, Outcome::Done),
            (Some(Asked::Get(_) | Asked::Atomic), None) => return Err("an answer to another request"),
        },
        Word::Bytes { ticket, last, bytes } => match line.asked.get_mut(&ticket) {
            None => Vec::new(),
            Some(Asked::Get(found)) => {
                if found.len() + bytes.len() > found.capacity() {
                    return Err("more bytes than were asked for");
                }
                found.extend(bytes);
                match last.then(|| line.asked.remove(&ticket)) {
                    Some(Some(Asked::Get(found))) => completed(ticket, Outcome::Bytes(found)),
                    _ => Vec::new(),
                }
            }
            Some(_) => return Err("an answer to another request"),
        },
        Word::Value { ticket, value } => match line.asked.remove(&ticket) {
            None => Vec::new(),
            Some(Asked::Atomic) => completed(ticket, Outcome::Value(value)),
            Some(_) => return Err("an answer to another request"),
        },
    })
}

/// Asks the node, and makes the answer; none for a segment that is not the last, or of a put that was refused.
fn answer(
    line: &mut Line,
    target: &dyn Target,
    peer: PeerNumber,
    ticket: Ticket,
    cookie: &Cookie,
    ask: Ask,
) -> Option<Word> {
    let done = |outcome: Result<(), Refusal>| Word::Done { ticket, refusal: outcome.err() };
    Some(match ask {
        Ask::Map => done(target.grant(peer, cookie).map(drop)),
        Ask::Put { offset, left, bytes } => {
            if line.refused == Some(ticket) {
                return None;
            }
            // The whole range first, so that what is refused changes nothing.
            let end = offset.saturating_add(bytes.len() as u64).saturating_add(left);
            let whole = if left > 0 { target.place(peer, cookie, end, &[]) } else { Ok(()) };
            let placed = whole.and_then(|()| target.place(peer, cookie, offset, &bytes));
            match placed {
                Ok(()) if left > 0 => return None,
                Err(_) if left > 0 => line.refused = Some(ticket),
                _ => {}
            }
            done(placed)
        }
        Ask::Get { offset, len, last } => {
            let mut bytes = vec![0; len as usize];
            match target.fetch(peer, cookie, offset, &mut bytes) {
                Ok(()) => Word::Bytes { ticket, last, bytes },
                Err(refusal) => done(Err(refusal)),
            }
        }
        Ask::Atomic { offset, atomic } => match target.atomic(peer, cookie, offset, atomic) {
            Ok(value) => Word::Value { ticket, value },
            Err(refusal) => done(Err(refusal)),
        },
    })
}
