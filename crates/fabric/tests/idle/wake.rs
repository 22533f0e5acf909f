//! Two processes wake each other in turns, after pauses that end before, in and after the other's look.
//!
//! Every answer is waited for, so a wake-up that is lost is not made good by the next one: it shows as a time-out.

use std::{sync::atomic::Ordering, thread, time::Duration};

use sidestep_fabric::{
    Access, Aperture, Channel, ChannelOptions, Cookie, EventQueue, Mode, Node, Region, Rights, Tripwire,
    channel::private_of, queue::Kind,
};
use sidestep_shm::{Word32, wait::Patience};
use sidestep_sys::clock;
use sidestep_testkit::process::{Child, PATIENCE_NS, Role, seed};
use sidestep_testkit::seeded::Seeded;

use crate::soon;

const WAKE_UPS: u32 = 10_000;

/// Wakes the other process and is woken by it, [`WAKE_UPS`] times.
pub fn wake(how: &str) {
    let seed = seed();
    println!("seed {seed}");
    let name = format!("shm:wake-{how}-{}", std::process::id());
    let node = Node::new().unwrap();
    let listener = node.listen(&name).unwrap();
    let mut child = Child::start("waker", &[&name, how]);
    let region = Region::new(&node, 64).unwrap();
    let request = listener.wait(soon()).unwrap();
    let theirs = Cookie::from_bytes(private_of(&request)).unwrap();
    let private = region.cookie(Rights::ALL).to_bytes();
    let channel = Channel::accept(request, options(how), &private, soon()).unwrap();
    let mut side = Side::new(&node, how, channel, region, &theirs);
    let mut random = Seeded::new(seed);
    let mut took = Vec::new();
    for turn in 1..=WAKE_UPS {
        pause(random.below(200_000));
        let start = clock::now();
        side.call(turn);
        side.hear(turn, &mut random)
            .unwrap_or_else(|error| panic!("{how}: turn {turn} was lost, seed {seed}: {error}"));
        took.push(clock::now() - start);
    }
    took.sort_unstable();
    let at = |share: usize| took[(took.len() - 1) * share / 1000] as f64 / 1e3;
    println!("{how}: {WAKE_UPS} there and back, in us: median {:.1}, 99% {:.1}, max {:.1}", at(500), at(990), at(1000));
    drop(side);
    child.wait_success();
}

/// The other side.
pub fn waker(role: Role) {
    let how = &role.arguments[1];
    let node = Node::new().unwrap();
    let region = Region::new(&node, 64).unwrap();
    let private = region.cookie(Rights::ALL).to_bytes();
    let channel = Channel::connect(&node, &role.arguments[0], options(how), &private, soon()).unwrap();
    let theirs = Cookie::from_bytes(&channel.private()).unwrap();
    let mut side = Side::new(&node, how, channel, region, &theirs);
    let mut random = Seeded::new(seed());
    for turn in 1..=WAKE_UPS {
        side.hear(turn, &mut random).unwrap();
        if random.chance(500) {
            pause(random.below(200_000));
        }
        side.call(turn);
    }
    let _ = side.channel.endpoint.wait_closed(soon());
}

/// One side of the game.
struct Side {
    how: String,
    channel: Channel,
    region: Region,
    aperture: Aperture,
    tripwire: Tripwire,
    events: EventQueue,
}

impl Side {
    fn new(node: &Node, how: &str, channel: Channel, region: Region, theirs: &Cookie) -> Side {
        let events = EventQueue::new(node);
        let mode = if how == "event" { Mode::Repeating } else { Mode::Once };
        let tripwire = Tripwire::new(&region, 0, Access::Write, mode).unwrap();
        if how == "event" {
            events.attach_tripwire(&tripwire, 7);
        }
        // The other side serves this: it waits for the first turn by then, or opens its own.
        let aperture = Aperture::open(&channel.endpoint, theirs, soon()).unwrap();
        Side { how: how.to_string(), channel, region, aperture, tripwire, events }
    }

    fn call(&mut self, turn: u32) {
        let bytes = turn.to_le_bytes();
        match self.how.as_str() {
            "stream" => self.channel.sender.send(&bytes, soon()).unwrap(),
            "slots" => self.channel.sender.send_message(&bytes, soon()).unwrap(),
            "message" => self.channel.endpoint.post(&bytes).unwrap(),
            _ => self.aperture.store32(0, turn).unwrap(),
        }
    }

    fn hear(&mut self, turn: u32, random: &mut Seeded) -> sidestep_fabric::Result<()> {
        if random.chance(100) {
            self.channel.receiver.set_patience(if random.chance(500) { Patience::NONE } else { Patience::DEFAULT });
        }
        let deadline = Some(clock::now() + PATIENCE_NS);
        let mut bytes = [0; 4];
        let word = self.region.word32(0)?;
        match self.how.as_str() {
            "stream" => self.channel.receiver.receive_exact(&mut bytes, deadline)?,
            "slots" => drop(self.channel.receiver.receive_message(&mut bytes, deadline)?),
            "message" => bytes.copy_from_slice(&self.channel.endpoint.wait_message(deadline)?),
            "tripwire" => {
                self.tripwire.wait(deadline, || has(&word, turn))?;
                // A firing of the turn before may come late: then the word decides.
                while !has(&word, turn) {
                    self.tripwire.wait(deadline, || has(&word, turn))?;
                }
                bytes = turn.to_le_bytes();
            }
            _ => {
                while !has(&word, turn) {
                    assert_eq!(self.events.wait(deadline)?.token, 7);
                }
                bytes = turn.to_le_bytes();
            }
        }
        assert_eq!(u32::from_le_bytes(bytes), turn);
        Ok(())
    }
}

fn has(word: &Word32, turn: u32) -> bool {
    word.load(Ordering::Acquire) == turn
}

/// Short ones are spun out, so that they end at any moment of the other side's look.
fn pause(ns: u64) {
    if ns > 150_000 {
        thread::sleep(Duration::from_nanos(ns));
    } else {
        let end = clock::now() + ns;
        while clock::now() < end {
            std::hint::spin_loop();
        }
    }
}

fn options(how: &str) -> ChannelOptions {
    let kind = if how == "slots" { Kind::Slots(128) } else { Kind::Stream };
    ChannelOptions { capacity: 4096, kind }
}
