//! Drives every handle while a peer writes what it likes into every word it can reach.
//!
//! One row of bytes decides both what the handles do and what the peer writes, so the same code runs from a seeded
//! generator (`hostile.rs`), from libFuzzer (`fuzz/fuzz_targets/ring.rs`) and from its stored inputs (`replay.rs`).
//!
//! Whatever the peer does, a handle answers with a count within the ring, or says that the peer broke the protocol.
//! Bytes beside the ring stay as they are.

use sidestep_shm::{
    Error, Memory, Result, Span, Word64,
    byte_ring::{Consumer, FROZEN, POSITION, Parts, Producer, WANTED},
    event_ring::{EVENT_RING_LEN, EventPoster, EventTaker, RescanWord},
    slot_ring::{SlotConsumer, SlotProducer},
    sync::Ordering,
    watch::{Watch, watch_len},
};

/// A connection of each kind.
pub struct World {
    bytes: Bytes,
    slots: Slots,
    events: Events,
    watching: Watching,
}

/// Where the deciding bytes come from; `None` ends the drive.
pub type Input<'a> = &'a mut dyn Iterator<Item = u8>;

/// A range of a memory that the peer can write.
#[derive(Clone)]
pub struct Reach {
    pub memory: Memory,
    pub offset: usize,
    pub len: usize,
}

const CAPACITY: usize = 64;
const STRIDE: usize = 16;
const WATCHED: usize = 1024;
/// Words, ring, then what nobody may touch.
const RING: usize = 0x80;
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0x5a;

impl World {
    /// `make` makes memory of a length; all positions begin at `begin`.
    pub fn new(make: &mut dyn FnMut(usize) -> Memory, begin: u64) -> World {
        World {
            bytes: Bytes::new(make, begin),
            slots: Slots::new(make, begin),
            events: Events::new(make),
            watching: Watching::new(make),
        }
    }

    /// What a peer can write.
    pub fn reach(&self) -> Vec<Reach> {
        let whole = |memory: &Memory| Reach { memory: memory.clone(), offset: 0, len: memory.len() };
        vec![
            self.bytes.ring.reach(),
            self.bytes.larger.reach(),
            self.slots.ring.reach(),
            whole(&self.events.ours),
            whole(&self.events.theirs),
            whole(&self.watching.memory),
        ]
    }

    /// One step: `None` when the input has ended.
    pub fn step(&mut self, input: Input<'_>) -> Option<()> {
        match input.next()? % 8 {
            0..4 => self.bytes.step(input),
            4 | 5 => self.slots.step(input),
            6 => self.events.step(input),
            _ => self.watching.step(input),
        }
    }

    /// Bytes beside the rings are as they were.
    pub fn check_guards(&self) {
        for ring in [&self.bytes.ring, &self.bytes.larger, &self.slots.ring] {
            let mut guard = [0; GUARD];
            ring.memory.span(RING + ring.capacity, GUARD).unwrap().copy_out(0, &mut guard).unwrap();
            assert_eq!(guard, [GUARD_BYTE; GUARD], "a byte beside the ring was written");
        }
    }
}

/// Runs the whole input on a fresh world.
pub fn drive(input: Input<'_>) {
    let begin = input.next().map_or(0, |byte| u64::from(byte) * STRIDE as u64);
    let mut world = World::new(&mut |len| Memory::heap(len).unwrap(), begin);
    while world.step(input).is_some() {}
    world.check_guards();
}

/// One direction of a connection.
struct Ring {
    memory: Memory,
    capacity: usize,
    begin: u64,
}

impl Ring {
    fn new(make: &mut dyn FnMut(usize) -> Memory, capacity: usize, begin: u64) -> Ring {
        let memory = make(RING + capacity + GUARD);
        memory.span(RING + capacity, GUARD).unwrap().copy_in(0, &[GUARD_BYTE; GUARD]).unwrap();
        let ring = Ring { memory, capacity, begin };
        ring.begin_again();
        ring
    }

