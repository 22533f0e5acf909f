//! What a process may say to its card that the library never says, and what happens when many come at once.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use super::words::Word;
use super::*;
use crate::error::{Error, Fault, Result};
use crate::id::{Address, BufferId, Cbh, Key, NodeId, PAGE, ProcessId};

/// A card of this process, in a thread.
fn card() -> (String, JoinHandle<Result<crate::driver::Timing>>) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("unit-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let own = name.clone();
    (name, std::thread::spawn(move || serve(&own, CardOptions::default())))
}

fn attach(name: &str) -> Process {
    loop {
        match Process::attach(Attach { name, memory: 4 * PAGE, start: None }) {
            Ok(process) => return process,
            Err(Error::Memory(sidestep_shm::Error::NobodyListens(_)) | Error::Fabric(_)) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_card_that_nobody_imported_is_out_of_reach() {
    let (name, card) = card();
    let mut process = attach(&name);
    let cbh = Cbh { process: ProcessId(1), buffer: BufferId(1) };
    let nowhere = Remote { node: NodeId(77), cbh, key: Key(1) };
    for len in [4, 4096] {
        let sent = process.send(Address(0), len, &nowhere, 0, false);
        assert!(matches!(sent, Err(Error::Refused(Fault::Unreachable))), "{sent:?}");
    }
    drop(process);
    card.join().unwrap().unwrap();
}

/// A card process has no static tables: it says so, and does not lie in wait for packets that nothing could translate.
#[test]
fn a_baseline_is_refused() {
    let options = CardOptions { config: crate::config::Config::baseline(), ..CardOptions::default() };
    let said = serve("unit-baseline", options).unwrap_err().to_string();
    assert!(said.contains("static tables") && said.contains("caches"), "{said}");
    let link = crate::link::VmmcLink::open("shm", options.config).unwrap_err().to_string();
    assert_eq!(link, said);
}

#[test]
fn processes_that_come_at_once_all_come_in() {
    for _ in 0..5 {
        let (name, card) = card();
        let first = attach(&name);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| attach(&name).standing().unwrap());
            }
        });
        drop(first);
        card.join().unwrap().unwrap();
    }
}

/// A process that asks and takes no answer is not heard after a while, and the others do not notice.
#[test]
fn a_process_that_takes_no_answers_costs_the_others_nothing() {
    let (name, card) = card();
    let (mut greedy, mut other) = (attach(&name), attach(&name));
    let mut taken = 0;
    let word = Word::Count { request: 1 }.emit();
    for _ in 0..200 {
        while greedy.channel.sender.try_send_message(&word).unwrap() {
            taken += 1;
            assert!(taken < 10_000, "the card takes words without end");
        }
        other.standing().unwrap();
    }
    assert!(taken >= 1024, "{taken} words were taken");
    drop((greedy, other));
    card.join().unwrap().unwrap();
}
