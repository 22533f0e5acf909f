//! What the receiving side tells the sending one, on the cookie queue.

use sidestep_fabric::Rights;

use crate::{
    descriptor::List,
    entry::{Credit, Fault, MAX_PLACES, MAX_RECORD, Place, Record},
    memory::Piece,
    vi::{
        item::DIRECT_MIN,
        state::{Loss, State},
    },
    wires::Wires,
};

/// Regions a peer is told of on one connection.
const MAX_WINDOWS: usize = 256;

impl State {
    /// Tells the peer of receives that it does not know of, as far as there is room.
    pub(crate) fn tell_receives(&mut self) -> Result<(), Loss> {
        let State { wires, receives, record, .. } = self;
        let Some(wires) = wires else { return Ok(()) };
        let mut pushed = false;
        while let Some(receive) = receives.posted.get(receives.told) {
            if receive.fault.is_some() {
                // It never takes a message; it completes when it is first.
                receives.told += 1;
                continue;
            }
            let space = wires.cookies_out.space()?;
            if space < MAX_RECORD {
                break;
            }
            let places = match space > wires.cookies_out.capacity() / 2 && receive.total >= DIRECT_MIN {
                true => places_of(wires, receive.pieces.as_slice(), record)?,
                false => List::NONE,
            };
            Record::Posted(Credit { total: receive.total, places }).emit(record);
            wires.cookies_out.push(record)?;
            receives.told += 1;
            pushed = true;
        }
        if pushed {
            wires.cookies_out.publish()?;
        }
        Ok(())
    }

    /// Tells the peer that it knows of everything that was posted so far.
    pub(crate) fn tell_ready(&mut self) -> Result<(), Loss> {
        let State { wires: Some(wires), record, .. } = self else { return Ok(()) };
        Record::Ready.emit(record);
        wires.cookies_out.push(record)?;
        Ok(wires.cookies_out.publish()?)
    }

    /// Whether the peer has not been told of everything.
    #[inline]
    pub(crate) fn owes_peer(&self) -> bool {
        let receives = &self.receives;
        receives.told < receives.posted.len() || receives.answers > 0 || !receives.failures.is_empty()
    }

    /// Tells the peer what has been placed.
    pub(crate) fn tell_answers(&mut self) -> Result<(), Loss> {
        let State { wires, receives, record, .. } = self;
        let Some(wires) = wires else { return Ok(()) };
        if receives.answers == 0 && receives.failures.is_empty() {
            return Ok(());
        }
        if receives.answers > 0 && wires.cookies_out.space()? >= MAX_RECORD {
            Record::Placed(std::mem::take(&mut receives.answers)).emit(record);
            wires.cookies_out.push(record)?;
        }
        while receives.answers == 0 && !receives.failures.is_empty() && wires.cookies_out.space()? >= MAX_RECORD {
            let record_of = match receives.failures.pop_front() {
                Some(Fault::None) | None => Record::Placed(1),
                Some(fault) => Record::Failed(fault),
            };
            record_of.emit(record);
            wires.cookies_out.push(record)?;
        }
        Ok(wires.cookies_out.publish()?)
    }
}

/// Where the peer can place the bytes of a receive itself: in memory that the library allocated, and all of it.
fn places_of(wires: &mut Wires, pieces: &[Piece], record: &mut Vec<u8>) -> Result<List<Place>, Loss> {
    if pieces.len() > MAX_PLACES || pieces.iter().any(|piece| !piece.registration.own) {
        return Ok(List::NONE);
    }
    if let [piece] = pieces {
        return Ok(place_of(wires, piece, record)?.map_or(List::NONE, List::One));
    }
    let places: Option<Vec<Place>> =
        pieces.iter().map(|piece| place_of(wires, piece, record)).collect::<Result<_, Loss>>()?;
    Ok(places.map_or(List::NONE, List::Many))
}

/// Where one piece lies, in a window that the peer is told of first if need be.
fn place_of(wires: &mut Wires, piece: &Piece, record: &mut Vec<u8>) -> Result<Option<Place>, Loss> {
    let Piece { registration, offset, len } = piece;
    let known = wires.announced.iter().rposition(|handle| *handle == registration.handle);
    let window = match known {
        Some(window) => window,
        None if wires.announced.len() >= MAX_WINDOWS => return Ok(None),
        None => {
            let window = wires.announced.len();
            let cookie = wires.endpoint.share(&registration.region, Rights::ALL)?;
            Record::Window(window as u32, cookie).emit(record);
            wires.cookies_out.push(record)?;
            wires.announced.push(registration.handle);
            window
        }
    };
    Ok(Some(Place { window: window as u32, len: *len as u32, offset: *offset as u64 }))
}
