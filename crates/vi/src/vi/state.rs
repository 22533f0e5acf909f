//! What a VI keeps under its lock, and what happens when a connection begins and ends.

use std::{collections::VecDeque, sync::Arc};

use sidestep_fabric::event::{EventQueue, SourceId};

use crate::{
    attributes::{Reliability, ViAttributes},
    code::{ErrorCode, Resource, Status, ViState},
    cq::{CqCore, Queue},
    descriptor::{Completion, Descriptor, List, Operation},
    memory::{Piece, Recent},
    nic::NicCore,
    peer::Meeting,
    vi::{receive::ReceiveQueue, send::SendQueue},
    wires::{Monitors, Wires},
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

/// Called for each completion as it happens, before anyone asks for it, under the lock of the VI.
pub type Sink = fn(&Completion);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) status: ViState,
    pub(crate) attributes: ViAttributes,
    pub(crate) wires: Option<Box<Wires>>,
    pub(crate) sends: SendQueue,
    pub(crate) receives: ReceiveQueue,
    pub(crate) recent: Recent,
    pub(crate) meeting: Option<Meeting>,
    pub(crate) flow: FlowControl,
    /// Whether a message may be split over several receives.
    pub(crate) split: bool,
    pub(crate) port: Port,
    /// How far the peer had written when it was last looked at.
    pub(crate) seen: u64,
    pub(crate) seen_cookies: u64,
    pub(crate) idle: u32,
    /// Out of use.
    pub(crate) retired: bool,
    pub(crate) scratch: Vec<u8>,
    pub(crate) record: Vec<u8>,
}

/// Where a VI reports.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) nic: Arc<NicCore>,
    pub(crate) id: u32,
    pub(crate) sink: Option<Sink>,
    pub(crate) send_cq: Option<Arc<CqCore>>,
    pub(crate) receive_cq: Option<Arc<CqCore>>,
    /// Where the connection's tripwires report.
    pub(crate) sources: Vec<(EventQueue, SourceId)>,
}

/// Why a connection ends, and which error is reported for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) report: Option<ErrorCode>,
    /// Whether the peer may have said something before it went.
    pub(crate) drain: bool,
}

impl Loss {
    /// The peer closed, died, or broke the protocol.
    pub(crate) const LOST: Loss = Loss { report: Some(ErrorCode::ConnectionLost), drain: true };
    pub(crate) const BROKEN: Loss = Loss { report: Some(ErrorCode::ConnectionLost), drain: false };
    /// A descriptor of this side says it.
    pub(crate) const TOLD: Loss = Loss { report: None, drain: false };
}

impl From<sidestep_fabric::Error> for Loss {
    fn from(error: sidestep_fabric::Error) -> Loss {
        if let sidestep_fabric::Error::Closed(_) = error { Loss::LOST } else { Loss::BROKEN }
    }
}

impl From<&'static str> for Loss {
    fn from(_: &'static str) -> Loss {
        Loss::BROKEN
    }
}

impl Port {
    pub(crate) fn cq(&self, queue: Queue) -> Option<&Arc<CqCore>> {
        match queue {
            Queue::Send => self.send_cq.as_ref(),
            Queue::Receive => self.receive_cq.as_ref(),
        }
    }

    fn detach(&mut self) {
        for (queue, source) in self.sources.drain(..) {
            queue.detach(source);
        }
    }

    /// A descriptor has completed.
    pub(crate) fn completed(&self, queue: Queue, completion: &Completion) {
        if let Some(sink) = self.sink {
            sink(completion);
        }
        if let Some(cq) = self.cq(queue) {
            cq.stage(self.id, queue);
        }
        self.nic.service.completed();
    }

    pub(crate) fn report(&self, code: ErrorCode, resource: Resource, token: u64) {
        self.nic.report(crate::service::ErrorEvent { vi: Some(self.id), cq: None, code, resource, token });
    }
}

impl State {
    pub(crate) fn new(port: Port, attributes: ViAttributes) -> State {
        State {
            status: ViState::Idle,
            attributes,
            wires: None,
            sends: SendQueue::default(),
            receives: ReceiveQueue::default(),
            recent: Recent::default(),
            meeting: None,
            flow: FlowControl::Compliant,
            split: false,
            port,
            seen: 0,
            seen_cookies: 0,
            idle: 0,
            retired: false,
            scratch: Vec::new(),
            record: Vec::new(),
        }
    }

    pub(crate) fn is_reliable(&self) -> bool {
        self.attributes.reliability != Reliability::Unreliable
    }

    pub(crate) fn monitors(&self) -> Option<Arc<Monitors>> {
        self.wires.as_ref().map(|wires| wires.monitors.clone())
    }

