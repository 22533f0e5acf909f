//! What all handles of a VI share: its state under a lock, and what can be known without it.

use std::{
    collections::VecDeque,
    ops::{Deref, DerefMut},
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use sidestep_fabric::{Aperture, Cookie};
use sidestep_shm::wait::Waiter;
use sidestep_sys::{
    cpu,
    lock::{Guard, Lock, Mutex},
};

use crate::{
    attributes::ViAttributes,
    code::ViState,
    cq::{Cq, Queue},
    descriptor::Completion,
    entry::{Header, Kind},
    error::{Error, Result},
    line::Line,
    nic::NicCore,
    trunk::{Source, Trunk},
    vi::{
        Notify, Vi, Way,
        state::{self, Loss, Port, State},
    },
};

/// What is read without the lock comes first, on one line of memory.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ViCore {
    pub(crate) id: u32,
    /// Handles of the program.
    handles: AtomicU32,
    /// Whether it was connected over more than one trunk, so that the first one means nothing.
    moved: AtomicBool,
    /// Whether completions wait, by queue.
    ready: [AtomicBool; 2],
    /// Whether a completion queue tells of completions, by queue.
    has_cq: [bool; 2],
    /// The trunk of the first connection, and mostly of all.
    trunk: OnceLock<Arc<Trunk>>,
    pub(super) user_word: AtomicU64,
    pub(super) tag: AtomicU64,
    state: Lock<State>,
    pub(crate) nic: Arc<NicCore>,
    /// Only tried, so that two threads can wait; given back by a plain store, since that comes between news and its use.
    pub(super) waiter: Lock<Waiter>,
    notify: Mutex<[VecDeque<Callback>; 2]>,
}

/// Bytes at the beginning of a VI that every message touches.
const HOT: usize = std::mem::offset_of!(ViCore, state) + size_of::<usize>() + state::HOT;
/// Eight lines of memory.
const _: () = assert!(HOT <= 512);

struct Callback(Notify);

impl std::fmt::Debug for Callback {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("callback")
    }
}

/// The state of a VI, locked. When it is given back, what is read without the lock is brought up to date.
pub(crate) struct Locked<'a> {
    core: &'a ViCore,
    state: Guard<'a, State>,
}

impl Deref for Locked<'_> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        for queue in [Queue::Send, Queue::Receive] {
            // Pairs with `ViCore::is_ready`; the lock is still held.
            self.core.ready[queue as usize].store(self.state.has_done(queue), Ordering::Release);
        }
    }
}

impl ViCore {
    pub(crate) fn new(
        nic: &Arc<NicCore>,
        id: u32,
        attributes: &ViAttributes,
        [send_cq, receive_cq]: [Option<&Cq>; 2],
    ) -> ViCore {
        let attach = |cq: &Cq| {
            cq.core.users.fetch_add(1, Ordering::AcqRel);
            cq.core.clone()
        };
        let has_cq = [send_cq, receive_cq].map(|cq| cq.is_some());
        let port = Port {
            nic: nic.clone(),
            id,
            sink: None,
            alert: None,
            send_cq: send_cq.map(attach),
            receive_cq: receive_cq.map(attach),
        };
        ViCore {
            id,
            handles: AtomicU32::new(1),
            moved: AtomicBool::new(false),
            trunk: OnceLock::new(),
            ready: Default::default(),
            has_cq,
            user_word: AtomicU64::new(0),
            tag: AtomicU64::new(0),
            state: Lock::within(nic.threads, State::new(port, *attributes)),
            nic: nic.clone(),
            waiter: Lock::within(nic.threads, Waiter::default()),
            notify: Mutex::default(),
        }
    }

