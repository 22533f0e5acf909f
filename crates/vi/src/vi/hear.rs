//! What the sending side hears from the receiving one: posted receives, what was placed, and memory within reach.

use sidestep_wire::cursor::little::Reader;

use crate::{
    attributes::MAX_DESCRIPTORS,
    code::Status,
    descriptor::Operation,
    entry::{CREDIT, Credit, Fault, Header, MAX_CREDITS, Reach, ReachWay},
    trunk::Source,
    vi::{
        item::Stage,
        state::{Loss, State},
    },
};

/// Memory of the peer that is remembered.
const MAX_REACHES: usize = 1024;

impl State {
    /// The peer has posted receives.
    #[inline]
    pub(crate) fn take_posted(&mut self, header: &Header, source: &mut Source<'_>) -> Result<(), Loss> {
        let Some(line) = &mut self.line else { return Ok(()) };
        let len = header.len as usize;
        let mut bytes = [0; CREDIT * MAX_CREDITS];
        let bytes = bytes.get_mut(..len).filter(|_| len % CREDIT == 0).ok_or("a bad number of cookies")?;
        source.read(header, bytes)?;
        line.told = true;
        let mut fields = Reader::new(bytes);
        let credits = std::iter::from_fn(|| Credit::read(&mut fields));
        for (index, credit) in credits.enumerate() {
            let number = header.value.wrapping_add(index as u32);
            let next = line.sent.wrapping_add(line.credits.len() as u32);
            match number.wrapping_sub(next) as i32 {
                // It was used before it was told.
                ..0 => {}
                0 if line.credits.len() < MAX_DESCRIPTORS => line.credits.push(credit),
                _ => return Err("cookies out of turn".into()),
            }
        }
        if self.sends.is_busy() {
            self.pump_sends();
        }
        Ok(())
    }

    /// The peer has told of memory that this side can reach.
    pub(crate) fn take_reach(&mut self, header: &Header, source: &mut Source<'_>) -> Result<(), Loss> {
        let mut bytes = [0; Reach::LEN];
        source.read(header, &mut bytes)?;
        let Some(line) = &mut self.line else { return Ok(()) };
        let reach = Reach::read(&mut Reader::new(&bytes)).ok_or("a reach that ends early")?;
        if let ReachWay::Attached { turn: now, .. } = reach.way {
            if line.route.trunk.attachment().is_none() {
                return Ok(());
            }
            line.reach.theirs.retain(|reach| !matches!(reach.way, ReachWay::Attached { turn, .. } if turn != now));
        }
        if line.reach.theirs.len() < MAX_REACHES {
            line.reach.theirs.push(reach);
        }
        Ok(())
    }

    /// The peer has placed so many.
    pub(crate) fn take_placed(&mut self, count: u32) -> Result<(), Loss> {
        for _ in 0..count {
            self.end_answered(Status(0))?;
        }
        self.pump_sends();
        Ok(())
    }

    /// The peer could not take one.
    pub(crate) fn take_failed(&mut self, header: &Header) -> Result<(), Loss> {
        let status = match Fault::from_bits(header.extra) {
            Some(Fault::Protection) => Status::RDMA_PROT_ERROR,
            Some(_) => Status::REMOTE_DESC_ERROR,
            None => return Err("an unknown fault".into()),
        };
        self.end_answered(status)?;
        // What came behind it was not looked at.
        for item in self.sends.items.iter_mut().filter(|item| matches!(item.stage, Stage::Answer)) {
            item.stage = Stage::Ended(Status::FLUSHED);
        }
        Err(Loss::TOLD)
    }

    fn end_answered(&mut self, status: Status) -> Result<(), Loss> {
        let item = self.sends.answered()?;
        item.stage = Stage::Ended(status);
        if let (Operation::RdmaWrite(_), Some(line)) = (item.operation, &mut self.line) {
            line.writes = line.writes.saturating_sub(1);
        }
        Ok(())
    }

    /// The answer to a read is complete.
    pub(crate) fn finish_read(&mut self, header: &Header, failed: Option<Status>) -> Result<(), Loss> {
        let found = self.sends.items.iter_mut().find(|item| matches!(item.stage, Stage::Reading));
        let item = found.ok_or("data that nobody asked for")?;
        self.sends.reads -= 1;
        let status = match header.extra {
            0 => failed.unwrap_or(Status(0)),
            _ => Status::RDMA_PROT_ERROR,
        };
        item.stage = Stage::Ended(status);
        if status.is_error() {
            return Err(Loss::TOLD);
        }
        self.pump_sends();
        Ok(())
    }
}