    /// The bytes that a descriptor names, how many they are, and what is wrong with it.
    pub(crate) fn resolve(&mut self, descriptor: &Descriptor, receive: bool) -> (List<Piece>, u32, Option<Status>) {
        let none = || List::Many(Vec::new());
        if descriptor.fault.is_some() {
            return (none(), 0, descriptor.fault);
        }
        if let Some(place) = &descriptor.place
            && self.recent.resolve(&self.port.nic.memory, place, self.attributes.ptag).is_err()
        {
            self.port.report(ErrorCode::PostDescriptor, Resource::Descriptor, descriptor.token);
            return (none(), 0, Some(Status::PROTECTION_ERROR));
        }
        let remote = descriptor.operation != Operation::Send;
        let read = matches!(descriptor.operation, Operation::RdmaRead(_));
        let (State { recent, port, attributes, .. }, segments) = (self, &descriptor.segments);
        let unreliable = attributes.reliability == Reliability::Unreliable;
        if segments.len() > crate::attributes::MAX_SEGMENTS
            || receive && remote
            || read && (unreliable || descriptor.immediate.is_some())
        {
            return (none(), 0, Some(Status::FORMAT_ERROR));
        }
        let (table, ptag) = (&port.nic.memory, attributes.ptag);
        let mut total = 0u64;
        let mut resolve = |segment| {
            let piece: Piece = recent.resolve(table, segment, ptag)?;
            total += piece.len as u64;
            Ok(piece)
        };
        let pieces = match segments.len() {
            1 => segments.iter().next().map(&mut resolve).expect("one segment").map(List::One),
            _ => segments.iter().map(resolve).collect::<Result<Vec<_>, _>>().map(List::Many),
        };
        match pieces {
            Err(status) => (none(), 0, Some(status)),
            Ok(_) if !receive && total > attributes.max_transfer as u64 => (none(), 0, Some(Status::LENGTH_ERROR)),
            Ok(pieces) => (pieces, u32::try_from(total).unwrap_or(u32::MAX), None),
        }
    }

    /// The connection stands: tells the peer what is posted.
    pub(crate) fn connected(&mut self, wires: Wires) {
        self.seen = u64::MAX;
        self.seen_cookies = u64::MAX;
        self.wires = Some(Box::new(wires));
        self.status = ViState::Connected;
        self.attach_sources();
        if let Err(loss) = self.tell_receives().and_then(|()| self.tell_ready()) {
            return self.lose(loss);
        }
        self.port.nic.wake_service();
    }

    /// Lets completion queues hear of this connection.
    pub(crate) fn attach_sources(&mut self) {
        self.port.detach();
        let sends = self.port.send_cq.as_ref().or(self.port.receive_cq.as_ref()).map(|cq| cq.events.clone());
        let receives = self.port.receive_cq.as_ref().map(|cq| cq.events.clone());
        if let Some(queue) = receives {
            self.attach_receives(&queue);
        }
        if let Some(queue) = sends {
            self.attach_sends(&queue);
        }
    }

    /// Arrivals are reported to `queue`.
    pub(crate) fn attach_receives(&mut self, queue: &EventQueue) {
        let State { wires: Some(wires), port, .. } = self else { return };
        let source = queue.attach_tripwire(wires.monitors.transfer.arrival(), u64::from(port.id));
        // Whatever came before: one look.
        queue.deliver(source);
        port.sources.push((queue.clone(), source));
    }

    /// What lets sends go on is reported to `queue`, and so is the end of the connection.
    pub(crate) fn attach_sends(&mut self, queue: &EventQueue) {
        let State { wires: Some(wires), port, .. } = self else { return };
        let id = u64::from(port.id);
        let Monitors { transfer, cookies } = &*wires.monitors;
        let mut add = |source| port.sources.push((queue.clone(), source));
        add(queue.attach_endpoint(&wires.endpoint, id | ENDED));
        if !wires.endpoint.node().link().as_link().capabilities().maps {
            add(queue.attach_rdma(&wires.rdma, id));
        }
        for tripwire in [transfer.space(), cookies.arrival()] {
            add(queue.attach_tripwire(tripwire, id));
            tripwire.disarm();
        }
    }

    /// The connection is over: everything that has not completed is flushed.
    pub(crate) fn lose(&mut self, loss: Loss) {
        if loss.drain {
            // What arrived before the end counts.
            let _ = self.take_cookies();
            let _ = self.take_transfers();
        }
        if self.end(ViState::Error)
            && let Some(code) = loss.report
        {
            self.port.report(code, Resource::Vi, 0);
        }
    }

    /// Ends the connection, if there is one, and flushes both queues.
    pub(crate) fn end(&mut self, next: ViState) -> bool {
        self.port.detach();
        let wires = self.wires.take();
        self.status = next;
        self.meeting = None;
        self.flush_receives();
        self.flush_sends();
        wires.is_some()
    }

    /// Whether the connection has been closed by the other side. Asked now and then.
    pub(crate) fn is_closed(&self) -> bool {
        self.wires.as_ref().is_some_and(|wires| wires.endpoint.closed().is_some())
    }
}

/// A completed list with room for what is usual.
pub(crate) fn completions() -> VecDeque<Completion> {
    VecDeque::with_capacity(16)
}

/// In tokens: the connection has ended.
pub(crate) const ENDED: u64 = 1 << 32;
