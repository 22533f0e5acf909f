//! The sending side of a trunk.

use std::{collections::VecDeque, sync::Weak};

use sidestep_fabric::{Aperture, Cookie, Endpoint, Error, Rights, queue::QueueSpec, queue::Sender};
use sidestep_shm::last_word::{WORD, first_part};

use super::MAX_WINDOWS;
use crate::{
    entry::{Attached, Header, Kind, LINE, LONG, MAX_FIXED},
    memory::{Key, Piece, Registration},
    vi::{ViCore, state::Loss},
};

/// Entries go out through here, whole.
#[derive(Debug, Default)]
pub(crate) struct Outward {
    sender: Option<Sender>,
    /// VIs that have something to send and found no room.
    waiting: VecDeque<Weak<ViCore>>,
    /// Entries about the trunk itself that found no room.
    owed: VecDeque<Vec<u8>>,
    /// Regions of this side that the peer was told of, by their number.
    announced: Vec<Key>,
    growth: Growth,
    /// Whether the link was full when something was to be published.
    unpublished: bool,
    /// Where the larger ring begins, if there is one.
    adopted: u64,
    /// How often memory was withdrawn.
    note: u64,
}

/// How far the change to a larger ring is.
#[derive(Debug, Default)]
enum Growth {
    #[default]
    None,
    Wanted,
    Offered,
    Settled,
}

/// Bytes of a message in one entry: so many that the receiver copies while the sender does.
pub(crate) const CHUNK: usize = 16 << 10;
/// Room for fewer bytes than this is not used for a part of a longer message.
const LEAST_CHUNK: usize = 512;
/// From this length on, messages in the ring deserve a large one.
const GROW_FROM: usize = 2 << 10;

impl Outward {
    pub(super) fn attach(&mut self, sender: Sender) {
        self.sender = Some(sender);
    }

    /// Bytes of entries that can go out now.
    #[inline]
    pub(crate) fn room(&mut self) -> Result<usize, Loss> {
        match &mut self.sender {
            Some(sender) if self.owed.is_empty() => Ok(sender.space()?),
            _ => Ok(0),
        }
    }

    /// Whether so many bytes can go out now.
    #[inline]
    pub(crate) fn has_room(&mut self, wanted: usize) -> Result<bool, Loss> {
        match &mut self.sender {
            Some(sender) if self.owed.is_empty() => Ok(sender.space_for(wanted)? >= wanted),
            _ => Ok(false),
        }
    }

    /// Puts bytes out that are whole entries and for which there is room.
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Loss> {
        if let Some(sender) = &mut self.sender {
            sender.push(bytes)?;
        }
        Ok(())
    }

