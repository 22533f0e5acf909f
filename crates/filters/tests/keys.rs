//! Streams that a description deals by key: where the key lies in a buffer, and what gets to which copy.

mod kit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use sidestep_filters::{
    ANY, Graph, Group, Key, Kind, Kinds, Place, Schedule, Settings, Transport, builtin, function, parse,
};

/// What each copy of `keep` got, one buffer after the other.
type Found = Arc<Mutex<BTreeMap<usize, Vec<Vec<u8>>>>>;

const WORDS: [&str; 7] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"];

/// Lines with a number and a word, as buffers; the last one is empty.
fn text() -> Vec<String> {
    let lines: Vec<String> =
        (0..200).map(|number| format!("{number:03} {} x\n", WORDS[number % WORDS.len()])).collect();
    lines.chunks(17).map(<[String]>::concat).chain([String::new()]).collect()
}

/// `text` gives lines, many in a buffer; `records` gives numbers with a key of four bytes; `keep` keeps what it gets.
fn kinds(found: &Found) -> Kinds {
    let found = found.clone();
    let text = Kind::new("gives lines", |_| {
        Ok(function(|work| {
            for buffer in text() {
                work.outputs.port("out")?.put(buffer.as_bytes())?;
            }
            Ok(())
        }))
    });
    let records = Kind::new("gives records", |_| {
        Ok(function(|work| {
            for number in 0..100u32 {
                let mut buffer = work.outputs.reserve()?;
                buffer.fill_words(0, 16, |_| [number as u8; 8])?;
                buffer.copy_in(4, &(number % 10).to_le_bytes())?;
                buffer.copy_in(8, &number.to_le_bytes())?;
                buffer.commit(12)?;
            }
            Ok(())
        }))
    });
    let keep = Kind::new("keeps buffers", move |_| {
        let found = found.clone();
        Ok(function(move |work| {
            let mut own = Vec::new();
            while let Some(mut buffer) = work.inputs.take()? {
                let mut bytes = Vec::new();
                buffer.read_into(&mut bytes)?;
                own.push(bytes);
            }
            found.lock().unwrap().insert(work.copy.0, own);
            Ok(())
        }))
    });
    builtin::kinds()
        .with("text", text.output("out", "lines"))
        .with("records", records.output("out", "records"))
        .with("keep", keep.input("in", ANY))
}

#[test]
fn role() {
    sidestep_filters::worker::enter(&kinds(&Found::default()));
}

fn run(graph: Graph) -> BTreeMap<usize, Vec<Vec<u8>>> {
    let found = Found::default();
    let mut group = Group::start(graph, &kinds(&found), kit::launcher()).unwrap();
    for outcome in group.run([Settings::default()]).unwrap() {
        outcome.result.unwrap();
    }
    drop(group);
    std::mem::take(&mut *found.lock().unwrap())
}

/// The lines of each copy, by the second word. Within a copy they keep their order.
fn assert_lines(found: &BTreeMap<usize, Vec<Vec<u8>>>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (copy, buffers) in found {
        let text = String::from_utf8(buffers.concat()).unwrap();
        let numbers: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        all.extend(numbers.into_iter().map(str::to_owned));
        for line in text.lines() {
            let word = line.split(' ').nth(1).unwrap();
            assert_eq!(*seen.entry(word.to_owned()).or_insert(*copy), *copy, "{word} has two copies");
        }
    }
    assert_eq!((seen.len(), all.len()), (WORDS.len(), 200));
    assert!(found.values().filter(|buffers| !buffers.concat().is_empty()).count() > 1, "one copy has all keys");
}

#[test]
fn a_field_of_a_line_is_its_key() {
    for transport in [Transport::Channel, Transport::Tcp, Transport::Vi] {
        for place in [Place::Thread, Place::Shared("one".into())] {
            let graph = Graph::new("fields")
                .over(transport)
                .filter("text", "text", 1, place)
                .filter("keep", "keep", 3, Place::Thread)
                .stream("text.out", "keep.in", 512)
                .queued(1)
                .keyed(Key::Field { number: 2, separator: None });
            assert_lines(&run(graph));
        }
    }
}

#[test]
fn bytes_of_a_buffer_are_its_key() {
    let graph = Graph::new("bytes")
        .filter("records", "records", 1, Place::Thread)
        .filter("keep", "keep", 4, Place::Thread)
        .stream("records.out", "keep.in", 16)
        .keyed(Key::Bytes { at: 4, bytes: 4 });
    let found = run(graph);
    let mut copies: BTreeMap<[u8; 4], usize> = BTreeMap::new();
    let mut numbers = Vec::new();
    for (copy, buffers) in &found {
        for buffer in buffers {
            assert_eq!(buffer.len(), 12);
            let key = buffer[4..8].try_into().unwrap();
            assert_eq!(*copies.entry(key).or_insert(*copy), *copy);
            numbers.push(u32::from_le_bytes(buffer[8..12].try_into().unwrap()));
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<u32>>());
}

/// The same from a file, and through filters that know nothing of keys: a program, and copies of `pass`.
#[test]
fn a_file_says_where_the_key_lies() {
    let text = r#"
[[filter]]
name = "text"
kind = "text"
[[filter]]
name = "cat"
kind = "program"
settings = { command = ["cat"] }
[[filter]]
name = "pass"
kind = "pass"
copies = 2
[[filter]]
name = "keep"
kind = "keep"
copies = 3
[[stream]]
from = "text.out"
to = "cat.in"
[[stream]]
from = "cat.out"
to = "pass.in"
schedule = "keyed"
key = { field = 2 }
[[stream]]
from = "pass.out"
to = "keep.in"
schedule = "keyed"
key = { field = 2, separator = " " }
"#;
    let graph = parse(text).unwrap();
    assert_eq!(graph.streams[2].key, Some(Key::Field { number: 2, separator: Some(b' ') }));
    let found = run(graph);
    let mut copies: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (copy, buffers) in &found {
        for line in String::from_utf8(buffers.concat()).unwrap().lines() {
            copies.entry(line.split(' ').nth(1).unwrap().to_owned()).or_default().insert(*copy);
        }
    }
    assert!(copies.len() == WORDS.len() && copies.values().all(|copies| copies.len() == 1), "{copies:?}");
}

/// Each copy answers every buffer by one, an empty one too, where the stream behind is ordered.
#[test]
fn an_ordered_stream_may_be_keyed() {
    let graph = Graph::new("ordered")
        .filter("text", "text", 1, Place::Thread)
        .filter("pass", "pass", 3, Place::Thread)
        .filter("keep", "keep", 1, Place::Thread)
        .stream("text.out", "pass.in", 512)
        .keyed(Key::Field { number: 2, separator: None })
        .stream("pass.out", "keep.in", 512)
        .dealt(Schedule::Demand)
        .in_order();
    let found = run(graph);
    let text = String::from_utf8(found[&0].concat()).unwrap();
    assert_eq!(text.lines().count(), 200);
    // The lines of a buffer come together, those of the one before first.
    let buffer = |line: &str| line[..3].parse::<usize>().unwrap() / 17;
    assert!(text.lines().map(buffer).is_sorted(), "{text}");
}
