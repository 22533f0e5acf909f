//! Carries out what the reading machine asks for.
//!
//! As for the writing one, each use of a carrier is a carrier of its own to the machine. It is asked about the one that is read
//! now, or that was announced and comes next: number 1. What has been read to a switch is carried out before it is asked.

use std::{io::IoSliceMut, sync::atomic::Ordering};

use sidestep_stream::{
    carrier::Inbound,
    path::{self, Answer, Ask, End, Outcome, Start, Tail},
};

use super::{BROKEN, Reader, Step};
use crate::{
    kernel::{self, Errno, Result, messages::Control},
    streams::{READ, Stream},
};

/// So many parts of a call are listed on the stack.
const FEW: usize = 8;
/// No call asks so much, unless the peer changes its words all the time.
const MOST_QUESTIONS: usize = 1000;
const ENDS: i16 = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;

/// What one call is about.
struct Call<'a, 'm, 'c> {
    stream: &'a Stream,
    parts: &'a mut [IoSliceMut<'m>],
    flags: i32,
    control: Option<&'a mut Control<'c>>,
    /// Bytes that it has.
    got: usize,
    /// Bytes that TCP has while the carrier is read.
    unannounced: usize,
}

impl Reader {
    /// Reads what is there, wherever that is. `look`: the anchor has news, or nobody has looked.
    pub(super) fn walk(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
        look: bool,
        control: Option<&mut Control<'_>>,
    ) -> Result<Step> {
        let room = parts.iter().map(|part| part.len() as u64).sum();
        let mut call = Call { stream, parts, flags, control, got: 0, unannounced: 0 };
        let mut machine = path::Reader::default();
        let mut ask = machine.begin(room, look);
        for _ in 0..MOST_QUESTIONS {
            ask = match ask {
                Ask::Done(Outcome::Moved(_)) => return Ok(Step::Got(call.got)),
                // Nobody has said that they follow: someone has written past this library, or the number is another file's by now.
                Ask::Done(Outcome::Wait) if self.on_ring && call.unannounced > 0 => {
                    let most = std::mem::take(&mut call.unannounced);
                    match self.ask_kernel(&mut call, most)? {
                        Some(step) => return Ok(step),
                        None => machine.begin(room, true),
                    }
                }
                Ask::Done(Outcome::Wait) => return Ok(Step::Empty),
                // The kernel knows what kind of an end it is.
                Ask::Done(_) => match self.ask_kernel(&mut call, usize::MAX)? {
                    Some(step) => return Ok(step),
                    None => machine.begin(room, true),
                },
                // There was less than it seemed.
                Ask::Commit { .. } if call.got == 0 && self.on_ring => return Ok(Step::Empty),
                ask => machine.step(self.carry_out(&mut call, ask)?),
            };
        }
        Err(BROKEN)
    }

    fn carry_out(&mut self, call: &mut Call<'_, '_, '_>, ask: Ask) -> Result<Answer> {
        Ok(match ask {
            // Threads of one process take turns. Rings that other holders may take over are read by their own rules.
            Ask::Owner | Ask::Lock => Answer::Yes,
            Ask::Unlock => Answer::Done,
            Ask::Start => Answer::Start(self.start(call.stream)?),
            Ask::TcpTaken => Answer::Count(call.stream.over_tcp(READ)),
            Ask::Position(_) => Answer::Position { at: self.carried(), offered: false },
            Ask::Tail(_) => Answer::Tail(self.tail()),
            Ask::CopyOut { .. } => {
                call.got = self.take(call.stream, call.parts, call.flags)?;
                Answer::Done
            }
            Ask::Commit { .. } => match call.got {
                0 => Answer::No,
                _ => Answer::Yes,
            },
            Ask::Pending => {
                let (bytes, ended) = self.pending(call.stream);
                call.unannounced = if self.on_ring { bytes as usize } else { 0 };
                Answer::Pending { bytes, ended }
            }
            Ask::TakeTcp(count) => {
                call.got = match call.receive(count as usize) {
                    Err(Errno(libc::EAGAIN)) => 0,
                    outcome => self.told(call.stream, outcome)?,
                };
                Answer::Count(call.got as u64)
            }
            Ask::CountTaken(count) => {
                self.took_tcp(call, count as usize);
                Answer::Done
            }
            // No machine of this direction asks for anything else.
            _ => Answer::Broken,
        })
    }

    /// Where the use of the carrier begins that is read now, or comes next.
    fn start(&mut self, stream: &Stream) -> Result<Start> {
        // What was announced before the bytes that TCP has is known then, and so is an end of the ring.
        if let Some(ring) = &mut self.ring {
            ring.settle();
            let _ = ring.available();
        }
        for _ in 0..MOST_QUESTIONS {
            self.cross(stream)?;
            let (Some(carrier), Some(ring)) = (&self.carrier, &mut self.ring) else { return Ok(Start::default()) };
            let taken = stream.over_tcp(READ);
            if self.on_ring {
                return Ok(Start { ring: 1, after_tcp: taken });
            }
            let Some(switch) = carrier.announced(self.note.done) else { return Ok(Start::default()) };
            let before = switch.position.checked_sub(stream.position(READ, ring.position())).ok_or(BROKEN)?;
            // One that was announced just now, and is reached, is carried out first.
            if before > 0 {
                return Ok(Start { ring: 1, after_tcp: taken.checked_add(before).ok_or(BROKEN)? });
            }
        }
        Err(BROKEN)
    }

