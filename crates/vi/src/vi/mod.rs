//! A VI: a pair of queues of descriptors, connected to another one.

mod item;
mod receive;
mod send;
pub(crate) mod state;
mod tell;
mod wait;

pub use self::state::{FlowControl, Sink};

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use sidestep_shm::{clock, wait::Waiter};

use self::state::{Loss, Port, State};
use crate::{
    attributes::{RemoteAttributes, ViAttributes},
    code::ViState,
    cq::{Cq, Queue},
    descriptor::{Completion, Descriptor},
    error::{Error, Result},
    nic::NicCore,
};

/// One end of a connection between two VIs. Clones are the same VI; it goes with the last one.
#[derive(Debug, Clone)]
pub struct Vi {
    pub(crate) core: Arc<ViCore>,
}

#[derive(Debug)]
pub(crate) struct ViCore {
    pub(crate) id: u32,
    pub(crate) nic: Arc<NicCore>,
    state: Mutex<State>,
    /// Whether the program has called since the service thread last looked.
    pub(crate) touched: AtomicBool,
    waiter: Mutex<Waiter>,
    user_word: AtomicU64,
    tag: AtomicU64,
    notify: Mutex<[VecDeque<Callback>; 2]>,
}

/// Called once, with the next completion.
pub type Notify = Box<dyn FnOnce(Vi, Completion) + Send>;

struct Callback(Notify);

impl std::fmt::Debug for Callback {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("callback")
    }
}

/// Looks that found nothing before the process sees to other things.
const BREATH: u32 = 512;
/// Between looks at a VI that is not connected.
const UNCONNECTED: Duration = Duration::from_micros(100);

impl Vi {
    /// Posts a receive: room for one message. Allowed before the VI is connected.
    pub fn post_receive(&self, descriptor: &Descriptor) -> Result<()> {
        self.core.enter().post_receive(descriptor)
    }

    /// Posts a send or an RDMA operation, with the flow control of the VI.
    pub fn post_send(&self, descriptor: &Descriptor) -> Result<()> {
        let mut state = self.core.enter();
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
            let outcome = {
                let mut state = self.core.enter();
                self.core.pump(&mut state);
                state.post_send(descriptor, flow)
            };
            if flow != FlowControl::Blocking || outcome != Err(Error::NoReceive) {
                return outcome;
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Err(Error::TimedOut);
            }
            self.core.wait_news(Queue::Send, deadline, &mut |state| state.credits() > 0);
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
        if self.core.lock().port.cq(queue).is_some() {
            return Err(Error::Invalid("a callback for a queue with a completion queue"));
        }
        self.core.notify.lock().expect("no panic with callbacks")[queue as usize].push_back(Callback(callback));
        self.core.nic.watch_callbacks()
    }

    /// The state of the connection.
    pub fn state(&self) -> ViState {
        let mut state = self.core.enter();
        self.core.breathe(&mut state);
        state.status
    }

    /// Its attributes.
    pub fn attributes(&self) -> ViAttributes {
        self.core.lock().attributes
    }

    /// What the other side said, if connected.
    pub fn remote_attributes(&self) -> Option<RemoteAttributes> {
        self.core.lock().wires.as_ref().map(|wires| wires.remote)
    }

    /// Whether the send and the receive queue are empty.
    pub fn queues_empty(&self) -> (bool, bool) {
        let state = self.core.lock();
        (state.sends.is_empty(), state.receives.is_empty())
    }

