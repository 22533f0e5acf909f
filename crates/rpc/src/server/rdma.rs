//! RPC over RDMA on iWARP, on the side of a server: a thread waits for connections, and each has a thread of its own, which
//! executes its calls in their order.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use nix::sys::eventfd::{EfdFlags, EventFd};
use sidestep_iwarp::{Connection, Event};
use sidestep_wire::oncrpc::{Xid, call, reply};
use sidestep_wire::rpcrdma::header::{Header, Kind, Repr};
use sidestep_wire::rpcrdma::{Segment, VERSION};

use super::Limits;
use super::connection::ReplyPath;
use super::dispatch::{Dispatcher, Outcome};
use super::gathering::{Gathered, Gathering, Whole, inline_of};
use super::service::Peer;
use crate::client::lock;
use crate::rdma::{self, Binding, CREDITS, Line, Received, bulk_at, ended, inline_limit, private_data};
use crate::record::ROOM;
use crate::xdr::{self, Writer};
use crate::{Error, Procedure};

/// Sockets that a server listens on for RDMA, and the connections that were made. They end with it.
pub(super) struct Doors {
    shared: Arc<Shared>,
    listening: Vec<JoinHandle<()>>,
}

struct Shared {
    dispatcher: Arc<Dispatcher>,
    limits: Limits,
    binding: Binding,
    inline: usize,
    stopping: AtomicBool,
    open: Mutex<HashMap<u64, Serving>>,
    /// Wakes the threads that listen; readable once the server stops.
    stop: EventFd,
}

struct Serving {
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
}

/// Replies that others have made for a connection: to calls that came again while they were executed.
pub(super) struct Mailbox {
    replies: Mutex<Vec<Vec<u8>>>,
    bell: EventFd,
}

/// Connections are threads here.
const MAX_CONNECTIONS: usize = 1024;

/// How long a client may take to make its connection.
const SETUP: Duration = Duration::from_secs(30);

/// After an error of `accept`, usually for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

impl Mailbox {
    /// Leaves a reply for the thread of the connection.
    pub fn put(&self, message: &[u8]) {
        lock(&self.replies).push(message.to_vec());
        let _ = self.bell.write(1);
    }
}

impl Doors {
    pub fn start(
        dispatcher: Arc<Dispatcher>,
        listeners: Vec<TcpListener>,
        (binding, inline): (Binding, usize),
        limits: &Limits,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            dispatcher,
            limits: limits.clone(),
            binding,
            inline,
            stopping: AtomicBool::new(false),
            open: Mutex::default(),
            stop: bell()?,
        });
        let mut doors = Doors { shared: shared.clone(), listening: Vec::new() };
        for listener in listeners {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name("rpc listener".to_owned());
            doors.listening.push(thread.spawn(move || shared.listen(&listener))?);
        }
        Ok(doors)
    }

    pub fn open(&self) -> usize {
        lock(&self.shared.open).len()
    }

    pub fn stop(&mut self) {
        let shared = &self.shared;
        shared.stopping.store(true, Ordering::Release);
        for thread in self.listening.drain(..) {
            // The bell is silent once it was heard.
            let _ = shared.stop.write(1);
            let _ = thread.join();
        }
        let serving: Vec<Serving> = lock(&shared.open).drain().map(|(_, serving)| serving).collect();
        for Serving { mailbox, .. } in &serving {
            let _ = mailbox.bell.write(1);
        }
        for thread in serving.into_iter().filter_map(|serving| serving.thread) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        let mut next = 0;
        while !self.stopping.load(Ordering::Acquire) {
            match listener.accept() {
                Ok((stream, from)) => {
                    next += 1;
                    // A client that cannot be served finds its connection ended.
                    let _ = self.accept(next, stream, from);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if rdma::wait(listener, (PollFlags::POLLIN, None), &self.stop, None).is_err() {
                        return;
                    }
                }
                Err(_) => std::thread::sleep(ACCEPT_PAUSE),
            }
        }
        // Others listen, too.
        let _ = self.stop.write(1);
    }

    fn accept(self: &Arc<Self>, number: u64, stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        if lock(&self.open).len() >= self.limits.connections.min(MAX_CONNECTIONS) {
            return Ok(());
        }
        let mailbox = Arc::new(Mailbox { replies: Mutex::default(), bell: bell()? });
        let connection = Connection::respond(rdma::config(SETUP, &stream), Duration::ZERO);
        let line = Line::new(stream, connection, self.inline)?;
        let (shared, own) = (self.clone(), mailbox.clone());
        // The ports of several listeners may give the same number.
        let key = u64::from(from.port()) << 48 ^ number;
        let mut open = lock(&self.open);
        let thread = std::thread::Builder::new().name("rpc rdma".to_owned()).spawn(move || {
            let peer = Peer::Rdma(from);
            let (waiting, offered) = (HashMap::new(), Offered::default());
            let calls = Gathering::new(shared.limits.max_message);
            let mut session = Session { line, calls, shared: &shared, mailbox: own, inline: 0, peer, waiting, offered };
            // Whatever ends it, the client sees the end.
            let _ = session.serve();
            session.line.close();
            lock(&shared.open).remove(&key);
        })?;
        open.insert(key, Serving { mailbox, thread: Some(thread) });
        Ok(())
    }
}

