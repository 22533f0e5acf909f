//! Reading calls.

use std::io::IoSliceMut;

use super::{
    ASKED, Anchor, BEGIN_NOTE, Bad, END_NOTE, Holders, OPEN, Record, Result, checked, drive, finish, locked, yes,
};
use crate::{
    carrier::{AnyInbound, AnyWatch, Inbound, Mode, Watch},
    path::{Answer, Ask, End, GiveBack, Outcome, Reader, Start, Tail},
    record::{Direction, Position},
};

/// The present carrier, as a reading process has it.
#[derive(Debug)]
pub struct Inward<'a> {
    /// Its number, by which it was [mounted](Record::mount).
    pub number: u16,
    /// Its receiving half.
    pub half: &'a mut AnyInbound,
    /// What its peer says.
    pub watch: &'a AnyWatch,
}

/// What one receiving call works on.
#[derive(Debug)]
pub struct ReadCall<'a, 'm, A, H> {
    /// The record of this end.
    pub record: &'a Record,
    /// The present carrier, if this process can reach it.
    pub carrier: Option<Inward<'a>>,
    /// The anchor.
    pub anchor: &'a mut A,
    /// Who else holds it.
    pub holders: &'a mut H,
    /// The caller's memory.
    pub parts: &'a mut [IoSliceMut<'m>],
}

