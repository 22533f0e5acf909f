//! The calls of one RDMA connection, in the order in which they came, while their read chunks are read. Those of several calls
//! are read at a time, so that the link is kept busy.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use sidestep_iwarp::{Rights, Stag, WorkId};
use sidestep_wire::rpcrdma::ReadSegment;
use sidestep_wire::rpcrdma::header::{Header, Kind};

use crate::rdma::{CREDITS, KEPT, Line, Message, assemble, protocol};

#[derive(Default)]
pub(super) struct Gathering {
    calls: VecDeque<Call>,
    /// Bytes of the chunks that are being read, or were and wait for their turn.
    bytes: usize,
    /// Memory for chunks.
    spare: Vec<Vec<u8>>,
    /// The greatest length of a message.
    limit: usize,
}

struct Call {
    message: Message,
    chunks: Chunks,
}

enum Chunks {
    Absent,
    Wanted(Vec<ReadSegment>),
    Reading(Reading),
    /// They do not fit together.
    Impossible,
}

struct Reading {
    segments: Vec<ReadSegment>,
    sink: Stag,
    outstanding: Vec<WorkId>,
    /// The client must have answered by then.
    until: Instant,
}

/// A call that is all here.
pub(super) struct Gathered {
    /// What came by itself.
    pub message: Message,
    pub whole: Whole,
}

/// A call with its read chunks where they belong.
pub(super) enum Whole {
    /// There are none.
    Inline,
    Of(Vec<u8>),
    /// They do not fit together.
    Impossible,
}

/// So many bytes of chunks are read at a time at most, or those of one call.
const AHEAD: usize = 1 << 20;

/// A client that has so many calls outstanding has not counted its credits.
const MAX_CALLS: usize = 4 * CREDITS;

/// How long a client may take to answer reads; its connection ends then.
const READING: Duration = Duration::from_secs(60);

impl Gathering {
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Whether no call waits for its chunks.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// When the client must have answered the oldest reads.
    pub fn deadline(&self) -> Option<Instant> {
        match self.calls.front()?.chunks {
            Chunks::Reading(ref reading) => Some(reading.until),
            _ => None,
        }
    }

    /// A message has come.
    pub fn put(&mut self, message: Message, line: &mut Line) -> io::Result<()> {
        if self.calls.len() == MAX_CALLS {
            return Err(protocol("more calls than were granted"));
        }
        let chunks = self.chunks_of(&message);
        self.calls.push_back(Call { message, chunks });
        self.read_ahead(line)
    }

    /// A read is done.
    pub fn read(&mut self, work: WorkId) {
        for call in &mut self.calls {
            if let Chunks::Reading(reading) = &mut call.chunks
                && let Some(at) = reading.outstanding.iter().position(|read| *read == work)
            {
                reading.outstanding.swap_remove(at);
                return;
            }
        }
    }

    /// The next call, if it is all here.
    pub fn take(&mut self, line: &mut Line) -> io::Result<Option<Gathered>> {
        let is_here = |call: &Call| match &call.chunks {
            Chunks::Absent | Chunks::Impossible => true,
            Chunks::Wanted(_) => false,
            Chunks::Reading(reading) => reading.outstanding.is_empty(),
        };
        if !self.calls.front().is_some_and(is_here) {
            return Ok(None);
        }
        let Some(Call { message, chunks }) = self.calls.pop_front() else { return Ok(None) };
        let whole = match chunks {
            Chunks::Absent => Whole::Inline,
            Chunks::Reading(reading) => {
                let bytes = line.take_back(reading.sink);
                self.bytes -= bytes.len();
                self.read_ahead(line)?;
                self.put_together(&message, bytes, &reading.segments)
            }
            Chunks::Wanted(_) | Chunks::Impossible => Whole::Impossible,
        };
        Ok(Some(Gathered { message, whole }))
    }

    /// A call was dealt with: its memory is used again, unless it is large.
    pub fn give_back(&mut self, whole: Whole) {
        if let Whole::Of(bytes) = whole {
            self.keep(bytes);
        }
    }