/// One connection.
struct Session<'a> {
    line: Line,
    calls: Gathering,
    shared: &'a Shared,
    mailbox: Arc<Mailbox>,
    /// The longest message that the client takes.
    inline: usize,
    peer: Peer,
    /// What was offered with calls that others execute, by xid.
    waiting: HashMap<u32, Offered>,
    /// What was offered with the last call, whose memory is used again.
    offered: Offered,
}

/// What a client offers for a reply.
#[derive(Default)]
struct Offered {
    procedure: Procedure,
    write: Vec<Vec<Segment>>,
    has_reply_chunk: bool,
    reply: Vec<Segment>,
}

impl Offered {
    fn fill(&mut self, procedure: Procedure, header: &Header<'_>) {
        self.procedure = procedure;
        self.write.clear();
        self.write.extend(header.write_chunks().map(|chunk| chunk.iter().collect()));
        self.reply.clear();
        let chunk = header.reply_chunk();
        self.has_reply_chunk = chunk.is_some();
        self.reply.extend(chunk.iter().flat_map(|chunk| chunk.iter()));
    }
}

impl Session<'_> {
    fn serve(&mut self) -> io::Result<()> {
        let path = ReplyPath::Rdma(self.mailbox.clone());
        let mut frame = Vec::new();
        loop {
            match self.next()? {
                Some(Received::Message(message)) => self.calls.put(message, &mut self.line)?,
                Some(Received::Done(work)) => self.calls.read(work),
                None => {}
            }
            while let Some(Gathered { message, whole }) = self.calls.take(&mut self.line)? {
                self.message(&message, &whole, &path, &mut frame)?;
                self.calls.give_back(whole);
                self.line.give_back(message);
            }
            let replies = std::mem::take(&mut *lock(&self.mailbox.replies));
            for message in replies {
                let xid = message.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
                if let Some(offered) = self.waiting.remove(&xid) {
                    self.reply(Xid(xid), &message, &offered)?;
                }
            }
        }
    }

    /// The next thing that happens; nothing, if it is a reply in the mailbox. An error is the end.
    fn next(&mut self) -> io::Result<Option<Received>> {
        loop {
            if let Some(received) = self.line.poll_received()? {
                return Ok(Some(received));
            }
            let end = if self.calls.is_empty() { self.line.advance() } else { self.line.answer() };
            if let Some(received) = self.line.poll_received()? {
                return Ok(Some(received));
            }
            match self.line.poll_event() {
                Some(Event::Requested { private_data: from, .. }) => {
                    let own = self.shared.inline;
                    self.inline = inline_limit(&from, own);
                    self.line.connection().accept(&private_data(own)).map_err(io::Error::other)?;
                    continue;
                }
                Some(Event::Established { .. }) => continue,
                Some(event) => return Err(ended(&event)),
                None => end?,
            }
            let (stopping, deadline) = (self.shared.stopping.load(Ordering::Acquire), self.calls.deadline());
            if stopping || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !lock(&self.mailbox.replies).is_empty() {
                return Ok(None);
            }
            rdma::wait(&self.line, self.line.interest(), &self.mailbox.bell, deadline)?;
        }
    }

    fn message(&mut self, bytes: &[u8], whole: &Whole, path: &ReplyPath, frame: &mut Vec<u8>) -> io::Result<()> {
        let header = match Header::new_checked(bytes) {
            Ok(header) => header,
            Err(xdr::Error::RdmaVersion { xid, .. }) => {
                return self.error(Xid(xid), Kind::VersionError { low: VERSION, high: VERSION });
            }
            // Whose call it is can be told only if there is that much of it.
            Err(_) => match bytes.first_chunk() {
                Some(xid) if bytes.len() >= 16 => return self.error(Xid(u32::from_be_bytes(*xid)), Kind::ChunkError),
                _ => return Err(rdma::protocol("a message without a header")),
            },
        };
        let Some(inline) = inline_of(&header) else { return Ok(()) };
        let message = match whole {
            Whole::Inline => inline,
            Whole::Of(message) => message,
            Whole::Impossible => return self.error(header.xid, Kind::ChunkError),
        };
        let procedure = call::Repr::parse(message).map_or_else(
            |_| Procedure::default(),
            |(call, _)| Procedure { program: call.program, version: call.version, procedure: call.procedure },
        );
        let mut offered = std::mem::take(&mut self.offered);
        offered.fill(procedure, &header);
        let Shared { dispatcher, limits, .. } = self.shared;
        match dispatcher.handle(message, &self.peer, path, limits.max_message, frame, None) {
            Outcome::Reply => {
                self.reply(header.xid, &frame[ROOM..], &offered)?;
                self.offered = offered;
            }
            Outcome::Silence if self.waiting.len() < CREDITS => drop(self.waiting.insert(header.xid.0, offered)),
            Outcome::Silence => {}
            Outcome::Nonsense => return Err(rdma::protocol("a message that is no call")),
        }
        Ok(())
    }

    fn reply(&mut self, xid: Xid, message: &[u8], offered: &Offered) -> io::Result<()> {
        // Bulk data go to the first write chunk that was offered.
        let bulk = offered.write.first().and_then(|chunk| {
            let (_, results) = reply::Repr::parse(message).ok()?;
            let at = (self.shared.binding.result)(offered.procedure, results)?;
            let len = bulk_at(results, at)?;
            let at = message.len() - results.len() + at;
            Some((at, len, spread(chunk, len)?))
        });
        let mut write: Vec<Vec<Segment>> = offered.write.iter().map(|chunk| unused(chunk)).collect();
        let mut rest: [&[u8]; 2] = [message, &[]];
        if let Some((at, len, segments)) = bulk {
            self.write_to(&message[at..at + len], &segments)?;
            rest = [&message[..at], &message[(at + len.next_multiple_of(4)).min(message.len())..]];
            write[0] = segments;
        }
        let write: Vec<&[Segment]> = write.iter().map(Vec::as_slice).collect();
        let credits = CREDITS as u32;
        let mut header = Repr { xid, credits, kind: Kind::Msg, read: &[], write: &write, reply: None };
        let mut bytes = self.line.buffer();
        emit(&header, &mut bytes)?;
        if bytes.len() + rest[0].len() + rest[1].len() <= self.inline {
            rest.iter().for_each(|part| bytes.extend_from_slice(part));
            return self.line.send(bytes).map(|_| ());
        }
        let rest = rest.concat();
        let Some(segments) = offered.has_reply_chunk.then(|| spread(&offered.reply, rest.len())).flatten() else {
            return self.error(xid, Kind::ChunkError);
        };
        self.write_to(&rest, &segments)?;
        (header.kind, header.reply) = (Kind::NoMsg, Some(segments.as_slice()));
        bytes.clear();
        emit(&header, &mut bytes)?;
        if bytes.len() > self.inline {
            return self.error(xid, Kind::ChunkError);
        }
        self.line.send(bytes).map(|_| ())
    }

    fn write_to(&mut self, bytes: &[u8], segments: &[Segment]) -> io::Result<()> {
        let mut rest = bytes;
        for segment in segments.iter().filter(|segment| segment.length > 0) {
            let (here, next) = rest.split_at(segment.length as usize);
            self.line.write(here, *segment)?;
            rest = next;
        }
        Ok(())
    }

    fn error(&mut self, xid: Xid, kind: Kind) -> io::Result<()> {
        let mut bytes = self.line.buffer();
        emit(&Repr { kind, ..Repr::inline(xid, CREDITS as u32) }, &mut bytes)?;
        self.line.send(bytes).map(|_| ())
    }
}

