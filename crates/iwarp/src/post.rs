//! What the program above posts.

use crate::connection::{Connection, Phase};
use crate::error::Error;
use crate::event::WorkId;
use crate::gather::SourceSlice;
use crate::mem::{Access, MemoryTable};
use crate::rx::Receive;
use crate::tx::Request;
use sidestep_wire::rdmap::atomic_request::Operation;
use sidestep_wire::rdmap::read_request;
use sidestep_wire::rdmap::segment::SendKind;
use sidestep_wire::{Stag, TaggedOffset};

impl Connection {
    /// Posts a buffer of `capacity` bytes for one message of the peer. Allowed before the connection
    /// is established, so that no message comes too early.
    pub fn post_receive(&mut self, work: WorkId, capacity: u32) -> Result<(), Error> {
        if matches!(self.phase, Phase::Ending | Phase::Finished { receiving: false } | Phase::Closed { .. }) {
            return Err(Error::NotOpen);
        }
        self.check_room(self.rx.receives.len())?;
        self.rx.receives.push_back(Receive { work, capacity });
        Ok(())
    }

    /// Posts a message for the peer's next receive buffer.
    pub fn post_send(&mut self, work: WorkId, source: SourceSlice, kind: SendKind) -> Result<(), Error> {
        self.post(work, Request::Send { source, kind })
    }

    /// Posts a message that goes out before all requests and answers that have not begun to.
    pub fn post_send_first(&mut self, work: WorkId, source: SourceSlice, kind: SendKind) -> Result<(), Error> {
        self.check_open()?;
        self.check_room(self.tx.ledger.len())?;
        self.tx.post_first(work, Request::Send { source, kind });
        Ok(())
    }

    /// Posts a write to the peer's memory.
    pub fn post_write(
        &mut self,
        work: WorkId,
        source: SourceSlice,
        sink: Stag,
        offset: TaggedOffset,
    ) -> Result<(), Error> {
        self.post(work, Request::Write { source, sink, offset })
    }

    /// Posts immediate data for the peer's next receive buffer; it comes after what was posted before.
    pub fn post_immediate(&mut self, work: WorkId, data: u64, solicited: bool) -> Result<(), Error> {
        self.post(work, Request::Immediate { data, solicited })
    }

    /// Posts a read of the peer's memory into a region of one's own.
    pub fn post_read(&mut self, work: WorkId, request: read_request::Repr, table: &MemoryTable) -> Result<(), Error> {
        let read_request::Repr { sink: stag, sink_offset: offset, size, .. } = request;
        let len = u64::from(size);
        if len > 0 {
            table.check(Access::ReadSink, self.config.identity, stag, offset, len).map_err(|fault| Error::Memory {
                fault,
                stag,
                offset,
                len,
            })?;
        }
        self.check_depth()?;
        self.post(work, Request::Read(request))
    }

    /// Posts an operation on eight bytes of the peer's memory.
    pub fn post_atomic(
        &mut self,
        work: WorkId,
        stag: Stag,
        offset: TaggedOffset,
        operation: Operation,
    ) -> Result<(), Error> {
        self.check_depth()?;
        self.post(work, Request::Atomic { stag, offset, operation })
    }

    fn post(&mut self, work: WorkId, request: Request) -> Result<(), Error> {
        self.check_open()?;
        self.check_room(self.tx.ledger.len())?;
        self.tx.post(work, request);
        Ok(())
    }

    fn check_open(&self) -> Result<(), Error> {
        if matches!(self.phase, Phase::Operating) { Ok(()) } else { Err(Error::NotOpen) }
    }

    fn check_room(&self, used: usize) -> Result<(), Error> {
        let limit = self.config.queue_limit;
        if used < limit { Ok(()) } else { Err(Error::QueueFull { limit }) }
    }

    /// Fails unless the peer can answer a read or an atomic.
    fn check_depth(&self) -> Result<(), Error> {
        if !matches!(self.phase, Phase::Operating) || self.peer_finished {
            return Err(Error::NotOpen);
        }
        if self.tx.read_depth() == 0 { Err(Error::NoReadDepth) } else { Ok(()) }
    }
}
