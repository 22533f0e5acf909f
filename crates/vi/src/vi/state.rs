//! What a VI keeps under its lock, and what happens when a connection begins and ends.

use std::sync::{Arc, Weak};

use crate::{
    attributes::{Reliability, ViAttributes},
    code::{ErrorCode, Resource, Status, ViState},
    cq::{CqCore, Queue},
    descriptor::{Completion, Descriptor, List, Operation},
    line::Line,
    memory::{MemHandle, Piece, Recent},
    nic::NicCore,
    peer::Meeting,
    service::ErrorEvent,
    vi::{ViCore, posted::ReceiveQueue, send::SendQueue},
};

/// What to do with a send when no receive is posted at the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlowControl {
    /// As the specification says: drop it, or end the connection.
    #[default]
    Compliant,
    /// Refuse it, and change nothing.
    NonBlocking,
    /// Wait in the call until a receive is posted.
    Blocking,
    /// Keep it, and send it when a receive is posted.
    Asynchronous,
}

/// Which way messages go; for measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// Small ones in the ring, large ones straight into the receive buffer where that can be reached.
    #[default]
    BySize,
    /// All in the ring.
    Pio,
    /// All straight into the receive buffer, where that can be reached.
    Rdma,
}

/// Called for each completion as it happens, before anyone asks for it, under the lock of the VI.
pub type Sink = fn(&Completion);

/// Called for each receive that completes, under the lock of the VI, by whoever takes what has arrived.
pub(crate) struct Alert(pub(crate) Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Alert {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("alert")
    }
}

/// What every message touches lies together, in [`HOT`] bytes: with many connections each line of memory counts, and these
/// are asked for all at once.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct State {
    pub(crate) status: ViState,
    pub(crate) flow: FlowControl,
    /// Whether a message may be split over several receives.
    pub(crate) split: bool,
    pub(crate) way: Way,
    /// Whether peers may place messages in receives of this side.
    pub(crate) placing: bool,
    /// Whether the trunk knows that this VI waits for room.
    pub(crate) waiting: bool,
    /// Out of use.
    pub(crate) retired: bool,
    pub(crate) attributes: ViAttributes,
    pub(crate) port: Port,
    pub(crate) recent: Recent,
    pub(crate) receives: ReceiveQueue,
    pub(crate) sends: SendQueue,
    /// Its first fields, that is.
    pub(crate) line: Option<Line>,
    pub(crate) meeting: Option<Box<Meeting>>,
    /// The VI itself.
    pub(crate) own: Weak<ViCore>,
}

/// Bytes of the state that every message touches.
pub(crate) const HOT: usize = std::mem::offset_of!(State, line) + Line::HOT;

/// Where a VI reports.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) nic: Arc<NicCore>,
    pub(crate) id: u32,
    pub(crate) sink: Option<Sink>,
    pub(crate) alert: Option<Box<Alert>>,
    pub(crate) send_cq: Option<Arc<CqCore>>,
    pub(crate) receive_cq: Option<Arc<CqCore>>,
}

/// Why a connection ends, and which error is reported for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) report: Option<ErrorCode>,
}

impl Loss {
    /// The peer closed or died.
    pub(crate) const LOST: Loss = Loss { report: Some(ErrorCode::ConnectionLost) };
    /// The peer broke the protocol, or the link failed.
    pub(crate) const BROKEN: Loss = Loss { report: Some(ErrorCode::ConnectionLost) };
    /// A descriptor of this side says it.
    pub(crate) const TOLD: Loss = Loss { report: None };
}

impl From<sidestep_fabric::Error> for Loss {
    fn from(_: sidestep_fabric::Error) -> Loss {
        Loss::BROKEN
    }
}

impl From<&'static str> for Loss {
    fn from(_: &'static str) -> Loss {
        Loss::BROKEN
    }
}

impl Port {
    #[inline]
    pub(crate) fn cq(&self, queue: Queue) -> Option<&Arc<CqCore>> {
        match queue {
            Queue::Send => self.send_cq.as_ref(),
            Queue::Receive => self.receive_cq.as_ref(),
        }
    }

    /// A descriptor has completed.
    #[inline]
    fn completed(&self, queue: Queue, completion: &Completion, written: bool) {
        match self.sink {
            Some(sink) if written => sink(completion),
            _ => {}
        }
        if let (Queue::Receive, Some(alert)) = (queue, &self.alert) {
            (alert.0)();
        }
        if let Some(cq) = self.cq(queue) {
            cq.stage(self.id, queue);
        }
        if self.nic.service.has_callbacks() {
            self.nic.wake_service();
        }
    }

    /// Reports an error of the VI, met by this operation.
    pub(crate) fn report(&self, code: ErrorCode, operation: Status) {
        self.nic.report(ErrorEvent { vi: Some(self.id), ..ErrorEvent::new(code, Resource::Vi, operation) });
    }

    /// Reports an error of a descriptor.
    pub(crate) fn report_descriptor(&self, code: ErrorCode, operation: Status, token: u64) {
        let event = ErrorEvent::new(code, Resource::Descriptor, operation);
        self.nic.report(ErrorEvent { vi: Some(self.id), token, ..event });
    }
}

impl State {
    pub(crate) fn new(port: Port, attributes: ViAttributes) -> State {
        State {
            status: ViState::Idle,
            flow: FlowControl::Compliant,
            split: false,
            way: Way::BySize,
            placing: true,
            waiting: false,
            retired: false,
            attributes,
            port,
            receives: ReceiveQueue::default(),
            sends: SendQueue::default(),
            recent: Recent::default(),
            line: None,
            meeting: None,
            own: Weak::new(),
        }
    }

