//! Carries out what the writing machine asks for.
//!
//! A carrier may be used several times, each from one switch to the next one: to the machine each *use* is a carrier of its own.
//! The machine counts them from the one that was begun last, or from none; the words of the record count all of them.

use std::{
    io::IoSlice,
    sync::atomic::{Ordering, fence},
};

use sidestep_stream::{
    carrier::{ENDED, Outbound, Switch, Watch},
    path::{self, Answer, Ask, End, Outcome, Start, Tail},
};
use sidestep_sys::clock;

use super::{BROKEN, Step, Writer, landing};
use crate::{
    kernel::{self, Errno, Result},
    readiness::set,
    registry::reason::Reason,
    streams::{Stream, WRITE, lock},
    tap,
};

/// No call asks so much, unless the peer changes its words all the time.
const MOST_QUESTIONS: usize = 1000;
/// How much fits is the carrier's to say: nothing, or enough.
const ENOUGH: u64 = 1 << 47;
/// Uses are counted up to here, and then from 1 on. The last seven bits of twice as much go on by one.
const MOST_USES: u16 = 0x7fc0;

/// What one call is about.
#[derive(Debug)]
struct Call<'a> {
    stream: &'a Stream,
    parts: &'a [IoSlice<'a>],
    patient: bool,
    /// The carrier is to be left.
    leaves: bool,
    /// Why it is left, if it is.
    reason: Reason,
    /// The machine's number of the use that was begun last.
    present: u16,
}