    fn begin_again(&self) {
        for (at, value) in [(0x00, self.begin), (0x10, 0), (0x40, self.begin)] {
            self.memory.word64(at).unwrap().store(value, Ordering::Relaxed);
        }
    }

    fn span(&self) -> Span {
        self.memory.span(RING, self.capacity).unwrap()
    }

    fn parts(&self) -> Parts {
        let word = |at| self.memory.word64(at).unwrap();
        Parts {
            ring: self.span(),
            tail: word(0x00),
            core: word(0x08),
            switch: word(0x10),
            head: word(0x40),
            begin: self.begin,
        }
    }

    fn reach(&self) -> Reach {
        Reach { memory: self.memory.clone(), offset: 0, len: RING + self.capacity }
    }

    /// The peer writes one of the words, or one of the ring's.
    fn scribble(&self, input: Input<'_>, near: u64) -> Option<()> {
        let at = match input.next()? % 6 {
            0 | 1 => 0x00,
            2 => 0x10,
            3 | 4 => 0x40,
            _ => RING + usize::from(input.next()?) % (self.capacity / 8) * 8,
        };
        scribble(&self.memory.word64(at).unwrap(), input, near)
    }
}

struct Bytes {
    ring: Ring,
    larger: Ring,
    producer: Producer,
    consumer: Consumer,
}

impl Bytes {
    fn new(make: &mut dyn FnMut(usize) -> Memory, begin: u64) -> Bytes {
        let ring = Ring::new(make, CAPACITY, begin);
        let larger = Ring::new(make, CAPACITY * 2, begin);
        let producer = Producer::new(ring.parts()).unwrap();
        let consumer = Consumer::new(ring.parts()).unwrap();
        Bytes { ring, larger, producer, consumer }
    }

    fn step(&mut self, input: Input<'_>) -> Option<()> {
        let mut buffer = [7; 300];
        let Bytes { ring, larger, producer, consumer } = self;
        match input.next()? % 18 {
            0..4 => {
                let near = if input.next()? & 1 == 0 { producer.position() } else { consumer.position() };
                ring.scribble(input, near)?;
            }
            4 => within(producer.copy_in(&buffer[..len(input)?]), 2 * CAPACITY),
            5 => {
                let parts = [len(input)?, len(input)?];
                let written = producer.copy_in_whole([&buffer[..parts[0]], &buffer[..parts[1]]], parts[0] + parts[1]);
                within(written.map(usize::from), 1);
            }
            6 => {
                if !producer.publish(0) {
                    within(producer.recall().map(|bytes| bytes.len()), 2 * CAPACITY);
                }
            }
            7 => within(producer.space(len(input)?), 2 * CAPACITY),
            8 => match input.next()? % 3 {
                0 => within(producer.freeze().map(|_| 0), 0),
                1 => within(producer.frozen().map(|_| 0), 0),
                _ => within(producer.take().map(|bytes| bytes.map_or(0, |bytes| bytes.len())), 3 * CAPACITY),
            },
            9 => within(consumer.available_now(), 3 * CAPACITY),
            10 => {
                let len = len(input)?;
                within(consumer.copy_out(&mut buffer[..len]), len.min(2 * CAPACITY));
            }
            11 => {
                let (skip, len) = (value(input, 0)?, len(input)?);
                within(consumer.peek(skip as usize, &mut buffer[..len]), len.min(2 * CAPACITY));
                within(consumer.peek_now(skip as usize, &mut buffer[..len]), len.min(3 * CAPACITY));
            }
            12 => consumer.consume(len(input)?),
            13 => {
                let _ = (consumer.has_news(), consumer.owes_head(), consumer.producer_core());
                match input.next()? % 4 {
                    0 => consumer.publish_head(),
                    1 => within(consumer.freeze().map(|_| 0), 0),
                    2 => within(consumer.want().map(usize::from), 1),
                    _ => within(consumer.withdraw().map(usize::from), 1),
                }
            }
            14 => {
                if input.next()? & 1 == 0 {
                    consumer.offer(larger.span()).unwrap();
                } else {
                    within(producer.switch_to(larger.span(), 0).map(|()| 0), 0);
                }
            }
            15 => {
                let (at, count, reserved) = (len(input)?, len(input)?, len(input)?);
                let written = producer.copy_ahead(at, &buffer[..count]).and_then(|()| producer.advance(reserved));
                // What is not known to be free is refused as a mistake of the caller.
                within(written.or_else(|error| refused_range(error).map(drop)).map(|()| 0), 0);
            }
            16 => {
                let (min, at, count) = (len(input)?, len(input)?, len(input)?);
                if let Some(view) = unless_peer(consumer.view(min)).flatten() {
                    assert!(view.len() >= min);
                    within(Ok(view.len()), 3 * CAPACITY);
                    assert_eq!(view.copy_out(at, &mut buffer[..count]).is_ok(), at + count <= view.len());
                    let part = view.part(at, count).map(|part| part.fold(0, |sum, piece| sum + piece.len()).unwrap());
                    assert_eq!(part.ok(), (at + count <= view.len()).then_some(count));
                    let words = view.part(at, count).map(|part| part.fold_words(0, |words, _| words + 1).unwrap());
                    assert!(words.is_ok_and(|words| words >= count.div_ceil(8)) || at + count > view.len());
                    let before = consumer.position();
                    consumer.consume(at);
                    assert!(consumer.position() - before <= at as u64);
                }
            }
            _ => {
                // Another connection in the same memory; a producer that is refused stays with the old one.
                ring.begin_again();
                *consumer = Consumer::new(ring.parts()).unwrap();
                if let Some(fresh) = unless_peer(Producer::new(ring.parts())) {
                    *producer = fresh;
                }
            }
        }
        Some(())
    }
}

