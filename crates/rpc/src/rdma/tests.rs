//! A client that sends what no client may.

mod chance;

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::eventfd::EventFd;
use sidestep_iwarp::{Connection, Event};
use sidestep_wire::oncrpc::Xid;
use sidestep_wire::rpcrdma::header::{Header, Kind, Repr};
use sidestep_wire::rpcrdma::{ReadSegment, Segment};

use super::{INLINE, Line, Received, config, private_data, wait};
use crate::Server;
use crate::xdr::Writer;

const PATIENCE: Duration = Duration::from_secs(60);

struct Stranger {
    line: Line,
    bell: EventFd,
}

impl Stranger {
    fn connect(server: &Server) -> Stranger {
        let socket = TcpStream::connect(server.addresses().next().unwrap()).unwrap();
        let connection =
            Connection::initiate(config(PATIENCE, &socket), &private_data(INLINE), Duration::ZERO).unwrap();
        let mut stranger =
            Stranger { line: Line::new(socket, connection, INLINE).unwrap(), bell: EventFd::new().unwrap() };
        loop {
            stranger.line.advance().unwrap();
            match stranger.line.poll_event() {
                Some(Event::Established { .. }) => return stranger,
                Some(event) => panic!("{event:?}"),
                None => stranger.wait(),
            }
        }
    }

    fn wait(&self) {
        let until = Some(Instant::now() + PATIENCE);
        wait(&self.line.as_fd(), self.line.interest(), &self.bell, until).unwrap();
    }

    /// What the server answers; `None` if it ends the connection.
    fn say(&mut self, words: &[u32]) -> Option<Vec<u8>> {
        self.line.send(words.iter().flat_map(|word| word.to_be_bytes()).collect()).ok()?;
        self.hear()
    }

    /// The next message of the server; `None` if it ends the connection.
    fn hear(&mut self) -> Option<Vec<u8>> {
        loop {
            let end = self.line.advance();
            match self.line.poll_received() {
                Ok(Some(Received::Message(message))) => {
                    let bytes = message.to_vec();
                    self.line.give_back(message);
                    return Some(bytes);
                }
                Ok(Some(Received::Done(_))) => continue,
                Ok(None) if end.is_ok() => {}
                _ => return None,
            }
            if self.line.poll_event().is_some() {
                return None;
            }
            self.wait();
        }
    }

    fn kind(&mut self, words: &[u32]) -> Option<(Xid, Kind)> {
        let answer = self.say(words)?;
        let header = Header::new_checked(&answer).unwrap();
        Some((header.xid, header.kind))
    }
}

fn words(header: &Repr<'_>) -> Vec<u32> {
    let mut bytes = Vec::new();
    header.emit(&mut Writer::new(&mut bytes, usize::MAX)).unwrap();
    bytes.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn strange_headers_are_answered_as_the_standard_says() {
    let server = Server::builder().rdma("127.0.0.1:0").unwrap().start().unwrap();
    let mut stranger = Stranger::connect(&server);
    // Another version, a kind that does not exist, a list without end.
    assert_eq!(stranger.kind(&[7, 2, 1, 0, 0, 0, 0]), Some((Xid(7), Kind::VersionError { low: 1, high: 1 })));
    assert_eq!(stranger.kind(&[8, 1, 1, 9, 0, 0, 0]), Some((Xid(8), Kind::ChunkError)));
    assert_eq!(stranger.kind(&[9, 1, 1, 0, 1, 0, 0]), Some((Xid(9), Kind::ChunkError)));
    // Chunks that are larger than any message, and out of order.
    let segment = |position, length| ReadSegment { position, target: Segment { handle: 1, length, offset: 0 } };
    for read in [[segment(0, u32::MAX), segment(0, u32::MAX)], [segment(8, 4), segment(4, 4)]] {
        let header = Repr { kind: Kind::NoMsg, read: &read, ..Repr::inline(Xid(10), 1) };
        assert_eq!(stranger.kind(&words(&header)), Some((Xid(10), Kind::ChunkError)));
    }
    // The connection is as good as before: a call of a program that is not here.
    let call = [&words(&Repr::inline(Xid(11), 1))[..], &[11, 0, 2, 99, 1, 0, 0, 0, 0, 0]].concat();
    assert_eq!(stranger.kind(&call), Some((Xid(11), Kind::Msg)));
    // What is no call, and what is no header at all, ends it.
    for nonsense in [[&words(&Repr::inline(Xid(12), 1))[..], &[12, 7]].concat(), vec![1]] {
        assert_eq!(Stranger::connect(&server).say(&nonsense), None);
    }
}

#[test]
fn memory_that_a_client_does_not_have_ends_its_connection_alone() {
    let server = Server::builder().rdma("127.0.0.1:0").unwrap().start().unwrap();
    let (mut stranger, mut other) = (Stranger::connect(&server), Stranger::connect(&server));
    let read = [ReadSegment { position: 0, target: Segment { handle: 1, length: 100, offset: 0 } }];
    let header = Repr { kind: Kind::NoMsg, read: &read, ..Repr::inline(Xid(1), 1) };
    assert_eq!(stranger.say(&words(&header)), None);
    let call = [&words(&Repr::inline(Xid(11), 1))[..], &[11, 0, 2, 99, 1, 0, 0, 0, 0, 0]].concat();
    assert_eq!(other.kind(&call), Some((Xid(11), Kind::Msg)));
}
