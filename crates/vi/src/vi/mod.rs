//! A VI: a pair of queues of descriptors, connected to another one.

mod at_once;
mod core;
mod hear;
mod item;
mod posted;
mod receive;
mod remote;
mod send;
mod settings;
pub(crate) mod state;
mod tell;
mod wait;

pub(crate) use self::core::ViCore;
pub use self::state::{FlowControl, Sink, Way};
pub use self::wait::Sleeper;

use std::sync::Arc;

use sidestep_sys::clock;

use crate::{
    code::ViState,
    cq::Queue,
    descriptor::{Completion, Descriptor},
    error::{Error, Result},
};

/// One end of a connection between two VIs. Clones are the same VI; the last one takes it out of use, whoever else looks at
/// it at that moment.
#[derive(Debug)]
pub struct Vi {
    pub(crate) core: Arc<ViCore>,
}

impl Vi {
    /// The first handle of a VI that was just made.
    pub(crate) fn first(core: Arc<ViCore>) -> Vi {
        Vi { core }
    }

    /// Another handle, unless the last one has gone.
    #[inline]
    pub(crate) fn another(core: Arc<ViCore>) -> Option<Vi> {
        if core.hold() { Some(Vi { core }) } else { None }
    }
}

impl Clone for Vi {
    fn clone(&self) -> Vi {
        self.core.hold();
        Vi { core: self.core.clone() }
    }
}

impl Drop for Vi {
    #[inline]
    fn drop(&mut self) {
        if self.core.let_go() {
            self.core.retire(&mut self.core.lock());
        }
    }
}

/// Called once, with the next completion.
pub type Notify = Box<dyn FnOnce(Vi, Completion) + Send>;

impl Vi {
    /// Posts a receive: room for one message. Allowed before the VI is connected.
    #[inline]
    pub fn post_receive(&self, descriptor: &Descriptor) -> Result<()> {
        ViCore::prefetch(&*self.core);
        let mut state = self.core.lock();
        if state.drops_messages() {
            // What has arrived before found no receive, and gets none now.
            drop(state);
            self.core.progress();
            state = self.core.lock();
        }
        state.post_receive(descriptor)?;
        drop(state);
        self.core.hear();
        Ok(())
    }

    /// Posts a send or an RDMA operation, with the flow control of the VI.
    #[inline]
    pub fn post_send(&self, descriptor: &Descriptor) -> Result<()> {
        ViCore::prefetch(&*self.core);
        let mut state = self.core.lock();
        match state.flow {
            FlowControl::Blocking => {
                drop(state);
                self.post_send_with(descriptor, FlowControl::Blocking, None)
            }
            flow => state.post_send(descriptor, flow),
        }
    }

    /// Extension: as `post_send`, with flow control for this one. The deadline is for the blocking kind.
    pub fn post_send_with(&self, descriptor: &Descriptor, flow: FlowControl, deadline: Option<u64>) -> Result<()> {
        loop {
            self.progress();
            let outcome = self.core.lock().post_send(descriptor, flow);
            if flow != FlowControl::Blocking || outcome != Err(Error::NoReceive) {
                return outcome;
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Err(Error::TimedOut);
            }
            self.core.wait_news(deadline, &mut |state| state.may_send());
        }
    }

    /// The next completed receive, if there is one.
    #[inline]
    pub fn poll_receive(&self) -> Option<Completion> {
        self.core.poll(Queue::Receive)
    }

    /// The next completed send, if there is one.
    #[inline]
    pub fn poll_send(&self) -> Option<Completion> {
        self.core.poll(Queue::Send)
    }

    /// The next completed receive; waits for it. Not for a queue that has a completion queue.
    pub fn wait_receive(&self, deadline: Option<u64>) -> Result<Completion> {
        self.core.wait(Queue::Receive, deadline)
    }

    /// The next completed send; waits for it. Not for a queue that has a completion queue.
    pub fn wait_send(&self, deadline: Option<u64>) -> Result<Completion> {
        self.core.wait(Queue::Send, deadline)
    }

    /// Calls back once, from the service thread of the NIC, with the next completion of a queue.
    pub fn notify(&self, queue: Queue, callback: Notify) -> Result<()> {
        self.core.notify(queue, callback)
    }

    /// Whether it is connected. Sees to connections of the NIC that have ended.
    pub fn is_connected(&self) -> bool {
        self.state() == ViState::Connected
    }

    /// Ends the connection; what has not completed is flushed, and the VI is idle.
    pub fn disconnect(&self) -> Result<()> {
        self.core.lock().end(ViState::Idle);
        Ok(())
    }

    /// Makes progress: places what has arrived, and goes on with sends.
    pub fn progress(&self) {
        self.core.progress();
    }

    /// Takes the VI out of use before the last clone goes: ends its connection, and gives back what it holds.
    pub fn retire(&self) {
        self.core.retire(&mut self.core.lock());
    }

    /// Which VI of its NIC.
    pub fn id(&self) -> u32 {
        self.core.id
    }
}
