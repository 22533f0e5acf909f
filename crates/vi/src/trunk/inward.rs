//! The receiving side of a trunk.

use std::sync::{Arc, Weak};

use sidestep_fabric::{
    Aperture, ArenaBlock, Cookie, Error,
    queue::{QueueSpec, Receiver},
};

use sidestep_shm::last_word::WORD;
use sidestep_sys::slab::Slab;
use sidestep_wire::cursor::little::Reader;

use super::{LARGE_RING, Trunk, Window};
use crate::{
    code::Status,
    cq::Queue,
    descriptor::Completion,
    entry::{Attached, Header, Kind, LINE},
    memory::Piece,
    vi::ViCore,
};

/// Entries come in through here.
#[derive(Debug)]
pub(crate) struct Inward {
    receiver: Option<Receiver>,
    lines: Slab<Entry>,
    /// The larger ring, once the peer wanted it.
    grown: Option<ArenaBlock>,
    position: u64,
    /// Whether the link was full when the peer was to be told how far it was read.
    untold: bool,
    /// Whether the next entry is for a connection that its VI does not know of yet, and that has enough of them.
    held: bool,
    /// Connections that a VI knows of since the last look: what came early is taken first.
    opened: Vec<u32>,
}

/// A connection.
#[derive(Debug)]
struct Entry {
    vi: Weak<ViCore>,
    /// Whether the VI knows of it.
    open: bool,
    /// Whole entries that came before that. The others of the trunk do not wait for it: nobody may look after a connection that is
    /// not needed any more, or a program may be busy with the others.
    early: Vec<u8>,
}

/// Connections over one trunk.
const MAX_LINES: usize = 2 * crate::attributes::MAX_VIS;
/// Bytes of early entries that one connection keeps: more than a peer sends of itself.
const MAX_EARLY: usize = 8 << 10;

impl Default for Inward {
    fn default() -> Inward {
        let (lines, opened) = (Slab::new(MAX_LINES), Vec::new());
        Inward { receiver: None, lines, grown: None, position: 0, untold: false, held: false, opened }
    }
}

impl Inward {
    pub(super) fn attach(&mut self, receiver: Receiver) {
        self.receiver = Some(receiver);
    }

    pub(super) fn insert(&mut self, vi: Weak<ViCore>) -> Option<u32> {
        self.lines.insert(Entry { vi, open: false, early: Vec::new() })
    }

    /// The VI knows of its connection from now on.
    pub(super) fn open(&mut self, number: u32) {
        if let Some(entry) = self.lines.get_mut(number) {
            entry.open = true;
            self.opened.push(number);
        }
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.lines.remove(number);
    }

    /// All VIs that are connected over it.
    pub(super) fn lines(&self) -> Vec<Arc<ViCore>> {
        self.lines.iter().filter_map(|entry| entry.vi.upgrade()).collect()
    }

    /// Whether the peer has not been told how far it was read, because the link was full.
    pub(super) fn is_owing(&self) -> bool {
        self.untold
    }

    /// Tells it again.
    pub(super) fn tell_again(&mut self) {
        if let (true, Some(receiver)) = (self.untold, &mut self.receiver) {
            self.untold = is_full(receiver.tell()).unwrap_or(false);
        }
    }

    /// How far it has been taken; `None` if that is no reason to look again.
    #[inline]
    pub(super) fn position(&self) -> Option<u64> {
        (!self.held).then_some(self.position)
    }

    /// Where the next entry lies, or will.
    #[inline]
    pub(super) fn next_place(&mut self) -> *const u8 {
        self.receiver.as_mut().map_or(std::ptr::null(), Receiver::next_place)
    }

