//! What the receiving side tells the sending one: posted receives, what was placed, and memory within reach.
//!
//! Cookies are told only if that pays: if large messages can be placed, or the peer holds sends back until a receive is
//! posted. Then they are told late, as long as the peer has enough of them: with the next message to the peer, which
//! carries them for nothing, or when it has half of what is posted. A peer that does not know of a receive may send all
//! the same; whether one is posted is settled where the message arrives.

use crate::{
    entry::{CREDIT, Credit, Fault, HEAD, Header, Kind, LINE, MAX_CREDITS, Reach, ReachWay},
    line::Line,
    memory::{Key, Piece, Registration},
    trunk::Outward,
    vi::{
        posted::{Receive, ReceiveQueue},
        state::{Loss, State},
    },
};

/// Memory regions a peer is told of when a connection is made.
const MAX_REACHES: usize = 16;

impl State {
    /// Tells the peer what is due, as far as there is room.
    pub(crate) fn tell(&mut self) -> Result<(), Loss> {
        if self.receives.asked || self.receives.owes_answers() || self.receives.cookies_are_due() {
            return self.tell_now();
        }
        Ok(())
    }

    #[inline(never)]
    fn tell_now(&mut self) -> Result<(), Loss> {
        let State { line, receives, .. } = self;
        let Some(line) = line else { return Ok(()) };
        let trunk = line.route.trunk.clone();
        let mut outward = trunk.outward();
        let mut whole = put_answers(line, receives, &mut outward)?;
        let mut bytes = [0; COOKIES];
        while whole && (receives.owes_cookies() || receives.asked) {
            open_windows(line, receives, &mut outward)?;
            let len = cookies(line, receives, MAX_CREDITS, outward.position(), &mut bytes);
            whole = outward.room()? >= len;
            if whole {
                outward.push(&bytes[..len])?;
                receives.note_told();
                receives.asked = false;
            }
        }
        outward.publish()?;
        drop(outward);
        if !whole {
            self.wait_for_room();
        }
        Ok(())
    }

    /// Asks the trunk to come back to this VI.
    pub(crate) fn wait_for_room(&mut self) {
        if let (false, Some(line)) = (self.waiting, &self.line) {
            self.waiting = true;
            line.route.trunk.outward().wait(self.own.clone());
            line.route.trunk.set_busy();
        }
    }

    /// Tells the peer of memory that it may write and read by itself.
    pub(crate) fn tell_reaches(&mut self) -> Result<(), Loss> {
        if !self.attributes.rdma_write && !self.attributes.rdma_read {
            return Ok(());
        }
        let reachable = self.port.nic.memory.reachable(self.attributes.ptag, MAX_REACHES);
        reachable.iter().try_for_each(|registration| self.tell_reach(registration))
    }

    /// Tells the peer of one, unless it knows: of memory that the library allocated, if it has both rights, since a mapping
    /// cannot be limited; of memory of the program, if it can be reached through the kernel.
    pub(crate) fn tell_reach(&mut self, registration: &Registration) -> Result<(), Loss> {
        let attributes = &self.attributes;
        let Some(line) = self.line.as_mut() else { return Ok(()) };
        let trunk = line.route.trunk.clone();
        // Before what depends on it: memory that is withdrawn meanwhile was told of under a turn that is over.
        let turn = trunk.gate().map(|gate| gate.turn());
        if !registration.own && (turn.is_none() || !registration.offer()) {
            return Ok(());
        }
        let memory = registration.attributes();
        let write = attributes.rdma_write && memory.rdma_write;
        let read = attributes.rdma_read && memory.rdma_read;
        let usable = if registration.own { write && read } else { write || read };
        if !usable || memory.ptag != attributes.ptag {
            return Ok(());
        }
        let mut outward = trunk.outward();
        if line.reach.notes[0] != outward.note() {
            // The peer has forgotten them all.
            line.reach.notes[0] = outward.note();
            line.reach.ours.clear();
        }
        let key = turn.filter(|_| !registration.own).map_or(registration.key(), |turn| registration.key_at(turn));
        if line.reach.ours.contains(&key) {
            return Ok(());
        }
        let way = match turn {
            Some(turn) if !registration.own => {
                line.reach.ours.retain(|key| !key.is_before(turn));
                ReachWay::Attached { turn, write, read }
            }
            _ => match outward.window_of(registration, &line.endpoint, line.theirs)? {
                Some(window) => ReachWay::Window(window),
                None => return Ok(()),
            },
        };
        let (base, len) = (registration.base, registration.region.len() as u64);
        let reach = Reach { handle: registration.handle, way, base, len };
        // Without room it is told another time.
        if outward.put(&Header::new(Kind::Reach, line.theirs, Reach::LEN as u32), &reach.emit())? {
            line.reach.ours.push(key);
        }
        outward.publish()
    }
}

