//! Channels of the fabric.
//!
//! The pieces of a message are put into the peer's ring as they come, from where they lie, and become visible together. A
//! large message is looked at in the ring; its beginning is copied out first, so what is checked there stays as it is.

mod listener;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use sidestep_fabric::event::SourceId;
use sidestep_fabric::queue::{Receiver, Sender, View};
use sidestep_fabric::{Channel, ChannelOptions, Endpoint as FabricEndpoint, Error, EventQueue, Node};
use sidestep_sys::clock;
use sidestep_wire::giop::{MessageType, header};

use super::{Close, Look, ReceiveHalf, SendHalf, Strand, Watch};
use crate::assembler::{Message, Rest};
use crate::cdr::Source;

pub(crate) use listener::FabricListener;

/// How much of a message that is looked at in the ring is copied out first: more than its headers usually take.
const HEAD: usize = 1024;

/// How much is taken out of the ring at a time.
const PIECE: usize = 16 << 10;

/// Connects to a broker that listens on the fabric.
pub(crate) fn connect_fabric(node: &Node, name: &str, deadline: Option<Instant>) -> io::Result<Strand> {
    let channel = Channel::connect(node, name, ChannelOptions::default(), b"", nanoseconds(deadline));
    channel.map(strand).map_err(io_error)
}

fn strand(channel: Channel) -> Strand {
    let Channel { sender, receiver, endpoint } = channel;
    let endpoint = Arc::new(endpoint);
    Strand {
        sender: Box::new(Outward { sender, _endpoint: endpoint.clone() }),
        receiver: Box::new(Inward { receiver, attached: None, endpoint: endpoint.clone() }),
        closer: endpoint,
    }
}

struct Outward {
    sender: Sender,
    // Both halves hold the endpoint, so it is dropped last: nothing is written after the close that it sends.
    _endpoint: Arc<FabricEndpoint>,
}

struct Inward {
    receiver: Receiver,
    attached: Option<(EventQueue, SourceId)>,
    endpoint: Arc<FabricEndpoint>,
}

impl SendHalf for Outward {
    fn send(&mut self, bytes: &[u8], more: bool, deadline: Option<Instant>) -> io::Result<()> {
        put(&mut self.sender, bytes, more, deadline).map_err(io_error)
    }

    fn try_send(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let sender = &mut self.sender;
        // Where memory is not mapped, the link has to take the bytes.
        let is_short = bytes.len() <= PIECE && sender.can_freeze();
        if !is_short || sender.space_for(bytes.len()).map_err(io_error)? < bytes.len() {
            return Ok(false);
        }
        sender.try_send(bytes).map(|_| true).map_err(io_error)
    }
}

impl ReceiveHalf for Inward {
    fn receive(&mut self, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        match take(&mut self.receiver, into, deadline) {
            Ok(count) => Ok(count),
            Err(Error::Closed(_)) => Ok(0),
            Err(error) => Err(io_error(error)),
        }
    }

    fn receive_below(&mut self, least: usize, into: &mut [u8], deadline: Option<Instant>) -> io::Result<Option<usize>> {
        let receiver = &mut self.receiver;
        if !receiver.has_news() && !has_passed(deadline) {
            match receiver.wait(nanoseconds(deadline)) {
                // Whoever takes the message the ordinary way finds the end.
                Ok(()) | Err(Error::Closed(_)) => {}
                Err(error) => return Err(io_error(error)),
            }
        }
        // Small messages are taken at once: to look at their header first would be a second trip to memory that the peer has written.
        if receiver.known() >= least.max(header::LEN) {
            return Ok(None);
        }
        let most = into.len().min(PIECE);
        match receiver.try_receive(&mut into[..most]).map_err(io_error)? {
            0 => self.receive(into, deadline).map(Some),
            count => Ok(Some(count)),
        }
    }

    fn show(&mut self, look: &mut Look<'_>, deadline: Option<Instant>) -> io::Result<bool> {
        show(&mut self.receiver, &self.endpoint, look, deadline).map_err(io_error)
    }

    fn has_news(&mut self) -> bool {
        self.receiver.has_news()
    }

    fn attach(&mut self, watch: &Watch, token: u64) -> io::Result<()> {
        let Watch::Fabric { events, .. } = watch else { return Err(io::ErrorKind::Unsupported.into()) };
        let source = events.attach_receiver(&mut self.receiver, token).map_err(io_error)?;
        self.attached = Some((events.clone(), source));
        Ok(())
    }
}

impl Close for FabricEndpoint {
    fn close(&self) {
        FabricEndpoint::close(self);
    }
}