    /// Takes every entry that is here and hands it to its VI; stops at a completion that is wanted, which goes to `found`.
    #[inline]
    pub(super) fn drain(
        &mut self,
        trunk: &Trunk,
        wanted: Option<(&ViCore, Option<Queue>)>,
        found: &mut Option<Completion>,
    ) -> Result<(), &'static str> {
        if !self.opened.is_empty() {
            self.take_early(trunk)?;
        }
        let Inward { receiver: Some(receiver), lines, grown, position, untold, held, .. } = self else { return Ok(()) };
        *held = false;
        loop {
            // A small entry is looked at once, with all it has.
            let mut head = [0; LINE];
            let here = receiver.peek(0, &mut head).map_err(|_| BAD_RING)?;
            *position = receiver.position();
            let mut header = Header::EMPTY;
            if !header.read(&head[..here])? {
                return Ok(());
            }
            let whole = header.whole();
            if whole > here && receiver.available().map_err(|_| BAD_RING)? < whole {
                let fits = whole <= receiver.capacity();
                return if fits { Ok(()) } else { Err("an entry that is longer than the ring") };
            }
            if let Some(entry) = lines.get_mut(header.line).filter(|entry| !entry.open) {
                // The peer was faster than this side's own thread.
                if entry.early.len() + whole > MAX_EARLY {
                    *held = true;
                    return Ok(());
                }
                if header.kind == Kind::Window {
                    // Numbers go on; it is opened with the connection.
                    trunk.add_window(header.value, None)?;
                }
                let before = entry.early.len();
                entry.early.resize(before + whole, 0);
                receiver.peek(0, &mut entry.early[before..]).map_err(|_| BAD_RING)?;
                *untold |= is_full(receiver.consume(whole))?;
                *position = receiver.position();
                continue;
            }
            let line = lines.get(header.line);
            let end = *position + whole as u64;
            let own = header.kind.is_own();
            let near = if whole <= here && !own { head.get(header.size()..here) } else { None };
            if near.is_none() {
                *untold |= is_full(receiver.consume(header.size()))?;
            }
            let mut source = Source { receiver, untold, near };
            *found = match (line, wanted) {
                _ if own => {
                    take_own(&header, &mut source, grown, trunk, lines, Trunk::add_window)?;
                    None
                }
                // The VI that is polled is there.
                (Some(entry), Some((vi, queue))) if std::ptr::eq(entry.vi.as_ptr(), vi) => {
                    vi.take(&header, &mut source, queue)
                }
                (Some(entry), _) => {
                    ViCore::prefetch(entry.vi.as_ptr());
                    let vi = entry.vi.upgrade();
                    vi.and_then(|vi| vi.take(&header, &mut source, None))
                }
                // For a connection that has ended here.
                (None, _) => None,
            };
            let rest = end.checked_sub(receiver.position()).ok_or(BAD_RING)?;
            *untold |= is_full(receiver.consume(rest as usize))?;
            *position = end;
            if found.is_some() {
                return Ok(());
            }
        }
    }
}

impl Inward {
    /// Takes what came for connections before their VIs knew of them.
    #[cold]
    fn take_early(&mut self, trunk: &Trunk) -> Result<(), &'static str> {
        let Inward { receiver: Some(receiver), lines, grown, untold, opened, .. } = self else { return Ok(()) };
        for number in std::mem::take(opened) {
            let Some(entry) = lines.get_mut(number) else { continue };
            let (early, vi) = (std::mem::take(&mut entry.early), entry.vi.upgrade());
            let (mut left, mut header) = (&early[..], Header::EMPTY);
            while header.read(left)? {
                let (this, behind) = left.split_at_checked(header.whole()).ok_or(BAD_RING)?;
                let mut source = Source { receiver, untold, near: this.get(header.size()..) };
                if header.kind.is_own() {
                    take_own(&header, &mut source, grown, trunk, lines, Trunk::open_window)?;
                } else if let Some(vi) = &vi {
                    vi.take(&header, &mut source, None);
                }
                left = behind;
            }
        }
        Ok(())
    }
}

/// Where the bytes of the present entry come from.
pub(crate) struct Source<'a> {
    receiver: &'a mut Receiver,
    untold: &'a mut bool,
    /// They were copied with the head, and what comes behind them too.
    near: Option<&'a [u8]>,
}

