//! What goes through the rings of an extended socket: messages with gather lists, notices and exported regions, in one order for
//! each direction.
//!
//! A message waits in the ring until a receive is posted for it, and holds up what comes behind it. So nothing has to be
//! kept here for a peer that sends more than this end wants.

use std::collections::VecDeque;

use sidestep_fabric::{
    self as fabric, CloseReason, Cookie,
    queue::{Receiver, Sender},
};

use crate::{
    completion::{Completion, Kind},
    error::{Error, Result},
    frame::{Frame, HEADER, MAX_MESSAGE},
    region::Piece,
};

#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    outgoing: VecDeque<Outgoing>,
    posted: VecDeque<PostedReceive>,
    arriving: Option<Arriving>,
    exports: VecDeque<Export>,
}

/// A region that the other end has exported and this one not imported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Export {
    pub(crate) tag: u64,
    pub(crate) cookie: Cookie,
}

/// What is to be sent, or in the middle of it.
#[derive(Debug)]
struct Outgoing {
    head: Vec<u8>,
    pieces: Vec<Piece>,
    /// Bytes of head and pieces that are in the ring.
    sent: usize,
    token: Option<u64>,
}

#[derive(Debug)]
struct PostedReceive {
    pieces: Vec<Piece>,
    token: u64,
}

/// A message in the middle of its arrival.
#[derive(Debug)]
struct Arriving {
    len: usize,
    taken: usize,
    into: PostedReceive,
}

/// Messages and notices that wait to be sent, and receives that wait for messages.
const LIMIT: usize = 1024;
/// Exported regions that are kept until they are imported; what comes behind the last of them waits in the ring.
const MOST_EXPORTS: usize = 256;

impl Flow {
    pub(crate) fn new(sender: Sender, receiver: Receiver) -> Flow {
        Flow {
            sender,
            receiver,
            outgoing: VecDeque::new(),
            posted: VecDeque::new(),
            arriving: None,
            exports: VecDeque::new(),
        }
    }

    pub(crate) fn post_send(&mut self, pieces: Vec<Piece>, token: u64) -> Result<()> {
        let len = Piece::total(&pieces);
        if len > MAX_MESSAGE {
            return Err(Error::TooLong { len, room: MAX_MESSAGE });
        }
        self.queue(Outgoing { head: Frame::Message(len).to_bytes().to_vec(), pieces, sent: 0, token: Some(token) })
    }

    pub(crate) fn post_receive(&mut self, pieces: Vec<Piece>, token: u64) -> Result<()> {
        if self.posted.len() >= LIMIT {
            return Err(Error::Full { what: "receives that wait for messages", limit: LIMIT });
        }
        self.posted.push_back(PostedReceive { pieces, token });
        Ok(())
    }

    pub(crate) fn notify(&mut self, value: u64) -> Result<()> {
        self.queue(Outgoing { head: Frame::Notice(value).to_bytes().to_vec(), pieces: vec![], sent: 0, token: None })
    }

    pub(crate) fn export(&mut self, tag: u64, cookie: &Cookie) -> Result<()> {
        let head = [&Frame::Export(tag).to_bytes()[..], &cookie.to_bytes()].concat();
        self.queue(Outgoing { head, pieces: vec![], sent: 0, token: None })
    }

    pub(crate) fn take_export(&mut self) -> Option<Export> {
        self.exports.pop_front()
    }

