//! What goes on when a side is killed: one VI an activity, both sides doing the same.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
};

use sidestep_testkit::seeded::Seeded;
use sidestep_vi::{
    Completion, Cq, Descriptor, Error, FlowControl, MemAttributes, MemHandle, Memory, NetAddress, Nic, Ptag, Queue,
    Reliability, Segment, Status, Vi, ViAttributes, ViState, clock,
};

/// What a VI is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Messages, waiting for each.
    Waiting,
    /// Messages in memory of the library, large ones too.
    Library,
    /// The same in memory of the program, with reliable reception.
    Program,
    /// RDMA writes and reads, some with immediate data.
    Rdma,
    /// Messages that report to a completion queue.
    Completions,
    /// Messages that may be dropped.
    Unreliable,
}

const ALL: [Activity; 6] = [
    Activity::Waiting,
    Activity::Library,
    Activity::Program,
    Activity::Rdma,
    Activity::Completions,
    Activity::Unreliable,
];
pub const ACTIVITIES: u64 = ALL.len() as u64;

impl Activity {
    /// Those of a set of bits.
    pub fn all(bits: u64) -> Vec<Activity> {
        ALL.into_iter().enumerate().filter(|(at, _)| bits >> at & 1 != 0).map(|(_, activity)| activity).collect()
    }

    /// Where its two stations meet.
    pub fn address(&self, point: &str) -> NetAddress {
        NetAddress::new(&[127, 0, 0, 1], format!("{point}/{self:?}").as_bytes())
    }
}

/// Receives and sends of a VI under way.
const DEPTH: usize = 4;
const ROOM: usize = 64 << 10;
const SIZES: [usize; 6] = [0, 8, 200, 3000, 9000, ROOM];

/// One VI with what it needs.
pub struct Station {
    nic: Nic,
    ptag: Ptag,
    vi: Vi,
    cq: Option<Cq>,
    activity: Activity,
    memory: Memory,
    handle: MemHandle,
    random: RefCell<Seeded>,
    /// Tokens of descriptors that have not come back, by queue, in the order of posting.
    posted: [RefCell<VecDeque<u64>>; 2],
    next: Cell<u64>,
}

impl Station {
    pub fn new(nic: &Nic, activity: Activity, seed: u64) -> Station {
        let ptag = nic.create_ptag().unwrap();
        let reliability = match activity {
            Activity::Unreliable => Reliability::Unreliable,
            Activity::Program => Reliability::Reception,
            _ => Reliability::Delivery,
        };
        let rdma_read = reliability != Reliability::Unreliable;
        let attributes = ViAttributes { reliability, rdma_write: true, rdma_read, ..ViAttributes::new(ptag) };
        let cq = (activity == Activity::Completions).then(|| nic.create_cq(64).unwrap());
        let vi = nic.create_vi(&attributes, cq.as_ref(), cq.as_ref()).unwrap();
        if activity != Activity::Unreliable {
            vi.set_flow_control(FlowControl::Asynchronous);
        }
        let rights = MemAttributes { rdma_write: true, rdma_read: true, ..MemAttributes::new(ptag) };
        let len = (2 * DEPTH + 1) * ROOM;
        let (memory, handle) = match activity {
            Activity::Program => {
                let memory = Memory::heap(len).unwrap();
                (memory.clone(), nic.register(memory, &rights).unwrap())
            }
            _ => {
                let buffer = nic.allocate(len, &rights).unwrap();
                (buffer.memory(), buffer.handle())
            }
        };
        let random = RefCell::new(Seeded::new(seed ^ activity as u64));
        let (posted, next) = (Default::default(), Cell::new(0));
        Station { nic: nic.clone(), ptag, vi, cq, activity, memory, handle, random, posted, next }
    }

    /// Connects the two stations of an activity. `false`: the other side went before.
    pub fn join(&self, point: &str, connects: bool, stop: &AtomicBool) -> bool {
        let address = self.activity.address(point);
        for _ in 0..DEPTH {
            self.post_receive();
        }
        while !stop.load(Ordering::Acquire) {
            let soon = Some(clock::now() + 50_000_000);
            let outcome = if connects {
                self.vi.connect(&NetAddress::default(), &address, soon).map(drop)
            } else {
                self.nic.connect_wait(&address, soon).and_then(|mut request| request.accept(&self.vi))
            };
            match outcome {
                Ok(()) => return true,
                // Nobody is there yet, or no more.
                Err(Error::TimedOut | Error::NoMatch | Error::Rejected | Error::Fabric(_)) => {}
                Err(error) => panic!("{:?}: {error}", self.activity),
            }
        }
        false
    }

    /// Is busy until the connection is over, which must be soon after the other side has gone.
    pub fn work(&self, gone: &AtomicBool, limit_ns: u64) {
        let (mut theirs, mut gone_at) = (None, None);
        if self.activity == Activity::Rdma {
            // Where the other side's memory is.
            self.write_words([self.address(0), u64::from(self.handle.0)]);
            self.post(&Descriptor::new(self.token(), &[self.segment(2 * DEPTH, 16)]));
        }
        loop {
            if gone.load(Ordering::Acquire) {
                let since = *gone_at.get_or_insert_with(clock::now);
                let (state, posted) = (self.vi.state(), &self.posted);
                assert!(clock::now() < since + limit_ns, "{:?} goes on: {state:?}, {posted:?}", self.activity);
            }
            let busy = self.posted[Queue::Send as usize].borrow().len();
            if busy < DEPTH && self.vi.state() == ViState::Connected {
                self.send(theirs);
            }
            let Some((queue, completion)) = self.next_completion() else { continue };
            if completion.status.is_error() {
                return;
            }
            if queue == Queue::Receive {
                if self.activity == Activity::Rdma && theirs.is_none() && completion.len == 16 {
                    theirs = Some(self.read_words(completion.token as usize % DEPTH));
                }
                self.post_receive();
            }
        }
    }