impl Source<'_> {
    /// Copies the last bytes of a remote write, whose last word comes last: a program may poll it.
    pub(crate) fn place_end(&mut self, piece: &Piece, at: usize, len: usize) -> Result<Option<Status>, &'static str> {
        let tail = len.min(WORD);
        let failed = self.place(std::slice::from_ref(piece), at, len - tail)?;
        if failed.is_some() || !piece.registration.is_alive() {
            return Ok(Some(Status::PROTECTION_ERROR));
        }
        let mut word = [0; WORD];
        match &mut self.near {
            Some(near) => word[..tail].copy_from_slice(near.get(..tail).ok_or(BAD_RING)?),
            None => {
                let count = self.receiver.peek(0, &mut word[..tail]).map_err(|_| BAD_RING)?;
                *self.untold |= is_full(self.receiver.consume(count))?;
            }
        }
        let offset = piece.offset + at + len - tail;
        piece.registration.region.write_in_order(offset, &word[..tail]).map_err(|_| BAD_RING)?;
        Ok(None)
    }

    /// Copies bytes into the pieces, from `at` on: one copy, from the ring to where they belong. `Some`: they may not go
    /// there.
    #[inline]
    pub(crate) fn place(&mut self, pieces: &[Piece], at: usize, len: usize) -> Result<Option<Status>, &'static str> {
        let (mut skip, mut left) = (at, len);
        for piece in pieces {
            if left == 0 {
                break;
            }
            if skip >= piece.len {
                skip -= piece.len;
                continue;
            }
            if !piece.registration.is_alive() {
                return Ok(Some(Status::PROTECTION_ERROR));
            }
            let part = left.min(piece.len - skip);
            let (region, offset) = (&piece.registration.region, piece.offset + skip);
            match &mut self.near {
                Some(near) => {
                    let (bytes, rest) = near.split_at_checked(part).ok_or(BAD_RING)?;
                    region.write(offset, bytes).map_err(|_| BAD_RING)?;
                    *near = rest;
                }
                None => *self.untold |= is_full(self.receiver.take_into(region, offset, part).map(drop))?,
            }
            (skip, left) = (0, left - part);
        }
        Ok(None)
    }

    /// Looks at a short body.
    pub(crate) fn read(&mut self, header: &Header, bytes: &mut [u8]) -> Result<(), &'static str> {
        match self.near.and_then(|near| near.get(..header.len as usize)) {
            Some(near) if near.len() == bytes.len() => bytes.copy_from_slice(near),
            _ => return read_body(header, self.receiver, bytes),
        }
        Ok(())
    }
}

/// Entries about the trunk itself.
#[cold]
fn take_own(
    header: &Header,
    source: &mut Source<'_>,
    grown: &mut Option<ArenaBlock>,
    trunk: &Trunk,
    lines: &Slab<Entry>,
    add_window: fn(&Trunk, u32, Option<Window>) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let open = |cookie: &Cookie| -> Option<Aperture> {
        let vi = lines.get(header.line)?.vi.upgrade()?;
        vi.open(cookie)
    };
    match header.kind {
        Kind::Window if header.len as usize == Attached::LEN => {
            let mut bytes = [0; Attached::LEN];
            source.read(header, &mut bytes)?;
            let attached = Attached::read(&mut Reader::new(&bytes)).ok_or("a window that ends early")?;
            add_window(trunk, header.value, trunk.attachment().map(|_| Window::Attached(attached)))
        }
        Kind::Window => {
            let mut bytes = [0; Cookie::WIRE_LEN];
            source.read(header, &mut bytes)?;
            let cookie = Cookie::from_bytes(&bytes).map_err(|_| "a bad cookie")?;
            add_window(trunk, header.value, open(&cookie).map(Window::Mapped))
        }
        Kind::Ring => {
            let mut bytes = [0; QueueSpec::WIRE_LEN];
            source.read(header, &mut bytes)?;
            let spec = QueueSpec::from_bytes(&bytes).map_err(|_| "a bad ring")?;
            if let Some(aperture) = open(&spec.cookie) {
                trunk.outward().offered(aperture, spec);
            }
            Ok(())
        }
        // Once is enough.
        _ if grown.is_some() => Ok(()),
        _ => {
            // Without memory for it, the small ring goes on.
            if let Ok(block) = source.receiver.grow(LARGE_RING) {
                let spec = block.block().spec().to_bytes();
                *grown = Some(block);
                // Before `outward` is locked: it takes the lock of a VI, which comes first.
                let line = reply_line(header, lines);
                trunk.outward().owe(&Header::new(Kind::Ring, line, spec.len() as u32), &spec);
                trunk.set_busy();
            }
            Ok(())
        }
    }
}

/// The peer's number for the connection that an entry came on.
fn reply_line(header: &Header, lines: &Slab<Entry>) -> u32 {
    lines.get(header.line).and_then(|entry| entry.vi.upgrade()).map_or(0, |vi| vi.their_line())
}

/// Takes a body of a known length.
fn read_body(header: &Header, receiver: &mut Receiver, bytes: &mut [u8]) -> Result<(), &'static str> {
    if header.len as usize != bytes.len() {
        return Err("an entry of a wrong length");
    }
    match receiver.peek(0, bytes) {
        Ok(count) if count == bytes.len() => Ok(()),
        _ => Err(BAD_RING),
    }
}

/// Whether a step was only held up by a full link. A peer that is gone need not be told; what it sent before is taken.
#[inline]
fn is_full(outcome: sidestep_fabric::Result<()>) -> Result<bool, &'static str> {
    match outcome {
        Ok(()) | Err(Error::Closed(_)) => Ok(false),
        Err(Error::Full { .. }) => Ok(true),
        Err(_) => Err(BAD_RING),
    }
}

const BAD_RING: &str = "impossible positions in a ring";