    /// Whether descriptors are posted that have not completed.
    pub fn has_outstanding(&self) -> bool {
        let state = self.core.lock();
        state.sends.is_busy() || state.receives.is_busy()
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

    /// Ends the connection; what has not completed is flushed, and the VI is idle.
    pub fn disconnect(&self) -> Result<()> {
        let mut state = self.core.enter();
        state.end(ViState::Idle);
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
        state.attach_sources();
    }

    /// Hears of every completion as it happens; for a program whose descriptors lie in memory that it polls.
    pub fn set_sink(&self, sink: Sink) {
        self.core.lock().port.sink = Some(sink);
    }

    /// Makes progress: places what has arrived, and goes on with sends.
    pub fn progress(&self) {
        let mut state = self.core.lock();
        self.core.pump(&mut state);
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

impl ViCore {
    pub(crate) fn new(
        nic: &Arc<NicCore>,
        id: u32,
        attributes: &ViAttributes,
        send_cq: Option<&Cq>,
        receive_cq: Option<&Cq>,
    ) -> ViCore {
        let attach = |cq: &Cq| {
            cq.core.users.fetch_add(1, Ordering::AcqRel);
            cq.core.clone()
        };
        let port = Port {
            nic: nic.clone(),
            id,
            sink: None,
            send_cq: send_cq.map(attach),
            receive_cq: receive_cq.map(attach),
            sources: Vec::new(),
        };
        ViCore {
            id,
            nic: nic.clone(),
            state: Mutex::new(State::new(port, *attributes)),
            touched: AtomicBool::new(false),
            waiter: Mutex::default(),
            user_word: AtomicU64::new(0),
            tag: AtomicU64::new(0),
            notify: Mutex::default(),
        }
    }

    fn retire(&self, state: &mut State) {
        state.port.sink = None;
        let cqs = [state.port.send_cq.take(), state.port.receive_cq.take()];
        state.end(ViState::Idle);
        for cq in cqs.into_iter().flatten() {
            cq.users.fetch_sub(1, Ordering::AcqRel);
        }
        if !std::mem::replace(&mut state.retired, true) {
            let _ = self.nic.memory.use_ptag(state.attributes.ptag, false);
            self.nic.forget(self.id);
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in a VI")
    }

    /// As `lock`, for calls of the program.
    #[inline]
    pub(crate) fn enter(&self) -> MutexGuard<'_, State> {
        self.touched.store(true, Ordering::Relaxed);
        self.lock()
    }

    #[inline]
    fn poll(&self, queue: Queue) -> Option<Completion> {
        let mut state = self.enter();
        if let Some(completion) = state.done(queue).pop_front() {
            return Some(completion);
        }
        self.pump(&mut state);
        let completion = state.done(queue).pop_front();
        if completion.is_none() {
            state.idle += 1;
            if state.idle >= BREATH {
                self.breathe(&mut state);
            }
        }
        completion
    }

    /// Takes what has arrived and goes on with what can go on.
    #[inline]
    pub(crate) fn pump(&self, state: &mut State) {
        let Some(wires) = &state.wires else { return };
        if wires.monitors.transfer.written() != state.seen
            && let Err(loss) = state.take_transfers()
        {
            return state.lose(loss);
        }
        if state.sends.is_busy() || state.owes_peer() {
            self.pump_rest(state);
        }
    }

    #[inline(never)]
    fn pump_rest(&self, state: &mut State) {
        let Some(wires) = &state.wires else { return };
        let outcome = match wires.monitors.cookies.written() != state.seen_cookies {
            true => state.take_cookies(),
            false => Ok(()),
        };
        let outcome = outcome.and_then(|()| state.tell_answers()).and_then(|()| state.tell_receives());
        match outcome {
            Ok(()) => state.pump_sends(),
            Err(loss) => state.lose(loss),
        }
    }

    /// Lets the process see to other things, and looks whether the peer is gone.
    #[cold]
    #[inline(never)]
    fn breathe(&self, state: &mut State) {
        state.idle = 0;
        self.nic.node.progress();
        if state.is_closed() {
            state.lose(Loss::LOST);
        }
    }

    /// An event of this VI was taken from a queue.
    pub(crate) fn woken(&self, ended: bool) {
        let mut state = self.enter();
        if let Some(monitors) = state.monitors().filter(|_| state.port.receive_cq.is_some()) {
            monitors.transfer.arrival().arm();
        }
        self.pump(&mut state);
        if ended && state.is_closed() {
            state.lose(Loss::LOST);
        }
    }

    /// Runs callbacks for what has completed. `true` if more are waiting.
    pub(crate) fn run_callbacks(self: &Arc<Self>) -> bool {
        let mut waiting = false;
        for queue in [Queue::Send, Queue::Receive] {
            loop {
                let callback = self.notify.lock().expect("no panic with callbacks")[queue as usize].pop_front();
                let Some(callback) = callback else { break };
                let completion = self.lock().done(queue).pop_front();
                match completion {
                    Some(completion) => (callback.0)(Vi { core: self.clone() }, completion),
                    None => {
                        self.notify.lock().expect("no panic with callbacks")[queue as usize].push_front(callback);
                        waiting = true;
                        break;
                    }
                }
            }
        }
        waiting
    }
}

impl State {
    #[inline]
    fn done(&mut self, queue: Queue) -> &mut VecDeque<Completion> {
        match queue {
            Queue::Send => &mut self.sends.done,
            Queue::Receive => &mut self.receives.done,
        }
    }

    fn credits(&mut self) -> usize {
        if let Err(loss) = self.take_cookies() {
            self.lose(loss);
        }
        self.wires.as_ref().map_or(0, |wires| wires.credits.len())
    }
}

impl Drop for ViCore {
    fn drop(&mut self) {
        self.retire(&mut self.lock());
    }
}
