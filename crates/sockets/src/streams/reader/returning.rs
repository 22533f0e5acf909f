//! How a reader leaves its carrier without asking: it ends the ring, and wants what it has not read to come over TCP. A peer
//! that does not answer in time is not waited for: the bytes are read here after all.

use std::{io::IoSliceMut, sync::atomic::Ordering, time::Duration};

use sidestep_stream::carrier::{Inbound, Watch};
use sidestep_sys::clock;

use crate::{kernel, streams::Stream};

use super::{Anchor, Reader, Step};

/// So many bytes that were wanted are waited for: more may not fit into the kernel's buffers.
const ARRIVED: u64 = 32 << 10;
/// Bytes that are collected in one go.
const PIECE: usize = 64 << 10;
/// How long the kernel may need for bytes of TCP that come before those of the ring, and between two looks.
const ARRIVAL_NS: u64 = 1_000_000_000;
const LOOK: Duration = Duration::from_micros(50);

/// Bytes that are given back, and that TCP does not have yet.
#[derive(Debug)]
pub(super) struct Returning {
    /// So many bytes have come over TCP when they have.
    until_tcp: u64,
    /// So many of them were wanted last.
    last: u64,
    /// So long they are waited for.
    until: u64,
}

impl Returning {
    /// So many bytes, after so many have come over TCP and behind those that were wanted before.
    fn new(before: Option<Returning>, come: u64, bytes: u64) -> Returning {
        let behind = before.map_or(0, |before| before.until_tcp).max(come);
        let last = bytes.min(ARRIVED);
        Returning { until_tcp: behind.saturating_add(last), last, until: clock::now() + ARRIVAL_NS }
    }
}

/// Bytes that have come over TCP, whoever has read them: also libc itself, and other holders. All there is, if the kernel does not
/// count them.
fn come_over_tcp(stream: &Stream) -> u64 {
    kernel::counts::received(stream.fd()).unwrap_or(u64::MAX)
}

impl Reader {
    /// Whether bytes that this side had, and gave back, are still on their way. A call that finds nothing meanwhile would contradict
    /// what the program was told before.
    #[inline]
    pub fn awaits_return(&mut self, stream: &Stream) -> bool {
        self.returning.is_some() && self.look_for_returning(stream)
    }

    #[cold]
    fn look_for_returning(&mut self, stream: &Stream) -> bool {
        let ended = || kernel::look(stream.fd(), libc::POLLRDHUP) != 0;
        let over =
            |bytes: &Returning| come_over_tcp(stream) >= bytes.until_tcp || clock::now() > bytes.until || ended();
        self.returning.take_if(|bytes| over(bytes));
        self.returning.is_some()
    }

    /// Ends the ring, and asks the peer for what was not read. Of a link, which only the peer can end, what was not read is given
    /// back to it, if it is to be. `true`: it has to be waited for.
    pub fn give_back(&mut self, stream: &Stream, of_links: bool) -> bool {
        let Some(ring) = &mut self.ring else { return false };
        if ring.is_over() {
            let _ = self.cross(stream);
            return false;
        }
        if ring.is_wanted() {
            // By another thread, which waits for it, too.
            return true;
        }
        if self.carrier.as_ref().is_some_and(|carrier| carrier.has_ended()) {
            // Nothing can be sent anew by a peer that has shut its writing direction down. Of a ring all lies here.
            let _ = ring.freeze();
            return false;
        }
        // Before the peer can send any of it.
        let come = come_over_tcp(stream);
        match ring.want() {
            Some(Ok(true)) => {
                // Nobody finds them until it is decided.
                if let Some(carrier) = &self.carrier {
                    let bytes = carrier.watch().written().saturating_sub(ring.position());
                    self.returning = Some(Returning::new(self.returning.take(), come, bytes));
                    carrier.taken.store(carrier.watch().written(), Ordering::Relaxed);
                }
                true
            }
            Some(_) => {
                let _ = self.cross(stream);
                false
            }
            None => {
                if of_links {
                    self.begin_return(stream);
                }
                true
            }
        }
    }

    /// Gives what was not read of a link back, unless bytes that come behind it are with TCP already.
    fn begin_return(&mut self, stream: &Stream) {
        let switching = self.carrier.as_ref().is_some_and(|carrier| carrier.is_switching());
        if (self.on_ring || switching) && !self.note.given && !self.follows_on_tcp() {
            self.note.wanted = true;
            self.tell();
            self.go_on_returning(stream);
        }
    }

    /// Goes on with that. When the peer has everything, it is told to send it.
    fn go_on_returning(&mut self, stream: &Stream) {
        let Some(ring) = self.ring.as_mut().filter(|_| self.note.wanted && !self.note.given) else { return };
        if let Some(bytes) = ring.give() {
            self.returning = Some(Returning::new(self.returning.take(), come_over_tcp(stream), bytes));
            self.note.given = true;
            self.tell();
        }
    }

    /// Asks the peer to send the rest over TCP.
    pub fn leave(&mut self) {
        if self.ring.is_some() {
            self.note.leaving = true;
            self.tell();
        }
    }

    /// Whether that has been decided: the peer has taken the bytes, or cannot any more.
    pub fn is_given_back(&mut self, stream: &Stream) -> bool {
        if self.carrier.is_none() {
            // Both sides have parted with it, which the peer may do before TCP has delivered what it took.
            return !self.awaits_return(stream);
        }
        if !self.can_freeze() {
            return self.is_returned(stream);
        }
        if self.ring.as_mut().is_some_and(Inbound::is_taken) {
            let _ = self.cross(stream);
            return !self.awaits_return(stream);
        }
        self.follows_on_tcp()
    }