    /// What has come of it. Where it ends is carried out as a switch.
    fn tail(&mut self) -> Tail {
        let come = self.ring.as_mut().map_or(0, |ring| ring.available() as u64);
        Tail { position: self.carried() + come, end: End::Open }
    }

    /// Bytes that TCP has, and whether its end comes next. What the kernel does not tell is found by receiving.
    fn pending(&mut self, stream: &Stream) -> (u64, bool) {
        let unread = || kernel::ask(stream.fd(), libc::FIONREAD).map_or(1, |bytes| bytes as u64);
        if !self.on_ring {
            let bytes = unread();
            if bytes > 0 {
                return (bytes, false);
            }
        }
        let events = kernel::look(stream.fd(), libc::POLLIN | libc::POLLRDHUP);
        if events == 0 {
            return (0, false);
        }
        match unread() {
            0 if events & ENDS != 0 => (0, true),
            // What follows an urgent byte is not counted.
            0 => (1, false),
            bytes => (bytes, false),
        }
    }

    /// Bytes of TCP are the caller's.
    fn took_tcp(&mut self, call: &Call<'_, '_, '_>, count: usize) {
        if call.flags & libc::MSG_PEEK == 0 {
            call.stream.count(READ, count);
            self.pace(count);
            self.tell_others();
        }
    }

    /// The end has come, or an error, or something strange. `None`: there is something before it after all.
    fn ask_kernel(&mut self, call: &mut Call<'_, '_, '_>, most: usize) -> Result<Option<Step>> {
        let outcome = call.receive(most);
        if outcome == Ok(0) && !self.shut {
            self.carrier.iter().for_each(|carrier| carrier.settle_end());
        }
        // A switch is announced before anything that follows it, the end included.
        if matches!(outcome, Ok(0) | Err(Errno(libc::EAGAIN))) && (self.cross(call.stream)? || self.has_news()) {
            return Ok(None);
        }
        match outcome {
            Ok(0) if !self.shut && self.is_cut_off(call.stream) => Err(BROKEN),
            Err(Errno(libc::EAGAIN)) => Ok(Some(Step::Empty)),
            outcome => {
                let count = self.told(call.stream, outcome)?;
                self.took_tcp(call, count);
                Ok(Some(Step::Got(count)))
            }
        }
    }

    /// An error of the kernel's that the program is told of.
    fn told(&mut self, stream: &Stream, outcome: Result<usize>) -> Result<usize> {
        if let Err(errno) = outcome {
            self.cut_off |= errno == BROKEN;
            stream.tells_error();
        }
        outcome
    }

    /// At the end of the stream: whether it came without the peer's word, by its death, while bytes of ours lay unread.
    /// The kernel would have sent a reset. Said once, as the kernel does.
    fn is_cut_off(&mut self, stream: &Stream) -> bool {
        let Some(carrier) = &self.carrier else { return false };
        carrier.settle_end();
        if self.cut_off || carrier.has_ended() || carrier.peer_reading().closed {
            return false;
        }
        if !self.has_lost_bytes(stream) && !stream.writer().has_unread(stream) {
            return false;
        }
        self.cut_off = true;
        stream.ends.writes_over.store(true, Ordering::Relaxed);
        let _ = kernel::shutdown(stream.fd(), libc::SHUT_RDWR);
        true
    }
}

impl Call<'_, '_, '_> {
    /// Receives at most so many bytes from TCP.
    fn receive(&mut self, most: usize) -> Result<usize> {
        let (fd, flags) = (self.stream.fd(), self.flags | libc::MSG_DONTWAIT);
        let control = self.control.as_deref_mut();
        let receive = |parts: &mut [IoSliceMut<'_>]| match control {
            Some(control) => kernel::receive_message(fd, parts, flags, control),
            None => kernel::receive(fd, parts, flags),
        };
        if let [part] = &mut *self.parts {
            let count = part.len().min(most);
            return receive(&mut [IoSliceMut::new(&mut part[..count])]);
        }
        let (count, mut left) = (self.parts.len(), most);
        let mut pieces = self.parts.iter_mut().map(|part| {
            let count = part.len().min(left);
            left -= count;
            IoSliceMut::new(&mut part[..count])
        });
        if count > FEW {
            return receive(&mut pieces.collect::<Vec<_>>());
        }
        let mut next = || pieces.next().unwrap_or_else(|| IoSliceMut::new(&mut []));
        let mut few: [IoSliceMut<'_>; FEW] = std::array::from_fn(|_| next());
        receive(&mut few[..count])
    }
}