    /// Makes everything visible that was put out.
    #[inline]
    pub(crate) fn publish(&mut self) -> Result<(), Loss> {
        let Some(sender) = &mut self.sender else { return Ok(()) };
        match sender.publish() {
            // What is sent to a peer that is gone is lost, as in memory of its own. Its end is told when all has been taken that
            // it sent.
            Ok(()) | Err(Error::Closed(_)) => Ok(()),
            // It goes out with the next attempt.
            Err(Error::Full { .. }) => {
                self.unpublished = true;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A mark behind all entries that were published, if they go over a wire.
    pub(crate) fn mark(&self) -> u64 {
        self.sender.as_ref().map_or(0, Sender::mark)
    }

    /// Whether all entries before a mark lie in memory of the peer.
    pub(crate) fn has_landed(&self, mark: u64) -> bool {
        !self.unpublished && self.owed.is_empty() && self.sender.as_ref().is_none_or(|sender| sender.has_landed(mark))
    }

    /// Where the next entry begins.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.sender.as_ref().map_or(0, |sender| sender.position())
    }

    /// Whether the peer has taken everything before this position.
    pub(crate) fn has_been_read(&mut self, position: u64) -> Result<bool, Loss> {
        let Some(sender) = &mut self.sender else { return Ok(position == 0) };
        let unread = sender.capacity() - sender.space()?;
        let read = sender.position().saturating_sub(unread as u64);
        // What was in the smaller ring has been read when something of the larger one has.
        Ok(position == 0 || read >= position && (self.adopted == 0 || read > self.adopted))
    }

    /// Puts out one entry with a short body. `false`: no room.
    pub(crate) fn put(&mut self, header: &Header, body: &[u8]) -> Result<bool, Loss> {
        let header = header.padded(self.position());
        let whole = header.whole();
        if self.room()? < whole {
            return Ok(false);
        }
        let mut bytes = [0; LONG + MAX_FIXED + LINE];
        let size = header.size();
        bytes[..size].copy_from_slice(&header.emit()[..size]);
        bytes[size..size + body.len()].copy_from_slice(body);
        self.push(&bytes[..whole])?;
        Ok(true)
    }

    /// Puts out the first entry of a message, or a further one after `sent` bytes of `total`, with as many bytes of the
    /// pieces from `from` on as there is room for. `None`: no room; otherwise how many went.
    pub(crate) fn put_part(
        &mut self,
        header: &Header,
        pieces: &[Piece],
        (from, sent, total): (usize, usize, usize),
    ) -> Result<Option<usize>, Loss> {
        let left = total - sent;
        if total > GROW_FROM {
            self.grow(header.line)?;
        }
        let room = self.room()?;
        let most = CHUNK.min(room.saturating_sub(LONG + LINE));
        let count = if most > WORD { first_part(left, most) } else { left.min(most) };
        if room < LONG + LINE || count < left.min(LEAST_CHUNK) {
            return Ok(None);
        }
        let header = match sent {
            0 => header.first(count),
            _ => Header::new(Kind::Part, header.line, count as u32),
        };
        let header = header.padded(self.position());
        self.push(&header.emit()[..header.size()])?;
        self.push_pieces(pieces, from + sent, count)?;
        let padding = header.whole() - header.size() - count;
        self.push(&[0; LINE][..padding])?;
        self.publish()?;
        Ok(Some(count))
    }

    /// Bytes of registered memory go straight into the ring.
    fn push_pieces(&mut self, pieces: &[Piece], at: usize, count: usize) -> Result<(), Loss> {
        let Some(sender) = &mut self.sender else { return Ok(()) };
        let (mut skip, mut left) = (at, count);
        for piece in pieces {
            if skip >= piece.len {
                skip -= piece.len;
                continue;
            }
            let part = left.min(piece.len - skip);
            sender.push_from(&piece.registration.region, piece.offset + skip, part)?;
            (skip, left) = (0, left - part);
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The number under which the peer knows a region of this side, told first if need be. `None`: it cannot be told.
    pub(crate) fn window_of(
        &mut self,
        registration: &Registration,
        endpoint: &Endpoint,
        line: u32,
    ) -> Result<Option<u32>, Loss> {
        let key = registration.key();
        if let Some(known) = self.number_of(key) {
            return Ok(Some(known));
        }
        if !self.can_announce(Cookie::WIRE_LEN)? {
            return Ok(None);
        }
        let Ok(cookie) = endpoint.share(&registration.region, Rights::ALL) else { return Ok(None) };
        self.announce(key, line, &cookie.to_bytes()).map(Some)
    }

    /// The same for memory of the program, which the peer reaches through the kernel while the gate is at `turn`.
    pub(crate) fn attached_window_of(
        &mut self,
        registration: &Registration,
        turn: u64,
        line: u32,
    ) -> Result<Option<u32>, Loss> {
        let key = registration.key_at(turn);
        if let Some(known) = self.number_of(key) {
            return Ok(Some(known));
        }
        if !self.can_announce(Attached::LEN)? || !registration.offer() {
            return Ok(None);
        }
        let memory = Attached { turn, base: registration.base, len: registration.region.len() as u64 };
        self.announce(key, line, &memory.emit()).map(Some)
    }

    fn number_of(&self, key: Key) -> Option<u32> {
        self.announced.iter().rposition(|known| *known == key).map(|at| at as u32)
    }

    fn can_announce(&mut self, len: usize) -> Result<bool, Loss> {
        let whole = Header::new(Kind::Window, 0, len as u32).whole() + LINE;
        Ok(self.announced.len() < MAX_WINDOWS && self.room()? >= whole)
    }

    fn announce(&mut self, key: Key, line: u32, body: &[u8]) -> Result<u32, Loss> {
        let mut header = Header::new(Kind::Window, line, body.len() as u32);
        header.value = self.announced.len() as u32;
        self.put(&header, body)?;
        self.announced.push(key);
        Ok(header.value)
    }

    /// Memory has been withdrawn: the peer reads this before it reaches for any.
    pub(super) fn forbid(&mut self) {
        self.note += 1;
        if let Some(sender) = &mut self.sender {
            // A link that is full does not map either, so that every access is checked at its owner.
            let _ = sender.set_note(0, self.note);
        }
    }

    /// How often that has happened.
    pub(crate) fn note(&self) -> u64 {
        self.note
    }

    /// Sends an entry about the trunk itself, now or when there is room.
    pub(super) fn owe(&mut self, header: &Header, body: &[u8]) {
        let mut bytes = header.emit()[..header.size()].to_vec();
        bytes.extend(body);
        bytes.resize(header.whole(), 0);
        // Where it will begin is not known; a multiple of 16 will do.
        self.owed.push_back(bytes);
        self.flush();
    }

    /// Sends what was owed. A failure is found by whoever sends next.
    pub(super) fn flush(&mut self) {
        let Some(sender) = &mut self.sender else { return };
        let mut pushed = std::mem::take(&mut self.unpublished);
        while let Some(bytes) = self.owed.front() {
            if !sender.space().is_ok_and(|space| space >= bytes.len()) || sender.push(bytes).is_err() {
                break;
            }
            self.owed.pop_front();
            pushed = true;
        }
        if pushed {
            let _ = self.publish();
        }
    }

    pub(super) fn is_owing(&self) -> bool {
        self.unpublished || !self.owed.is_empty()
    }

    /// Remembers a VI that found no room.
    pub(crate) fn wait(&mut self, vi: Weak<ViCore>) {
        self.waiting.push_back(vi);
    }

    pub(super) fn take_waiting(&mut self) -> VecDeque<Weak<ViCore>> {
        std::mem::take(&mut self.waiting)
    }

    /// Goes on in a larger ring as soon as there is one.
    fn grow(&mut self, line: u32) -> Result<(), Loss> {
        match &self.growth {
            Growth::None => {
                if self.put(&Header::new(Kind::Want, line, 0), &[])? {
                    self.publish()?;
                    self.growth = Growth::Wanted;
                }
            }
            Growth::Offered => {
                if let Some(sender) = &mut self.sender
                    && !self.unpublished
                {
                    let position = sender.position();
                    if sender.poll_growth().unwrap_or(false) {
                        self.adopted = position;
                    }
                    // If it could not be opened, the small one goes on.
                    if !sender.is_growing() {
                        self.growth = Growth::Settled;
                    }
                }
            }
            Growth::Wanted | Growth::Settled => {}
        }
        Ok(())
    }

    pub(super) fn offered(&mut self, aperture: Aperture, spec: QueueSpec) {
        if let (Growth::Wanted, Some(sender)) = (&self.growth, &mut self.sender) {
            sender.begin_growth(aperture, &spec);
            self.growth = Growth::Offered;
        }
    }
}