    /// Whether everything has been put into the ring of the other end.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.outgoing.is_empty()
    }

    fn queue(&mut self, outgoing: Outgoing) -> Result<()> {
        if self.outgoing.len() >= LIMIT {
            return Err(Error::Full { what: "messages that wait to be sent", limit: LIMIT });
        }
        self.outgoing.push_back(outgoing);
        Ok(())
    }

    /// Puts what fits into the ring.
    pub(crate) fn push_out(&mut self, socket: u64, into: &mut Vec<Completion>) -> Result<(), fabric::Error> {
        while let Some(first) = self.outgoing.front_mut() {
            let total = first.head.len() + Piece::total(&first.pieces);
            let mut pushed = false;
            while first.sent < total {
                let count = first.push(&mut self.sender)?;
                if count == 0 {
                    break;
                }
                pushed = true;
            }
            if pushed {
                self.sender.publish()?;
            }
            if first.sent < total {
                return Ok(());
            }
            let done = self.outgoing.pop_front();
            let token = done.as_ref().and_then(|done| done.token);
            into.extend(token.map(|token| Completion::new(socket, Kind::Send, token, Ok(total - HEADER))));
        }
        Ok(())
    }

    /// Takes in what has come, with at most `room` completions that only the peer decides on. `false`: there was not enough.
    pub(crate) fn take_in(
        &mut self,
        socket: u64,
        room: usize,
        into: &mut Vec<Completion>,
    ) -> Result<bool, fabric::Error> {
        let before = into.len();
        loop {
            if let Some(arriving) = &mut self.arriving {
                if !arriving.advance(&mut self.receiver)? {
                    return Ok(true);
                }
                into.extend(self.arriving.take().map(|arriving| arriving.completion(socket)));
                continue;
            }
            let mut header = [0; HEADER];
            if self.receiver.peek(0, &mut header)? < HEADER {
                return Ok(true);
            }
            if into.len() - before >= room {
                return Ok(false);
            }
            match Frame::parse(&header).map_err(violation)? {
                Frame::Message(len) => {
                    let Some(posted) = self.posted.pop_front() else { return Ok(true) };
                    self.receiver.consume(HEADER)?;
                    self.arriving = Some(Arriving { len, taken: 0, into: posted });
                }
                Frame::Notice(value) => {
                    self.receiver.consume(HEADER)?;
                    into.push(Completion::new(socket, Kind::Notice, value, Ok(0)));
                }
                Frame::Export(tag) => {
                    let mut bytes = [0; Cookie::WIRE_LEN];
                    if self.exports.len() >= MOST_EXPORTS || self.receiver.peek(HEADER, &mut bytes)? < bytes.len() {
                        return Ok(true);
                    }
                    self.receiver.consume(HEADER + bytes.len())?;
                    let cookie = Cookie::from_bytes(&bytes).map_err(|_| violation("an export without a cookie"))?;
                    self.exports.push_back(Export { tag, cookie });
                    into.push(Completion::new(socket, Kind::Export, tag, Ok(cookie.len())));
                }
            }
        }
    }

    /// The connection is over: whatever waits never ends otherwise.
    pub(crate) fn end(&mut self, socket: u64, error: &Error, into: &mut Vec<Completion>) {
        let sends = self.outgoing.drain(..).filter_map(|outgoing| Some((Kind::Send, outgoing.token?)));
        let arriving = self.arriving.take().map(|arriving| (Kind::Receive, arriving.into.token));
        let receives = self.posted.drain(..).map(|posted| (Kind::Receive, posted.token));
        let all = sends.chain(arriving).chain(receives);
        into.extend(all.map(|(kind, token)| Completion::new(socket, kind, token, Err(error.clone()))));
    }
}

impl Outgoing {
    /// Pushes the next part; how many bytes.
    fn push(&mut self, sender: &mut Sender) -> Result<usize, fabric::Error> {
        let count = match self.sent.checked_sub(self.head.len()) {
            None => sender.push(&self.head[self.sent..])?,
            Some(at) => match part(&self.pieces, at) {
                Some((piece, at)) => {
                    sender.push_from(&piece.region.inner, piece.offset + at, (piece.len - at).min(AT_ONCE))?
                }
                None => 0,
            },
        };
        self.sent += count;
        Ok(count)
    }
}

/// Bytes that are copied before the other end hears of them, so that it copies out meanwhile.
const AT_ONCE: usize = 16 << 10;

impl Arriving {
    /// Takes what is there. `true`: the message is whole.
    fn advance(&mut self, receiver: &mut Receiver) -> Result<bool, fabric::Error> {
        let keeps = self.len <= Piece::total(&self.into.pieces);
        while self.taken < self.len {
            let rest = self.len - self.taken;
            let count = match part(&self.into.pieces, self.taken).filter(|_| keeps) {
                Some((piece, at)) => {
                    receiver.take_into(&piece.region.inner, piece.offset + at, (piece.len - at).min(rest))?
                }
                None => {
                    let count = receiver.available()?.min(rest);
                    receiver.consume(count)?;
                    count
                }
            };
            if count == 0 {
                return Ok(false);
            }
            self.taken += count;
        }
        Ok(true)
    }

    fn completion(self, socket: u64) -> Completion {
        let room = Piece::total(&self.into.pieces);
        let outcome = if self.len > room { Err(Error::TooLong { len: self.len, room }) } else { Ok(self.len) };
        Completion::new(socket, Kind::Receive, self.into.token, outcome)
    }
}

/// The piece in which byte `at` of a gather list lies, and where in it.
fn part(pieces: &[Piece], mut at: usize) -> Option<(&Piece, usize)> {
    for piece in pieces {
        if at < piece.len {
            return Some((piece, at));
        }
        at -= piece.len;
    }
    None
}

fn violation(what: &'static str) -> fabric::Error {
    fabric::Error::Closed(CloseReason::Violation(what))
}
