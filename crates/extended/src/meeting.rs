//! How the two ends of a TCP connection find each other on the fabric, without a byte on the connection.
//!
//! One end waits to be asked, and the other asks. Which end does which follows from the addresses, so that both need not
//! agree first. Where they meet, and what proves them to each other, depends on whether both are on one host: see the
//! [`Place`]s. Nothing is written to either socket, and none of its options is changed, unless the two agreed to meet on the connection
//! itself.

mod in_place;
mod one_host;
mod two_hosts;

use std::{
    os::fd::{AsRawFd, BorrowedFd},
    thread,
    time::Duration,
};

use sidestep_fabric::{
    self as fabric, ChannelOptions, CloseReason, Endpoint, Listener, Node, PeerId, Request,
    channel::{Half, Joining},
    queue::{Kind, QueueSpec, Receiver, Sender},
};
use sidestep_sockets::kernel::{self, Errno, address::Key};
use sidestep_sys::{clock, unconnected::Unconnected};
use sidestep_wire::cursor::little::{Reader, Writer};

use self::{in_place::InPlace, one_host::OneHost, two_hosts::TwoHosts};
use crate::{
    error::{Error, Result},
    options::Options,
};

/// Two ends that have met.
#[derive(Debug)]
pub(crate) struct Met {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// The connection, from this end.
    pub(crate) key: Key,
    /// Dropped last: the close it sends promises that nothing is written after.
    pub(crate) endpoint: Endpoint,
}

/// Where two ends can meet, as one of them sees it. The line over which they do is of this connection alone.
trait Place {
    /// The connection, in words that both ends have alike but for the order of the ends.
    fn key(&self) -> Key;
    /// Asks whoever listens; `hello` has the words to say to a peer. `None`: nobody listens yet.
    fn ask(&self, node: &Node, deadline: u64, hello: Hello<'_>) -> Result<Option<Endpoint>>;
    /// Listens for the other end. `None`: somebody else does at the moment.
    fn listen(&self, node: &Node) -> Result<Option<Listener>>;
    /// [`Error::Unproven`] if a peer is not seen to be the other end; another error if it is gone.
    fn check_peer(&self, node: &Node, peer: PeerId) -> Result<()>;
    /// An error if the connection is over.
    fn check_standing(&self) -> Result<()>;
    /// Between two attempts, at most.
    fn longest_pause(&self) -> Duration {
        Duration::from_millis(5)
    }
    /// How long to listen before others may; `None`: nobody else wants to.
    fn turn(&self) -> Option<Duration> {
        None
    }
}

/// Makes the private data of a request.
type Hello<'a> = &'a mut dyn FnMut(PeerId) -> fabric::Result<Vec<u8>>;

/// Says which protocol, and which version of it.
const PROTOCOL: u64 = u64::from_le_bytes(*b"ssext\0\0\x01");
/// The ring for messages and notices of each direction.
const RING: usize = 64 << 10;
/// Between two looks whether the other end is there, at first.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
/// How often the end that waits looks whether the connection still stands.
const LOOK_NS: u64 = 20_000_000;
const UNPROVEN: &[u8] = b"unproven";
const VERSION: &[u8] = b"version";

/// Meets the other end of a connection, where the options say; waits for it until the deadline.
pub(crate) fn meet(node: &Node, socket: BorrowedFd<'_>, options: &Options, deadline: u64) -> Result<Met> {
    let fd = socket.as_raw_fd();
    let not_connected = |Errno(errno)| Error::NotConnected { fd, errno };
    let key = Key::of(fd).map_err(not_connected)?;
    if !kernel::is_tcp(fd) {
        return Err(not_connected(Errno(libc::EPROTONOSUPPORT)));
    }
    if options.in_place {
        return meet_in_place(node, socket, key, deadline);
    }
    let place: Box<dyn Place> = match OneHost::find(fd, key)? {
        Some(place) => Box::new(place),
        None => Box::new(TwoHosts::new(fd, key, options.port.ok_or(Error::Elsewhere)?)),
    };
    Meeting { node, place: &*place, deadline }.meet(key)
}

/// Meets the other end on the connection itself. Whatever comes of it, a connection that was made a line is taken from the program.
fn meet_in_place(node: &Node, socket: BorrowedFd<'_>, key: Key, deadline: u64) -> Result<Met> {
    let refused =
        |errno: rustix::io::Errno| Error::NotConnected { fd: socket.as_raw_fd(), errno: errno.raw_os_error() };
    let unconnected = Unconnected::new().map_err(refused)?;
    let place = InPlace::new(node, socket, key, deadline);
    let met = Meeting { node, place: &place, deadline }.meet(key);
    if !place.is_taken() {
        return met;
    }
    unconnected.put_at(socket).map_err(refused)?;
    met.map_err(|error| {
        place.give_up();
        match error {
            Error::Unanswered | Error::Taken | Error::Fabric(_) => Error::Spent,
            error => error,
        }
    })
}

/// A number for a connection, as one of its ends sees it. Any spreading will do: which one is meant is said in the request. As
/// FNV-1a, by words.
fn number(key: &Key) -> u64 {
    key.to_words().iter().fold(0xcbf2_9ce4_8422_2325, |sum, word| (sum ^ word).wrapping_mul(0x100_0000_01b3))
}

/// An accepted connection whose rings are not open yet.
struct HalfMet {
    endpoint: Endpoint,
    half: Half,
    theirs: QueueSpec,
}

impl HalfMet {
    fn join(self, key: Key, deadline: u64) -> Result<Met> {
        let HalfMet { endpoint, half, theirs } = self;
        let joining = Joining::begin(&endpoint, &theirs)?;
        joining.wait(Some(deadline)).map_err(unanswered)?;
        let (sender, receiver) = half.finish(&endpoint, &joining)?;
        Ok(Met { sender, receiver, key, endpoint })
    }
}

struct Meeting<'a> {
    node: &'a Node,
    place: &'a dyn Place,
    deadline: u64,
}

