//! Both sides send and receive, with or without completion queues, at every level of reliability; receives are missing, bad or
//! too short now and then. The model knows how each descriptor ends.

use std::collections::VecDeque;

use sidestep_testkit::conformance::fixture::Fixture;
use sidestep_testkit::seeded::Seeded;
use sidestep_vi::{
    Buffer, Completion, Cq, Descriptor, FlowControl, MemHandle, Queue, Reliability, Segment, Status, Vi, ViState,
};

use crate::pair::{Options, Pair, Side, contents, pattern};

const SIZES: [usize; 6] = [0, 1, 100, 241, 4000, 9000];
const ROOM: usize = 9000;
const SLOTS: u64 = 16;
const STEPS: usize = 120;

/// One side: what it has posted, and how that must end.
struct End {
    vi: Vi,
    cq: Option<Cq>,
    source: Buffer,
    room: Buffer,
    /// Posted receives that no message is for yet: token, room, whether it is bad.
    receives: VecDeque<(u64, usize, bool)>,
    /// What must complete, by queue.
    expected: [VecDeque<Expected>; 2],
    token: u64,
}

#[derive(Debug)]
struct Expected {
    token: u64,
    error: Option<Status>,
    len: usize,
    /// Of the bytes.
    mark: Option<u8>,
}

impl End {
    fn new(side: &Side, options: &Options, with_cq: bool) -> End {
        let cq = with_cq.then(|| side.nic.create_cq(256).unwrap());
        let vi = side.another(options, cq.as_ref(), cq.as_ref());
        let (source, room) = (side.buffer(ROOM), side.buffer(ROOM * SLOTS as usize));
        End { vi, cq, source, room, receives: VecDeque::new(), expected: Default::default(), token: 0 }
    }

    fn next_token(&mut self) -> u64 {
        self.token += 1;
        self.token
    }

    fn slot(&self, token: u64) -> usize {
        (token % SLOTS) as usize * ROOM
    }

    fn post_receive(&mut self, size: usize, bad: bool) {
        let token = self.next_token();
        let segment = self.room.segment(self.slot(token), size);
        let segment = if bad { Segment { handle: MemHandle(77), ..segment } } else { segment };
        self.vi.post_receive(&Descriptor::new(token, &[segment])).unwrap();
        self.receives.push_back((token, size, bad));
    }

    fn is_settled(&self) -> bool {
        self.expected.iter().all(VecDeque::is_empty)
    }

    /// Takes what has completed, and compares it with the model.
    fn collect(&mut self, case: &str) {
        loop {
            let found = match &self.cq {
                Some(cq) => cq.poll().map(|(_, queue)| queue),
                None => None,
            };
            let (queue, completion) = match (found, &self.cq) {
                (Some(Queue::Send), _) => (Queue::Send, self.vi.poll_send()),
                (Some(Queue::Receive), _) => (Queue::Receive, self.vi.poll_receive()),
                (None, Some(_)) => return,
                (None, None) => match self.vi.poll_send() {
                    Some(sent) => (Queue::Send, Some(sent)),
                    None => (Queue::Receive, self.vi.poll_receive()),
                },
            };
            match completion {
                Some(completion) => self.check(queue, &completion, case),
                None => return assert!(self.cq.is_none(), "{case}: a completion that is not there"),
            }
        }
    }

    fn check(&mut self, queue: Queue, got: &Completion, case: &str) {
        let expected = self.expected[queue as usize].pop_front();
        let expected = expected.unwrap_or_else(|| panic!("{case}: {got:?} of {queue:?} was not expected"));
        let errors = Status(got.status.0 & Status::ERROR_MASK.0);
        assert_eq!((got.token, errors), (expected.token, expected.error.unwrap_or(Status(0))), "{case}: {queue:?}");
        if let Some(mark) = expected.mark {
            let bytes = contents(&self.room, self.slot(got.token), expected.len);
            assert!(got.len as usize == expected.len && bytes == pattern(expected.len, mark), "{case}: {got:?}");
        }
    }
}