fn emit(header: &Repr<'_>, bytes: &mut Vec<u8>) -> io::Result<()> {
    header.emit(&mut Writer::new(bytes, usize::MAX)).map_err(io::Error::other)
}

/// The segments of a chunk with as many bytes in each as are written there. `None` if there is not enough space.
fn spread(chunk: &[Segment], length: usize) -> Option<Vec<Segment>> {
    let mut left = length;
    let used = chunk.iter().map(|segment| {
        let here = left.min(segment.length as usize);
        left -= here;
        Segment { length: here as u32, ..*segment }
    });
    let used = used.collect();
    (left == 0).then_some(used)
}

fn unused(chunk: &[Segment]) -> Vec<Segment> {
    chunk.iter().map(|segment| Segment { length: 0, ..*segment }).collect()
}

fn bell() -> io::Result<EventFd> {
    Ok(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?)
}

/// A socket that listens and does not block.
pub(super) fn listener(address: &str) -> Result<TcpListener, Error> {
    let failed = |source| Error::Setup { what: "listen on", address: format!("rdma:{address}"), source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_spread_over_the_segments_of_a_chunk() {
        let chunk = [10, 20].map(|length| Segment { handle: 7, length, offset: 0 });
        let lengths = |length| Some(spread(&chunk, length)?.iter().map(|segment| segment.length).collect::<Vec<_>>());
        assert_eq!(lengths(0), Some(vec![0, 0]));
        assert_eq!(lengths(15), Some(vec![10, 5]));
        assert_eq!(lengths(30), Some(vec![10, 20]));
        assert_eq!(lengths(31), None);
        assert_eq!(spread(&[], 0), Some(Vec::new()));
    }
}