impl Meeting<'_> {
    fn meet(&self, key: Key) -> Result<Met> {
        let half_met = if key.asks() { self.ask()? } else { self.answer()? };
        let peer = half_met.endpoint.peer();
        half_met.join(key, self.deadline).inspect_err(|_| self.node.peer(peer).close(CloseReason::Here))
    }

    fn ask(&self) -> Result<HalfMet> {
        let mut pause = FIRST_PAUSE;
        loop {
            self.place.check_standing()?;
            match self.ask_once() {
                Ok(Some(half_met)) => return Ok(half_met),
                Ok(None) => {}
                Err(Error::Fabric(error)) if may_come_yet(&error) => {}
                Err(error) => return Err(error),
            }
            if clock::now() >= self.deadline {
                return Err(Error::Unanswered);
            }
            self.node.progress_kernel();
            thread::sleep(pause);
            pause = (2 * pause).min(self.place.longest_pause());
        }
    }

    fn ask_once(&self) -> Result<Option<HalfMet>> {
        let (mut own, mut proven) = (None, Ok(()));
        let started = self.place.ask(self.node, self.deadline, &mut |peer| {
            proven = self.place.check_peer(self.node, peer);
            if proven.is_err() {
                self.node.peer(peer).close(CloseReason::Here);
                return Err(fabric::Error::Unsupported("a peer that does not hold the other end"));
            }
            let half = Half::new(self.node, peer, options())?;
            let hello = words(&self.place.key(), &half.spec());
            own = Some(half);
            Ok(hello)
        });
        proven?;
        let Some(endpoint) = started? else { return Ok(None) };
        let (half, peer) = (own.ok_or(Error::Unproven)?, endpoint.peer());
        half.keep_with(&endpoint);
        let answered = self.hear(&endpoint).inspect_err(|_| self.node.peer(peer).close(CloseReason::Here));
        Ok(Some(HalfMet { theirs: answered?, endpoint, half }))
    }

    /// The answer of the end that was asked: where its ring is.
    fn hear(&self, endpoint: &Endpoint) -> Result<QueueSpec> {
        endpoint.wait_connected(Some(self.deadline)).map_err(|error| match error {
            fabric::Error::Refused { private } if private == UNPROVEN => Error::Unproven,
            fabric::Error::Refused { private } if private == VERSION => Error::Version,
            error => unanswered(error),
        })?;
        let (key, theirs) = read_words(&endpoint.private()).ok_or(Error::Version)?;
        if key == self.place.key().reversed() { Ok(theirs) } else { Err(Error::Unproven) }
    }

    fn answer(&self) -> Result<HalfMet> {
        loop {
            self.place.check_standing()?;
            let listener = self.place.listen(self.node)?;
            if let Some(listener) = &listener
                && let Some(half_met) = self.answer_for_a_turn(listener)?
            {
                return Ok(half_met);
            }
            if clock::now() >= self.deadline {
                return Err(if listener.is_some() { Error::Unanswered } else { Error::Taken });
            }
            drop(listener);
            self.node.progress_kernel();
            thread::sleep(self.place.longest_pause());
        }
    }

    /// Answers requests until one is of the other end. `None`: the turn is over.
    fn answer_for_a_turn(&self, listener: &Listener) -> Result<Option<HalfMet>> {
        let turn_ends = self.place.turn().map_or(u64::MAX, |turn| clock::now() + turn.as_nanos() as u64);
        let ends = self.deadline.min(turn_ends);
        loop {
            // In slices: an end that goes away meanwhile is told of by nobody.
            let slice = ends.min(clock::now() + LOOK_NS);
            match listener.wait(Some(slice)) {
                Ok(request) => {
                    if let Some(half_met) = self.answer_one(request)? {
                        return Ok(Some(half_met));
                    }
                }
                Err(fabric::Error::TimedOut(_)) if slice < ends => {}
                Err(fabric::Error::TimedOut(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            self.place.check_standing()?;
        }
    }

    /// Answers a request; `None` if it was refused.
    fn answer_one(&self, request: Request) -> Result<Option<HalfMet>> {
        let Some(peer) = request.peer() else { return Ok(None) };
        let refuse = |request: Request, why| {
            // A peer that cannot be told is gone.
            let _ = request.refuse(why);
            self.node.peer(peer).close(CloseReason::Here);
            Ok(None)
        };
        let Some((key, theirs)) = read_words(request.private()) else { return refuse(request, VERSION) };
        if self.place.check_peer(self.node, peer).is_err() || key != self.place.key().reversed() {
            return refuse(request, UNPROVEN);
        }
        let mut own = None;
        let accepted = request.accept_with(|endpoint| {
            let half = Half::new(self.node, endpoint.peer(), options())?;
            half.keep_with(endpoint);
            let answer = words(&self.place.key(), &half.spec());
            own = Some(half);
            Ok(answer)
        });
        match accepted {
            Ok(endpoint) => Ok(own.map(|half| HalfMet { endpoint, half, theirs })),
            // It has given up meanwhile.
            Err(error) if may_come_yet(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn options() -> ChannelOptions {
    ChannelOptions { capacity: RING, kind: Kind::Stream }
}

/// Whether the other end may only not have got so far, or has given up just now and enables its socket again later.
fn may_come_yet(error: &fabric::Error) -> bool {
    matches!(error, fabric::Error::NobodyListens(_) | fabric::Error::Refused { .. } | fabric::Error::Closed(_))
}

fn unanswered(error: fabric::Error) -> Error {
    match error {
        fabric::Error::TimedOut(_) => Error::Unanswered,
        error => error.into(),
    }
}

/// What each end says: the protocol, which connection, and where its ring is.
fn words(key: &Key, spec: &QueueSpec) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.u64(PROTOCOL);
    for word in key.to_words() {
        writer.u64(word);
    }
    writer.bytes(&spec.to_bytes());
    bytes
}

fn read_words(bytes: &[u8]) -> Option<(Key, QueueSpec)> {
    let mut fields = Reader::new(bytes);
    if fields.u64().ok()? != PROTOCOL {
        return None;
    }
    let mut key = [0; 6];
    for word in &mut key {
        *word = fields.u64().ok()?;
    }
    let spec = QueueSpec::from_bytes(fields.rest()).ok().filter(|spec| spec.kind == Kind::Stream)?;
    Some((Key::from_words(key), spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_words_or_not() {
        for len in 0..200 {
            for fill in [0, 1, 0xff] {
                assert!(read_words(&vec![fill; len]).is_none());
            }
        }
    }
}