/// A range that the caller may not use, or what else went wrong.
fn refused_range(error: Error) -> Result<Error> {
    if matches!(error, Error::Range { .. }) { Ok(error) } else { Err(error) }
}

struct Slots {
    ring: Ring,
    producer: SlotProducer,
    consumer: SlotConsumer,
}

impl Slots {
    fn new(make: &mut dyn FnMut(usize) -> Memory, begin: u64) -> Slots {
        let ring = Ring::new(make, CAPACITY, begin);
        let producer = SlotProducer::new(ring.parts(), STRIDE).unwrap();
        let consumer = SlotConsumer::new(ring.parts(), STRIDE).unwrap();
        Slots { ring, producer, consumer }
    }

    fn step(&mut self, input: Input<'_>) -> Option<()> {
        let mut buffer = [7; STRIDE];
        let len = usize::from(input.next()?) % (STRIDE - 7);
        match input.next()? % 8 {
            0..3 => self.ring.scribble(input, self.producer.position())?,
            3 => within(self.producer.push(&buffer[..len]).map(usize::from), 1),
            4 => {
                if !self.producer.bytes().publish(0) {
                    within(self.producer.bytes().recall().map(|bytes| bytes.len()), CAPACITY);
                }
            }
            5 | 6 => match self.consumer.pop(&mut buffer[..len]) {
                // A message for which the caller's buffer is too small.
                Err(Error::Size { .. }) => self.consumer.bytes().consume(STRIDE),
                popped => within(popped.map(|len| len.unwrap_or(0)), len),
            },
            _ => self.consumer.bytes().publish_head(),
        }
        Some(())
    }
}

struct Events {
    ours: Memory,
    theirs: Memory,
    poster: EventPoster,
    taker: EventTaker,
    rescan: RescanWord,
    taken: u64,
}