    fn send(&self, theirs: Option<[u64; 2]>) {
        let (size, pick) = {
            let mut random = self.random.borrow_mut();
            (SIZES[random.below(SIZES.len() as u64) as usize], random.below(3))
        };
        let token = self.token();
        let descriptor = Descriptor::new(token, &[self.segment(DEPTH + token as usize % DEPTH, size)]);
        self.post(&match (self.activity, theirs) {
            (Activity::Rdma, None) => return self.forget_token(),
            (Activity::Rdma, Some([address, handle])) => {
                let handle = MemHandle(handle as u32);
                // Beside the receives, which messages of 16 bytes go to.
                let address = address + (DEPTH * ROOM) as u64;
                match pick {
                    0 => descriptor.write_to(address, handle),
                    1 => descriptor.write_to(address, handle).with_immediate(token as u32),
                    _ => descriptor.read_from(address, handle),
                }
            }
            _ => descriptor,
        });
    }

    /// The next completion of either queue; `None`: not yet.
    fn next_completion(&self) -> Option<(Queue, Completion)> {
        let (queue, completion) = match (&self.cq, self.activity) {
            (Some(cq), _) => {
                let (vi, queue) = cq.wait(Some(clock::now() + 5_000_000)).ok()?;
                let taken = if queue == Queue::Send { vi.poll_send() } else { vi.poll_receive() };
                (queue, taken.expect("the completion queue said so"))
            }
            (None, Activity::Waiting) => match self.vi.poll_send() {
                Some(sent) => (Queue::Send, sent),
                None => (Queue::Receive, self.vi.wait_receive(Some(clock::now() + 5_000_000)).ok()?),
            },
            (None, _) => match self.vi.poll_send() {
                Some(sent) => (Queue::Send, sent),
                None => (Queue::Receive, self.vi.poll_receive()?),
            },
        };
        self.taken(queue, &completion);
        Some((queue, completion))
    }

    /// After the other side has died: the VI is in the error state, and every descriptor comes back, in order.
    pub fn check_drained(&self, deadline: u64, case: &str) {
        let what = format!("{case}, {:?}", self.activity);
        while self.vi.state() != ViState::Error {
            assert!(clock::now() < deadline, "{what}: the end is not seen");
            self.vi.progress();
        }
        while self.posted.iter().any(|posted| !posted.borrow().is_empty()) {
            assert!(clock::now() < deadline, "{what}: descriptors are lost");
            let found = [(Queue::Send, self.vi.poll_send()), (Queue::Receive, self.vi.poll_receive())];
            for (queue, completion) in found {
                if let Some(completion) = completion {
                    self.taken(queue, &completion);
                    assert!(completion.status.has(Status::DONE), "{what}");
                }
            }
        }
        assert_eq!(self.vi.queues_empty(), (true, true), "{what}");
        self.vi.disconnect().unwrap();
        assert_eq!(self.vi.state(), ViState::Idle, "{what}");
    }

    fn post(&self, descriptor: &Descriptor) {
        self.posted[Queue::Send as usize].borrow_mut().push_back(descriptor.token);
        self.vi.post_send(descriptor).expect("room in the queue");
    }

    fn post_receive(&self) {
        let token = self.token();
        self.posted[Queue::Receive as usize].borrow_mut().push_back(token);
        let room = self.segment(token as usize % DEPTH, ROOM);
        self.vi.post_receive(&Descriptor::new(token, &[room])).expect("room in the queue");
    }

    fn taken(&self, queue: Queue, completion: &Completion) {
        let expected = self.posted[queue as usize].borrow_mut().pop_front();
        assert_eq!(Some(completion.token), expected, "{:?}: completions of {queue:?} keep the order", self.activity);
    }

    fn token(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    fn forget_token(&self) {
        self.next.set(self.next.get() - 1);
    }

    fn address(&self, slot: usize) -> u64 {
        self.memory.base().as_ptr() as u64 + (slot * ROOM) as u64
    }

    fn segment(&self, slot: usize, len: usize) -> Segment {
        Segment { address: self.address(slot), handle: self.handle, len: len as u32 }
    }

    fn write_words(&self, words: [u64; 2]) {
        let span = self.memory.span(2 * DEPTH * ROOM, 16).unwrap();
        span.copy_in(0, &words.map(u64::to_le_bytes).concat()).unwrap();
    }

    fn read_words(&self, slot: usize) -> [u64; 2] {
        let mut bytes = [0; 16];
        self.memory.span(slot * ROOM, 16).unwrap().copy_out(0, &mut bytes).unwrap();
        let (first, second) = bytes.split_at(8);
        [first, second].map(|word| u64::from_le_bytes(word.try_into().unwrap()))
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.vi.retire();
        self.nic.deregister(self.address(0), self.handle).unwrap();
        self.nic.destroy_ptag(self.ptag).unwrap();
    }
}