    fn keep(&mut self, bytes: Vec<u8>) {
        if bytes.capacity() <= KEPT && self.spare.len() < CREDITS {
            self.spare.push(bytes);
        }
    }

    fn chunks_of(&self, message: &[u8]) -> Chunks {
        // What is wrong with a header is answered in its turn.
        let Ok(header) = Header::new_checked(message) else { return Chunks::Absent };
        let inline = inline_of(&header);
        let segments: Vec<ReadSegment> = header.read_segments().collect();
        if inline.is_none() || segments.is_empty() {
            return Chunks::Absent;
        }
        let total = length(&segments) + inline.map_or(0, <[u8]>::len) as u64;
        if total > self.limit as u64 || !segments.is_sorted_by_key(|segment| segment.position) {
            return Chunks::Impossible;
        }
        Chunks::Wanted(segments)
    }

    /// Begins to read the chunks of calls, as many as may be read at a time.
    fn read_ahead(&mut self, line: &mut Line) -> io::Result<()> {
        for call in &mut self.calls {
            let Chunks::Wanted(segments) = &mut call.chunks else { continue };
            let total = length(segments) as usize;
            if self.bytes > 0 && self.bytes + total > AHEAD {
                break;
            }
            // What is there of a call before is written over.
            let mut memory = self.spare.pop().unwrap_or_default();
            memory.resize(total, 0);
            let sink = line.register(memory, Rights::NONE)?;
            self.bytes += total;
            let (mut offset, mut outstanding) = (0, Vec::with_capacity(segments.len()));
            for segment in segments.iter() {
                outstanding.push(line.read(segment.target, sink, offset)?);
                offset += u64::from(segment.target.length);
            }
            let (segments, until) = (std::mem::take(segments), Instant::now() + READING);
            call.chunks = Chunks::Reading(Reading { segments, sink, outstanding, until });
        }
        Ok(())
    }

    fn put_together(&mut self, message: &[u8], mut bytes: Vec<u8>, read: &[ReadSegment]) -> Whole {
        let inline = Header::new_checked(message).ok().and_then(|header| inline_of(&header)).unwrap_or_default();
        if inline.is_empty() && read.iter().all(|segment| segment.position == 0) {
            // The chunk is the message.
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            return Whole::Of(bytes);
        }
        // The segments of one chunk follow each other.
        let mut chunks: Vec<(usize, &[u8])> = Vec::new();
        let (mut start, mut end) = (0, 0);
        for (index, segment) in read.iter().enumerate() {
            end += segment.target.length as usize;
            if read.get(index + 1).is_none_or(|next| next.position != segment.position) {
                chunks.push((segment.position as usize, &bytes[start..end]));
                start = end;
            }
        }
        let whole = assemble(inline, &chunks, self.limit).map_or(Whole::Impossible, Whole::Of);
        self.keep(bytes);
        whole
    }
}

/// What a message carries inline; `None` if it is no call.
pub(super) fn inline_of<'a>(header: &Header<'a>) -> Option<&'a [u8]> {
    match header.kind {
        Kind::Msg => Some(header.rest()),
        Kind::NoMsg => Some(&[]),
        Kind::VersionError { .. } | Kind::ChunkError => None,
    }
}

fn length(segments: &[ReadSegment]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.target.length)).sum()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use sidestep_iwarp::Connection;

    use super::*;
    use crate::rdma::{INLINE, config};

    #[test]
    fn a_client_that_does_not_count_its_credits_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = listener.accept().unwrap().0;
        let connection = Connection::respond(config(READING, &socket), Duration::ZERO);
        let mut line = Line::new(socket, connection, INLINE).unwrap();
        let mut gathering = Gathering::new(1 << 20);
        for _ in 0..MAX_CALLS {
            gathering.put(Message::of(b"no header"), &mut line).unwrap();
        }
        assert!(gathering.put(Message::of(b"no header"), &mut line).is_err());
        assert!(matches!(gathering.take(&mut line), Ok(Some(Gathered { whole: Whole::Inline, .. }))));
        gathering.put(Message::of(b"no header"), &mut line).unwrap();
    }
}