impl Events {
    fn new(make: &mut dyn FnMut(usize) -> Memory) -> Events {
        let (ours, theirs) = (make(EVENT_RING_LEN), make(EVENT_RING_LEN));
        let poster = EventPoster::new(&ours, 0, &theirs, 0).unwrap();
        let taker = EventTaker::new(&ours, 0, &theirs, 0).unwrap();
        let rescan = RescanWord::new(&ours, 0).unwrap();
        Events { ours, theirs, poster, taker, rescan, taken: 0 }
    }

    fn step(&mut self, input: Input<'_>) -> Option<()> {
        match input.next()? % 6 {
            0 | 1 => {
                let at = [0x00, 0x08, 0x10, 0x18, 0x40, 0x80, 0xc0, 0xc8][usize::from(input.next()? % 8)];
                let memory = if input.next()? & 1 == 0 { &self.ours } else { &self.theirs };
                scribble(&memory.word64(at).unwrap(), input, self.taken * 8)?;
            }
            2 => within(self.poster.post(value(input, 0)?).map(usize::from), 1),
            3 => {
                let taken = unless_peer(self.taker.take()).flatten();
                self.taken += u64::from(taken.is_some());
            }
            4 => {
                let _ = (self.taker.has_news(), self.taker.take_rescan());
            }
            _ => {
                self.rescan.post();
            }
        }
        Some(())
    }
}

struct Watching {
    memory: Memory,
    watch: Watch,
}

impl Watching {
    fn new(make: &mut dyn FnMut(usize) -> Memory) -> Watching {
        let memory = make(watch_len(WATCHED));
        let watch = Watch::new(&memory, 0, WATCHED).unwrap();
        Watching { memory, watch }
    }

    fn step(&mut self, input: Input<'_>) -> Option<()> {
        let at = usize::from(input.next()?) * 5;
        match input.next()? % 4 {
            0 => scribble(&self.memory.word64(at / 40 * 8 % self.memory.len()).unwrap(), input, 0)?,
            1 => self.watch.word(at).iter().for_each(|word| word.arm()),
            2 => {
                let _ = self.watch.word(at).map(|word| (word.fire(), word.disarm()));
            }
            _ => {
                let len = usize::from(input.next()?) * 6;
                let (mut fired, last) = (0, (at + len).saturating_sub(1));
                self.watch.fire(at, len, |offset| {
                    fired += 1;
                    assert!((at / 4 * 4..=last).contains(&offset), "a word outside the range fired");
                });
                assert!(fired <= len / 4 + 2);
            }
        }
        Some(())
    }
}

fn len(input: Input<'_>) -> Option<usize> {
    Some(usize::from(input.next()?) % 150)
}

/// A value a bad peer would think of: an extreme, something near the right one, or anything.
fn value(input: Input<'_>, near: u64) -> Option<u64> {
    let small = input.next()? as i8 as u64;
    Some(match input.next()? % 8 {
        0 => small & 1,
        1 => u64::MAX.wrapping_add(small),
        2 => FROZEN.wrapping_add(small),
        3 => FROZEN | near.wrapping_add(small) & POSITION,
        4 if small & 1 == 0 => FROZEN | WANTED | near & POSITION,
        4 => (0..8).try_fold(0, |value, _| Some(value << 8 | u64::from(input.next()?)))?,
        _ => near.wrapping_add(small),
    })
}

fn scribble(word: &Word64, input: Input<'_>, near: u64) -> Option<()> {
    word.store(value(input, near)?, Ordering::Relaxed);
    Some(())
}

fn within(outcome: Result<usize>, most: usize) {
    if let Some(count) = unless_peer(outcome) {
        assert!(count <= most, "{count} is more than {most}");
    }
}

/// The only error that a peer can cause.
fn unless_peer<T>(outcome: Result<T>) -> Option<T> {
    match outcome {
        Ok(answer) => Some(answer),
        Err(Error::Peer(_)) => None,
        Err(other) => panic!("the peer caused {other:?}"),
    }
}