impl<'a, A: Anchor, H: Holders> ReadCall<'a, '_, A, H> {
    /// Reads what is there. `look`: the anchor has news, or nobody has looked.
    pub fn read(&mut self, look: bool) -> Outcome {
        let mut reader = Reader::default();
        let room = self.parts.iter().map(|part| part.len() as u64).sum();
        let mut ask = reader.begin(room, look);
        let outcome = drive(|| {
            ask = reader.step(self.carry_out(ask));
            ask
        });
        self.settle();
        finish(outcome, self.holders, Direction::Read)
    }

    /// Gives the carrier back ([`GiveBack`]).
    pub fn give_back(&mut self) -> Outcome {
        let mut give_back = GiveBack::default();
        let mut ask = give_back.begin(self.freezes());
        drive(|| {
            ask = give_back.step(self.carry_out(ask));
            ask
        })
    }

    /// Opens the present carrier: every wait of this end covers it from now on, in all threads. `false`: it is open, or over,
    /// or this process does not have it.
    pub fn open(&mut self) -> bool {
        let Some(inward) = &mut self.carrier else { return false };
        let reading = self.record.reading();
        let fresh = (reading.mounted(), reading.over(), reading.opened());
        let fresh = matches!(fresh, (Ok(mounted), Ok(over), Ok(opened))
            if mounted == inward.number && over < mounted && opened < mounted);
        if fresh && self.holders.is_sole() {
            reading.open(inward.number);
            return inward.half.set_note(OPEN).is_ok();
        }
        false
    }

    /// Whether either end can end the present carrier.
    pub fn freezes(&self) -> bool {
        self.carrier.as_ref().is_some_and(|inward| inward.watch.capabilities().freezes)
    }

    /// Tells the writer what was committed. At the end of a call, and by the next one if its process has died.
    pub fn settle(&mut self) {
        let (Some(inward), Ok(position)) = (&mut self.carrier, self.record.reading().position()) else { return };
        let behind = position.at.saturating_sub(inward.half.position());
        if position.carrier == inward.number && behind > 0 {
            // What is wrong with the peer's words is found by the next look.
            let _ = inward.half.consume(behind as usize);
        }
    }

    /// Carries one question out. For a caller that makes each step by itself; [`read`](Self::read) makes them all.
    pub fn carry_out(&mut self, ask: Ask) -> Answer {
        let reading = self.record.reading();
        match ask {
            Ask::Owner => checked(reading.is_owner(self.holders.own()).map(yes)),
            Ask::TakeOver => {
                reading.take_over();
                Answer::Done
            }
            Ask::Start => checked(self.start().map(Answer::Start)),
            Ask::Tail(ring) => checked(self.tail(ring).map(Answer::Tail)),
            Ask::Freeze(ring) => checked(self.freeze(ring).map(Answer::Tail)),
            Ask::Opened => checked(reading.opened().map(|opened| Answer::Count(opened.into()))),
            Ask::TcpTaken => Answer::Count(reading.tcp_taken()),
            Ask::CountTaken(count) => {
                reading.count_taken(count);
                Answer::Done
            }
            Ask::Recover => {
                let kernel = self.anchor.received();
                reading.recover(kernel);
                checked(self.start().map(|start| Answer::Count(kernel.saturating_sub(start.after_tcp))))
            }
            Ask::Position(ring) => checked(self.position(ring)),
            Ask::CopyOut { ring, at, count } => checked(self.copy_out(ring, at, count)),
            Ask::Commit { ring, from, to } => yes(reading.commit(ring, from, to)),
            Ask::Offer { ring, at } => yes(reading.offer(ring, at)),
            Ask::Resume { ring, from, to } => yes(reading.resume(ring, from, to)),
            Ask::Want { ring, .. } => checked(self.want(ring)),
            Ask::Withdraw(ring) => checked(self.withdraw(ring)),
            // A ring does not give back what was taken from it.
            Ask::Reclaim(_) => Answer::No,
            Ask::Request(ring) => checked(self.request(ring)),
            Ask::TellHead { .. } => {
                self.settle();
                Answer::Done
            }
            Ask::Lock => locked(self.holders.try_lock(Direction::Read)),
            Ask::Unlock => {
                self.holders.unlock(Direction::Read);
                Answer::Done
            }
            Ask::Pending => {
                let (bytes, ended) = self.anchor.pending();
                Answer::Pending { bytes, ended }
            }
            Ask::TakeTcp(count) => Answer::Count(self.anchor.receive(self.parts, count as usize) as u64),
            // No machine of this direction asks for these.
            Ask::Head(_)
            | Ask::Entered
            | Ask::Enter(_)
            | Ask::CopyIn { .. }
            | Ask::Publish { .. }
            | Ask::TakeBack(_)
            | Ask::SendBack { .. }
            | Ask::ConfirmSent(_)
            | Ask::Arrived(_)
            | Ask::Forget(_)
            | Ask::SendTcp
            | Ask::CountSent(_)
            | Ask::Done(_) => Answer::Broken,
        }
    }

    /// Where the present carrier begins. One that is over, or not opened, does not.
    fn start(&mut self) -> Result<Start> {
        let reading = self.record.reading();
        let opened = reading.opened()?;
        if opened == 0 || reading.over()? >= opened {
            return Ok(Start::default());
        }
        let inward = self.inward(opened)?;
        let start = Start::from_word(inward.watch.writer_note(BEGIN_NOTE));
        if start.ring == 0 || start.ring == opened { Ok(start) } else { Err(Bad) }
    }

    fn tail(&mut self, ring: u16) -> Result<Tail> {
        let reading = self.record.reading();
        let position = reading.position()?;
        if reading.over()? >= ring {
            return Ok(Tail { position: if position.carrier == ring { position.at } else { 0 }, end: End::Frozen });
        }
        self.settle();
        let inward = self.inward(ring)?;
        inward.half.settle();
        let freezes = inward.watch.capabilities().freezes;
        // The end before the bytes: nothing comes behind it.
        let end = match freezes {
            true if inward.half.is_taken() => End::Taken,
            true if inward.half.has_end() => End::Frozen,
            true => End::Open,
            false => Tail::from_word(inward.watch.writer_note(END_NOTE)).ok_or(Bad)?.end,
        };
        let come = inward.half.position() + inward.half.available() as u64;
        let written = inward.watch.written();
        let end = match end {
            End::Taken | End::Sent if freezes => End::Taken,
            End::Frozen | End::Open if freezes && reading.is_wanted() => End::Wanted,
            End::Frozen => End::Frozen,
            End::Open if reading.has_asked() => End::Asked,
            End::Open => End::Open,
            _ => return Err(Bad),
        };
        // Bytes that are wanted are hidden by the half, and those that were taken are not its any more.
        let come = if matches!(end, End::Wanted | End::Taken) { written } else { come };
        let unread = come.checked_sub(position.at).ok_or(Bad)?;
        let over = match end {
            End::Frozen => unread == 0 && !position.offered,
            // They have come over TCP.
            End::Taken => reading.tcp_taken() >= self.start()?.after_tcp + unread,
            _ => false,
        };
        if over {
            reading.set_over(ring);
        }
        Ok(Tail { position: come, end })
    }

    fn position(&self, ring: u16) -> Result<Answer> {
        let position = self.record.reading().position()?;
        match position.carrier == ring {
            true => Ok(Answer::Position { at: position.at, offered: position.offered }),
            false if self.record.reading().over()? >= ring => Ok(Answer::Position { at: 0, offered: false }),
            false => Err(Bad),
        }
    }

    fn freeze(&mut self, ring: u16) -> Result<Tail> {
        if self.record.reading().over()? < ring {
            let inward = self.inward(ring)?;
            if let Some(frozen) = inward.half.freeze() {
                frozen?;
                inward.watch.nudge();
            }
        }
        self.tail(ring)
    }

    fn copy_out(&mut self, ring: u16, at: u64, count: u64) -> Result<Answer> {
        // Where another holder has gone on meanwhile, the commit fails.
        if self.record.reading().over()? >= ring {
            return Ok(Answer::Done);
        }
        self.settle();
        let (Some(inward), parts) = (&mut self.carrier, &mut *self.parts) else { return Err(Bad) };
        if inward.number != ring {
            return Err(Bad);
        }
        if inward.half.position() == at {
            let copied = inward.half.receive_parts(parts, Mode::Peek)? as u64;
            // Bytes that were offered back meanwhile are hidden, and cannot be committed either.
            let committable = Position { carrier: ring, at, offered: false };
            if copied < count && self.record.reading().position()? == committable {
                return Err(Bad);
            }
        }
        Ok(Answer::Done)
    }

    fn want(&mut self, ring: u16) -> Result<Answer> {
        let reading = self.record.reading();
        if reading.over()? >= ring {
            return Ok(Answer::No);
        }
        let inward = self.inward(ring)?;
        // One that ends already is read here. If it ends just now, its writer does not take what is wanted.
        if inward.half.has_end() {
            return Ok(Answer::No);
        }
        reading.set_wanted(true);
        let wanted = inward.half.want().ok_or(Bad)??;
        inward.watch.nudge();
        if !wanted {
            reading.set_wanted(false);
        }
        Ok(yes(wanted))
    }

    fn withdraw(&mut self, ring: u16) -> Result<Answer> {
        if self.record.reading().over()? >= ring {
            return Ok(Answer::Done);
        }
        let inward = self.inward(ring)?;
        inward.half.withdraw()?;
        if !inward.half.is_taken() {
            inward.half.freeze().ok_or(Bad)??;
            self.record.reading().set_wanted(false);
        }
        Ok(Answer::Done)
    }

    fn request(&mut self, ring: u16) -> Result<Answer> {
        if self.record.reading().over()? >= ring {
            return Ok(Answer::Done);
        }
        self.record.reading().ask();
        self.inward(ring)?.half.set_note(OPEN | ASKED)?;
        Ok(Answer::Done)
    }

    fn inward(&mut self, ring: u16) -> Result<&mut Inward<'a>> {
        self.carrier.as_mut().filter(|inward| inward.number == ring).ok_or(Bad)
    }
}
