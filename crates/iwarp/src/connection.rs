//! One connection: what goes in, what comes out, and when.

use crate::config::Config;
use crate::error::Error;
use crate::event::{Completion, Event, SetupFailure};
use crate::gather::Gather;
use crate::host::Host;
use crate::mem::MemoryTable;
use crate::nudge::Nudge;
use crate::rx::{Around, Rx};
use crate::setup::{self, PeerFrame};
use crate::tx::Tx;
use sidestep_wire::Stag;
use sidestep_wire::mpa::frame;
use std::collections::VecDeque;
use std::time::Duration;

/// One end of an iWARP connection, without I/O.
///
/// `now` is the time since some moment that the driver chooses and keeps.
///
/// **Input from the stream and the clock**: [`handle_input`](Self::handle_input),
/// [`handle_end`](Self::handle_end), [`handle_transmitted`](Self::handle_transmitted),
/// [`handle_timeout`](Self::handle_timeout).
///
/// **Input from the program above**: [`accept`](Self::accept), [`reject`](Self::reject), the `post_*`
/// methods, [`close`](Self::close), [`abort`](Self::abort), [`reset`](Self::reset).
///
/// **Output to carry out**, after every input: [`poll_transmit`](Self::poll_transmit), whose pieces the
/// driver writes to the stream and reports with `handle_transmitted`;
/// [`poll_completion`](Self::poll_completion) and [`poll_event`](Self::poll_event) until they return
/// `None`; [`poll_timeout`](Self::poll_timeout), the time of the next `handle_timeout`; and
/// [`transport`](Self::transport), what is to become of the stream.
#[derive(Debug)]
pub struct Connection {
    pub(crate) config: Config,
    pub(crate) phase: Phase,
    pub(crate) tx: Tx,
    pub(crate) rx: Rx,
    /// A set-up frame that is to be sent.
    pub(crate) frame: Option<Vec<u8>>,
    /// Bytes of an unfinished frame or FPDU that the driver holds.
    pub(crate) unfinished: usize,
    pub(crate) peer_finished: bool,
    pub(crate) deadline: Option<Duration>,
    pub(crate) nudge: Option<Nudge>,
    pub(crate) completions: VecDeque<Completion>,
    pub(crate) events: VecDeque<Event>,
}

/// What the driver does with the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Keep it open.
    Open,
    /// Close this end's half, as `shutdown` does, and go on reading. All output is transmitted.
    Finish,
    /// Close it, and drop what is gathered.
    Close,
    /// Close it so that the peer sees a reset, and drop what is gathered.
    Reset,
}

#[derive(Debug)]
pub(crate) enum Phase {
    /// Initiator: the reply is awaited. Responder: the request is awaited.
    Setup {
        initiator: bool,
    },
    /// Responder: the program above has to answer.
    Deciding(Box<PeerFrame>),
    Operating,
    /// The program above has closed; what was posted still goes out.
    Closing,
    /// A terminate message or a reject is on its way out; input is dropped.
    Ending,
    /// This end is finished and waits for the peer's end; in good order it still takes messages.
    Finished {
        receiving: bool,
    },
    Closed {
        reset: bool,
    },
}

impl Connection {
    /// The end that speaks first.
    pub fn initiate(config: Config, private_data: &[u8], now: Duration) -> Result<Self, Error> {
        let request = setup::request(&config, private_data)?;
        let nudge = config.nudge.map(Nudge::new);
        let mut this = Self::new(config, true, now);
        this.frame = Some(request);
        this.nudge = nudge;
        Ok(this)
    }

    /// The end that waits for a request.
    #[must_use]
    pub fn respond(config: Config, now: Duration) -> Self {
        Self::new(config, false, now)
    }

    fn new(config: Config, initiator: bool, now: Duration) -> Self {
        Self {
            phase: Phase::Setup { initiator },
            tx: Tx::new(config.identity),
            rx: Rx::new(),
            frame: None,
            unfinished: 0,
            peer_finished: false,
            deadline: Some(now + config.setup_timeout),
            nudge: None,
            completions: VecDeque::new(),
            events: VecDeque::new(),
            config,
        }
    }