/// Bytes that cookies take.
const COOKIES: usize = HEAD + CREDIT * MAX_CREDITS + LINE;

/// Writes an entry with the next cookies, for this position of the ring, and says how long it is.
#[inline]
pub(super) fn cookies(line: &Line, receives: &mut ReceiveQueue, most: usize, position: u64, bytes: &mut [u8]) -> usize {
    let mut len = HEAD;
    let first = receives.next_number();
    for receive in receives.untold().take(most) {
        let place = place_of(line, receive);
        if place.is_none() && len > HEAD && is_placeable(line, receive) {
            // In another window: it needs an entry of its own.
            break;
        }
        let credit = Credit { total: receive.total, place };
        bytes[len..len + CREDIT].copy_from_slice(&credit.emit());
        len += CREDIT;
    }
    receives.telling = ((len - HEAD) / CREDIT) as u32;
    let mut header = Header::new(Kind::Posted, line.theirs, (len - HEAD) as u32);
    header.value = first;
    let header = header.padded(position);
    bytes[..HEAD].copy_from_slice(&header.emit()[..HEAD]);
    header.whole()
}

/// Whether the peer can place the bytes of a receive itself: one piece, in memory that it reaches.
#[inline]
fn is_placeable(line: &Line, receive: &Receive) -> bool {
    let reached = |registration: &Registration| registration.own || line.route.trunk.gate().is_some();
    line.places && matches!(receive.pieces.as_slice(), [piece] if reached(&piece.registration))
}

/// Where it places them, if it knows the window.
#[inline]
fn place_of(line: &Line, receive: &Receive) -> Option<(u32, u64)> {
    let [piece] = receive.pieces.as_slice() else { return None };
    let (key, window) = line.window?;
    (key_of(line, &piece.registration)? == key).then_some((window, piece.offset as u64))
}

/// What the peer knows memory by that it can place in.
#[inline]
fn key_of(line: &Line, registration: &Registration) -> Option<Key> {
    if !line.places {
        return None;
    }
    if registration.own {
        return Some(registration.key());
    }
    Some(registration.key_at(line.route.trunk.gate()?.turn()))
}

/// Makes sure that the peer knows the region of the next receive. Receives in others have to wait for the next entry.
fn open_windows(line: &mut Line, receives: &ReceiveQueue, outward: &mut Outward) -> Result<(), Loss> {
    let Some(receive) = receives.untold().next() else { return Ok(()) };
    let [Piece { registration, .. }] = receive.pieces.as_slice() else { return Ok(()) };
    let Some(key) = key_of(line, registration).filter(|_| receive.pays_telling()) else { return Ok(()) };
    if line.window.is_none_or(|(known, _)| known != key) {
        let window = match key.turn() {
            None => outward.window_of(registration, &line.endpoint, line.theirs)?,
            Some(turn) => outward.attached_window_of(registration, turn, line.theirs)?,
        };
        line.window = window.map(|window| (key, window)).or(line.window);
    }
    Ok(())
}

/// Tells the peer what has been placed. `false`: no room for all of it.
fn put_answers(line: &Line, receives: &mut ReceiveQueue, outward: &mut Outward) -> Result<bool, Loss> {
    if receives.answers > 0 {
        let mut header = Header::new(Kind::Placed, line.theirs, 0);
        header.value = receives.answers;
        if !outward.put(&header, &[])? {
            return Ok(false);
        }
        receives.answers = 0;
    }
    while let Some(fault) = receives.failures.front() {
        let header = match fault {
            Fault::None => {
                let mut header = Header::new(Kind::Placed, line.theirs, 0);
                header.value = 1;
                header
            }
            fault => Header::new(Kind::Failed, line.theirs, 0).with_fault(*fault),
        };
        if !outward.put(&header, &[])? {
            return Ok(false);
        }
        receives.failures.pop();
    }
    Ok(true)
}