    #[inline]
    pub(crate) fn is_reliable(&self) -> bool {
        self.attributes.reliability != Reliability::Unreliable
    }

    /// Notes a completion of a descriptor. `place` is the registration that it lies in itself, if the outcome is written
    /// there: not into memory that the program has taken back meanwhile.
    ///
    /// Compiled into its callers, so that the completion is put together where it stays: a copy would wait for each of its
    /// fields to be there.
    #[inline(always)]
    pub(crate) fn complete(&mut self, queue: Queue, mut completion: Completion, place: Option<MemHandle>) {
        let State { recent, port, sends, receives, .. } = self;
        let written = place.is_none_or(|place| recent.find(&port.nic.memory, place).is_some());
        if !written {
            port.report_descriptor(ErrorCode::CompletionProtection, completion.status.operation(), completion.token);
            completion.status = completion.status.and(Status::PROTECTION_ERROR);
        }
        let done = match queue {
            Queue::Send => &mut sends.done,
            Queue::Receive => &mut receives.done,
        };
        port.completed(queue, done.push(completion), written);
    }

    /// Hands the next completion out.
    #[inline]
    pub(crate) fn pop(&mut self, queue: Queue) -> Option<Completion> {
        let done = match queue {
            Queue::Send => &mut self.sends.done,
            Queue::Receive => &mut self.receives.done,
        };
        done.pop()
    }

    /// Whether a completion of that queue waits.
    #[inline]
    pub(crate) fn has_done(&self, queue: Queue) -> bool {
        match queue {
            Queue::Send => !self.sends.done.is_empty(),
            Queue::Receive => !self.receives.done.is_empty(),
        }
    }

    /// The bytes that a descriptor names, how many they are, and what is wrong with it.
    #[inline]
    pub(crate) fn resolve(&mut self, descriptor: &Descriptor, receive: bool) -> (List<Piece>, u32, Option<Status>) {
        if descriptor.fault.is_some() {
            return (List::NONE, 0, descriptor.fault);
        }
        if let Some(place) = &descriptor.place
            && self.recent.check(&self.port.nic.memory, place, self.attributes.ptag).is_none()
        {
            let operation = if receive { Status::OP_RECEIVE } else { descriptor.operation.status() };
            self.port.report_descriptor(ErrorCode::PostDescriptor, operation, descriptor.token);
            return (List::NONE, 0, Some(Status::PROTECTION_ERROR));
        }
        let remote = descriptor.operation != Operation::Send;
        let read = matches!(descriptor.operation, Operation::RdmaRead(_));
        let (State { recent, port, attributes, .. }, segments) = (self, &descriptor.segments);
        let unreliable = attributes.reliability == Reliability::Unreliable;
        if segments.len() > crate::attributes::MAX_SEGMENTS
            || receive && remote
            || read && (unreliable || descriptor.immediate.is_some())
        {
            return (List::NONE, 0, Some(Status::FORMAT_ERROR));
        }
        let (table, ptag) = (&port.nic.memory, attributes.ptag);
        let pieces = match segments.as_slice() {
            [segment] => recent.resolve(table, segment, ptag).map(List::One),
            many => many
                .iter()
                .map(|segment| recent.resolve(table, segment, ptag))
                .collect::<Result<_, _>>()
                .map(List::Many),
        };
        let pieces = match pieces {
            Ok(pieces) => pieces,
            Err(status) => return (List::NONE, 0, Some(status)),
        };
        let total: u64 = pieces.as_slice().iter().map(|piece| piece.len as u64).sum();
        if !receive && total > attributes.max_transfer as u64 {
            return (List::NONE, 0, Some(Status::LENGTH_ERROR));
        }
        (pieces, u32::try_from(total).unwrap_or(u32::MAX), None)
    }

    /// The connection stands: tells the peer what is posted.
    pub(crate) fn connected(&mut self, mut line: Line) {
        line.ended = Some(self.port.nic.endings.attach_endpoint(&line.endpoint, u64::from(self.port.id)));
        self.line = Some(line);
        self.status = ViState::Connected;
        self.receives.look_for_places();
        let flow = self.flow != FlowControl::Compliant || self.split;
        let asked = if flow { self.ask_flow() } else { Ok(()) };
        if let Err(loss) = asked.and_then(|()| self.tell()).and_then(|()| self.tell_reaches()) {
            return self.lose(loss);
        }
        self.port.nic.wake_service();
    }

    /// The connection is over: everything that has not completed is flushed.
    pub(crate) fn lose(&mut self, loss: Loss) {
        let Some(code) = loss.report.filter(|_| self.line.is_some()) else {
            self.end(ViState::Error);
            return;
        };
        if self.receives.is_amid_write() {
            self.port.report(ErrorCode::RdmaWriteAbort, Status::OP_REMOTE_RDMA_WRITE);
        }
        for (operation, token) in self.sends.rdma_under_way() {
            self.port.report_descriptor(ErrorCode::RdmaTransport, operation, token);
        }
        self.end(ViState::Error);
        self.port.report(code, Status(0));
    }

    /// Ends the connection, if there is one, and flushes both queues.
    pub(crate) fn end(&mut self, next: ViState) -> bool {
        let line = self.line.take();
        if let Some(ended) = line.as_ref().and_then(|line| line.ended) {
            self.port.nic.endings.detach(ended);
        }
        self.status = next;
        self.meeting = None;
        self.waiting = false;
        self.flush_receives();
        self.flush_sends();
        line.is_some()
    }

    /// Whether the connection has been closed by the other side. Asked now and then.
    pub(crate) fn is_closed(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.endpoint.closed().is_some())
    }
}