    /// Takes bytes of the stream: those that earlier calls did not consume, and all that follow.
    ///
    /// Returns how many bytes were consumed; the driver drops those and keeps the rest, which is less
    /// than one FPDU or set-up frame.
    pub fn handle_input(
        &mut self,
        now: Duration,
        input: &[u8],
        table: &mut MemoryTable,
        host: &mut impl Host,
    ) -> usize {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            self.unfinished = rest.len();
            let taken = match self.phase {
                Phase::Setup { initiator } => self.handle_frame(now, rest, initiator),
                Phase::Deciding(_) => 0,
                Phase::Operating | Phase::Closing | Phase::Finished { receiving: true } => {
                    self.handle_fpdu(now, rest, table, host)
                }
                Phase::Ending | Phase::Finished { receiving: false } | Phase::Closed { .. } => rest.len(),
            };
            consumed += taken;
            if taken == 0 {
                return consumed;
            }
        }
    }

    /// How many bytes are needed before [`handle_input`](Self::handle_input) can go on, if `rest` is
    /// what it left.
    #[must_use]
    pub fn needed(&self, rest: &[u8]) -> usize {
        match self.phase {
            Phase::Setup { initiator } => match frame::expected_len(rest, initiator) {
                Ok(Some(len)) => len,
                _ => frame::HEADER_LEN,
            },
            Phase::Operating | Phase::Closing | Phase::Finished { receiving: true } => self.rx.needed(rest),
            _ => 1,
        }
    }

    /// The stream has taken `count` bytes of what was gathered.
    pub fn handle_transmitted(&mut self, now: Duration, count: u64) {
        self.tx.ledger.count_transmitted(count);
        if count > 0 {
            self.extend_closing(now);
        }
        if let Some(nudge) = self.nudge.as_mut().filter(|_| self.tx.has_sent()) {
            nudge.arm(now);
        }
        self.advance(now);
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come. Calling it early does no harm.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            if let Phase::Setup { .. } = self.phase {
                let waited = self.config.setup_timeout;
                self.events.push_back(Event::SetupFailed(SetupFailure::TimedOut { waited }));
            }
            self.finish(true);
        }
        if self.nudge.as_mut().is_some_and(|nudge| nudge.is_due(now)) {
            self.tx.nudge();
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if at all.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let nudge = self.nudge.as_ref().and_then(Nudge::at);
        [self.deadline, nudge].into_iter().flatten().min()
    }

    /// The segment size of the stream has changed.
    pub fn set_segment_size(&mut self, segment_size: usize) {
        self.config.segment_size = segment_size;
        self.tx.set_segment_size(segment_size);
    }

    /// Whether bytes of the region may still be sent, or written by an answer that is awaited. A
    /// region that was deregistered may be unmapped when no connection holds it.
    #[must_use]
    pub fn holds(&self, stag: Stag) -> bool {
        self.tx.holds(stag)
    }

    /// Whether everything that was posted is gathered.
    #[must_use]
    pub fn has_gathered_all(&self) -> bool {
        self.tx.has_gathered_all()
    }

    /// Whether a message is gathered in part: its next segment is the next output.
    #[must_use]
    pub fn is_amid_message(&self) -> bool {
        self.tx.is_amid_message()
    }

    /// Whether there may be output.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.frame.is_some() || self.tx.has_output()
    }

    /// Appends output to `gather` until it holds `budget` bytes or there is none left. One FPDU may
    /// go beyond the budget.
    pub fn poll_transmit(
        &mut self,
        now: Duration,
        budget: u64,
        table: &MemoryTable,
        host: &mut impl Host,
        gather: &mut Gather,
    ) {
        if let Some(frame) = self.frame.take() {
            gather.push_bytes(&frame);
            self.tx.ledger.count_emitted(frame.len() as u64, None);
        }
        if matches!(self.phase, Phase::Operating | Phase::Closing | Phase::Ending)
            && let Err(failed) = self.tx.poll(budget, table, host, gather)
        {
            self.fail(now, failed.fault, Some(&failed.refused));
            // A terminate message has no source to check, so this cannot fail again.
            let _ = self.tx.poll(budget, table, host, gather);
        }
        self.advance(now);
    }

    /// The next thing that is done.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front().or_else(|| self.tx.ledger.poll())
    }

    /// The next change in the life of the connection.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What is to become of the stream.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self.phase {
            Phase::Finished { .. } => Transport::Finish,
            Phase::Closed { reset: false } => Transport::Close,
            Phase::Closed { reset: true } => Transport::Reset,
            _ => Transport::Open,
        }
    }

    /// Handles the first FPDU of `input`, once it is all there.
    fn handle_fpdu(&mut self, now: Duration, input: &[u8], table: &mut MemoryTable, host: &mut impl Host) -> usize {
        if input.len() < self.rx.needed(input) {
            return 0;
        }
        let mut around = Around {
            tx: &mut self.tx,
            table,
            host,
            identity: self.config.identity,
            completions: &mut self.completions,
        };
        let handled = self.rx.handle(input, &mut around);
        if self.rx.has_received() {
            self.note_received(now);
        }
        let taken = match handled {
            Ok((taken, None)) => taken,
            Ok((_, Some(terminate))) => {
                self.events.push_back(Event::PeerTerminated(terminate));
                self.finish(false);
                input.len()
            }
            Err(failed) => {
                self.fail(now, failed.fault, failed.refused.as_deref());
                input.len()
            }
        };
        if matches!(self.phase, Phase::Finished { .. }) && !self.tx.is_idle() {
            // The peer asks for an answer and this half is closed already.
            self.finish(true);
        }
        self.advance(now);
        taken
    }

    /// An FPDU has come.
    pub(crate) fn note_received(&mut self, now: Duration) {
        // RFC 5044 §7.1.2: the responder sends nothing before it has received a valid FPDU.
        self.tx.open = true;
        self.nudge = None;
        self.extend_closing(now);
    }
}
