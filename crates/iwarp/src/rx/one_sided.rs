//! Segments that touch memory by its tag, and the answers to this end's reads and atomics.

use super::Around;
use crate::event::Outcome;
use crate::fault::Fault;
use crate::host::{Host, Target};
use crate::mem::Access;
use crate::tx::{Response, Unanswered};
use sidestep_wire::mpa::fpdu;
use sidestep_wire::rdmap::{Opcode, atomic_request, atomic_response, read_request};
use sidestep_wire::{Msn, Stag, TaggedOffset};
use std::ops::Range;

pub(super) fn write<H: Host>(
    packet: &fpdu::Packet<&[u8]>,
    payload: Range<usize>,
    stag: Stag,
    offset: TaggedOffset,
    around: &mut Around<'_, H>,
) -> Result<(), Fault> {
    // RFC 5041 §5.2: the tag of a message of length zero is not looked at.
    if payload.is_empty() {
        return Ok(());
    }
    let len = payload.len() as u64;
    let start = around
        .table
        .check(Access::RemoteWrite, around.identity, stag, offset, len)
        .map_err(|fault| Fault::Write { fault, stag, offset, len })?;
    place(packet, payload, around.host, |at| Target::Region { stag, offset: start + at });
    Ok(())
}

/// An answer must continue exactly what was asked for; the buffer's owner may also have withdrawn it.
pub(super) fn read_response<H: Host>(
    packet: &fpdu::Packet<&[u8]>,
    payload: Range<usize>,
    last: bool,
    stag: Stag,
    offset: TaggedOffset,
    around: &mut Around<'_, H>,
) -> Result<(), Fault> {
    let Some(Unanswered::Read { number, sink, next, remaining }) = around.tx.unanswered.front_mut() else {
        return Err(Fault::UnexpectedResponse { opcode: Opcode::ReadResponse });
    };
    let (len, due) = (payload.len() as u64, u64::from(*remaining));
    if due > 0 && stag != *sink {
        return Err(Fault::ResponseStag { expected: *sink, found: stag });
    }
    if len > due || (due > 0 && offset != *next) || last != (len == due) {
        return Err(Fault::ResponseRange { expected_at: *next, expected_len: due, found_at: offset, found_len: len });
    }
    if len > 0 {
        let start = around
            .table
            .check(Access::ReadSink, around.identity, stag, offset, len)
            .map_err(|fault| Fault::Write { fault, stag, offset, len })?;
        place(packet, payload, around.host, |at| Target::Region { stag, offset: start + at });
    }
    *next = TaggedOffset(next.0.wrapping_add(len));
    *remaining -= len as u32;
    if last {
        let number = *number;
        around.tx.unanswered.pop_front();
        if let Some(number) = number {
            around.tx.ledger.complete(number, Outcome::Read);
        }
    }
    Ok(())
}

pub(super) fn read_request<H: Host>(
    msn: Msn,
    request: read_request::Repr,
    around: &mut Around<'_, H>,
) -> Result<(), Fault> {
    let read_request::Repr { size, source: stag, source_offset: offset, .. } = request;
    // RFC 5040 §5.2.1: the source of a read of length zero is not looked at.
    let mut at = 0;
    if size > 0 {
        let len = u64::from(size);
        let checked = around.table.check(Access::RemoteRead, around.identity, stag, offset, len);
        at = checked.map_err(|fault| Fault::Read { fault, stag, offset, len })?;
    }
    around.host.read(stag, at, size);
    around.tx.waiting.responses.push_back(Response::Read { msn, request });
    Ok(())
}

pub(super) fn atomic_request<H: Host>(request: atomic_request::Repr, around: &mut Around<'_, H>) -> Result<(), Fault> {
    let atomic_request::Repr { id, stag, offset, operation } = request;
    let at = around
        .table
        .check(Access::RemoteAtomic, around.identity, stag, offset, WORD)
        .map_err(|fault| Fault::Atomic { fault, stag, offset })?;
    if at % WORD != 0 {
        return Err(Fault::Unaligned { stag, offset });
    }
    let original = around.host.atomic(stag, at, operation);
    around.tx.waiting.responses.push_back(Response::Atomic(atomic_response::Repr { id, original }));
    Ok(())
}

pub(super) fn atomic_response<H: Host>(
    response: atomic_response::Repr,
    around: &mut Around<'_, H>,
) -> Result<(), Fault> {
    let Some(Unanswered::Atomic { number, id }) = around.tx.unanswered.front().copied() else {
        return Err(Fault::UnexpectedResponse { opcode: Opcode::AtomicResponse });
    };
    if response.id != id {
        return Err(Fault::ResponseId { expected: id, found: response.id });
    }
    around.tx.unanswered.pop_front();
    around.tx.ledger.complete(number, Outcome::Atomic { original: response.original });
    Ok(())
}

/// Hands the payload to the host, piece by piece between markers.
pub(super) fn place<H: Host>(
    packet: &fpdu::Packet<&[u8]>,
    payload: Range<usize>,
    host: &mut H,
    target: impl Fn(u64) -> Target,
) {
    let mut at = 0;
    for chunk in packet.chunks(payload) {
        host.place(target(at), chunk);
        at += chunk.len() as u64;
    }
}

/// The length of the word of an atomic.
const WORD: u64 = 8;
