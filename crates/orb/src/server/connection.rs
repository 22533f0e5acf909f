//! One connection of a server: what has come of it, and whether somebody serves it.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use sidestep_wire::giop::MessageType;

use super::{Line, Session, serve, serve_predicted};
use crate::Orb;
use crate::assembler::{Assembler, Broken, Message};
use crate::call::Answer;
use crate::strand::{Look, ReceiveHalf, Strand, Watch};

pub(super) struct Connection {
    pub(super) token: u64,
    pub(super) line: Line,
    /// Held by whoever serves the connection.
    reader: Mutex<Reader>,
    /// [`IDLE`], [`BUSY`] or [`NEWS`].
    work: AtomicU8,
}

struct Reader {
    receiver: Box<dyn ReceiveHalf>,
    assembler: Assembler,
    session: Session,
    /// The beginning of a message that lies in the memory of the transport.
    head: Vec<u8>,
    /// What lay there when somebody last looked was a message that had not come whole.
    is_stuck: bool,
}

/// What is left of a connection after it was served for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    /// Everything that had come; so many messages.
    All(usize),
    /// As many messages as were allowed.
    Some,
    /// The connection is over.
    Over,
}

/// Nobody serves the connection.
const IDLE: u8 = 0;
/// Somebody does.
const BUSY: u8 = 1;
/// Somebody does, and something has come since.
const NEWS: u8 = 2;

impl Connection {
    pub(super) fn new(token: u64, strand: Strand, limit: usize) -> Self {
        let Strand { sender, receiver, closer } = strand;
        let (assembler, session) = (Assembler::new(limit), Session::default());
        let reader = Reader { receiver, assembler, session, head: Vec::new(), is_stuck: false };
        Self { token, line: Line::new(sender, closer), reader: Mutex::new(reader), work: AtomicU8::new(IDLE) }
    }

    /// Something has come: whether the caller is the one to serve it.
    pub(super) fn claim(&self) -> bool {
        let mark = |work| Some(if work == IDLE { BUSY } else { NEWS });
        self.work.fetch_update(Ordering::AcqRel, Ordering::Acquire, mark) == Ok(IDLE)
    }

    /// Whoever has claimed it is done; false if something has come meanwhile, and then it is claimed still.
    pub(super) fn release(&self) -> bool {
        let free = self.work.compare_exchange(BUSY, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !free {
            self.work.store(BUSY, Ordering::Release);
        }
        free
    }

    /// Whether something may have come since somebody last looked. The watch reports what comes of a message that lies there in
    /// part.
    pub(super) fn has_news(&self) -> bool {
        self.reader.try_lock().is_ok_and(|mut reader| !reader.is_stuck && reader.receiver.has_news())
    }

    /// Has what comes reported to a watch.
    pub(super) fn attach(&self, watch: &Watch) -> io::Result<()> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).receiver.attach(watch, self.token)
    }

    /// Serves what has come, at most so many messages. Without a deadline it waits for something to come.
    pub(super) fn serve_ready(&self, orb: &Orb, deadline: Option<Instant>, most: usize) -> Served {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.is_stuck = false;
        let mut served = 0;
        while served < most {
            match reader.serve_next(&self.line, orb, deadline) {
                Ok(true) => served += 1,
                Ok(false) => {}
                Err(Ended::NothingCame) => return Served::All(served),
                Err(Ended::Gone) => return Served::Over,
                Err(Ended::Malformed) => {
                    self.line.part(reader.session.version(), MessageType::MessageError);
                    return Served::Over;
                }
            }
        }
        Served::Some
    }
}

/// Why no message was served.
enum Ended {
    NothingCame,
    Gone,
    Malformed,
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::TimedOut { Ended::NothingCame } else { Ended::Gone }
    }
}

impl From<Broken> for Ended {
    fn from(_: Broken) -> Self {
        Ended::Malformed
    }
}

impl Reader {
    /// Serves the next message, or takes in bytes of it.
    #[inline]
    fn serve_next(&mut self, line: &Line, orb: &Orb, deadline: Option<Instant>) -> Result<bool, Ended> {
        let Self { receiver, assembler, session, .. } = self;
        if !assembler.is_empty() {
            return self.serve_kept(line, orb, deadline);
        }
        match receiver.receive_below(orb.direct(), assembler.space(), deadline)? {
            Some(0) => return Err(Ended::Gone),
            Some(count) => assembler.filled(count),
            None => return self.serve_shown(line, orb, deadline),
        }
        let Some((answer, len)) = serve_predicted(orb, assembler.kept(), session, line) else { return Ok(false) };
        assembler.consume(len);
        self.reply(line, answer)?;
        Ok(true)
    }

    /// Serves the next message that has come, or takes in the rest of it.
    fn serve_kept(&mut self, line: &Line, orb: &Orb, deadline: Option<Instant>) -> Result<bool, Ended> {
        let Self { receiver, assembler, session, .. } = self;
        if let Some((answer, len)) = serve_predicted(orb, assembler.kept(), session, line) {
            assembler.consume(len);
            self.reply(line, answer)?;
            return Ok(true);
        }
        if let Some(message) = assembler.next()? {
            let answer = serve(orb, &message, session, Some(line))?;
            self.reply(line, answer)?;
            return Ok(true);
        }
        match receiver.receive(assembler.space(), deadline)? {
            0 => Err(Ended::Gone),
            count => {
                assembler.filled(count);
                Ok(false)
            }
        }
    }

    /// Serves a large message where it lies, if that can be done, or takes in bytes of it.
    fn serve_shown(&mut self, line: &Line, orb: &Orb, deadline: Option<Instant>) -> Result<bool, Ended> {
        let Self { receiver, assembler, session, head, is_stuck } = self;
        let mut outcome = None;
        let mut take = |message: &Message<'_>| outcome = Some(serve(orb, message, session, Some(line)));
        let sizes = orb.direct()..=orb.message_limit();
        let shown = receiver.show(&mut Look { sizes, head, take: &mut take }, deadline);
        *is_stuck = shown.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        if let Some(answer) = outcome {
            self.reply(line, answer?)?;
            shown?;
            return Ok(true);
        }
        shown?;
        match receiver.receive(assembler.space(), deadline)? {
            0 => Err(Ended::Gone),
            count => {
                assembler.filled(count);
                Ok(false)
            }
        }
    }

    #[inline]
    fn reply(&mut self, line: &Line, answer: Answer) -> Result<(), Ended> {
        match answer {
            Answer::Reply => return Ok(line.send(self.session.reply())?),
            Answer::Nothing if self.session.is_over() => return Err(Ended::Gone),
            Answer::Nothing | Answer::Sent => {}
            Answer::Lost => return Err(Ended::Gone),
        }
        if let Some(cancelled) = self.session.take_cancelled() {
            self.assembler.forget(cancelled);
        }
        Ok(())
    }
}