impl Drop for Inward {
    fn drop(&mut self) {
        if let Some((events, source)) = self.attached.take() {
            events.detach(source);
        }
    }
}

fn put(sender: &mut Sender, bytes: &[u8], more: bool, deadline: Option<Instant>) -> Result<(), Error> {
    // Most messages are one piece that fits.
    let mut rest = bytes;
    if !more && !bytes.is_empty() {
        rest = &rest[sender.try_send(rest)?..];
        if rest.is_empty() {
            return sender.flush(nanoseconds(deadline));
        }
    }
    loop {
        rest = &rest[sender.push(rest)?..];
        if rest.is_empty() {
            break;
        }
        // What is there may be taken while the rest waits for space.
        sender.publish()?;
        let wanted = rest.len().min(sender.capacity() / 4);
        sender.wait_space(wanted, nanoseconds(deadline))?;
    }
    if more {
        return Ok(());
    }
    sender.publish()?;
    sender.flush(nanoseconds(deadline))
}

fn take(receiver: &mut Receiver, into: &mut [u8], deadline: Option<Instant>) -> Result<usize, Error> {
    // Small messages come whole, and large ones in pieces.
    let most = into.len().min(PIECE);
    let into = &mut into[..most];
    let count = receiver.try_receive(into)?;
    if count > 0 || into.is_empty() {
        return Ok(count);
    }
    if !has_passed(deadline) {
        return receiver.receive(into, nanoseconds(deadline));
    }
    // A wait that is over before it begins does not see the end of a connection.
    if receiver.is_over() { Ok(0) } else { Err(Error::TimedOut("bytes to receive")) }
}

/// Shows the message that begins where the receiver stands, of which the header is there.
fn show(
    receiver: &mut Receiver,
    endpoint: &FabricEndpoint,
    look: &mut Look<'_>,
    deadline: Option<Instant>,
) -> Result<bool, Error> {
    let mut first = [0; header::LEN];
    receiver.peek(0, &mut first)?;
    // What is wrong with a message is found by whoever takes it the ordinary way.
    let Ok(header) = header::Header::new_checked(&first).and_then(|header| header::Repr::parse(&header)) else {
        return Ok(false);
    };
    let len = header::LEN + header.size as usize;
    let is_whole = !header.more_fragments && header.message_type != MessageType::Fragment;
    // Half of the ring is left to the sender, so that the two never wait for each other.
    let fits = len <= receiver.capacity() / 2;
    if !look.sizes.contains(&len) || !is_whole || !fits {
        return Ok(false);
    }
    if receiver.available()? < len {
        // What was cut short is taken the ordinary way, which finds the end behind it.
        match (has_passed(deadline), endpoint.is_connected()) {
            (true, Ok(_)) => return Err(Error::TimedOut("a whole message")),
            (_, Err(_)) => return Ok(false),
            (false, Ok(_)) => {}
        }
        receiver.wait_bytes(len, nanoseconds(deadline))?;
    }
    {
        let Some(view) = receiver.view(len)? else { return Ok(false) };
        look.head.resize(HEAD.min(len), 0);
        view.copy_out(0, look.head)?;
        // The header that was checked is the one that counts, whatever lies there by now.
        look.head[..header::LEN].copy_from_slice(&first);
        let source = Ring(view);
        (look.take)(&Message { header, bytes: look.head, rest: Some(Rest { source: &source, len }), joints: &[] });
    }
    receiver.consume(len)?;
    Ok(true)
}

/// What lies in the ring of a receiver.
struct Ring<'a>(View<'a>);

impl Source for Ring<'_> {
    fn copy_out(&self, at: usize, into: &mut [u8]) -> bool {
        self.0.copy_out(at, into).is_ok()
    }

    fn append_to(&self, at: usize, count: usize, into: &mut Vec<u8>) -> bool {
        let part = self.0.part(at, count);
        part.and_then(|part| part.fold((), |(), piece| into.extend_from_slice(piece))).is_ok()
    }
}

/// Whether there is no time to wait.
fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

/// The fabric counts nanoseconds of one clock.
pub(super) fn nanoseconds(deadline: Option<Instant>) -> Option<u64> {
    let left = deadline?.saturating_duration_since(Instant::now());
    Some(clock::now().saturating_add(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)))
}

pub(crate) fn io_error(error: Error) -> io::Error {
    let kind = match error {
        // It happens all the time, and needs no memory.
        Error::TimedOut(_) => return io::ErrorKind::TimedOut.into(),
        Error::Closed(_) => io::ErrorKind::ConnectionReset,
        Error::NobodyListens(_) | Error::Refused { .. } => io::ErrorKind::ConnectionRefused,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