    /// The same of a link.
    fn is_returned(&mut self, stream: &Stream) -> bool {
        let left = self.has_left(stream);
        if self.note.given {
            return left && !self.awaits_return(stream);
        }
        let ended = self.carrier.as_ref().is_none_or(|carrier| carrier.has_ended());
        if left || ended || self.follows_on_tcp() {
            return true;
        }
        self.go_on_returning(stream);
        false
    }

    /// Whether bytes have been sent over TCP that come after those of the ring: then these can only be read here.
    fn follows_on_tcp(&self) -> bool {
        let Some(carrier) = &self.carrier else { return true };
        let next = carrier.announced(self.note.done);
        let after = next.filter(|next| next.to_ring()).and_then(|next| carrier.announced(next.number));
        next.is_some_and(|next| !next.to_ring()) || after.is_some()
    }

    /// What the peer has not taken by now is read here.
    pub fn stop_giving_back(&mut self, stream: &Stream) {
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return };
        if carrier.capabilities().freezes {
            // A word that no correct peer leaves shows at the next read.
            let _ = ring.withdraw();
            if !ring.is_taken() {
                let last = self.returning.as_mut().map(|bytes| (std::mem::take(&mut bytes.last), bytes));
                if let Some((last, bytes)) = last {
                    bytes.until_tcp -= last;
                }
                carrier.taken.store(ring.position(), Ordering::Relaxed);
            }
            carrier.node().wake();
        } else if self.note.wanted && !self.note.given {
            ring.keep();
            carrier.node().wake();
            self.note.wanted = false;
            self.tell();
        }
        let _ = self.cross(stream);
    }

    /// After that: whether the peer has taken bytes of a ring, be it at the last moment, or was told to send those of a link, and TCP
    /// does not have them yet.
    pub fn are_on_their_way(&mut self, stream: &Stream) -> bool {
        (self.can_freeze() || self.note.given) && self.awaits_return(stream)
    }

    /// Whether everything that the program has not read is the kernel's.
    pub fn is_through(&mut self, stream: &Stream) -> bool {
        let _ = self.cross(stream);
        let freezes = self.can_freeze();
        let over = match &mut self.ring {
            Some(ring) if freezes => ring.is_over(),
            Some(_) => !self.on_ring && self.carrier.as_ref().is_some_and(|carrier| !carrier.is_switching()),
            None => true,
        };
        over && self.kept.is_empty() && self.bytes_aside() == 0
    }

    /// Before a program is executed: whether nothing is left here, and nothing can come that the program does not find with TCP. The
    /// writer of a link, whose peer was told to leave it, looks for that word before it sends anything more.
    pub fn is_read_out(&mut self, stream: &Stream) -> bool {
        if self.has_left(stream) && self.is_through(stream) {
            return true;
        }
        let near = self.carrier.as_ref().is_some_and(|carrier| !carrier.capabilities().far);
        let told = self.note.parting && !self.note.given && !self.can_freeze();
        let empty = self.ring.as_mut().is_some_and(|ring| ring.available() == 0);
        near && told && empty && self.kept.is_empty() && self.bytes_aside() == 0
    }

    /// Takes all that comes before what the kernel has: what the family shares, the ring to its end, and what TCP has before it.
    pub fn collect(&mut self, stream: &Stream) -> Vec<u8> {
        let until = clock::now() + ARRIVAL_NS;
        let (mut bytes, mut piece) = (Vec::new(), vec![0; PIECE]);
        while !self.is_through(stream) || stream.inherited_bytes() > 0 {
            if self.has_failed(stream) {
                break;
            }
            match self.step(stream, &mut [IoSliceMut::new(&mut piece)], 0, false, Anchor::News) {
                Ok(Step::Got(count @ 1..)) => bytes.extend(&piece[..count]),
                // What TCP has before a carrier that has ended is on its way.
                Ok(Step::Empty) if self.can_freeze() || self.follows_on_tcp() => {
                    if clock::now() > until {
                        break;
                    }
                    kernel::pause(LOOK);
                }
                // The end is the kernel's to tell, and is told again.
                Ok(_) => break,
                Err(errno) => {
                    self.hold(errno);
                    break;
                }
            }
        }
        bytes
    }

    /// Whether the connection has failed, and nothing more comes before that. The error is the kernel's to tell.
    fn has_failed(&mut self, stream: &Stream) -> bool {
        let failed = kernel::look(stream.fd(), 0) & libc::POLLERR != 0;
        failed
            && kernel::ask(stream.fd(), libc::FIONREAD) == Ok(0)
            && !self.cross(stream).unwrap_or(true)
            && !self.has_news()
    }

    /// How far the carrier was read.
    pub fn carried(&mut self) -> u64 {
        self.ring.as_mut().map_or(0, Inbound::position)
    }

    /// Says that this side parts with the carrier for now, since others have the stream, too.
    pub fn say_parting(&mut self) {
        self.note.parting = true;
        self.tell();
    }

    /// Whether either end can end the carrier.
    fn can_freeze(&self) -> bool {
        self.carrier.as_ref().is_some_and(|carrier| carrier.capabilities().freezes)
    }

    /// Whether this end has taken its carrier up.
    pub fn is_open(&self) -> bool {
        self.ring.is_some()
    }
}