    /// Counts another handle in, unless there is none: then it is going.
    #[inline]
    pub(super) fn hold(&self) -> bool {
        let more = |handles: u32| if handles > 0 { handles.checked_add(1) } else { None };
        self.handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Counts a handle out. `true` for the last one.
    #[inline]
    pub(super) fn let_go(&self) -> bool {
        // What was done by the other handles has happened when the last one goes.
        self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(super) fn retire(&self, state: &mut State) {
        state.port.sink = None;
        state.port.alert = None;
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

    /// Asks for what a message will touch, all of it at once: one after the other would cost as many trips to memory.
    #[inline]
    pub(crate) fn prefetch(vi: *const ViCore) {
        cpu::prefetch(vi, HOT);
    }

    /// The way from the state back to the VI. Of one that was made just now, which nobody else can have locked.
    pub(crate) fn set_own(&self, own: Weak<ViCore>) {
        self.state.try_lock().expect("it is new").own = own;
    }

    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_> {
        Locked { core: self, state: self.state.lock() }
    }

    /// Whether a completion of that queue may wait. In this order: whoever has seen a completion in memory finds the lock
    /// held, or the flag set.
    #[inline]
    pub(super) fn is_ready(&self, queue: Queue) -> bool {
        // Pairs with the drop of `Locked`: the completion is seen.
        self.state.is_held() || self.ready[queue as usize].load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn has_cq(&self, queue: Queue) -> bool {
        self.has_cq[queue as usize]
    }

    /// Gives an idle VI its connection.
    pub(crate) fn connected(&self, state: &mut State, mut line: Line) {
        line.places = state.placing && state.way != Way::Pio;
        let trunk = &line.route.trunk;
        let first = self.trunk.get_or_init(|| trunk.clone());
        self.moved.store(!Arc::ptr_eq(first, trunk), Ordering::Release);
        state.connected(line);
    }

    /// The trunk of the connection.
    pub(super) fn trunk(&self) -> Option<Arc<Trunk>> {
        self.lock().line.as_ref().map(|line| line.route.trunk.clone())
    }

    /// The trunk of a VI that was never connected over another.
    #[inline]
    pub(super) fn first_trunk(&self) -> Option<&Arc<Trunk>> {
        self.trunk.get().filter(|_| !self.moved.load(Ordering::Relaxed))
    }

    /// The next completion, if there is one. What finds nothing takes no lock, and calls nothing.
    #[inline(always)]
    pub(crate) fn poll(&self, queue: Queue) -> Option<Completion> {
        if !self.is_ready(queue) {
            match self.first_trunk() {
                Some(trunk) => {
                    trunk.touch();
                    if trunk.has_news() {
                        return self.poll_trunk(trunk, queue);
                    }
                    if trunk.is_breath_due() {
                        self.nic.breathe();
                    }
                }
                None => self.progress(),
            }
            if !self.is_ready(queue) {
                return None;
            }
        }
        self.lock().pop(queue)
    }

    /// Takes what has arrived, up to the next completion.
    #[inline(never)]
    fn poll_trunk(&self, trunk: &Trunk, queue: Queue) -> Option<Completion> {
        let completion = trunk.poll_for(self, queue);
        if completion.is_some() {
            return completion;
        }
        // Also if there is always something to go on with: a peer that is gone makes no room for it.
        if trunk.is_breath_due() {
            self.nic.breathe();
        }
        if self.is_ready(queue) { self.lock().pop(queue) } else { None }
    }

    /// Takes what has arrived, if that can be seen without a lock: the peer may have asked for something.
    #[inline]
    pub(super) fn hear(&self) {
        if let Some(trunk) = self.trunk.get()
            && trunk.has_news()
        {
            trunk.poll_beside(self);
        }
    }

    /// Places what has arrived, for this VI and its neighbours, and goes on with sends.
    pub(crate) fn progress(&self) {
        if let Some(trunk) = self.trunk() {
            trunk.touch();
            trunk.poll(false);
            if trunk.is_breath_due() {
                self.nic.breathe();
            }
        }
    }

    /// An entry for this VI. Returns the next completion of the wanted queue.
    #[inline]
    pub(crate) fn take(&self, header: &Header, source: &mut Source<'_>, wanted: Option<Queue>) -> Option<Completion> {
        let mut state = self.lock();
        if state.line.as_ref().is_none_or(|line| line.route.number != header.line) {
            return None;
        }
        let taken = match header.kind {
            Kind::Message => state.take_message(header, source),
            Kind::Posted => state.take_posted(header, source),
            Kind::Part => state.take_more(header, source),
            Kind::Write => state.take_write(header, source),
            Kind::Read => state.take_read(header),
            Kind::ReadData => state.take_read_data(header, source),
            Kind::Placed => state.take_placed(header.value),
            Kind::Failed => state.take_failed(header),
            Kind::Reach => state.take_reach(header, source),
            Kind::Flow => state.take_flow(),
            Kind::Window | Kind::Want | Kind::Ring => Ok(()),
        };
        if let Err(loss) = taken {
            state.lose(loss);
        }
        state.pop(wanted?)
    }

    /// Goes on with what found no room.
    pub(crate) fn go_on(&self) {
        let mut state = self.lock();
        state.waiting = false;
        if let Err(loss) = state.tell() {
            return state.lose(loss);
        }
        if state.line.is_some() {
            state.pump_sends();
        }
    }

    /// The connection is over.
    pub(crate) fn lose(&self, loss: Loss) {
        let mut state = self.lock();
        if state.line.is_some() {
            state.lose(loss);
        }
    }

    /// The other side may have closed: takes what it sent before, and ends the connection.
    pub(crate) fn see_end(&self) {
        if let Some(trunk) = self.trunk() {
            trunk.poll(true);
        }
        let mut state = self.lock();
        if state.is_closed() {
            state.lose(Loss::LOST);
        }
    }

    /// Begins to open a region of the peer.
    pub(crate) fn open(&self, cookie: &Cookie) -> Option<Aperture> {
        let state = self.lock();
        Aperture::begin(&state.line.as_ref()?.endpoint, cookie).ok()
    }

    /// The peer's number for the connection.
    pub(crate) fn their_line(&self) -> u32 {
        self.lock().line.as_ref().map_or(0, |line| line.theirs)
    }

    pub(super) fn notify(&self, queue: Queue, callback: Notify) -> Result<()> {
        if self.has_cq(queue) {
            return Err(Error::Invalid("a callback for a queue with a completion queue"));
        }
        self.notify.lock().expect("no panic with callbacks")[queue as usize].push_back(Callback(callback));
        self.nic.watch_callbacks()
    }

    /// Runs callbacks for what has completed. `true` if more are waiting.
    pub(crate) fn run_callbacks(vi: &Vi) -> bool {
        let mut waiting = false;
        for queue in [Queue::Send, Queue::Receive] {
            loop {
                let core = &vi.core;
                let callback = core.notify.lock().expect("no panic with callbacks")[queue as usize].pop_front();
                let Some(callback) = callback else { break };
                let completion = core.lock().pop(queue);
                match completion {
                    Some(completion) => (callback.0)(vi.clone(), completion),
                    None => {
                        let mut notify = core.notify.lock().expect("no panic with callbacks");
                        notify[queue as usize].push_front(callback);
                        waiting = true;
                        break;
                    }
                }
            }
        }
        waiting
    }
}
