//! Writing calls.

use std::io::IoSlice;

use super::{
    ASKED, Anchor, BEGIN_NOTE, Bad, END_NOTE, Holders, OPEN, Record, Result, checked, drive, finish, locked, yes,
};
use crate::{
    carrier::{AnyOutbound, AnyWatch, Fault, Outbound, Watch},
    path::{Answer, Ask, End, Outcome, Start, Tail, Writer},
    record::Direction,
};

/// The present carrier, as a writing process has it.
#[derive(Debug)]
pub struct Outward<'a> {
    /// Its number, by which it was [mounted](Record::mount).
    pub number: u16,
    /// Its sending half. One that holds bytes back has been told not to ([`Watch::set_prompt`]).
    pub half: &'a mut AnyOutbound,
    /// What its peer says.
    pub watch: &'a AnyWatch,
    /// Bytes that fit into it.
    pub capacity: u64,
}

/// What one sending call works on.
#[derive(Debug)]
pub struct WriteCall<'a, A, H> {
    /// The record of this end.
    pub record: &'a Record,
    /// The present carrier, if this process can reach it.
    pub carrier: Option<Outward<'a>>,
    /// The anchor.
    pub anchor: &'a mut A,
    /// Who else holds it.
    pub holders: &'a mut H,
    /// The caller's bytes.
    pub parts: &'a [IoSlice<'a>],
    /// Bytes that were taken back and are not with TCP yet: empty before and after each call.
    pub taken: &'a mut Vec<u8>,
}

impl<'a, A: Anchor, H: Holders> WriteCall<'a, A, H> {
    /// Writes what fits. `overflow`: a full carrier is not waited for, but left.
    pub fn write(&mut self, overflow: bool) -> Outcome {
        let mut writer = Writer::default();
        let count = self.parts.iter().map(|part| part.len() as u64).sum();
        let ask = writer.begin(count, self.capacity(), overflow);
        self.run(writer, ask)
    }

    /// Ends the carrier: before the anchor is closed or shut down by its last holder, and before `fork` where a child cannot reach
    /// the carrier.
    pub fn close(&mut self) -> Outcome {
        let mut writer = Writer::default();
        let ask = writer.begin_close(self.capacity());
        self.run(writer, ask)
    }

    /// Parts with the carrier ([`Writer::begin_part`]).
    pub fn part(&mut self) -> Outcome {
        let Some(number) = self.carrier.as_ref().map(|outward| outward.number) else { return Outcome::DONE };
        let mut writer = Writer::default();
        let ask = writer.begin_part(number, self.capacity());
        self.run(writer, ask)
    }

    fn run(&mut self, mut writer: Writer, mut ask: Ask) -> Outcome {
        let outcome = drive(|| {
            ask = writer.step(self.carry_out(ask));
            ask
        });
        finish(outcome, self.holders, Direction::Write)
    }

    /// Bytes that fit into the present carrier.
    pub fn capacity(&self) -> u64 {
        self.carrier.as_ref().map_or(0, |outward| outward.capacity)
    }

    /// Carries one question out. For a caller that makes each step by itself.
    pub fn carry_out(&mut self, ask: Ask) -> Answer {
        let writing = self.record.writing();
        match ask {
            Ask::Owner => checked(writing.is_owner(self.holders.own()).map(yes)),
            Ask::TakeOver => {
                writing.take_over();
                Answer::Done
            }
            Ask::Entered => checked(writing.entered().map(|start| Answer::Count(start.ring.into()))),
            Ask::Tail(ring) => checked(self.tail(ring).map(Answer::Tail)),
            Ask::Head(ring) => {
                checked(self.outward(ring).map(|outward| Answer::Count(outward.watch.read() & POSITION)))
            }
            Ask::Opened => Answer::Count(self.opened()),
            Ask::Freeze(ring) => checked(self.freeze(ring).map(Answer::Tail)),
            Ask::Enter(ring) => checked(self.enter(ring)),
            // A half copies and publishes at once.
            Ask::CopyIn { .. } => Answer::Done,
            Ask::Publish { ring, .. } => checked(self.publish(ring)),
            Ask::TakeBack(ring) => checked(self.take_back(ring)),
            Ask::SendBack { from, to, .. } => {
                if self.taken.len() as u64 != to - from {
                    return Answer::Broken;
                }
                let bytes = std::mem::take(self.taken);
                self.anchor.send_all(&bytes);
                Answer::Count(to - from)
            }
            Ask::Arrived(ring) => yes(self.has_arrived(ring)),
            Ask::ConfirmSent(_) => checked(writing.end().map(|tail| {
                writing.set_end(tail, Tail { end: End::Sent, ..tail });
                Answer::Done
            })),
            Ask::Recover => {
                let kernel = self.anchor.sent();
                writing.recover(kernel);
                checked(writing.entered().map(|start| Answer::Count(kernel.saturating_sub(start.after_tcp))))
            }
            Ask::Forget(ring) => {
                writing.forget(ring);
                Answer::Done
            }
            Ask::SendTcp => Answer::Count(self.anchor.send(self.parts) as u64),
            Ask::CountSent(count) => {
                writing.count_sent(count);
                Answer::Done
            }
            Ask::Lock => locked(self.holders.try_lock(Direction::Write)),
            Ask::Unlock => {
                self.holders.unlock(Direction::Write);
                Answer::Done
            }
            // No machine of this direction asks for these.
            Ask::Start
            | Ask::TcpTaken
            | Ask::CountTaken(_)
            | Ask::Position(_)
            | Ask::CopyOut { .. }
            | Ask::Commit { .. }
            | Ask::Withdraw(_)
            | Ask::Resume { .. }
            | Ask::Reclaim(_)
            | Ask::Offer { .. }
            | Ask::TellHead { .. }
            | Ask::Want { .. }
            | Ask::Request(_)
            | Ask::Pending
            | Ask::TakeTcp(_)
            | Ask::Done(_) => Answer::Broken,
        }
    }

