//! Real cards whose packets pass a way that loses, doubles and reorders them: every operation is done once, and in order.
//!
//! The way is this test: it listens as a card does, and passes on what comes to the card behind it. Handles name the way instead of
//! the card, so that neither card knows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use sidestep_fabric::queue::Kind;
use sidestep_fabric::{Channel, ChannelOptions, Listener, Node};
use sidestep_sys::clock;
use sidestep_testkit::process::{PATIENCE_NS, full, seed_or};
use sidestep_testkit::seeded::Seeded;
use sidestep_vmmc::process::{Attach, Handle, Process, Remote};
use sidestep_vmmc::{Address, Export, PAGE, Rights, Work};

mod card;

#[test]
fn role() {
    card::enter();
}

/// What a way has done to packets.
#[derive(Debug, Default, Clone, Copy)]
struct Done {
    passed: u64,
    lost: u64,
    doubled: u64,
    late: u64,
}

/// A way to a card, until it is dropped or the card is gone.
struct Way {
    name: String,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Done>,
}

/// How a card introduces itself, and the queue that it has to another.
const CARD: &[u8] = b"c";
const QUEUE: ChannelOptions = ChannelOptions { capacity: 64 * 8192, kind: Kind::Slots(8192) };

impl Way {
    fn to(card: &str, seed: u64) -> Way {
        let name = format!("shm:way-to-{card}");
        let (stop, card) = (Arc::new(AtomicBool::new(false)), format!("shm:vmmc-{card}"));
        let node = Node::new().unwrap();
        let listener = node.listen(&name).unwrap();
        let asked = stop.clone();
        let thread = std::thread::spawn(move || serve(&node, &listener, &card, &asked, seed));
        Way { name, stop, thread }
    }

    /// The handle of a buffer, by this way.
    fn handle(&self, handle: &Handle) -> Handle {
        // Process, buffer and key; then the address of the card.
        let bytes = [&handle.to_bytes()[..24], self.name.as_bytes()].concat();
        Handle::from_bytes(&bytes).unwrap()
    }