impl Writer {
    /// Writes what fits, wherever that is. `overflow`: a full carrier is not waited for, but left.
    pub(super) fn write(
        &mut self,
        stream: &Stream,
        parts: &[IoSlice<'_>],
        patient: bool,
        overflow: bool,
    ) -> Result<Step> {
        let reason = if overflow { Reason::Overflow } else { Reason::Demoted };
        let count = parts.iter().map(|part| part.len() as u64).sum();
        let mut machine = path::Writer::default();
        let ask = machine.begin(count, ENOUGH, overflow);
        let call = Call::new(stream, parts, reason);
        self.walk(machine, ask, Call { patient, ..call })
    }

    /// The same, with a carrier that is to be left.
    #[cold]
    pub(super) fn leave_ring(&mut self, stream: &Stream, parts: &[IoSlice<'_>], patient: bool) -> Result<Step> {
        let count = parts.iter().map(|part| part.len() as u64).sum();
        let mut machine = path::Writer::default();
        let ask = machine.begin(count, ENOUGH, false);
        self.walk(machine, ask, Call { patient, leaves: true, ..Call::new(stream, parts, Reason::Demoted) })
    }

    /// Leaves the carrier, if it is used, and sends what was taken back. [`Step::Full`]: the reader cannot know yet, or TCP has no
    /// space. Once nothing can be sent any more, the carrier stays as it is: its reader finds all that was written there.
    pub(super) fn close(&mut self, stream: &Stream, reason: Reason) -> Result<Step> {
        if self.over {
            return Ok(Step::Kernel);
        }
        let mut machine = path::Writer::default();
        let ask = machine.begin_close(ENOUGH);
        self.walk(machine, ask, Call::new(stream, &[], reason))
    }

    fn walk(&mut self, mut machine: path::Writer, mut ask: Ask, mut call: Call<'_>) -> Result<Step> {
        for _ in 0..MOST_QUESTIONS {
            ask = match ask {
                // The caller does this, without the lock if it waits.
                Ask::SendTcp => return Ok(Step::Kernel),
                Ask::Done(Outcome::DONE) => return Ok(Step::Kernel),
                Ask::Done(Outcome::Moved(count)) => return Ok(Step::Sent(count as usize)),
                Ask::Done(Outcome::Wait) if call.is_empty() && call.stream.record().writing().is_within() => {
                    return Ok(Step::Sent(0));
                }
                Ask::Done(Outcome::Wait) => return Ok(Step::Full),
                Ask::Done(_) => return Err(BROKEN),
                ask => machine.step(self.carry_out(&mut call, ask)?),
            };
        }
        Err(BROKEN)
    }

    fn carry_out(&mut self, call: &mut Call<'_>, ask: Ask) -> Result<Answer> {
        let writing = call.stream.record().writing();
        let yes = |condition: bool| if condition { Answer::Yes } else { Answer::No };
        Ok(match ask {
            // Threads of one process take turns; what another holder has done to the carrier is found there.
            Ask::Owner | Ask::Lock => Answer::Yes,
            Ask::Unlock | Ask::CopyIn { .. } => Answer::Done,
            Ask::Entered => Answer::Count(call.present.into()),
            Ask::Tail(number) if number > call.present => Answer::Tail(self.next_tail(call)),
            Ask::Tail(_) => Answer::Tail(self.tail(call)?),
            Ask::Freeze(number) if number > call.present => Answer::Done,
            Ask::Freeze(_) if writing.is_within() && !self.leave_carrier(call.stream, call.reason)? => Answer::No,
            Ask::Freeze(_) => Answer::Tail(self.tail(call)?),
            Ask::TakeBack(_) => yes(self.leave_carrier(call.stream, call.reason)? && !self.back.is_empty()),
            Ask::Arrived(_) => yes(self.has_landed(call.stream)?),
            Ask::Opened => Answer::Count(self.opened(call).into()),
            Ask::Enter(number) => yes(self.enter(call, number)?),
            Ask::Head(_) => Answer::Count(self.head(call)),
            Ask::Publish { .. } => {
                self.tell_news();
                match self.ring.as_mut().map(|ring| ring.send(call.parts, call.patient)) {
                    Some(outcome) => match self.pushed(outcome)? {
                        Some(count) => {
                            tap::wrote(call.stream, call.parts, count);
                            Answer::Count(count as u64)
                        }
                        None => Answer::No,
                    },
                    None => Answer::Broken,
                }
            }
            // Of what was taken back, so much is with TCP.
            Ask::Recover => {
                let tail = writing.end().map_err(|_| BROKEN)?;
                Answer::Count(tail.position.saturating_sub(self.carried() + self.back.len() as u64))
            }
            Ask::SendBack { .. } => Answer::Count(self.send_back(call.stream)?),
            Ask::CountSent(count) => {
                call.stream.count(WRITE, count as usize);
                Answer::Done
            }
            Ask::ConfirmSent(_) => {
                let tail = writing.end().map_err(|_| BROKEN)?;
                writing.finish(Tail { end: End::Sent, ..tail }, false);
                Answer::Done
            }
            // No machine of this direction asks for anything else.
            _ => Answer::Broken,
        })
    }

    /// How the use that was begun last ends.
    fn tail(&mut self, call: &Call<'_>) -> Result<Tail> {
        let writing = call.stream.record().writing();
        let known = writing.end().map_err(|_| BROKEN)?;
        let Some(ring) = self.ring.as_mut().filter(|_| known.end == End::Open) else { return Ok(known) };
        match ring.end().map_err(|_| BROKEN)? {
            End::Open | End::Asked => {
                let asked = call.leaves || self.is_asked(call.stream);
                Ok(Tail { position: self.carried(), end: if asked { End::Asked } else { End::Open } })
            }
            End::Wanted if !call.stream.is_taken_over() => {
                Ok(Tail { position: self.carried() + self.back.len() as u64, end: End::Wanted })
            }
            // Whoever has ended it: this side goes on over TCP, and says where.
            _ if self.leave_carrier(call.stream, call.reason)? => writing.end().map_err(|_| BROKEN),
            _ => Ok(Tail { position: self.carried(), end: End::Asked }),
        }
    }

    /// How a use that was not begun would end.
    fn next_tail(&self, call: &Call<'_>) -> Tail {
        Tail { position: 0, end: if self.is_asked(call.stream) { End::Asked } else { End::Open } }
    }

    /// Whether one of the two sides wants the carrier to end, for now or for good.
    fn is_asked(&self, stream: &Stream) -> bool {
        let reading = self.carrier.as_ref().map(|carrier| carrier.peer_reading()).unwrap_or_default();
        self.left || stream.carriage.parting.load(Ordering::Relaxed) || reading.asks_to_leave()
    }

    /// Takes up the sending end of a carrier.
    #[cold]
    pub(super) fn take_up(&mut self, stream: &Stream) -> bool {
        let Some(carrier) = stream.carrier() else { return false };
        let sender = lock(&stream.carriage.inbox).as_mut().and_then(|parts| parts.outbound.take());
        let Some(sender) = sender else { return false };
        self.patience.begin();
        self.counts.begin(stream);
        let tells = carrier.teller.get().is_some();
        let count = stream.known_place().filter(|_| tells).map(|place| place.engine.kernel_news());
        self.news = count.map(|count| (count, 0));
        self.ring = Some(sender);
        self.carrier = Some(carrier);
        true
    }

    /// The machine's number of the last use that the reader has opened: the next one, when it has carried out all that were.
    fn opened(&mut self, call: &Call<'_>) -> u16 {
        if self.carrier.is_none() && !self.take_up(call.stream) {
            return 0;
        }
        let Some(carrier) = &self.carrier else { return 0 };
        let reading = carrier.peer_reading();
        let opened = reading.open && !reading.closed && reading.done == number(call.stream);
        if opened { call.present + 1 } else { call.present }
    }

    /// Begins to use the carrier, if nothing speaks against that.
    fn enter(&mut self, call: &mut Call<'_>, as_number: u16) -> Result<bool> {
        let stream = call.stream;
        let over = stream.ends.writes_over.load(Ordering::Relaxed) || stream.family.shared.load(Ordering::Relaxed);
        let lost = self.carrier.as_ref().is_none_or(|carrier| carrier.lost.load(Ordering::Relaxed));
        if over || lost || stream.calls_in_kernel(WRITE) != 0 {
            return Ok(false);
        }
        if self.dice.stays() || !set::can_open(stream) {
            return Ok(false);
        }
        if self.ring.as_ref().is_none_or(|ring| !ring.may_note()) || self.is_frozen()? {
            return Ok(false);
        }
        let writing = stream.record().writing();
        let last = writing.entered().map_err(|_| BROKEN)?.ring;
        writing.begin(Start { ring: last % MOST_USES + 1, after_tcp: stream.over_tcp(WRITE) });
        call.present = as_number;
        self.announce(stream)?;
        self.await_word();
        stream.moved(WRITE, true, Reason::Promoted);
        set::opened(stream);
        Ok(true)
    }

    /// The use was announced, and the machine looks next whether the reader wants it to end. A ring that its reader leaves has
    /// ended. The reader of a link says a word, and then looks whether this side has come: one of the two finds the other.
    fn await_word(&self) {
        let Some(carrier) = self.carrier.as_ref().filter(|carrier| !carrier.capabilities().freezes) else { return };
        if carrier.capabilities().far {
            carrier.deliver(clock::now() + landing::LEAVE_NS);
        }
        // Pairs with the one in `leaving::tell_peer`.
        fence(Ordering::SeqCst);
        carrier.watch().settle();
    }

    /// Ends the use of the carrier, at the present position. `false`: that cannot be said now.
    pub(super) fn leave_carrier(&mut self, stream: &Stream, reason: Reason) -> Result<bool> {
        let resending = match self.resending.take() {
            Some(resending) => Ok(Some(resending)),
            None => stream.begin_resending(),
        };
        let taken_over = resending.is_err();
        let Some(ring) = self.ring.as_mut() else { return Ok(false) };
        if !taken_over && !ring.may_leave() {
            // A peer that is gone has nothing more to say.
            self.check(stream)?;
            return Ok(!stream.record().writing().is_within());
        }
        // What another holder has written over TCP since comes behind what lies here, where the reader finds it when it has waited in vain.
        let back = if taken_over { Vec::new() } else { ring.take_back().map_err(|_| BROKEN)? };
        let position = ring.position();
        if !back.is_empty() {
            self.counts.took_back(position);
            resending.iter().flatten().for_each(|resending| resending.took_back(back.len()));
            self.carrier.iter().for_each(|carrier| carrier.pushed.store(position, Ordering::Relaxed));
        }
        // What was read of a file comes behind it.
        self.back.splice(..0, back);
        self.resending = resending.ok().flatten().filter(|_| !self.back.is_empty());
        let end = if self.back.is_empty() { End::Frozen } else { End::Taken };
        let tail = Tail { position: position + self.back.len() as u64, end };
        stream.record().writing().finish(tail, !taken_over);
        if taken_over {
            // Another holder has ended the carrier, and may have written over TCP since: where this direction changed its path
            // is told by the end of the carrier alone.
            stream.moved(WRITE, false, Reason::OtherHolder);
            return Ok(true);
        }
        self.landing = Some((reason, None));
        self.announce_at(stream, position)?;
        self.await_landing(stream, landing::LEAVE_NS);
        Ok(true)
    }

    /// Announces the switch to the carrier.
    fn announce(&mut self, stream: &Stream) -> Result<()> {
        self.announce_at(stream, self.carried())
    }

    /// Announces the switch that the words tell of, with the carrier written so far.
    fn announce_at(&mut self, stream: &Stream, position: u64) -> Result<()> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let switch = Switch { position: stream.position(WRITE, position), number: number(stream) };
        // Its word for the end stays.
        let ended = if stream.ends.sends_no_more.load(Ordering::SeqCst) { ENDED } else { 0 };
        self.note = (Switch::note(switch.number), switch.to_note() | ended);
        ring.set_note(self.note.0, self.note.1).map_err(|_| BROKEN)
    }

    /// How far the machine takes the reader to have come: so that the carrier is full or not, or to where what was taken back
    /// begins.
    fn head(&mut self, call: &Call<'_>) -> u64 {
        let full = call.stream.record().writing().is_within() && self.space() == 0;
        self.carried().wrapping_sub(if full { ENOUGH } else { 0 })
    }

    /// Sends what was taken back, as far as TCP has space now. Returns how much.
    fn send_back(&mut self, stream: &Stream) -> Result<u64> {
        let parts = [IoSlice::new(&self.back)];
        match kernel::send(stream.fd(), &parts, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
            Ok(count) => {
                self.back.drain(..count);
                if self.back.is_empty() {
                    // They were with the reader before.
                    kernel::push_out(stream.fd());
                    self.resending = None;
                }
                Ok(count as u64)
            }
            Err(Errno(libc::EAGAIN)) => {
                // A sleep that follows ends in time.
                if let Some(carrier) = &self.carrier {
                    self.patience.stall(carrier);
                }
                Ok(0)
            }
            Err(errno) => {
                self.back.clear();
                self.resending = None;
                Err(errno)
            }
        }
    }
}

impl<'a> Call<'a> {
    fn new(stream: &'a Stream, parts: &'a [IoSlice<'a>], reason: Reason) -> Call<'a> {
        let begun = stream.record().writing().entered().is_ok_and(|start| start.ring != 0);
        Call { stream, parts, patient: false, leaves: false, reason, present: begun.into() }
    }

    fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.is_empty())
    }
}

/// The number of the last switch that was announced, or that the end of the carrier stands for.
pub(super) fn number(stream: &Stream) -> u8 {
    let writing = stream.record().writing();
    let uses = writing.entered().map_or(0, |start| start.ring);
    (2 * uses).wrapping_sub(writing.is_within().into()) as u8 & 0x7f
}
