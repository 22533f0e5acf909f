//! What can be asked of a VI and set, apart from its queues.

use std::sync::atomic::Ordering;

use crate::{
    attributes::{RemoteAttributes, ViAttributes},
    code::ViState,
    cq::{Cq, Queue},
    error::{Error, Result},
    vi::{FlowControl, Sink, Vi, Way},
};

impl Vi {
    /// The state of the connection, after everything that has arrived.
    pub fn state(&self) -> ViState {
        self.core.progress();
        self.core.nic.breathe();
        self.core.lock().status
    }

    /// Its attributes.
    pub fn attributes(&self) -> ViAttributes {
        self.core.lock().attributes
    }

    /// What the other side said, if connected.
    pub fn remote_attributes(&self) -> Option<RemoteAttributes> {
        self.core.lock().line.as_ref().map(|line| line.remote)
    }

    /// Whether the send and the receive queue are empty.
    pub fn queues_empty(&self) -> (bool, bool) {
        let state = self.core.lock();
        (state.sends.is_empty(), state.receives.is_empty())
    }

    /// Whether sends wait for room, or with flow control for a receive of the other side.
    pub fn has_deferred(&self) -> bool {
        self.core.lock().sends.has_waiting()
    }

    /// Changes the attributes of a VI that is idle.
    pub fn set_attributes(&self, attributes: &ViAttributes) -> Result<()> {
        attributes.check()?;
        let mut state = self.core.lock();
        if state.status != ViState::Idle {
            return Err(Error::State { is: state.status });
        }
        self.core.nic.memory.use_ptag(attributes.ptag, true)?;
        self.core.nic.memory.use_ptag(state.attributes.ptag, false)?;
        state.attributes = *attributes;
        Ok(())
    }

    /// Extension: what sends do when no receive is posted at the other side.
    pub fn set_flow_control(&self, flow: FlowControl) {
        self.core.lock().flow = flow;
    }

    /// Extension: whether a message may be split over several receives of the other side.
    pub fn set_splitting(&self, split: bool) {
        self.core.lock().split = split;
    }

    /// Which way messages of this side go, whatever their size. Before it is connected, [`Way::Pio`] also keeps the peer from
    /// placing messages in receives of this side.
    pub fn set_way(&self, way: Way) {
        self.core.lock().way = way;
    }

    /// Extension: whether the peer may place messages in receives of this side itself, which is so at first. Without, it never
    /// gets at memory that receives lie in, before they complete or after; its messages are copied out of the ring. Counts for
    /// the next connection.
    pub fn set_placing(&self, placing: bool) {
        self.core.lock().placing = placing;
    }

    /// Extension: a word of the program's own.
    pub fn set_user_word(&self, word: u64) {
        self.core.user_word.store(word, Ordering::Release);
    }

    /// Extension: that word.
    pub fn user_word(&self) -> u64 {
        self.core.user_word.load(Ordering::Acquire)
    }

    /// A number of the layer above, such as its handle for this VI.
    pub fn set_tag(&self, tag: u64) {
        self.core.tag.store(tag, Ordering::Release);
    }

    /// That number.
    pub fn tag(&self) -> u64 {
        self.core.tag.load(Ordering::Acquire)
    }

    /// Extension: moves a queue to another completion queue, or to none. What was reported stays where it was.
    pub fn move_to(&self, queue: Queue, cq: Option<&Cq>) {
        let mut state = self.core.lock();
        let core = cq.map(|cq| cq.core.clone());
        if let Some(core) = &core {
            core.users.fetch_add(1, Ordering::AcqRel);
        }
        let former = match queue {
            Queue::Send => std::mem::replace(&mut state.port.send_cq, core),
            Queue::Receive => std::mem::replace(&mut state.port.receive_cq, core),
        };
        if let Some(former) = former {
            former.users.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Hears of every completion as it happens; for a program whose descriptors lie in memory that it polls.
    pub fn set_sink(&self, sink: Sink) {
        self.core.lock().port.sink = Some(sink);
    }
}