    fn end(self) -> Done {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn serve(node: &Node, listener: &Listener, card: &str, stop: &AtomicBool, seed: u64) -> Done {
    let deadline = Some(clock::now() + PATIENCE_NS);
    let request = listener.wait(deadline).unwrap();
    let mut near = Channel::accept(request, QUEUE, &[], deadline).unwrap();
    let mut far = Channel::connect(node, card, QUEUE, CARD, deadline).unwrap();
    let (mut random, mut done, mut held) = (Seeded::new(seed), Done::default(), [VecDeque::new(), VecDeque::new()]);
    while !stop.load(Ordering::Relaxed) {
        let moved = pass(&mut near, &mut far, &mut held[0], &mut random, &mut done)
            | pass(&mut far, &mut near, &mut held[1], &mut random, &mut done);
        if !moved {
            std::thread::sleep(std::time::Duration::from_micros(30));
        }
    }
    done
}

/// Passes on what has come, after a look at each packet; `false` if nothing has.
fn pass(
    from: &mut Channel,
    to: &mut Channel,
    held: &mut VecDeque<(u64, Vec<u8>)>,
    random: &mut Seeded,
    done: &mut Done,
) -> bool {
    let mut any = false;
    let mut send = |bytes: &[u8]| {
        // What finds no room is one more that is lost.
        let _ = to.sender.try_send_message(bytes);
    };
    let mut buffer = vec![0; 8192];
    while let Ok(Some(len)) = from.receiver.try_receive_message(&mut buffer) {
        any = true;
        done.passed += 1;
        let packet = &buffer[..len];
        match random.below(100) {
            0..10 => done.lost += 1,
            10..20 => {
                done.doubled += 1;
                send(packet);
                send(packet);
            }
            // Behind one to four that come after it; or alone, if none does for longer than the timer of the cards.
            20..30 => {
                done.late += 1;
                held.push_back((clock::now() + 1_000_000, packet.to_vec()));
                continue;
            }
            _ => send(packet),
        }
        if random.chance(300)
            && let Some((_, late)) = held.pop_front()
        {
            send(&late);
        }
    }
    while held.front().is_some_and(|(until, _)| *until < clock::now()) {
        any = true;
        let (_, late) = held.pop_front().expect("it is there");
        send(&late);
    }
    any
}

const MEMORY: usize = 256 * PAGE;
/// Operations that are under way at once, each with a part of the memory of its own for what it sends or fetches.
const SLOTS: u64 = 8;
const SLOT: u64 = 4 * PAGE as u64;
/// The buffer of each process, behind the slots.
const BUFFER: u64 = SLOTS * SLOT;
const LEN: u64 = 40 * PAGE as u64;

/// What one side has under way.
struct Under {
    work: Work,
    /// What a fetch must bring, and where to.
    fetched: Option<(u64, Vec<u8>)>,
}

/// Posts operations at random to the buffer of another, and knows what must become of it.
fn post(process: &mut Process, to: &Remote, operations: u64, random: &mut Seeded) -> (Vec<u8>, Vec<(u64, u64)>) {
    let (mut oracle, mut notices, mut under) = (vec![0; LEN as usize], Vec::new(), VecDeque::new());
    for number in 0..operations {
        let len = if random.chance(300) { random.below(33) } else { 33 + random.below(SLOT - 33) };
        let (at, slot) = (random.below(LEN - len), number % SLOTS * SLOT);
        if under.len() as u64 >= SLOTS {
            finish(process, under.pop_front().unwrap());
        }
        let there = at as usize..(at + len) as usize;
        let next = if random.chance(600) {
            let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            process.write(Address(slot), &bytes).unwrap();
            oracle[there].copy_from_slice(&bytes);
            let notify = random.chance(500);
            notices.extend(notify.then_some((at, len)));
            Under { work: process.post_send(Address(slot), len, to, at, notify).unwrap(), fetched: None }
        } else {
            let work = process.post_fetch(to, at, len, Address(slot)).unwrap();
            Under { work, fetched: Some((slot, oracle[there].to_vec())) }
        };
        under.push_back(next);
    }
    under.into_iter().for_each(|under| finish(process, under));
    (oracle, notices)
}

fn finish(process: &mut Process, Under { work, fetched }: Under) {
    process.wait(work, Some(clock::now() + PATIENCE_NS)).expect("an operation that ends well");
    if let Some((slot, expected)) = fetched {
        let mut found = vec![0; expected.len()];
        process.read(Address(slot), &mut found).unwrap();
        assert!(found == expected, "{} bytes were fetched that are others", found.len());
    }
}

/// Both processes send to and fetch from each other at once.
fn round(seed: u64, operations: u64) -> Vec<Done> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let names = ["a", "b"].map(|side| format!("faulty-{}-{number}-{side}", std::process::id()));
    let mut processes = names.each_ref().map(|name| {
        let start = Some(card::command(name, None));
        Process::attach(Attach { name, memory: MEMORY, start }).unwrap()
    });
    let ways = [Way::to(&names[0], seed), Way::to(&names[1], seed + 1)];
    let export = Export { address: Address(BUFFER), len: LEN, rights: Rights::ALL, notify: true };
    let buffers = processes.each_mut().map(|process| process.export(export).unwrap());
    let handles = [0, 1].map(|side: usize| ways[side].handle(buffers[side].handle()));
    let at_work = AtomicU32::new(2);
    let side = |(at, process): (usize, &mut Process)| {
        let to = process.import(&handles[1 - at]).unwrap();
        let sent = post(process, &to, operations, &mut Seeded::new(seed ^ (17 + at as u64)));
        at_work.fetch_sub(1, Ordering::Release);
        // Who takes no notifications keeps the other from ending what asks for them.
        let mut told = Vec::new();
        loop {
            let is_last = at_work.load(Ordering::Acquire) == 0;
            if is_last {
                // Its answer comes after every notification of what has ended.
                process.standing().unwrap();
            }
            while let Ok(notice) = process.wait_notice(Some(clock::now() + 1_000_000)) {
                told.push((notice.at, notice.len));
            }
            if is_last {
                return (sent, told);
            }
        }
    };
    let sides = std::thread::scope(|scope| {
        let side = &side;
        let sides: Vec<_> = processes.iter_mut().enumerate().map(|own| scope.spawn(move || side(own))).collect();
        sides.into_iter().map(|side| side.join().unwrap()).collect::<Vec<_>>()
    });
    for (side, process) in processes.iter_mut().enumerate() {
        let (((oracle, asked), _), (_, told)) = (&sides[1 - side], &sides[side]);
        let mut found = vec![0; LEN as usize];
        process.read(Address(BUFFER), &mut found).unwrap();
        assert!(found == *oracle, "seed {seed}: the buffer of side {side} is another");
        assert_eq!(told, asked, "seed {seed}: other notifications");
        let standing = process.standing().unwrap();
        assert!(standing.resent > 0, "seed {seed}: {standing:?}");
    }
    drop(processes);
    ways.map(Way::end).into()
}

#[test]
fn what_a_bad_way_does_to_packets_nobody_sees() {
    let (rounds, operations) = if full() { (20, 2_000) } else { (1, 150) };
    let seed = seed_or(3);
    println!("SIDESTEP_SEED={seed}");
    for number in 0..rounds {
        for done in round(seed + 100 * number, operations) {
            println!("{done:?}");
            assert!(done.lost > 0 && done.doubled > 0 && done.late > 0, "{done:?}");
        }
    }
}
