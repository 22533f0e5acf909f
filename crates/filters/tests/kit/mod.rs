//! Kinds that the tests use, and what their sinks have found.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sidestep_filters::{
    ANY_WHOLE, Accepts, Graph, Group, Kind, Kinds, Launcher, Place, Schedule, Settings, Transport, function,
};

/// What the sinks of a group got, by unit of work and copy.
pub type Found = Arc<Mutex<BTreeMap<(u64, usize), Vec<u64>>>>;

/// What the sinks got, by unit of work.
pub fn all(found: &Found) -> BTreeMap<u64, Vec<u64>> {
    let mut all: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for ((unit, _), values) in found.lock().unwrap().iter() {
        all.entry(*unit).or_default().extend(values);
    }
    all
}

/// `numbers` gives numbers, `mix` makes others of them, `gather` keeps them.
pub fn kinds(found: &Found) -> Kinds {
    let found = found.clone();
    Kinds::new()
        .with(
            "numbers",
            Kind::new("gives numbers from 0 on, shared by its copies", |settings| {
                let most: u64 = settings.number("most", 1000)?;
                Ok(function(move |work| {
                    let (copy, copies) = work.copy;
                    let most = work.unit.settings.number("most", most)?;
                    for number in (copy as u64..most).step_by(copies) {
                        let output = work.outputs.port("out")?;
                        let mut buffer = output.reserve_for(number % 7)?;
                        buffer.copy_in(0, &number.to_le_bytes())?;
                        buffer.fill(8, buffer.capacity() - 8, |_, bytes| bytes.fill(number as u8))?;
                        let len = buffer.capacity();
                        buffer.commit(len)?;
                    }
                    Ok(())
                }))
            })
            .keyed_output("out", "numbers")
            .setting("most", ANY_WHOLE)
            .unit_setting("most", ANY_WHOLE),
        )
        .with(
            "mix",
            Kind::new("makes another number of each", |settings| {
                let pause: u64 = settings.number("pause_us", 0)?;
                let fatal: Option<u64> = settings.text("fatal").and_then(|text| text.parse().ok());
                let panics = settings.text("panics").is_some();
                Ok(function(move |work| {
                    while let Some(mut buffer) = work.inputs.take()? {
                        let number = u64::from_le_bytes(buffer.array(0)?);
                        let same = buffer.fold(0, |at, piece| {
                            let body = &piece[if at == 0 { 8.min(piece.len()) } else { 0 }..];
                            assert!(
                                body.iter().all(|byte| *byte == number as u8),
                                "the buffer of {number} is another's"
                            );
                            at + piece.len()
                        })?;
                        assert_eq!(same, buffer.len());
                        if fatal == Some(number) && work.unit.settings.text("safe").is_none() {
                            assert!(!panics, "number {number} is fatal");
                            return Err(sidestep_filters::Failure::new(format_args!("number {number} is fatal")));
                        }
                        if pause > 0 {
                            std::thread::sleep(Duration::from_micros(pause));
                        }
                        let mut out = work.outputs.port("out")?.reserve_for(number)?;
                        out.copy_in(0, &mixed(number).to_le_bytes())?;
                        out.commit(8)?;
                    }
                    Ok(())
                }))
            })
            .input("in", "numbers")
            .keyed_output("out", "mixed")
            .setting("pause_us", ANY_WHOLE)
            .setting("fatal", ANY_WHOLE)
            .setting("panics", Accepts::Text)
            .unit_setting("safe", Accepts::Text),
        )
        .with(
            "gather",
            Kind::new("keeps what it gets", move |_| {
                let found = found.clone();
                Ok(function(move |work| {
                    let mut own = Vec::new();
                    while let Some(mut buffer) = work.inputs.take()? {
                        own.push(u64::from_le_bytes(buffer.array(0)?));
                    }
                    // A unit that is repeated begins anew.
                    found.lock().unwrap().insert((work.unit.number, work.copy.0), own);
                    Ok(())
                }))
            })
            .input("in", "mixed"),
        )
}

pub fn mixed(number: u64) -> u64 {
    (number ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// `numbers` to `mix` to `gather`.
pub fn line(copies: [usize; 3], places: [Place; 3], most: u64, schedule: Schedule) -> Graph {
    let [first, second, third] = places;
    Graph::new("line")
        .filter("numbers", "numbers", copies[0], first)
        .set("most", most)
        .filter("mix", "mix", copies[1], second)
        .filter("gather", "gather", copies[2], third)
        .stream("numbers.out", "mix.in", 256)
        .dealt(schedule)
        .stream("mix.out", "gather.in", 64)
        .dealt(schedule)
}

/// The same with `mix` in processes.
pub fn apart(copies: usize, most: u64, schedule: Schedule, transport: Transport) -> Graph {
    line([1, copies, 1], [Place::Thread, Place::Process, Place::Thread], most, schedule).over(transport)
}

pub fn expected(most: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..most).map(mixed).collect();
    all.sort_unstable();
    all
}

/// This test program again: its test `role` makes it a worker.
pub fn launcher() -> Launcher {
    let program = std::env::current_exe().unwrap();
    let words = [program.to_str().unwrap(), "role", "--exact", "--nocapture", "--test-threads=1"];
    Launcher::command(&words)
}

/// For the test `role` of each file.
pub fn role() {
    sidestep_filters::worker::enter(&kinds(&Found::default()));
}

/// Runs units that must all go well, and what the sinks found.
pub fn run(graph: Graph, units: usize) -> BTreeMap<u64, Vec<u64>> {
    let found = Found::default();
    let mut group = Group::start(graph, &kinds(&found), launcher()).unwrap();
    for outcome in group.run(vec![Settings::default(); units]).unwrap() {
        outcome.result.unwrap();
    }
    drop(group);
    let mut found = all(&found);
    found.values_mut().for_each(|values| values.sort_unstable());
    found
}