    fn tail(&mut self, ring: u16) -> Result<Tail> {
        let writing = self.record.writing();
        // One that is not mounted any more is over.
        if self.record.reading().mounted()? != ring || writing.forgotten()? >= ring {
            return Ok(Tail { position: 0, end: End::Sent });
        }
        let kept = writing.end()?;
        if kept.end != End::Open {
            return Ok(kept);
        }
        let outward = self.outward(ring)?;
        let end = match outward.watch.capabilities().freezes {
            true => outward.half.end()?,
            false if outward.watch.reader_note() & ASKED != 0 => End::Asked,
            false => End::Open,
        };
        let tail = Tail { position: outward.half.position(), end };
        if end == End::Frozen {
            // From now on bytes may go over TCP: what its reader wants later comes too late.
            writing.set_end(Tail::default(), tail);
        }
        Ok(tail)
    }

    /// What is gone has nothing on its way.
    fn has_arrived(&mut self, ring: u16) -> bool {
        self.outward(ring).map_or(true, |outward| outward.half.has_arrived(&mut None) || !outward.watch.stands())
    }

    fn opened(&self) -> u64 {
        match &self.carrier {
            Some(outward) if outward.watch.reader_note() & OPEN != 0 => outward.number.into(),
            _ => 0,
        }
    }

    fn freeze(&mut self, ring: u16) -> Result<Tail> {
        let tail = self.tail(ring)?;
        if matches!(tail.end, End::Open | End::Asked) {
            let writing = self.record.writing();
            let outward = self.outward(ring)?;
            match outward.half.freeze() {
                Some(Ok(())) => {}
                Some(Err(Fault::Broken | Fault::Frozen)) => return Err(Bad),
                // There is no such word, or no peer that would look at it.
                Some(Err(Fault::Closed)) | None => {
                    let end = Tail { position: tail.position, end: End::Frozen };
                    writing.set_end(Tail::default(), end);
                    // A peer that is gone does not miss it.
                    let _ = outward.half.set_note(END_NOTE, end.to_word());
                }
            }
        }
        self.tail(ring)
    }

    fn enter(&mut self, ring: u16) -> Result<Answer> {
        let writing = self.record.writing();
        let counted = writing.tcp_sent() == self.anchor.sent();
        if !counted || !self.holders.is_sole() {
            return Ok(Answer::No);
        }
        let start = Start { ring, after_tcp: writing.tcp_sent() };
        let outward = self.outward(ring)?;
        // The note before the record: a process that dies in between has begun nothing.
        if outward.half.set_note(BEGIN_NOTE, start.to_word()).is_err() {
            return Ok(Answer::No);
        }
        writing.enter(start);
        Ok(Answer::Yes)
    }

    fn publish(&mut self, ring: u16) -> Result<Answer> {
        let parts = self.parts;
        let outward = self.outward(ring)?;
        match outward.half.send(parts, false) {
            Ok(count) => Ok(Answer::Count(count as u64)),
            Err(Fault::Frozen) => Ok(Answer::No),
            // The peer's process is gone, and the anchor will say what that means.
            Err(Fault::Closed) => self.freeze(ring).map(|_| Answer::No),
            Err(Fault::Broken) => Err(Bad),
        }
    }

    fn take_back(&mut self, ring: u16) -> Result<Answer> {
        let outward = self.outward(ring)?;
        let position = outward.half.position();
        let bytes = outward.half.take_back()?;
        if bytes.is_empty() {
            return Ok(Answer::No);
        }
        let taken = Tail { position, end: End::Taken };
        self.record.writing().set_end(Tail::default(), taken);
        *self.taken = bytes;
        Ok(Answer::Yes)
    }

    fn outward(&mut self, ring: u16) -> Result<&mut Outward<'a>> {
        self.carrier.as_mut().filter(|outward| outward.number == ring).ok_or(Bad)
    }
}

/// The word of how far a peer has read may say more than that.
const POSITION: u64 = (1 << 48) - 1;