pub fn program(fixture: Fixture, seed: u64, reliability: Reliability, with_cq: bool) {
    let options = Options { reliability, ..Options::default() };
    let pair = Pair::new(fixture, Options { reliability, connect: false, ..Options::default() });
    let mut ends = [End::new(&pair.a, &options, with_cq), End::new(&pair.b, &options, with_cq)];
    pair.join(&ends[0].vi, &ends[1].vi);
    let mut random = Seeded::new(seed);
    for step in 0..STEPS {
        let case = format!("seed {seed}, {reliability:?}, completion queues {with_cq}, step {step}");
        let (from, to) = if random.chance(500) { (0, 1) } else { (1, 0) };
        match random.below(10) {
            0..5 if ends[to].receives.len() < 6 => {
                let bad = random.chance(60);
                ends[to].post_receive(SIZES[random.below(6) as usize], bad);
            }
            5..9 => send(&pair, &mut ends, (from, to), &mut random, (reliability, step as u8), &case),
            9 => settle(&pair, &mut ends, &case),
            _ => {}
        }
    }
    settle(&pair, &mut ends, &case_end(seed));
}

fn case_end(seed: u64) -> String {
    format!("seed {seed}, the end")
}

/// Sends a message, and says how it and its receive will end. One that nobody can take, or of an unreliable VI, finds
/// everything before it settled.
fn send(
    pair: &Pair,
    ends: &mut [End; 2],
    (from, to): (usize, usize),
    random: &mut Seeded,
    (reliability, mark): (Reliability, u8),
    case: &str,
) {
    let front = ends[to].receives.front().copied();
    let len = match front {
        Some((_, room, false)) if !random.chance(60) => SIZES[random.below(6) as usize].min(room),
        Some(_) => SIZES[random.below(6) as usize],
        // Nobody waits for it: seldom.
        None if random.chance(100) => 100,
        None => return,
    };
    let fault = match front {
        None => Some(None),
        Some((_, _, true)) => Some(Some(Status::PROTECTION_ERROR)),
        Some((_, room, _)) if len > room => Some(Some(Status::LENGTH_ERROR)),
        Some(_) => None,
    };
    let reliable = reliability != Reliability::Unreliable;
    // The bytes of the message before must be on their way, and with a fault everything that it would flush.
    settle(pair, ends, case);
    pair.settle_stream();
    let token = ends[from].next_token();
    ends[from].source.write(0, &pattern(len, mark)).unwrap();
    let told = fault.is_some() && reliability == Reliability::Reception;
    let error = told.then_some(Status::REMOTE_DESC_ERROR);
    ends[from].expected[Queue::Send as usize].push_back(Expected { token, error, len, mark: None });
    let receive = ends[to].receives.pop_front();
    match (receive, fault) {
        (Some((token, ..)), None) => {
            let expected = Expected { token, error: None, len, mark: Some(mark) };
            ends[to].expected[Queue::Receive as usize].push_back(expected);
        }
        (Some((token, ..)), Some(error)) => {
            ends[to].expected[Queue::Receive as usize].push_back(Expected { token, error, len: 0, mark: None });
        }
        (None, _) => {}
    }
    let lost = fault.is_some() && reliable;
    if lost {
        for end in ends.iter_mut() {
            for (token, ..) in std::mem::take(&mut end.receives) {
                let flushed = Expected { token, error: Some(Status::FLUSHED), len: 0, mark: None };
                end.expected[Queue::Receive as usize].push_back(flushed);
            }
        }
    }
    let segment = ends[from].source.segment(0, len);
    ends[from].vi.post_send_with(&Descriptor::new(token, &[segment]), FlowControl::Compliant, None).unwrap();
    if !lost {
        if receive.is_none() {
            // It is dropped when it arrives, which is before the next receive is posted.
            arrive(pair, ends);
        }
        return;
    }
    settle(pair, ends, case);
    for end in ends.iter() {
        pair.until("the error state", || {
            ends.iter().for_each(|end| end.vi.progress());
            (end.vi.state() == ViState::Error).then_some(())
        });
        end.vi.disconnect().unwrap();
    }
    pair.join(&ends[0].vi, &ends[1].vi);
}

/// Lets everything arrive that was sent.
fn arrive(pair: &Pair, ends: &[End; 2]) {
    for round in 0..2 {
        for _ in 0..2000 {
            for (end, side) in ends.iter().zip([&pair.a, &pair.b]) {
                side.nic.node().progress();
                end.vi.progress();
            }
        }
        if round == 0 {
            pair.settle_stream();
        }
    }
}

/// Until everything that must complete has.
fn settle(pair: &Pair, ends: &mut [End; 2], case: &str) {
    pair.until(case, || {
        for end in ends.iter_mut() {
            end.vi.progress();
            end.collect(case);
        }
        ends.iter().all(End::is_settled).then_some(())
    });
}
